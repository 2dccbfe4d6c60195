from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.component import Connection, Experiment, PortRef, StepStatus
from cosim.diagnostic import DiagnosticLog, StepError
from cosim.graph import build_graph
from cosim.master import Master
from cosim.plan import MasterAlgorithm, compile_plan
from cosim.result import Results
from tests.fakes import Fake, description, gain, integrator, source, value, wire

JACOBI, SEIDEL = MasterAlgorithm.JACOBI, MasterAlgorithm.GAUSS_SEIDEL


def master(
    parts: Sequence[Fake],
    *connections: Connection,
    step: Fraction = Fraction(1, 10),
    stop: Fraction | None = None,
    algorithm: MasterAlgorithm = JACOBI,
    record: Sequence[str] | None = None,
    values: Sequence[tuple[str, float]] = (),
) -> Master:
    log = DiagnosticLog()
    graph = build_graph(parts, description(connections, values=tuple(value(p, v) for p, v in values)), log)
    experiment = Experiment(step=step, stop=stop)
    plan = compile_plan(graph, experiment, log, algorithm=algorithm, record=record)
    assert not log.errors, [str(d) for d in log.errors]
    made = Master(plan, experiment, log)
    made.log = log  # type: ignore[attr-defined]
    made.initialize()
    return made


def trace(made: Master) -> Results:
    time, values = made.recorder.values()
    return Results(time, values, made.recorder.columns)


# ---- time


def test_m1_time_is_an_integer_tick_and_never_accumulates() -> None:
    made = master([source("/S", lambda t: t)], step=Fraction(1, 60))
    made.run(600)
    assert trace(made).time.tolist() == [float(Fraction(k, 60)) for k in range(601)]


def test_m1_last_step_is_clipped_to_the_stop_time() -> None:
    clock = source("/S", lambda t: t)
    made = master([clock], step=Fraction(1, 10), stop=Fraction(1, 4))
    made.run(made.experiment.ticks)
    assert trace(made).time.tolist() == [0.0, 0.1, 0.2, 0.25]
    assert clock.state == pytest.approx(0.25, abs=1e-15)


def test_the_call_sequence_is_the_documented_one() -> None:
    part = gain("/G")
    made = master([source("/S", math.sin), part], wire("/S.outputs:y", "/G.inputs:u"))
    made.run(2)
    made.close()
    made.close()
    steps = [c for c in part.calls if c[0] == "step"]
    assert steps == [("step", 0, 1), ("step", 1, 1)]
    assert [c[0] for c in part.calls if c[0] != "set"] == ["bind", "enter", "exit", "step", "step", "close"]


# ---- Jacobi and Gauss-Seidel


def test_m1_jacobi_sees_the_previous_communication_point_on_every_connection() -> None:
    parts = [source("/A", lambda t: t), gain("/B"), gain("/C")]
    made = master(parts, wire("/A.outputs:y", "/B.inputs:u"), wire("/B.outputs:y", "/C.inputs:u"))
    made.run(5)
    results = trace(made)
    assert results["/B.outputs:y"].tolist() == pytest.approx([0.0, 0.0, 0.1, 0.2, 0.3, 0.4])
    assert results["/C.outputs:y"].tolist() == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2, 0.3])


def test_m1_gauss_seidel_sees_fresh_values_in_topological_order() -> None:
    parts = [source("/A", lambda t: t), gain("/B"), gain("/C")]
    made = master(parts, wire("/A.outputs:y", "/B.inputs:u"), wire("/B.outputs:y", "/C.inputs:u"), algorithm=SEIDEL)
    made.run(5)
    results = trace(made)
    assert results["/C.outputs:y"].tolist() == results["/A.outputs:y"].tolist()


@pytest.mark.parametrize("algorithm", [JACOBI, SEIDEL])
def test_m1_oscillator_error_is_of_first_order_in_the_step(algorithm: MasterAlgorithm) -> None:
    # x' = v, v' = -x, split into two components: the exact solution is cos t.
    def error(n: int) -> float:
        parts = [integrator("/X", 1.0), integrator("/V", 0.0)]
        made = master(
            parts,
            wire("/V.outputs:y", "/X.inputs:u"),
            wire("/X.outputs:y", "/V.inputs:u", factor=-1.0),
            step=Fraction(1, n),
            algorithm=algorithm,
        )
        made.run(n)
        return abs(trace(made)["/X.outputs:y"][-1] - math.cos(1.0))

    ratio = error(100) / error(200)
    assert ratio == pytest.approx(2.0, rel=0.05)


# ---- sums, factors, determinism


def test_m1_sources_sum_and_the_offset_counts_once() -> None:
    parts = [source("/A", lambda t: 1.0), source("/B", lambda t: 2.0), gain("/C")]
    made = master(
        parts, wire("/A.outputs:y", "/C.inputs:u", 10.0, 0.25), wire("/B.outputs:y", "/C.inputs:u", 10.0), values=()
    )
    made.step()
    assert made.get(PortRef.parse("/C.inputs:u")) == 30.25


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8), st.randoms(use_true_random=False), st.booleans())
def test_m1_sums_are_bit_identical_whatever_the_order_of_edges(
    numbers: list[float], order: random.Random, seidel: bool
) -> None:
    def run(shuffle: bool) -> bytes:
        parts = [source(f"/S{i}", lambda t, n=n: n * (1.0 + t)) for i, n in enumerate(numbers)] + [gain("/Sum", 1 / 3)]
        wires = [wire(f"/S{i}.outputs:y", "/Sum.inputs:u", 0.1 * i + 0.3) for i in range(len(numbers))]
        if shuffle:
            order.shuffle(parts)
            order.shuffle(wires)
        made = master(parts, *wires, algorithm=SEIDEL if seidel else JACOBI)
        made.run(7)
        return trace(made).values.tobytes()

    assert run(False) == run(True)


def test_a_source_may_be_the_commanded_side_of_another_prim() -> None:
    parts = [source("/A", lambda t: 1.0 + t), gain("/Z"), gain("/B")]
    made = master(parts, wire("/A.outputs:y", "/Z.inputs:u", 2.0), wire("/Z.inputs:u", "/B.inputs:u", 10.0))
    made.step()
    assert made.get(PortRef.parse("/B.inputs:u")) == 20.0


def test_inputs_that_only_follow_each_other_are_an_error() -> None:
    log = DiagnosticLog()
    graph = build_graph(
        [gain("/A"), gain("/B")],
        description([wire("/A.inputs:u", "/B.inputs:u"), wire("/B.inputs:u", "/A.inputs:u")]),
        log,
    )
    compile_plan(graph, Experiment(step=Fraction(1, 10)), log)
    assert "input-cycle" in [d.code for d in log.errors]


# ---- multi-rate


def test_m1_a_slow_component_latches_inputs_and_holds_outputs() -> None:
    slow = Fake(
        "/Slow",
        inputs={"u": 0.0},
        outputs={"y": lambda s, u: s},
        advance=lambda s, u, t, h: u["u"],
        state=-1.0,
        feedthrough={},
        period=Fraction(3, 10),
    )
    made = master([source("/S", lambda t: round(10 * t)), slow], wire("/S.outputs:y", "/Slow.inputs:u"))
    made.run(9)
    # Inputs latched at 0, 0.3, 0.6; the output of each period appears at its end and is held.
    assert trace(made)["/Slow.outputs:y"].tolist() == [-1, -1, -1, 0, 0, 0, 3, 3, 3, 6]
    assert [c for c in slow.calls if c[0] == "step"] == [("step", 0, 3), ("step", 3, 3), ("step", 6, 3)]


def test_m1_an_open_period_is_clipped_at_the_stop_time() -> None:
    slow = source("/S", lambda t: t)
    slow.period = Fraction(3, 10)
    made = master([slow], stop=Fraction(4, 10))
    made.run(4)
    assert [c for c in slow.calls if c[0] == "step"] == [("step", 0, 3), ("step", 3, 1)]
    assert slow.state == pytest.approx(0.4)


def test_m1_a_period_that_is_no_multiple_names_the_two_nearest_legal_ones() -> None:
    part = source("/S", abs)
    part.period = Fraction(1, 100)
    log = DiagnosticLog()
    compile_plan(build_graph([part], description(), log), Experiment(step=Fraction(1, 240)), log)
    (finding,) = log.errors
    assert finding.code == "period-not-a-multiple"
    assert "0.00833333333 s (1/120)" in finding.hint and "0.0125 s (1/80)" in finding.hint


# ---- precedence, guards, failures


def test_m1_a_hold_wins_over_a_wire_and_releasing_goes_back() -> None:
    parts = [source("/A", lambda t: 5.0), gain("/B"), gain("/C")]
    made = master(parts, wire("/A.outputs:y", "/B.inputs:u"), values=[("/C.inputs:u", 2.0)])
    b, c = PortRef.parse("/B.inputs:u"), PortRef.parse("/C.inputs:u")
    made.hold(b, 1.0)
    made.hold(c, 9.0)
    made.step()
    assert (made.get(b), made.get(c)) == (1.0, 9.0)
    made.release(b)
    made.release(c)
    made.step()
    assert (made.get(b), made.get(c)) == (5.0, 2.0)


def test_an_input_that_is_not_on_the_bus_can_be_held_too() -> None:
    part = gain("/B", 3.0)
    made = master([part])
    made.hold(PortRef.parse("/B.inputs:u"), 4.0)
    made.step()
    assert made.get(PortRef.parse("/B.outputs:y")) == 12.0
    made.release(PortRef.parse("/B.inputs:u"))
    made.step()
    assert made.get(PortRef.parse("/B.outputs:y")) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_m1_a_non_finite_output_stops_with_port_component_and_first_time(bad: float) -> None:
    made = master([source("/S", lambda t: bad if t > 0.25 else t)])
    with pytest.raises(StepError) as caught:
        made.run(10)
    (finding,) = caught.value.diagnostics
    assert finding.code == "output-not-finite"
    assert "/S.outputs:y" in finding.message and "t = 0.3 s" in finding.message
    assert trace(made).time.tolist() == [0.0, 0.1, 0.2]


def test_m1_a_non_finite_input_is_never_applied() -> None:
    parts = [source("/S", lambda t: 1.0 if t < 0.15 else 1e308), gain("/Sink")]
    made = master(parts, wire("/S.outputs:y", "/Sink.inputs:u", factor=1e10))
    with pytest.raises(StepError, match="input-not-finite"):
        made.run(10)
    assert math.isfinite(parts[1].u["u"])


def test_holding_a_non_finite_value_is_refused() -> None:
    made = master([gain("/B")])
    with pytest.raises(StepError, match="value-not-finite"):
        made.hold(PortRef.parse("/B.inputs:u"), math.nan)


@pytest.mark.parametrize("status", [StepStatus.DISCARD, StepStatus.ERROR, StepStatus.FATAL])
def test_a_bad_step_status_stops_the_run_and_keeps_the_rows(status: StepStatus) -> None:
    part = source("/S", abs)
    made = master([part])
    made.run(3)
    part.step = lambda tick, ticks: status  # type: ignore[method-assign]
    with pytest.raises(StepError, match=r"/S failed .* t = 0\.3 s"):
        made.step()
    assert len(trace(made)) == 4


def test_an_exception_of_a_component_names_component_and_time() -> None:
    def explode(s: float, u: object, t: float, h: float) -> float:
        raise ZeroDivisionError("oops")

    part = Fake("/Boom", outputs={"y": lambda s, u: s}, advance=explode)
    made = master([part])
    with pytest.raises(StepError, match=r"/Boom failed .* ZeroDivisionError: oops"):
        made.step()


def test_every_component_is_closed_even_if_one_fails_to() -> None:
    a, b = source("/A", abs), source("/B", abs)

    def fail() -> None:
        raise RuntimeError("cannot close")

    a.close = fail  # type: ignore[method-assign]
    made = master([a, b])
    with pytest.raises(RuntimeError):
        made.close()
    assert b.calls[-1] == ("close",)


# ---- initialization


@pytest.mark.parametrize("algorithm", [JACOBI, SEIDEL])
def test_m1_initial_values_travel_through_chains_to_a_fixed_point(algorithm: MasterAlgorithm) -> None:
    n = 30
    parts = [source("/S", lambda t: 1.0), *(gain(f"/G{i:02d}", 1.1) for i in reversed(range(n)))]
    wires = [wire("/S.outputs:y", "/G00.inputs:u")]
    wires += [wire(f"/G{i:02d}.outputs:y", f"/G{i + 1:02d}.inputs:u") for i in range(n - 1)]
    made = master(parts, *wires, algorithm=algorithm)
    assert trace(made)[f"/G{n - 1:02d}.outputs:y"][0] == pytest.approx(1.1**n)


def test_m1_a_contracting_loop_settles_at_its_solution() -> None:
    # u = 1 + y/2 and y = u: the fixed point is 2.
    parts = [source("/S", lambda t: 1.0), gain("/A"), gain("/B", 0.5)]
    made = master(
        parts,
        wire("/S.outputs:y", "/A.inputs:u"),
        wire("/B.outputs:y", "/A.inputs:u"),
        wire("/A.outputs:y", "/B.inputs:u"),
    )
    assert trace(made)["/A.outputs:y"][0] == pytest.approx(2.0, rel=1e-11)


def test_m1_a_loop_that_does_not_settle_is_reported_with_its_residual() -> None:
    parts = [source("/S", lambda t: 1.0), gain("/A", -1.0)]
    made = master(parts, wire("/S.outputs:y", "/A.inputs:u"), wire("/A.outputs:y", "/A.inputs:u"))
    assert "initialization-not-converged" in [d.code for d in made.log]  # type: ignore[attr-defined]


def test_m1_start_values_of_unconnected_inputs_are_written_before_initialization() -> None:
    part = gain("/G")
    made = master([part], values=[("/G.inputs:u", 4.0)])
    assert made.get(PortRef.parse("/G.outputs:y")) == 4.0


# ---- recording and snapshots


def test_patterns_choose_what_is_recorded_with_and_without_direction() -> None:
    connection = wire("/A.outputs:y", "/B.inputs:u")
    names = {
        pattern: trace(master([source("/A", math.sin), gain("/B")], connection, record=[pattern])).names
        for pattern in ("/B.*", "*.outputs:y", "/B.y", "/B.inputs:u")
    }
    assert names["/B.*"] == ("/B.inputs:u", "/B.outputs:y")
    assert names["*.outputs:y"] == ("/A.outputs:y", "/B.outputs:y")
    assert names["/B.y"] == ("/B.outputs:y",)
    assert names["/B.inputs:u"] == ("/B.inputs:u",)


def test_a_pattern_that_matches_nothing_is_reported() -> None:
    log = DiagnosticLog()
    compile_plan(build_graph([gain("/B")], description(), log), Experiment(step=Fraction(1)), log, record=["/Nope.*"])
    assert [d.code for d in log] == ["record-pattern-unmatched"]


def test_rows_beyond_one_chunk_are_complete() -> None:
    made = master([source("/S", lambda t: t)], step=Fraction(1, 1000))
    made.run(3000)
    results = trace(made)
    assert len(results) == 3001
    assert results["/S.outputs:y"][-1] == pytest.approx(3.0)
    assert np.all(np.diff(results.time) > 0)


@pytest.mark.parametrize("ticks", [5, 1023, 1024, 1030])
def test_restoring_a_snapshot_continues_bit_for_bit(ticks: int) -> None:
    parts = [integrator("/X", 1.0), integrator("/V")]
    made = master(
        parts,
        wire("/V.outputs:y", "/X.inputs:u"),
        wire("/X.outputs:y", "/V.inputs:u", factor=-1.0),
        step=Fraction(1, 50),
    )
    made.run(ticks)
    saved = made.save()
    made.hold(PortRef.parse("/X.inputs:u"), 3.0)
    made.run(40)
    made.restore(saved)
    made.run(40)
    again = trace(made).values.copy()
    fresh = master(
        [integrator("/X", 1.0), integrator("/V")],
        wire("/V.outputs:y", "/X.inputs:u"),
        wire("/X.outputs:y", "/V.inputs:u", factor=-1.0),
        step=Fraction(1, 50),
    )
    fresh.run(ticks + 40)
    assert again.tobytes() == trace(fresh).values.tobytes()
