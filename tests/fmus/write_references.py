"""Write each program's `_in.csv`, `_ref.csv` and `_ref.opt` beside it, from the numpy references.

Run it after a change of an experiment: python tests/fmus/write_references.py [PROGRAM ...]
The layout is that of the Reference-FMUs and the FMI cross-check. The FMU is asked for nothing but
the order of its outputs. Parameters are the program's own.
"""

from __future__ import annotations

import csv
import sys

from fmus_experiments import EXPERIMENTS
from fmus_harness import LIBRARY, outputs_of


def write(program: str) -> None:
    """Write the files of one program."""
    experiment = EXPERIMENTS[program]
    run = experiment.run
    values = experiment.reference(run)
    names = outputs_of(program)
    _table(f"{program}_ref.csv", ["time", *names], [run.time, *(values[name] for name in names)])
    if run.inputs:
        # the row at the stop time repeats the last held values
        held = [[*run.inputs[name], run.inputs[name][-1]] for name in run.inputs]
        _table(f"{program}_in.csv", ["time", *run.inputs], [run.time, *held])
    options = {"StartTime": 0.0, "StopTime": float(run.time[-1]), "StepSize": run.step, "RelTol": 1e-10}
    lines = [f"{name}, {value!r}" for name, value in options.items()]
    (LIBRARY / f"{program}_ref.opt").write_text("\n".join(lines) + "\n")


def _table(name: str, header: list[str], columns: list[object]) -> None:
    with (LIBRARY / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([_text(value) for value in row] for row in zip(*columns, strict=True))  # type: ignore[call-overload]


def _text(value: float) -> str:
    """Shortest text that reads back as the same number; no negative zero."""
    return repr(float(value) + 0.0).removesuffix(".0")


if __name__ == "__main__":
    for selected in sys.argv[1:] or sorted(EXPERIMENTS):
        write(selected)
