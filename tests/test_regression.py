"""Regression cases: found, run, compared, updated only with a reason, and never passed by silence."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cosim.case import find_cases, read_options
from cosim.cli import main
from cosim.compare import compare
from cosim.component import PortType
from cosim.diagnostic import DiagnosticLog, UsageError
from cosim.regression import Settings, run_case, run_cases, update_case
from cosim.result import Column, Results
from cosim.session import connections, load
from cosim.upstream import furthest_upstream
from tests.fmi.fmi_zoo import build

CASES = ("Altimeter", "PID", "Oscillator", "TouchdownDetector")


@pytest.fixture
def folder(tmp_path, project):
    """Three programs of the library with their references, to spoil."""

    def copy(*names):
        for name in names:
            for path in sorted((project / "fmus").glob(f"{name}[._]*")):
                shutil.copy(path, tmp_path)
        return tmp_path

    return copy


def rewrite(path, change):
    """Change the columns of a result file."""
    r = Results.from_csv(path)
    time, values = change(r.time, r.values.copy())
    Results(time, values, r.columns).to_csv(path)


def program_names(project):
    return sorted(path.name for path in (project / "fmus").glob("*.mo"))


def test_every_program_of_the_library_reproduces_its_reference(project):
    cases = find_cases([project / "fmus"])
    assert [c.name for c in cases] == program_names(project)
    for outcome in map(run_case, cases):
        assert outcome.passed, outcome.explain()
        assert len(outcome.comparison.columns) == len(Results.from_csv(outcome.case.reference).names)


def spike(time, values):
    column = int(np.argmax(np.ptp(values, axis=0)))
    values[len(values) // 2, column] += 0.5 * np.ptp(values[:, column])
    return time, values


MUTATIONS = {
    "offset of 5 %": lambda t, v: (t, v + 0.05 * np.ptp(v, axis=0)),
    "gain of 2 %": lambda t, v: (t, 1.02 * v),
    "one spike of 50 %": spike,
    "delay of 5 samples": lambda t, v: (t, np.concatenate([np.repeat(v[:1], 5, 0), v[:-5]])),
    "NaN tail": lambda t, v: (t, np.where((np.arange(len(t)) > 0.8 * len(t))[:, None], np.nan, v)),
    "all NaN": lambda t, v: (t, np.full_like(v, np.nan)),
    "truncation at 80 %": lambda t, v: (t[: 4 * len(t) // 5], v[: 4 * len(t) // 5]),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("program", CASES)
def test_mutated_reference_is_caught(folder, program, mutation):
    place = folder(program)
    rewrite(place / f"{program}_ref.csv", MUTATIONS[mutation])
    outcome = run_case(find_cases([place / f"{program}.mo"])[0])
    assert outcome.status in ("failed", "error")
    assert outcome.explain()


@pytest.mark.parametrize("program", CASES)
def test_noise_of_the_reference_passes(folder, program):
    place, rng = folder(program), np.random.default_rng(3)

    def noise(time, values):
        # Flags and counts are exact: noise is for what is not a whole number.
        real = ~np.all(values == np.rint(values), axis=0)
        return time, values + 1e-6 * np.ptp(values, axis=0) * rng.standard_normal(values.shape) * real

    rewrite(place / f"{program}_ref.csv", noise)
    assert run_case(find_cases([place])[0]).passed


def test_missing_and_reordered_columns(folder):
    place = folder("PID")
    reference = place / "PID_ref.csv"
    r = Results.from_csv(reference)
    Results(r.time, r.values[:, ::-1], r.columns[::-1]).to_csv(reference)
    assert run_case(find_cases([place])[0]).passed
    Results(r.time, r.values, (Column("gone"), *r.columns[1:])).to_csv(reference)
    outcome = run_case(find_cases([place])[0])
    assert outcome.status == "error"
    assert "port-unknown" in outcome.explain() and "gone" in outcome.explain()


def test_experiment_comes_from_options_else_from_the_reference(folder):
    place = folder("Oscillator")
    (place / "Oscillator_ref.opt").unlink()
    outcome = run_case(find_cases([place])[0])
    assert outcome.passed, outcome.explain()
    assert outcome.metadata["step_size"] == "1/100"
    assert outcome.metadata["stop_time"] == "3/2"


def test_options_of_another_form_name_the_line(tmp_path):
    path = tmp_path / "X_ref.opt"
    path.write_text("// a remark\nStartTime, 0.0\nStepSize = 0.5\n")
    assert read_options(path) == {"StartTime": 0.0, "StepSize": 0.5}
    assert read_options(tmp_path / "none") == {}
    for text in ("StartTime, 0\nStopTime, later\n", "StartTime, 0\nStopTime, nan\n"):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"case-options-invalid.*\n.*X_ref.opt:2"):
            read_options(path)


def test_what_is_no_case_is_a_usage_error(tmp_path, project):
    for path, code in (
        (tmp_path, "case-not-found"),
        (tmp_path / "gone.mo", "case-not-found"),
        (project / "README.md", "case-not-found"),
        (project / "stages" / ".." / "tests" / "fmi" / "ball.c", "case-not-found"),
    ):
        with pytest.raises(UsageError, match=code):
            find_cases([path])
    (tmp_path / "Lonely.mo").write_text("model Lonely output Real y; equation y = time; end Lonely;")
    with pytest.raises(UsageError, match=r"case-reference-missing.*Lonely_ref\.csv"):
        find_cases([tmp_path / "Lonely.mo"])


# ---- updates


def test_update_needs_a_reason_shows_the_difference_and_writes_metadata(folder, capsys):
    place = folder("Oscillator")
    reference = place / "Oscillator_ref.csv"
    rewrite(reference, MUTATIONS["gain of 2 %"])
    spoiled = reference.read_bytes()
    case = str(place / "Oscillator.mo")
    assert main(["test", case, "--update", "--jobs", "1"]) == 2
    said = capsys.readouterr()
    assert "update-reason-missing" in said.err and "DIFFERS" in said.err
    assert said.err.index("DIFFERS") < said.err.index("update-reason-missing")
    assert reference.read_bytes() == spoiled
    assert main(["test", case, "--update", "--reason", "the amplitude was wrong", "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert said.err.index("DIFFERS") < said.err.index("updated:")
    about = json.loads((place / "Oscillator_ref.json").read_text())
    assert about["reason"] == "the amplitude was wrong"
    assert len(about["fmu_sha256"]) == 64 and about["step_size"] == "1/100" and about["cosim"]
    assert main(["test", case, "--jobs", "1"]) == 0
    assert "exact: 2 of 2" in capsys.readouterr().out


def test_update_leaves_a_reference_alone_that_agrees(folder, capsys):
    place = folder("Oscillator")
    before = (place / "Oscillator_ref.csv").read_bytes()
    assert main(["test", str(place), "--update", "--reason", "nothing", "--jobs", "1"]) == 0
    assert "updated" not in capsys.readouterr().err
    assert (place / "Oscillator_ref.csv").read_bytes() == before
    assert not (place / "Oscillator_ref.json").exists()


def test_metadata_of_another_fmu_step_or_version_is_said_and_compared_in_a_tube(folder):
    place = folder("Oscillator")
    rewrite(place / "Oscillator_ref.csv", MUTATIONS["gain of 2 %"])
    case = find_cases([place])[0]
    update_case(run_case(case), "for the test")
    assert run_case(case).comparison.level == "exact"
    about = place / "Oscillator_ref.json"
    made = json.loads(about.read_text())
    for key, value, word in (
        ("fmu_sha256", "0" * 64, "another FMU"),
        ("source_sha256", "0" * 64, "another Modelica source"),
        ("step_size", "1/50", "step size 1/50"),
        ("cosim", "0.0.1", "cosim 0.0.1"),
    ):
        about.write_text(json.dumps({**made, key: value}))
        outcome = run_case(case)
        assert outcome.passed and outcome.comparison.level == "tube" and outcome.is_stale
        assert any(word in note for note in outcome.notes), outcome.notes
    assert run_case(case, Settings(level="exact")).comparison.level == "exact"
    about.write_text("{")
    assert "case-metadata-invalid" in run_case(case).explain()


STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Y"
    customLayerData = { string[] "cosim:summary" = ["/Source.outputs:*", "/Twice.*", "/Last.outputs:y"] }
)
def Scope "Source" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = "model Ramp parameter Real k = 2; output Real y; equation y = k*time; end Ramp;"
}
def Scope "Twice" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = "model Twice input Real u; output Real y; equation y = 2*u; end Twice;"
    double inputs:u.connect = </Source.outputs:y>
}
def Scope "Last" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = "model Last input Real u; output Real y; equation y = u + 1; end Last;"
    double inputs:u.connect = </Twice.outputs:y>
}
"""


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "chain.usda"
    path.write_text(STAGE)
    return path


def test_stage_gets_a_reference_and_keeps_to_it(chain, capsys):
    assert main(["test", str(chain), "--jobs", "1"]) == 2
    assert "case-reference-missing" in capsys.readouterr().err
    arguments = ["--update", "--reason", "first", "--stop-time", "0.5", "--step-size", "1/100", "--jobs", "1"]
    assert main(["test", str(chain), *arguments]) == 0
    assert sorted(p.name for p in chain.parent.glob("chain_ref.*")) == [
        f"chain_ref.{s}" for s in ("csv", "json", "opt")
    ]
    assert len(Results.from_csv(chain.parent / "chain_ref.csv")) == 51
    capsys.readouterr()
    assert main(["test", str(chain), "--jobs", "1"]) == 0
    assert "exact: 4 of 4 columns" in capsys.readouterr().out


def test_difference_is_followed_to_the_port_furthest_upstream(chain, capsys):
    arguments = ["--update", "--reason", "first", "--stop-time", "0.5", "--step-size", "1/100", "--jobs", "1"]
    assert main(["test", str(chain), *arguments]) == 0
    chain.write_text(STAGE.replace("y = 2*u", "y = 2.5*u"))
    capsys.readouterr()
    assert main(["test", str(chain), "--jobs", "1"]) == 1
    err = capsys.readouterr().err
    assert "furthest upstream: /Twice.outputs:y" in err
    assert "other layers" in err
    chain.write_text(STAGE.replace("k = 2", "k = 3"))
    assert main(["test", str(chain), "--json", "--jobs", "1"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["origin"] == "/Source.outputs:y"


def test_upstream_of_ports_that_differ_at_the_same_time(chain):
    graph = connections(load(chain).graph(DiagnosticLog()))
    names = ("/Last.outputs:y", "/Source.outputs:y", "/Twice.inputs:u", "/Twice.outputs:y")
    time = np.linspace(0, 1, 11)
    values = np.stack([np.sin(time * (k + 1)) for k in range(4)], 1)
    reference = Results(time, values, tuple(map(Column, names)))
    for wrong, origin in (
        (names, "/Source.outputs:y"),
        (("/Last.outputs:y", "/Twice.outputs:y"), "/Twice.outputs:y"),
        (("/Last.outputs:y", "/Twice.inputs:u", "/Twice.outputs:y"), "/Twice.inputs:u"),
        (("/Last.outputs:y",), "/Last.outputs:y"),
        ((), ""),
    ):
        shifted = values + [5.0 * (name in wrong) for name in names]
        assert furthest_upstream(compare(Results(time, shifted, reference.columns), reference), graph) == origin


def test_the_way_upstream_leads_through_what_was_not_recorded(chain):
    graph = connections(load(chain).graph(DiagnosticLog()))
    names = ("/Last.outputs:y", "/Source.outputs:y")
    time = np.linspace(0, 1, 11)
    values = np.stack([np.sin(time), np.cos(time)], 1)
    reference = Results(time, values, tuple(map(Column, names)))
    assert furthest_upstream(compare(Results(time, values + 5, reference.columns), reference), graph) == names[1]
    # A source that differs later is not the cause.
    late = values + 5.0 * np.stack([time >= 0, time > 0.5], 1)
    assert furthest_upstream(compare(Results(time, late, reference.columns), reference), graph) == names[0]


def test_compare_follows_the_connections_that_a_run_left_beside_its_trace(chain, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "chain.usda", "--stop-time", "0.5", "--no-plot", "--output-file"]
    assert main([*arguments, "good.csv"]) == 0
    chain.write_text(STAGE.replace("k = 2", "k = 3"))
    assert main([*arguments, "bad.csv"]) == 0
    capsys.readouterr()
    assert main(["compare", "bad.csv", "good.csv"]) == 1
    assert "furthest upstream: /Source.outputs:y" in capsys.readouterr().out
    assert main(["compare", "bad.csv", "good.csv", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["origin"] == "/Source.outputs:y"
    assert main(["compare", "good.csv", "good.csv"]) == 0
    assert "upstream" not in capsys.readouterr().out


# ---- many, reports, crashes


def test_command_reports_all_in_a_table_json_and_junit(folder, capsys, tmp_path):
    place = folder("Oscillator", "PID", "TouchdownSensor")
    rewrite(place / "PID_ref.csv", MUTATIONS["offset of 5 %"])
    (place / "TouchdownSensor_ref.opt").write_text("StepSize, \x07often\n")
    report = tmp_path / "report.xml"
    page = tmp_path / "report.html"
    assert main(["test", str(place), "--jobs", "2", "--junit", str(report), "--html", str(page)]) == 1
    shown = page.read_text()
    assert "1 passed, 1" in shown and "DIFFERS" in shown and "PID.mo" in shown and "\x07" not in shown
    ElementTree.fromstring(shown.removeprefix("<!doctype html>").replace('<meta charset="utf-8">', ""))
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == ["passed", "failed", "error", "1"]
    assert "1 passed, 1 failed, 1 error" in said.out
    assert "DIFFERS" in said.err and "case-options-invalid" in said.err
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    kinds = {row.get("name"): [child.tag for child in row] for row in suite}
    assert kinds == {"Oscillator.mo": [], "PID.mo": ["failure"], "TouchdownSensor.mo": ["error"]}
    assert main(["test", str(place), "--jobs", "1", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in rows] == ["passed", "failed", "error"]
    assert rows[1]["comparison"]["columns"]


def test_tolerance_and_level_of_the_command(folder, capsys):
    place = folder("Oscillator")
    rewrite(place / "Oscillator_ref.csv", MUTATIONS["gain of 2 %"])
    assert main(["test", str(place), "--jobs", "1", "--rtol", "0.05"]) == 0
    assert main(["test", str(place), "--jobs", "1", "--rtol", "0.05", "--level", "exact"]) == 1
    assert main(["test", str(place), "--jobs", "0"]) == 2
    assert "jobs-invalid" in capsys.readouterr().err
    assert main(["test", str(place), "--jobs", "1", "--rtol", "0.05", "--html", str(place / "no" / "page.html")]) == 2
    assert "output-not-writable" in capsys.readouterr().err


def test_fmu_and_out_csv(tmp_path):
    build(tmp_path)
    time = np.linspace(0, 1, 11)
    Results(time, np.zeros((11, 1)), (Column("y"),)).to_csv(tmp_path / "zoo_out.csv")
    outcome = run_case(find_cases([tmp_path / "zoo.fmu"])[0])
    assert outcome.passed, outcome.explain()
    Results(time, time[:, None], (Column("u"),)).to_csv(tmp_path / "zoo_in.csv")
    assert run_case(find_cases([tmp_path])[0]).status == "failed"


def test_an_fmu_that_kills_its_process_fails_alone(tmp_path, folder):
    place = folder("Oscillator", "PID")
    build(place, "2.0", "FREE_ABORTS", name="AAbort")
    Results(np.linspace(0, 1, 11), np.zeros((11, 1)), (Column("y"),)).to_csv(place / "AAbort_ref.csv")
    outcomes = run_cases(find_cases([place]), jobs=2)
    assert [(o.case.name, o.status) for o in outcomes] == [
        ("AAbort.fmu", "error"),
        ("Oscillator.mo", "passed"),
        ("PID.mo", "passed"),
    ]
    assert outcomes[0].errors[0].code == "case-process-died"


def test_an_event_one_step_late_is_inside_the_tube_and_two_steps_are_not():
    time = np.linspace(0.0, 1.0, 101)
    y = (time >= 0.5).astype(float)[:, None]
    columns = (Column("flag", type=PortType.BOOLEAN),)
    late = [Results(time, np.concatenate([np.zeros((k, 1)), y[: len(y) - k]]), columns) for k in (1, 2)]
    reference = Results(time, y, columns)
    assert compare(late[0], reference).passed
    assert not compare(late[0], reference, level="exact").passed
    assert not compare(late[1], reference).passed


# ---- the stages


@pytest.mark.parametrize("name", ["arm_servo", "lander", "pendulum"])
def test_every_stage_reproduces_its_reference(project, name):
    # In the tube: another C compiler or build of the physics engine rounds otherwise.
    outcome = run_case(find_cases([project / "stages" / f"{name}.usda"])[0], Settings(level="tube"))
    assert outcome.passed, outcome.explain()
    assert len(outcome.comparison.columns) >= 3


def test_no_stage_is_without_a_reference(project):
    stages = sorted(p.name for p in (project / "stages").glob("*.usda"))
    assert [c.name for c in find_cases([project / "stages"])] == stages


def test_a_changed_stage_fails_and_the_cause_is_named(project, tmp_path):
    shutil.copytree(project / "fmus", tmp_path / "fmus")
    shutil.copytree(project / "stages", tmp_path / "stages")
    stage = tmp_path / "stages" / "pendulum.usda"
    text = stage.read_text()
    assert "physics:mass = 1" in text and "localPos1 = (0, 0.5, 0)" in text
    stage.write_text(text.replace("localPos1 = (0, 0.5, 0)", "localPos1 = (0, 0.48, 0)"))
    outcome = run_case(find_cases([stage])[0])
    assert outcome.status == "failed"
    # A hinge elsewhere: the gyroscope sees it before the angle has gone anywhere.
    assert outcome.origin == "/World/Rod/Imu.outputs:gyro_z"
    assert any("other layers" in note for note in outcome.notes)
