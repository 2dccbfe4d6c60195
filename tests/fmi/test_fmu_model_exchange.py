"""FMUs without a solver: the host integrates them, with state and time events."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cosim.component import FloatArray
from cosim.diagnostic import StepError
from cosim.fmi import InputTable, simulate_fmu
from cosim.fmi.solver import Model, Solver
from tests.fmi.fmi_zoo import Bench, build_exchange, live

VERSIONS = ("2.0", "3.0")
G, E = 9.81, 0.7


def _ball(time: float) -> tuple[float, float, int]:
    """Height, speed and number of bounces: flights of a ball dropped from 1 m."""
    speed = math.sqrt(2 * G)
    impact = speed / G
    if time < impact:
        return 1 - 0.5 * G * time**2, -G * time, 0
    bounces = 1
    while True:
        speed *= E
        flight = 2 * speed / G
        if time < impact + flight:
            s = time - impact
            return speed * s - 0.5 * G * s**2, speed - G * s, bounces
        impact += flight
        bounces += 1


@pytest.mark.parametrize("version", VERSIONS)
def test_bouncing_ball_and_time_events(tmp_path: Path, version: str) -> None:
    path = build_exchange(tmp_path, version)
    got = simulate_fmu(path, stop=2, step="1/50", tolerance=1e-8)
    expected = np.array([_ball(t) for t in got["time"]])
    assert got["bounces"].tolist() == expected[:, 2].tolist()
    assert got["h"] == pytest.approx(expected[:, 0], abs=1e-6)
    assert got["v"] == pytest.approx(expected[:, 1], abs=1e-6)
    assert got["ticks"].tolist() == [math.floor(4 * t + 1e-9) for t in got["time"]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("rate", "error"), [(1.0, 5e-7), (30.0, 1e-6), (1e6, 1e-4)])
def test_lag_also_where_it_is_stiff(tmp_path: Path, version: str, rate: float, error: float) -> None:
    table = InputTable.of([0.0, 0.5, 0.5, 1.0], u=[1.0, 1.0, 3.0, 3.0])
    got = simulate_fmu(
        build_exchange(tmp_path, version),
        inputs=table,
        start_values={"rate": rate},
        outputs=["x"],
        stop=1,
        step="1/10",
        tolerance=1e-7,
    )
    time = got["time"]
    first = 1 - np.exp(-rate * time)
    later = 3 + (1 - math.exp(-rate * 0.5) - 3) * np.exp(-rate * np.maximum(time - 0.5, 0.0))
    assert got["x"] == pytest.approx(np.where(time <= 0.5, first, later), abs=error)


@pytest.mark.parametrize("version", VERSIONS)
def test_save_and_restore_with_the_solver(tmp_path: Path, version: str) -> None:
    with Bench(build_exchange(tmp_path, version), ["u"], ["h", "v", "x", "ticks", "bounces"], step="1/7") as bench:
        bench.start()
        bench.set(u=1.0)
        bench.step(3)
        state = bench.component.save()
        bench.step(3)
        first = bench.get()
        bench.component.restore(state)
        bench.tick = 3
        bench.step(3)
        assert bench.get() == first
    assert live(bench.fmu) == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("define", "text", "code"),
    [
        ("FAILS", "Derivatives was answered with Error", "fmu-call-failed"),
        ("DOMAIN", "collapses", "fmu-step-discarded"),
        ("WANTS_END", "asks to end the simulation", "fmu-step-discarded"),
    ],
)
def test_faults_inside_a_step(tmp_path: Path, version: str, define: str, text: str, code: str) -> None:
    if define == "FAILS" and version == "3.0":
        text = "fmi3GetContinuousState" + text
    with (
        Bench(build_exchange(tmp_path, version, define), ["u"], ["h"]) as bench,
        pytest.raises(StepError, match=text) as error,
    ):
        bench.start()
        for _ in range(10):
            bench.step()
    assert error.value.diagnostics[0].code == code
    assert "t = 0.4 s" in str(error.value) or "t = 0.3 s" in str(error.value)
    assert live(bench.fmu) == 0


class _Zeno(Model):
    """An event that never moves away."""

    def set_point(self, time: float, states: FloatArray) -> None:
        self.time = time

    def states(self) -> FloatArray:
        return np.zeros(0)

    def derivatives(self) -> FloatArray:
        return np.zeros(0)

    def indicators(self) -> FloatArray:
        return np.zeros(0)

    def completed_step(self) -> bool:
        return True

    def handle_events(self) -> None:
        pass

    def enter_continuous_time(self) -> None:
        pass

    @property
    def next_event(self) -> float:
        return 0.5


def test_events_without_progress_end_with_an_error() -> None:
    with pytest.raises(Exception, match=r"without progress at t = 0\.5 s"):
        Solver(_Zeno(), np.zeros(0), 1e-6).advance(0.0, 1.0)
