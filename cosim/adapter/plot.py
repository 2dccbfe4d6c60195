"""Plots of results with matplotlib."""

from __future__ import annotations

import fnmatch
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.diagnostic import UsageError
from cosim.result import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PANELS = 8
MAX_LINES = 7


def plot_results(results: Results, names: Sequence[str] = (), *, path: Path | None = None, title: str = "") -> Figure:
    """One panel per unit, one line per column.

    Args:
        results: the trace.
        names: columns or glob patterns; empty takes the columns that change, up to a readable number.
        path: write a PNG there.
        title: heading.

    Raises:
        UsageError: matplotlib is not installed, or a name matches nothing.
    """
    try:
        import matplotlib
    except ImportError:
        raise UsageError.of(
            "package-missing", "matplotlib is not installed", hint="pip install 'usd-cosim[view]'"
        ) from None
    from matplotlib.figure import Figure

    del matplotlib
    panels = _panels(results, _chosen(results, names), limit=not names)
    figure: Figure = _shown_in_notebooks(Figure)(figsize=(9.0, 1.2 + 2.1 * max(1, len(panels))), layout="constrained")
    axes = figure.subplots(max(1, len(panels)), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (unit, columns) in zip(axes, panels, strict=False):
        for index in columns:
            column = results.columns[index]
            is_discrete = column.type.value != "Real"
            axis.plot(
                results.time,
                results.values[:, index],
                label=column.name,
                linewidth=1.2,
                drawstyle="steps-post" if is_discrete else "default",
            )
        axis.set_ylabel(f"[{unit or '–'}]")
        axis.grid(True, alpha=0.3)
        axis.legend(loc="best", fontsize="x-small", framealpha=0.7)
    axes[-1].set_xlabel("time [s]")
    if title:
        figure.suptitle(title, fontsize="medium")
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure


def _shown_in_notebooks(figure: type[Figure]) -> type[Figure]:
    """A figure that a notebook shows as it is, without pyplot and its global state."""

    class ShownFigure(figure):  # type: ignore[valid-type, misc]
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=90)
            return buffer.getvalue()

    return ShownFigure


def _chosen(results: Results, names: Sequence[str]) -> list[int]:
    if names:
        chosen: list[int] = []
        for name in names:
            found = [i for i, full in enumerate(results.names) if fnmatch.fnmatchcase(full, name)]
            chosen += [i for i in (found or [results.column(name)]) if i not in chosen]
        return chosen
    if not len(results):
        return []
    return [int(i) for i in np.flatnonzero(np.ptp(results.values, axis=0) > 0.0)]


def _panels(results: Results, chosen: Sequence[int], *, limit: bool) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for index in chosen:
        groups.setdefault(results.columns[index].unit, []).append(index)
    panels = list(groups.items())
    if limit:
        panels = [(unit, columns[:MAX_LINES]) for unit, columns in panels[:MAX_PANELS]]
    return panels
