"""The main scenario: how much faster than real time, and where the time goes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from typing import Any

import cosim

STOP, STEP, RUNS = 10, "1/240", 5


def measure() -> dict[str, float]:
    """Medians over several runs, and shares of the step."""
    system = cosim.load("lander")
    walls, starts = [], []
    for _ in range(RUNS):
        began = time.perf_counter()
        with cosim.open(system, stop=STOP, step=STEP) as simulation:
            simulation.initialize()
            initialized = time.perf_counter()
            simulation.run()
            walls.append(time.perf_counter() - initialized)
            starts.append(initialized - began)
    wall = statistics.median(walls)
    rows = {
        "lander: times real time, median": STOP / wall,
        "lander: times real time, slowest": STOP / max(walls),
        "lander: step [µs], median": wall / (STOP * 240) * 1e6,
        "lander: start [ms], median": statistics.median(starts) * 1e3,
    }
    return rows | _shares(system)


def _shares(system: cosim.System) -> dict[str, float]:
    """Time in the parts of a step; the watching itself costs about 1 µs a call and is left in."""
    from cosim.fmi.component import FmuComponent
    from cosim.rigid.bullet import BulletCore
    from cosim.rigid.component import RigidBodyComponent

    spent: dict[str, float] = defaultdict(float)
    watched = [
        (BulletCore, "step", "Bullet: stepSimulation"),
        (RigidBodyComponent, "step", "rigid-body core, all of the step"),
        (RigidBodyComponent, "get_outputs", "rigid-body core: publish"),
        (FmuComponent, "set_inputs", "FMUs: set"),
        (FmuComponent, "step", "FMUs: doStep"),
        (FmuComponent, "get_outputs", "FMUs: get"),
    ]
    kept = [(cls, name, getattr(cls, name)) for cls, name, _ in watched]
    for cls, name, label in watched:
        setattr(cls, name, _timed(getattr(cls, name), label, spent))
    try:
        with cosim.open(system, stop=STOP, step=STEP) as simulation:
            simulation.initialize()
            spent.clear()
            began = time.perf_counter()
            simulation.run()
            total = time.perf_counter() - began
    finally:
        for cls, name, method in kept:
            setattr(cls, name, method)
    rows = {f"share of {label} [%]": 100 * value / total for label, value in spent.items()}
    covered = sum(v for k, v in spent.items() if not k.startswith("Bullet"))
    rows["share of master, recorder and the rest [%]"] = 100 * (1 - covered / total)
    return rows


def _timed(method: Any, label: str, spent: dict[str, float]) -> Any:
    def call(*arguments: Any) -> Any:
        began = time.perf_counter()
        result = method(*arguments)
        spent[label] += time.perf_counter() - began
        return result

    return call
