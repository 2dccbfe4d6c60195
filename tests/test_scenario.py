"""Scenarios: what a file says happens at its communication point, and what it asserts is judged."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cosim
from cosim.assertion import judge
from cosim.cli import main
from cosim.diagnostic import CosimError, StageError, UsageError
from cosim.result import Column, Results
from cosim.scenario import Assertion, AssertionKind, Condition, Scenario
from cosim.scenario_file import read_scenario
from cosim.scenario_run import ScenarioRun

STAGE = '''#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Y"
)
def Scope "Source" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = """model Ramp
        parameter Real k = 2; input Real b; output Real y;
      equation y = k*time + b; end Ramp;"""
}
def Scope "Sink" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = """model Sink
        input Real u; input Real v(start=3); output Real y; output Real z;
      equation y = u; z = v; end Sink;"""
    double inputs:u.connect = </Source.outputs:y>
}
'''
RUN = '[run]\nstop_time = 2\nstep_size = "1/10"\n'


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    path = tmp_path_factory.mktemp("stage") / "stage.usda"
    path.write_text(STAGE)
    return cosim.load(path)


@pytest.fixture
def scenario(tmp_path):
    def write(text, run=RUN):
        path = tmp_path / "scenario.toml"
        path.write_text(run + text)
        return path

    return write


@pytest.fixture
def drive(system, scenario):
    def run(text, **options):
        driven = ScenarioRun(system, read_scenario(scenario(text)), **options)
        with driven.simulation:
            results = driven.run()
        return driven, results

    return run


TIME = np.arange(21) / 10
RAMP = 2 * TIME


def sink(results):
    """What the sink saw in the step that began at each communication point."""
    return results["/Sink.outputs:y"][1:]


def test_without_effect_a_scenario_is_the_plain_run_bit_for_bit(system, drive):
    plain = cosim.simulate(system, stop=2, step="1/10")
    _, nothing = drive("")
    _, inactive = drive('[[fault]]\nport = "/Source.outputs:y"\nkind = "gain"\nvalue = 3\nfrom = 50\n')
    for results in (nothing, inactive):
        assert results.names == plain.names
        assert results.values.tobytes() == plain.values.tobytes()
    assert np.allclose(sink(plain), RAMP[:-1])


# ---- faults


def fault(kind, *lines, port="/Source.outputs:y", span="from = 0.5\nto = 1.2"):
    return "\n".join(["[[fault]]", f'port = "{port}"', f'kind = "{kind}"', span, *lines, ""])


ACTIVE = (TIME[:-1] >= 0.5 - 1e-9) & (TIME[:-1] < 1.2 - 1e-9)
LATE = np.concatenate([np.zeros(3), RAMP])[: len(RAMP) - 1]
EXPECTED = {
    ("offset", "value = 10"): RAMP[:-1] + 10,
    ("gain", "value = -2"): -2 * RAMP[:-1],
    ("stuck",): np.full(20, RAMP[4]),
    ("stuck", "value = 7"): np.full(20, 7.0),
    ("drop-out",): np.full(20, RAMP[4]),
    ("drop-out", "value = 0"): np.zeros(20),
    ("delay", "seconds = 0.3"): LATE,
    ("quantise", "step = 0.5"): np.rint(RAMP[:-1] / 0.5) * 0.5,
}


@pytest.mark.parametrize("port", ["/Source.outputs:y", "/Sink.inputs:u", "/Source.y", "/Sink.u"])
@pytest.mark.parametrize("case", EXPECTED, ids="-".join)
def test_fault_changes_what_the_reader_sees_in_its_window_only(drive, case, port):
    kind, *lines = case
    _, results = drive(fault(kind, *lines, port=port))
    expected = np.where(ACTIVE, EXPECTED[case], RAMP[:-1])
    np.testing.assert_allclose(sink(results), expected, rtol=1e-12, atol=1e-12)
    # The fault is between the port and its reader: the port itself is right.
    np.testing.assert_allclose(results["/Source.outputs:y"], RAMP, rtol=1e-12, atol=1e-12)


def test_delay_from_the_start_sees_the_first_value(drive):
    _, results = drive(fault("delay", "seconds = 0.3", span=""))
    np.testing.assert_allclose(sink(results), LATE, atol=1e-12)


def test_noise_has_its_deviation_and_its_seed(drive):
    def noise(*lines, **options):
        text = fault("noise", "standard_deviation = 0.5", *lines, span="")
        _, results = drive(text, step="1/2000", stop=2, **options)
        return sink(results) - 2 * results.time[:-1]

    first = noise()
    assert np.std(first) == pytest.approx(0.5, rel=0.05)
    assert abs(np.mean(first)) < 0.05
    assert np.array_equal(first, noise())
    assert not np.array_equal(first, noise(seed=1))
    assert not np.array_equal(first, noise("seed = 9"))
    assert np.array_equal(noise("seed = 9"), noise("seed = 9", seed=4))


def test_drop_out_loses_a_share_of_the_samples_and_repeats_the_last_good_one(drive):
    _, results = drive(fault("drop-out", "probability = 0.3", span=""), step="1/1000")
    seen, true = sink(results), results["/Source.outputs:y"][:-1]
    lost = seen != true
    assert 0.25 < lost.mean() < 0.35
    last = true[0]
    for value, right, is_lost in zip(seen, true, lost, strict=True):
        last = last if is_lost else right
        assert value == last


def test_faults_of_a_port_apply_in_the_order_of_the_file(drive):
    gain, offset = fault("gain", "value = 2", span=""), fault("offset", "value = 1", span="")
    np.testing.assert_allclose(sink(drive(gain + offset)[1]), 2 * RAMP[:-1] + 1)
    np.testing.assert_allclose(sink(drive(offset + gain)[1]), 2 * (RAMP[:-1] + 1))
    # An output's fault comes before the input's.
    both = fault("offset", "value = 1", port="/Sink.inputs:u", span="") + gain
    np.testing.assert_allclose(sink(drive(both)[1]), 2 * RAMP[:-1] + 1)


def test_fault_of_an_unconnected_input_acts_on_its_authored_value(drive):
    _, results = drive(fault("offset", "value = 2", port="/Sink.inputs:v"))
    np.testing.assert_array_equal(results["/Sink.z"][1:], np.where(ACTIVE, 5.0, 3.0))
    text = '[start_values]\n"/Sink.inputs:v" = 4\n' + fault("gain", "value = 2", port="/Sink.inputs:v")
    np.testing.assert_array_equal(drive(text)[1]["/Sink.z"][1:], np.where(ACTIVE, 8.0, 4.0))


def test_fault_that_cannot_act_is_an_error_with_its_line(drive):
    with pytest.raises(UsageError, match=r"fault-delay-invalid.*(\n.*)*scenario.toml:4(\n.*)*0\.2 s or 0\.3 s"):
        drive(fault("delay", "seconds = 0.25"))
    with pytest.raises(StageError, match=r"fault-inert.*/Sink\.outputs:y"):
        drive(fault("gain", "value = 2", port="/Sink.outputs:y"))
    with pytest.raises(UsageError, match="fault-order-unsupported"):
        drive(fault("gain", "value = 2"), order="gauss-seidel")


def test_a_fault_that_overflows_stops_the_run_with_the_time(place, scenario, capsys):
    path = str(scenario(fault("gain", "value = 1e308", span="from = 1") + fault("gain", "value = 10", span="")))
    assert main(["run", "stage.usda", path, "--no-plot"]) == 3
    err = capsys.readouterr().err
    assert "input-not-finite" in err and "/Sink.inputs:u" in err and "t = 1 s" in err
    assert Results.from_csv(place / "runs" / "stage" / "trace.csv").time[-1] == pytest.approx(1.0)


# ---- stimuli, start values, events, stops


def test_stimuli_interpolate_hold_and_jump(drive, tmp_path):
    points = "[[0, 1], [1, 3], [1, 5], [1.5, 5]]"
    for how, expected in (
        ("linear", np.where(TIME < 1, 1 + 2 * TIME, 5.0)),
        ("hold", np.where(TIME < 1, 1.0, 5.0)),
    ):
        text = f'[inputs]\n"/Sink.inputs:v" = {{ points = {points}, interpolation = "{how}" }}\n'
        _, results = drive(text)
        assert results["/Sink.z"][0] == expected[0]
        np.testing.assert_allclose(results["/Sink.z"][1:], expected[:-1])
    (tmp_path / "table.csv").write_text("time,a,b\n0,0,10\n2,0,30\n")
    _, results = drive('[inputs]\n"/Sink.inputs:v" = { file = "table.csv", column = "b" }\n')
    np.testing.assert_allclose(results["/Sink.z"][1:], 10 + 10 * TIME[:-1])


def test_stimulus_goes_before_a_connection_and_a_constant_is_one(drive):
    _, results = drive('[inputs]\n"/Sink.inputs:u" = 4\n')
    assert set(results["/Sink.outputs:y"]) == {4.0}


def test_start_values_set_parameters(drive):
    _, results = drive('[start_values]\n"/Source.inputs:k" = 5\n')
    np.testing.assert_allclose(results["/Source.outputs:y"], 5 * TIME)
    _, results = drive('[start_values]\n"/Source.inputs:k" = 5\n', start_values={"/Source.inputs:k": 6})
    np.testing.assert_allclose(results["/Source.outputs:y"], 6 * TIME)


def test_events_hold_and_release_at_times_and_on_conditions(drive):
    text = """
        [[event]]
        at = 0.5
        hold = { "/Sink.inputs:u" = -1 }
        [[event]]
        when = "/Source.outputs:y >= 1.999"
        release = ["/Sink.inputs:u"]
        [[event]]
        at = "3/2"
        set = { "/Sink.inputs:v" = true }
    """
    _, results = drive(text)
    held = (TIME[:-1] > 0.45) & (TIME[:-1] < 0.95)
    np.testing.assert_allclose(sink(results), np.where(held, -1.0, RAMP[:-1]))
    np.testing.assert_array_equal(results["/Sink.z"][1:], np.where(TIME[:-1] > 1.45, 1.0, 3.0))


def test_event_at_the_start_is_part_of_the_initialization(drive):
    _, results = drive('[[event]]\nat = 0\nhold = { "/Sink.inputs:u" = 8 }\n')
    assert set(results["/Sink.outputs:y"]) == {8.0}


def test_a_release_gives_back_to_the_stimulus(drive):
    text = """
        [inputs]
        "/Sink.inputs:v" = 2
        [[event]]
        at = 0.5
        hold = { "/Sink.inputs:v" = 7 }
        [[event]]
        at = 1
        release = ["/Sink.inputs:v"]
    """
    held = (TIME[:-1] > 0.45) & (TIME[:-1] < 0.95)
    np.testing.assert_array_equal(drive(text)[1]["/Sink.z"][1:], np.where(held, 7.0, 2.0))


def test_stop_condition_ends_the_run_and_says_why(drive):
    driven, results = drive('[[stop]]\nwhen = "/Source.outputs:y > 1.1"\nreason = "far enough"\n')
    assert results.time[-1] == pytest.approx(0.6)
    assert driven.stopped == "far enough"
    assert results.metadata["scenario"]["stopped"] == "far enough"
    driven, results = drive('[[stop]]\nwhen = "/Source.outputs:y > 100"\n')
    assert results.time[-1] == 2.0 and driven.stopped == ""


def test_ports_of_conditions_are_recorded_also_where_few_are(drive):
    text = '[[assert]]\nalways = "/Source.y < 100"\n[[stop]]\nwhen = "/Sink.outputs:y > 1"\n'
    driven, results = drive(text, record=["/Sink.outputs:z"])
    assert set(results.names) == {"/Sink.outputs:y", "/Sink.outputs:z", "/Source.outputs:y"}
    assert driven.judge()[0].passed


def test_unknown_ports_are_all_named_with_their_lines(drive):
    text = """[inputs]
"/Sink.inputs:w" = 1
[[event]]
at = 1
hold = { "/Gone.inputs:u" = 1, "/Sink.outputs:y" = 2 }
[[fault]]
port = "/Source.outputs:q"
kind = "gain"
value = 1
[[assert]]
always = "/Sink.outputs:yy > 0"
"""
    with pytest.raises(StageError) as caught:
        drive(text)
    found = {(d.where.line, d.code) for d in caught.value.diagnostics}
    assert found == {(line, "scenario-port-unknown") for line in (5, 6, 9, 13)}
    assert len(caught.value.diagnostics) == 5


def test_a_port_that_is_not_recorded_cannot_be_asserted(drive):
    with pytest.raises(StageError, match="not recorded"):
        drive('[[assert]]\nalways = "/Source.inputs:k > 0"\n')


# ---- assertions


def judged(kind, values, condition=None, begin=None, end=None, value=None, within=0.0):
    time = np.arange(len(values)) / 10
    parsed = Condition.parse(condition) if condition else None
    assertion = Assertion(kind, parsed, "/A.y", begin, end, value, within, "", 1)
    results = Results(time, np.asarray(values, float)[:, None], (Column("/A.outputs:y"),))
    return judge(Scenario(None, assertions=(assertion,)), results, {"/A.y": "/A.outputs:y"})[0]


@pytest.mark.parametrize(
    ("options", "passed", "time", "value"),
    [
        ({"kind": "at", "condition": "/A.y > 1", "begin": 0.2}, True, 0.2, 2.0),
        ({"kind": "at", "condition": "/A.y > 2", "begin": 0.2}, False, 0.2, 2.0),
        # Between two communication points the later one is meant.
        ({"kind": "at", "condition": "/A.y == 3", "begin": 0.25}, True, 0.3, 3.0),
        ({"kind": "at", "condition": "/A.y > 0", "begin": 9.0}, False, None, None),
        ({"kind": "always", "condition": "/A.y < 4"}, True, 0.3, 3.0),
        ({"kind": "always", "condition": "/A.y < 2"}, False, 0.2, 2.0),
        ({"kind": "always", "condition": "/A.y < 2", "end": 0.1}, True, 0.1, 1.0),
        ({"kind": "always", "condition": "/A.y >= 2", "begin": 0.2}, True, 0.3, 3.0),
        ({"kind": "eventually", "condition": "/A.y >= 2"}, True, 0.2, 2.0),
        ({"kind": "eventually", "condition": "/A.y > 5"}, False, 0.3, 3.0),
        ({"kind": "eventually", "condition": "/A.y >= 2", "end": 0.1}, False, 0.1, 1.0),
        ({"kind": "eventually", "condition": "/A.y >= 0", "begin": 1, "end": 2}, False, None, None),
    ],
)
def test_assertions_of_conditions(options, passed, time, value):
    kind = AssertionKind(options.pop("kind"))
    found = judged(kind, [0, 1, 2, 3], **options)
    assert (found.passed, found.value) == (passed, value)
    assert found.time == (None if time is None else pytest.approx(time))


@pytest.mark.parametrize(
    ("values", "options", "passed", "time"),
    [
        ([0, 5, 1.05, 0.95, 1], {"value": 1}, True, 0.2),
        ([0, 5, 1.05, 0.95, 1], {"value": 1, "end": 0.2}, True, 0.2),
        ([0, 5, 1.05, 0.95, 1], {"value": 1, "end": 0.1}, False, 0.2),
        ([0, 1, 1, 5, 1], {"value": 1}, False, 0.3),
        ([0, 1, 1, 1, 5], {"value": 1, "end": 0.1}, False, 0.4),
        ([0, 1, 1, 1, np.nan], {"value": 1}, False, 0.4),
        ([0, 2, 2, 2], {}, True, 0.1),
        ([0, 1, 2, 3], {}, False, 0.2),
        ([1, 1, 1], {"value": 1}, True, 0.0),
    ],
)
def test_settles(values, options, passed, time):
    found = judged(AssertionKind.SETTLES, values, within=0.1, **options)
    assert (found.passed, found.time) == (passed, pytest.approx(time))


def test_not_a_number_keeps_no_condition():
    assert not judged(AssertionKind.ALWAYS, [1, np.nan, 1], "/A.y != 5").passed
    assert not judged(AssertionKind.EVENTUALLY, [np.nan, np.nan], "/A.y != 5").passed


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("/A.y<1", [True, False, False]),
        ("/A.outputs:y <= 1e0", [True, True, False]),
        ("abs( /A.y ) > 1.5", [True, False, True]),
        ("/A.y != -.5", [True, True, True]),
    ],
)
def test_conditions(text, values):
    condition = Condition.parse(text)
    assert condition.holds(np.array([-2.0, 1.0, 2.0])).tolist() == values
    assert Condition.parse(str(condition)) == condition


@pytest.mark.parametrize("text", ["", "/A.y", "/A.y > ", "/A.y > x", "/A.y = 1", "/A.y > 1 and 2", "/A.y > 1e999"])
def test_what_is_no_condition(text):
    with pytest.raises(ValueError):
        Condition.parse(text)


# ---- the file


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[run]\nstop_tme = 1", 2, "stop_time?"),
        ("[run]\nstop_time = 'soon'", 2, "soon"),
        ("[run]\nseed = 0.5", 2, "seed"),
        ("[run]\nrecord = 3", 2, "record"),
        ("[run]\ntolerance = nan", 2, "tolerance"),
        ("run = 1", 1, "[run]"),
        ("[assert]\nalways = 1", 1, "[[assert]]"),
        ("[start_values]\n'/A.inputs:k' = nan", 2, "finite"),
        ("[start_values]\nk = 1", 2, "not a port"),
        ("\n[inputs]\n\n'/A.inputs:u' = { points = [[1, 0], [0, 0]] }", 4, "decrease"),
        ("[inputs]\n'/A.inputs:u' = { points = [1, 2] }", 2, "[time, value]"),
        ("[inputs]\n'/A.inputs:u' = { points = [[0, nan]] }", 2, "finite"),
        ("[inputs]\n'/A.inputs:u' = { }", 2, "either points or a file"),
        ("[inputs]\n'/A.inputs:u' = { file = 'gone.csv' }", 2, "gone.csv"),
        ("[inputs]\n'/A.inputs:u' = { points = [[0, 1]], interpolation = 'cubic' }", 2, "cubic"),
        ("[inputs.'/A.inputs:u']\npoints = [[0, 1]]\nkolumn = 'x'", 3, "column?"),
        ("[[event]]\nhold = { '/A.inputs:u' = 1 }", 1, "either `at` or `when`"),
        ("[[event]]\nat = 1\n[[event]]\nat = 2\nhold = { 'u' = 1 }", 5, "not a port"),
        ("[[event]]\nat = 1", 1, "does nothing"),
        ("[[event]]\nat = true\nrelease = ['/A.inputs:u']", 2, "not a time"),
        ("[[event]]\nwhen = '/A.y above 3'\nrelease = ['/A.inputs:u']", 2, "not a condition"),
        ("[[event]]\nat = 1\nrelease = '/A.inputs:u'", 3, "list of ports"),
        ("[[event]]\nat = 1\ndisable = '/A'\nrelease = ['/A.inputs:u']", 3, "'disable' means nothing"),
        ("[[fault]]\nport = '/A.y'\nkind = 'broken'", 3, "quantise"),
        ("[[fault]]\nport = '/A.y'\nkind = 'gain'", 1, "needs value"),
        ("[[fault]]\nport = '/A.y'\nkind = 'gain'\nvalue = 1\nseed = 2", 5, "'seed' means nothing"),
        ("[[fault]]\nport = '/A.y'\nkind = 'stuck'\nfrom = 2\nto = 1", 5, "not after it begins"),
        ("[[fault]]\nport = '/A.y'\nkind = 'noise'\nstandard_deviation = -1", 4, "positive"),
        ("[[fault]]\nport = '/A.y'\nkind = 'drop-out'\nprobability = 2", 4, "at most 1"),
        ("[[fault]]\nport = '/A.y'\nkind = 'drop-out'\nseed = -2", 4, "whole number"),
        ("[[fault]]\nkind = 'stuck'", 1, "not a port"),
        ("[[stop]]\nreason = 'x'", 1, "not a condition"),
        ("[[assert]]\nname = 'x'", 1, "one of at, always"),
        ("[[assert]]\nalways = '/A.y > 0'\nat = 3", 1, "one of at, always"),
        ("[[assert]]\nat = 3", 1, "not a condition"),
        ("[[assert]]\nsettles = '/A.y'", 1, "within"),
        ("[[assert]]\nsettles = '/A.y'\nwithin = 0", 3, "positive"),
        ("[[assert]]\nalways = '/A.y > 0'\nfrm = 3", 3, "from?"),
        ("x = ", 1, "no TOML"),
        ("[run]\nstop_time = 1\nstop_time = 2", 3, "no TOML"),
    ],
)
def test_findings_name_the_line(tmp_path, text, line, words):
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_scenario(path)
    assert any(d.where.line == line and words in str(d) for d in caught.value.diagnostics), str(caught.value)


def test_all_findings_are_reported_at_once(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("[run]\nstop = 1\n[[fault]]\nkind = 'x'\nport = 'y'\n[[assert]]\nat = 1\n")
    with pytest.raises(UsageError) as caught:
        read_scenario(path)
    assert sorted({d.where.line for d in caught.value.diagnostics}) == [2, 4, 5, 6]


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(CosimError, match=r"scenario-unreadable.*gone\.toml"):
        read_scenario(tmp_path / "gone.toml")


# ---- the command


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stage.usda").write_text(STAGE)
    return tmp_path


def test_failed_assertion_is_exit_1_with_time_and_value(place, scenario, capsys):
    path = str(scenario('[[assert]]\nalways = "/Source.outputs:y < 3"\n[[assert]]\nat = 1\nthat = "/Source.y > 1.9"\n'))
    assert main(["run", "stage.usda", path, "--no-plot"]) == 1
    said = capsys.readouterr()
    assert "FAILED  always /Source.outputs:y < 3" in said.out and "holds   at 1 s" in said.out
    assert "assertion-failed" in said.err and "t = 1.5 s" in said.err and "scenario.toml:4" in said.err
    about = json.loads((place / "runs" / "stage" / "run.json").read_text())
    assert [a["passed"] for a in about["assertions"]] == [False, True]
    assert about["assertions"][0]["time"] == 1.5 and about["assertions"][0]["value"] == 3.0
    assert about["scenario"]["file"] == "scenario.toml"


def test_command_line_goes_before_the_scenario(place, scenario, capsys):
    path = str(scenario('[[stop]]\nwhen = "/Source.outputs:y > 3.1"\nreason = "there"\n'))
    assert main(["run", "stage.usda", path, "--no-plot", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["simulated_seconds"] == pytest.approx(1.6) and found["stopped"] == "there"
    assert main(["run", "stage.usda", path, "--no-plot", "--json", "--stop-time", "1", "--step-size", "1/4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["simulated_seconds"] == 1.0 and found["rows"] == 5
    assert main(["run", "stage.usda", path, "--no-plot"]) == 0
    assert "stopped by the scenario: there" in capsys.readouterr().out


def test_invalid_scenario_is_exit_2_and_unknown_port_exit_1(place, scenario, capsys):
    assert main(["run", "stage.usda", str(scenario("[[stop]]\n")), "--no-plot"]) == 2
    assert "scenario-invalid" in capsys.readouterr().err
    assert main(["run", "stage.usda", str(scenario('[inputs]\n"/No.inputs:x" = 1\n')), "--no-plot"]) == 1
    assert "scenario-port-unknown" in capsys.readouterr().err


def test_the_shipped_scenario_holds_and_its_faults_matter(project):
    stage = cosim.load(project / "stages" / "lander.usda")
    scenario = read_scenario(project / "stages" / "lander_faults.toml")
    run = ScenarioRun(stage, scenario)
    with run.simulation:
        faulty = run.run()
    assert [o.passed for o in run.judge()] == [True, True, True]
    plain = cosim.simulate(stage, stop=9, step="1/240")
    range_error = faulty["/World/Lander/Descent.inputs:altitude_m"] - faulty["/World/Lander/Radar/Altimeter.range_m"]
    assert 0.2 < np.std(range_error[1:400]) < 0.5
    assert not np.array_equal(faulty["/World/Lander.outputs:velocity_y"], plain["/World/Lander.outputs:velocity_y"])


def test_the_documented_scenario_is_one(project, tmp_path):
    text = (project / "docs" / "scenarios.md").read_text()
    path = tmp_path / "doc.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0])
    (tmp_path / "sun.csv").write_text("time,elevation\n0,1\n1,2\n")
    scenario = read_scenario(path)
    assert len(scenario.stimuli) == 3 and len(scenario.events) == 2 and len(scenario.assertions) == 1
