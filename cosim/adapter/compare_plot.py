"""Plot of a comparison: the worst columns in the reference's tube, with the first violation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.compare import Comparison, Level, Tolerance, tube_of
from cosim.diagnostic import UsageError
from cosim.result import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PANELS = 4


def plot_comparison(
    comparison: Comparison,
    result: Results,
    reference: Results,
    *,
    tolerance: Tolerance | None = None,
    path: Path | None = None,
) -> Figure:
    """One panel per column, the one that is furthest outside first.

    Args:
        comparison: of these two.
        result: the trace.
        reference: what it should be.
        tolerance: that it was compared with.
        path: write a PNG there.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError.of(
            "package-missing", "matplotlib is not installed", hint="pip install 'usd-cosim[view]'"
        ) from None
    names = [c.name for c in comparison.worst if not c.passed][:MAX_PANELS] or [c.name for c in comparison.worst[:1]]
    # Where the structure is wrong nothing was compared; what both have is shown all the same.
    names = names or [n for n in reference.names if n in result][:MAX_PANELS]
    found = {c.name: c for c in comparison.columns}
    figure = Figure(figsize=(9.0, 0.8 + 2.3 * max(1, len(names))), layout="constrained")
    axes = figure.subplots(max(1, len(names)), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(axes, names, strict=False):
        if comparison.level is Level.TUBE and name in found and not found[name].discrete:
            low, high = tube_of(reference, name, tolerance or Tolerance())
            axis.fill_between(reference.time, low, high, color="tab:green", alpha=0.25, label="tube")
        axis.plot(reference.time, reference[name], color="tab:green", linewidth=1.0, label="reference")
        axis.plot(result.time, result[name], color="tab:blue", linewidth=1.0, label="trace")
        column = found.get(name)
        if column is not None and column.first_time is not None and column.first_value is not None:
            axis.plot(column.first_time, column.first_value, "x", color="tab:red", label="first violation")
        unit = reference.unit(name) or result.unit(name)
        axis.set_title(name, fontsize="small", loc="left")
        axis.set_ylabel(f"[{unit or '–'}]")
        axis.grid(True, alpha=0.3)
        axis.legend(loc="best", fontsize="x-small", framealpha=0.7)
    axes[-1].set_xlabel("time [s]")
    finite = np.isfinite(reference.time)
    if finite.any():
        axes[-1].set_xlim(float(np.min(reference.time[finite])), float(np.max(reference.time[finite])))
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure
