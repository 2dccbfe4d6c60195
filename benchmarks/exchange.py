"""The exchange loop: a ring of ten FMUs that pass k numbers on, in C and in Python, in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import cosim

FMUS, TICKS, RUNS = 10, 20_000, 3


def measure() -> dict[str, float]:
    """Nanoseconds per FMU step, and how much faster the loop in C is."""
    rows: dict[str, float] = {}
    for k in (2, 8, 32):
        with tempfile.TemporaryDirectory() as folder:
            system = cosim.load(_ring(Path(folder), k))
            native = _nanoseconds(system, "auto", TICKS)
            python = _nanoseconds(system, "python", TICKS // 20)
        rows[f"k = {k}: C loop, all recorded [ns per FMU step]"] = native
        rows[f"k = {k}: Python loop over C loop"] = python / native
    return rows


def _ring(folder: Path, k: int) -> Path:
    inputs = " ".join(f"input Real u{i}; output Real y{i};" for i in range(k))
    equations = " ".join(f"y{i} = u{i} + 1;" for i in range(k))
    (folder / "Pass.mo").write_text(f"model Pass {inputs} equation {equations} end Pass;\n")
    lines = ['#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n']
    for n in range(FMUS):
        lines.append(f'def Scope "P{n}" (prepend apiSchemas = ["LunCoProgramAPI"])\n{{\n')
        lines.append("    uniform asset info:sourceAsset = @Pass.mo@\n")
        before = (n - 1) % FMUS
        lines += [f"    float inputs:u{i}.connect = </P{before}.outputs:y{i}>\n" for i in range(k)]
        lines.append("    double lunco:factor:u0 = 0.5\n}\n")
    stage = folder / "ring.usda"
    stage.write_text("".join(lines))
    return stage


def _nanoseconds(system: cosim.System, loop: str, ticks: int) -> float:
    times = []
    for _ in range(RUNS):
        with cosim.open(system, step="1/1000", loop=loop) as simulation:
            simulation.initialize()
            simulation.step(100)
            began = time.perf_counter()
            simulation.step(ticks)
            times.append((time.perf_counter() - began) / ticks / FMUS * 1e9)
    return statistics.median(times)
