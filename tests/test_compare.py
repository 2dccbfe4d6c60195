"""What a comparison must catch and what it must let pass."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cosim.cli import main
from cosim.compare import Level, Tolerance, compare, tube, tube_of
from cosim.component import PortType
from cosim.diagnostic import TraceMismatch, UsageError
from cosim.result import Column, Results

TIME = np.linspace(0.0, 10.0, 1001)
SIGNALS = {
    "sine": np.sin(2.0 * TIME),
    "decay": 3.0 * np.exp(-0.4 * TIME) + 1.0,
    "ramps": np.interp(TIME, [0, 3, 4, 8, 10], [0.0, 2.0, -1.0, -1.0, 5.0]),
}
RNG = np.random.default_rng(7)


def results(values, time=TIME, type=PortType.REAL, name="/A.outputs:y"):
    return Results(time, np.asarray(values, float).reshape(-1, 1), (Column(name, type=type),))


def spike(y):
    y = y.copy()
    y[400] += 0.5 * np.ptp(y)
    return y


def nan_tail(y):
    y = y.copy()
    y[800:] = np.nan
    return y


CAUGHT = {
    "offset of 5 %": lambda y: y + 0.05 * np.ptp(y),
    "gain of 2 %": lambda y: 1.02 * y,
    "one spike of 50 %": spike,
    "delay of 5 samples": lambda y: np.concatenate([np.full(5, y[0]), y[:-5]]),
    "NaN tail": nan_tail,
    "all NaN": lambda y: np.full_like(y, np.nan),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("mutation", CAUGHT)
@pytest.mark.parametrize("level", list(Level))
def test_mutation_is_caught(signal, mutation, level):
    y = SIGNALS[signal]
    assert not compare(results(CAUGHT[mutation](y)), results(y), level=level).passed


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("level", list(Level))
def test_truncation_is_caught(signal, level):
    y = SIGNALS[signal]
    found = compare(results(y[:801], TIME[:801]), results(y), level=level)
    assert not found.passed
    assert "ends at 8 s" in str(found)


@pytest.mark.parametrize("signal", SIGNALS)
def test_noise_and_half_the_sample_rate_pass(signal):
    y = SIGNALS[signal]
    noise = 1e-6 * np.ptp(y) * RNG.standard_normal(len(y))
    assert compare(results(y + noise), results(y)).passed
    assert compare(results(y[::2], TIME[::2]), results(y)).passed
    assert not compare(results(y[::2], TIME[::2]), results(y), level="exact").passed
    assert compare(results(y), results(y), level="exact").passed


def test_missing_column_is_caught_and_order_does_not_matter():
    both = Results(TIME, np.stack([SIGNALS["sine"], SIGNALS["decay"]], 1), (Column("a"), Column("b")))
    turned = Results(TIME, both.values[:, ::-1], both.columns[::-1])
    assert compare(turned, both, level="exact").passed
    found = compare(Results(TIME, both.values[:, :1], both.columns[:1]), both)
    assert not found.passed
    assert "no column b" in str(found)


def test_no_common_column_and_empty_traces_fail():
    assert not compare(results(SIGNALS["sine"], name="x"), results(SIGNALS["sine"], name="y")).passed
    empty = Results(np.zeros(0), np.zeros((0, 1)), (Column("/A.outputs:y"),))
    assert not compare(empty, empty).passed
    assert not compare(results(SIGNALS["sine"]), results(SIGNALS["sine"]), columns=()).passed


def test_repeated_times_are_events_and_backward_times_are_wrong():
    time = np.array([0.0, 1.0, 1.0, 2.0])
    y = np.array([0.0, 1.0, 5.0, 6.0])
    assert compare(results(y, time), results(y, time)).passed
    # A trace with either limit at the event agrees.
    dense = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    assert compare(results([0, 0.5, 5, 5.5, 6], dense), results(y, time)).passed
    backwards = np.array([0.0, 1.0, 0.9, 2.0])
    assert not compare(results(y, backwards), results(y, time)).passed


@pytest.mark.parametrize("kind", [PortType.BOOLEAN, PortType.INTEGER, PortType.ENUMERATION])
def test_events_have_a_window_of_samples(kind):
    y = (TIME >= 4.0).astype(float)
    late = np.concatenate([[0.0], y[:-1]])
    very_late = np.concatenate([np.zeros(3), y[:-3]])
    assert compare(results(late, type=kind), results(y, type=kind)).passed
    assert not compare(results(late, type=kind), results(y, type=kind), level="exact").passed
    found = compare(results(very_late, type=kind), results(y, type=kind))
    assert not found.passed
    assert found.columns[0].first_time == pytest.approx(4.01, abs=0.011)
    assert compare(results(very_late, type=kind), results(y, type=kind), tolerance=Tolerance(samples=3)).passed


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_peak_that_only_the_reference_has_is_caught(signal):
    """The tube around a peak is wide: the trace that has no peak is inside it."""
    y = SIGNALS[signal]
    found = compare(results(y), results(spike(y)))
    assert not found.passed
    assert found.columns[0].first_time == pytest.approx(4.0)
    assert found.columns[0].first_value == pytest.approx(y[400])
    assert found.columns[0].first_low <= spike(y)[400] <= found.columns[0].first_high


def test_a_lost_pulse_is_caught():
    y = ((TIME >= 4.0) & (TIME < 4.2)).astype(float)
    assert not compare(results(np.zeros_like(y), type=PortType.BOOLEAN), results(y, type=PortType.BOOLEAN)).passed


def test_report_names_time_value_and_bounds():
    y = SIGNALS["sine"]
    found = compare(results(spike(y)), results(y))
    assert "first" in str(found)
    assert found.columns[0].first_time == pytest.approx(4.0)
    assert found.columns[0].violations == 1
    assert found.columns[0].worst_ratio > 100
    with pytest.raises(TraceMismatch, match="trace-mismatch"):
        found.raise_failed()
    compare(results(y), results(y)).raise_failed()


def test_constant_column_passes_and_a_deviation_is_caught():
    y = np.full_like(TIME, 2.0)
    assert compare(results(y), results(y)).passed
    assert not compare(results(y + 1e-6), results(y)).passed


def test_tube_is_the_envelope_of_a_brute_force_scan():
    time = np.sort(RNG.uniform(0, 1, 40))
    values = RNG.standard_normal(40)
    at = np.linspace(time[0], time[-1], 57)
    low, high = tube(time, values, at, 0.07)
    for k, t in enumerate(at):
        fine = np.linspace(max(t - 0.07, time[0]), min(t + 0.07, time[-1]), 4001)
        y = np.interp(fine, time, values)
        assert low[k] <= y.min() + 1e-12
        assert high[k] >= y.max() - 1e-12
        assert low[k] == pytest.approx(y.min(), abs=0.05)
        assert high[k] == pytest.approx(y.max(), abs=0.05)


# ---- what the user meets: the method, the command


def write(path, y, time=TIME, name="/A.outputs:y"):
    results(y, time, name=name).to_csv(path)
    return path


def test_method_takes_results_and_files(tmp_path):
    y = SIGNALS["sine"]
    path = write(tmp_path / "ref.csv", y)
    assert results(y).compare(results(y), level="exact").passed
    assert results(y).compare(path, level="exact").passed
    assert not results(1.02 * y).compare(str(path)).passed
    assert results(1.02 * y).compare(path, tolerance=Tolerance(relative=0.05)).passed


def test_unknown_level_and_column_are_usage_errors():
    y = results(SIGNALS["sine"])
    with pytest.raises(UsageError, match="level-unknown"):
        y.compare(y, level="loose")
    with pytest.raises(UsageError, match="column-unknown"):
        y.compare(y, columns=["z"])


def test_flags_and_counts_of_result_files_are_discrete(tmp_path):
    y = (TIME >= 4.0).astype(float)
    path = write(tmp_path / "ref.csv", y)
    found = Results.from_csv(write(tmp_path / "t.csv", y)).compare(path)
    assert found.columns[0].discrete
    assert not Results.from_csv(path).compare(write(tmp_path / "s.csv", SIGNALS["sine"])).columns[0].discrete
    late = Results.from_csv(write(tmp_path / "late.csv", np.concatenate([[0.0], y[:-1]])))
    assert late.compare(path).passed
    assert not late.compare(path, tolerance=Tolerance(samples=0)).passed


def test_table_shows_the_worst_first_and_counts_what_it_leaves_out():
    columns = (Column("a", "m"), Column("b"), Column("c"))
    good = Results(TIME, np.stack(list(SIGNALS.values()), 1), columns)
    bad = Results(TIME, good.values * [1.0, 1.02, 1.5], columns)
    table = bad.compare(good).table(rows=2)
    assert [line.split()[0] for line in table.splitlines()] == ["column", "c", "b", "DIFFERS"]
    assert "1 of 3 columns agree, 1 more not shown" in table
    assert "agrees (tube): 3 of 3" in good.compare(good).table()


def test_command_prints_a_table_and_exits_1(tmp_path, capsys):
    y = SIGNALS["decay"]
    reference = write(tmp_path / "ref.csv", y)
    trace = write(tmp_path / "trace.csv", y + 0.05 * np.ptp(y))
    assert main(["compare", str(reference), str(reference), "--level", "exact"]) == 0
    assert "agrees (exact)" in capsys.readouterr().out
    assert main(["compare", str(trace), str(reference)]) == 1
    out = capsys.readouterr().out
    assert "DIFFERS (tube): 0 of 1" in out and "/A.outputs:y" in out and "1001 of 1001" in out
    assert main(["compare", str(trace), str(reference), "--rtol", "0.1"]) == 0
    capsys.readouterr()
    assert main(["compare", str(trace), str(reference), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False
    assert found["columns"][0]["first_time"] == 0.0


def test_command_reports_usage(tmp_path, capsys):
    reference = write(tmp_path / "ref.csv", SIGNALS["decay"])
    assert main(["compare", str(tmp_path / "gone.csv"), str(reference)]) == 2
    assert "gone.csv" in capsys.readouterr().err
    assert main(["compare", str(reference), str(reference), "--rtol", "-1"]) == 2
    assert "tolerance-invalid" in capsys.readouterr().err


def test_json_of_an_infinite_ratio_is_valid_json():
    y = (TIME >= 4.0).astype(float)
    found = results(1 - y).compare(results(y))
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["columns"][0]["worst_ratio"] is None


def test_plot_shows_the_worst_columns_in_their_tube(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    from cosim.adapter.compare_plot import plot_comparison

    columns = (Column("a", "m"), Column("b"), Column("c"))
    good = Results(TIME, np.stack(list(SIGNALS.values()), 1), columns)
    bad = Results(TIME, good.values * [1.0, 1.02, 1.5], columns)
    figure = plot_comparison(compare(bad, good), bad, good)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["c", "b"]
    assert all("first violation" in axis.get_legend_handles_labels()[1] for axis in figure.axes)
    assert all("tube" in axis.get_legend_handles_labels()[1] for axis in figure.axes)
    assert len(plot_comparison(compare(good, good), good, good).axes) == 1
    cut = Results(TIME[:800], good.values[:800], columns)
    assert len(plot_comparison(compare(cut, good), cut, good).axes) == 3
    bad.to_csv(tmp_path / "bad.csv")
    good.to_csv(tmp_path / "good.csv")
    files = [str(tmp_path / "bad.csv"), str(tmp_path / "good.csv")]
    assert main(["compare", *files, "--plot", str(tmp_path / "plot.png")]) == 1
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    assert main(["compare", *files, "--plot", str(tmp_path / "gone" / "plot.png")]) == 2
    assert "output-not-writable" in capsys.readouterr().err


@pytest.mark.parametrize("name", SIGNALS)
def test_tube_of_holds_the_reference_and_just_not_an_offset(name):
    y = SIGNALS[name]
    low, high = tube_of(results(y), "/A.outputs:y", Tolerance(relative=0.01, samples=0))
    np.testing.assert_allclose(high - y, 0.01 * np.ptp(y), rtol=1e-9)
    np.testing.assert_allclose(y - low, 0.01 * np.ptp(y), rtol=1e-9)


def test_info_says_what_a_file_holds_and_came_from(tmp_path, capsys):
    path = tmp_path / "trace.csv"
    values = np.stack([SIGNALS["sine"], np.where(TIME > 9, np.nan, 1.0)], 1)
    Results(TIME, values, (Column("/A.outputs:y"), Column("/B.outputs:z"))).to_csv(path)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "1001 rows, 2 columns, 0 s to 10 s, every 0.01 s" in out
    assert "no metadata" in out and "100 not finite" in out
    about = {"status": "completed", "reason": "it is better", "ports": {"/A.outputs:y": {"unit": "m"}}}
    (tmp_path / "run.json").write_text(json.dumps(about))
    assert main(["info", str(path), "*y", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [c["name"] for c in found["columns"]] == ["/A.outputs:y"]
    assert found["columns"][0]["unit"] == "m" and found["columns"][0]["minimum"] == values[:, 0].min()
    assert found["rows"] == 1001 and found["is_uniform"] and found["step"] == pytest.approx(0.01)
    assert main(["info", str(path), "nothing"]) == 0
    out = capsys.readouterr().out
    assert "it is better" in out and "no column matches" in out
    (tmp_path / "run.json").write_text("{")
    assert main(["info", str(path)]) == 2
    assert "result-unreadable" in capsys.readouterr().err


def test_info_of_odd_files(tmp_path, capsys):
    path = tmp_path / "t.csv"
    for text, words in (
        ("time,a\n", "0 rows"),
        ("time,a\n0,1\n1,2\n1,3\n0.5,4\n", "1 repeated times, 1 times that go BACKWARDS"),
        ("time,a\nnan,nan\n", "? to ?"),
    ):
        path.write_text(text)
        assert main(["info", str(path)]) == 0
        assert words in capsys.readouterr().out
        assert main(["info", str(path), "--json"]) == 0
        json.loads(capsys.readouterr().out)
