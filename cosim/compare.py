"""Comparing a trace with a reference trace.

Two levels. `exact` is for the same binary and step: every value equals the reference to 1e-9 of its
column's size. `tube` is for another tool or step: continuous columns stay in a tube around the
reference, discrete ones have their reference value within an event window.

The tube at time t spans the reference's minimum to maximum over [t − dx, t + dx], widened by
absolute + relative·max(range, nominal); dx is a number of reference samples. Where the reference
repeats a time (an event) both its left and right values count.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.component import FloatArray, PortType
from cosim.diagnostic import Diagnostic, Severity, TraceMismatch, UsageError
from cosim.result import Results

EXACT_RELATIVE = 1e-9


class Level(enum.StrEnum):
    """How strict a comparison is."""

    EXACT = "exact"
    TUBE = "tube"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Of the tube.

    Attributes:
        relative: of max(range, nominal) of the reference column.
        absolute: [unit of the column].
        samples: half width in time of the tube and of the event window, in reference samples.
    """

    relative: float = 2e-3
    absolute: float = 1e-12
    samples: float = 1.0


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """What came of one column.

    Attributes:
        name: of the reference column.
        unit: "" if undeclared.
        discrete: whether values were compared exactly, with an event window.
        samples: values compared.
        violations: values outside.
        worst_ratio: largest distance from the reference over the tolerance; at most 1 passes. For a discrete
            column 0 or inf.
        first_time: of the first violation [s]; None if there is none.
        first_value: what the trace has there.
        first_low: lower bound there.
        first_high: upper bound there.
    """

    name: str
    unit: str
    discrete: bool
    samples: int
    violations: int = 0
    worst_ratio: float = 0.0
    first_time: float | None = None
    first_value: float | None = None
    first_low: float | None = None
    first_high: float | None = None

    @property
    def passed(self) -> bool:
        """Whether every value is inside."""
        return self.violations == 0

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; an infinite ratio is null."""
        row = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        ratio = self.worst_ratio if math.isfinite(self.worst_ratio) else None
        return {**row, "worst_ratio": ratio, "passed": self.passed}

    def __str__(self) -> str:
        if self.passed:
            return f"{self.name}: ok, {self.worst_ratio:.3g} of its tolerance"
        return (
            f"{self.name}: {self.violations} of {self.samples} values outside, first {self.first_value:.9g} at "
            f"t = {self.first_time:.9g} s, where {self.first_low:.9g} … {self.first_high:.9g} was expected"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        level: how strict it was.
        columns: one per reference column that could be compared, in the order of the reference.
        structure: what is wrong before any value is looked at.
    """

    level: Level
    columns: tuple[ColumnComparison, ...]
    structure: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the trace agrees with the reference."""
        return not self.structure and all(c.passed for c in self.columns)

    @property
    def failures(self) -> tuple[ColumnComparison, ...]:
        """Columns that differ, earliest first."""
        return tuple(sorted((c for c in self.columns if not c.passed), key=lambda c: (c.first_time or 0.0, c.name)))

    @property
    def worst(self) -> tuple[ColumnComparison, ...]:
        """All columns, the one that is furthest outside first."""
        return tuple(sorted(self.columns, key=lambda c: (c.passed, -c.worst_ratio, c.first_time or 0.0, c.name)))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that `cosim compare --json` prints."""
        return {
            "passed": self.passed,
            "level": self.level.value,
            "structure": list(self.structure),
            "columns": [c.as_dict() for c in self.columns],
        }

    def table(self, rows: int = 12) -> str:
        """What is structurally wrong and the worst columns, as a text table.

        Args:
            rows: columns to show at most; every one that differs is counted in the last line.
        """
        lines = [f"  {text}" for text in self.structure]
        shown = self.worst[:rows]
        if shown:
            width = max(6, *(len(c.name) for c in shown))
            head = f"{'outside':>13}  {'worst':>9}  {'first [s]':>10}  {'value':>12}  expected"
            lines.append(f"  {'column':<{width}}  {head}")
            lines += [f"  {c.name:<{width}}  {_cells(c)}".rstrip() for c in shown]
        good = sum(c.passed for c in self.columns)
        verdict = "agrees" if self.passed else "DIFFERS"
        left_out = f", {len(self.columns) - len(shown)} more not shown" if len(self.columns) > len(shown) else ""
        lines.append(f"{verdict} ({self.level}): {good} of {len(self.columns)} columns agree{left_out}")
        return "\n".join(lines)

    def raise_failed(self) -> None:
        """Raise what differs.

        Raises:
            TraceMismatch: the trace does not agree.
        """
        if self.passed:
            return
        texts = [*self.structure, *(str(c) for c in self.failures)]
        raise TraceMismatch(*(Diagnostic(Severity.ERROR, "trace-mismatch", text) for text in texts))

    def __str__(self) -> str:
        lines = [*self.structure, *(str(c) for c in self.failures)]
        good = sum(c.passed for c in self.columns)
        return "\n".join([*lines, f"{good} of {len(self.columns)} columns agree ({self.level})"])


def compare(
    result: Results,
    reference: Results,
    *,
    level: Level | str = Level.TUBE,
    tolerance: Tolerance | None = None,
    columns: Sequence[str] | None = None,
) -> Comparison:
    """Compare a trace with a reference.

    Args:
        result: the trace.
        reference: what it should be.
        level: exact or tube.
        tolerance: of the tube.
        columns: names of reference columns; None takes all of them.

    Raises:
        UsageError: no such level; a column that the reference does not have.
    """
    level, tolerance = _level(level), tolerance or Tolerance()
    names = tuple(columns) if columns is not None else reference.names
    for name in names:
        reference.column(name)
    structure = _structure(result, reference, names, level)
    if structure:
        return Comparison(level, (), tuple(structure))
    found = []
    for name in names:
        actual, expected = result[name], reference[name]
        discrete = _is_discrete(result, reference, name)
        unit = reference.unit(name) or result.unit(name)
        if level is Level.EXACT:
            size = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
            band = np.zeros_like(expected) if discrete else np.full_like(expected, EXACT_RELATIVE * size)
            found.append(_judge(name, unit, discrete, result.time, actual, expected, expected, band))
        else:
            window = tolerance.samples * _sample(reference.time)
            if discrete:
                found.append(_judge_discrete(name, unit, result, reference, window))
            else:
                found.append(_judge_tube(name, unit, result, reference, tolerance))
    return Comparison(level, tuple(found))


def _cells(column: ColumnComparison) -> str:
    counts = f"{column.violations} of {column.samples}"
    text = f"{counts:>13}  {column.worst_ratio:>9.3g}"
    if column.first_time is None:
        return text
    low, high = column.first_low, column.first_high
    expected = f"{low:.9g}" if low == high else f"{low:.9g} … {high:.9g}"
    return f"{text}  {column.first_time:>10.6g}  {column.first_value:>12.6g}  {expected} {column.unit}"


def _level(level: Level | str) -> Level:
    try:
        return Level(level)
    except ValueError:
        raise UsageError.of("level-unknown", f"{level!r} is no level of comparison", hint="exact or tube") from None


def tube(time: FloatArray, values: FloatArray, at: FloatArray, window: float) -> tuple[FloatArray, FloatArray]:
    """Minimum and maximum of a piecewise linear reference over [t − window, t + window].

    Args:
        time: of the reference [s], shape (n,), not decreasing.
        values: shape (n,).
        at: times t [s], shape (m,).
        window: half width [s].

    Returns:
        Lower and upper bounds, shape (m,) each.
    """
    first = np.searchsorted(time, at - window, side="left")
    last = np.searchsorted(time, at + window, side="right")
    low, high = np.empty(len(at)), np.empty(len(at))
    # Left and right limits at the window's ends.
    ends = [_interpolate(time, values, np.clip(at + s * window, time[0], time[-1])) for s in (-1.0, 1.0)]
    for k, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        inside = values[a:b]
        low[k] = np.min(inside, initial=np.inf)
        high[k] = np.max(inside, initial=-np.inf)
    for end in ends:
        np.minimum(low, end, out=low)
        np.maximum(high, end, out=high)
    return low, high


def tube_of(reference: Results, name: str, tolerance: Tolerance) -> tuple[FloatArray, FloatArray]:
    """The bounds that a trace must keep at the times of the reference, shape (rows,) each."""
    values = reference[name]
    low, high = tube(reference.time, values, reference.time, tolerance.samples * _sample(reference.time))
    size = _width(values, tolerance)
    return low - size, high + size


def _width(expected: FloatArray, tolerance: Tolerance) -> float:
    return tolerance.relative * float(np.ptp(expected)) + tolerance.absolute


def _interpolate(time: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    return np.asarray(np.interp(at, time, values), dtype=np.float64)


# ---- the structural gate


def _structure(result: Results, reference: Results, names: Sequence[str], level: Level) -> list[str]:
    wrong = []
    for label, trace in (("the trace", result), ("the reference", reference)):
        if len(trace) < 2:
            wrong.append(f"{label} has {len(trace)} rows")
            continue
        if not np.all(np.isfinite(trace.time)) or np.any(np.diff(trace.time) < 0):
            wrong.append(f"{label} has times that are not finite or go backwards")
    if not names:
        wrong.append("the reference has no columns")
    if wrong:
        return wrong
    missing = [n for n in names if n not in result]
    if missing:
        wrong.append(f"the trace has no column {', '.join(missing[:6])}" + (" …" if len(missing) > 6 else ""))
    for label, trace in (("the trace", result), ("the reference", reference)):
        wrong += [
            f"{label} has {n} that is not finite, first at t = {trace.time[np.flatnonzero(bad)[0]]:.9g} s"
            for n in names
            if n in trace and (bad := ~np.isfinite(trace[n])).any()
        ]
    slack = 1e-9 * max(1.0, abs(float(reference.time[-1])))
    for label, a, b in (
        ("begins", result.time[0], reference.time[0]),
        ("ends", result.time[-1], reference.time[-1]),
    ):
        if abs(a - b) > slack:
            wrong.append(f"the trace {label} at {a:.9g} s and the reference at {b:.9g} s")
    same = len(result) == len(reference) and bool(np.allclose(result.time, reference.time, rtol=0.0, atol=slack))
    if level is Level.EXACT and not wrong and not same:
        wrong.append(f"the trace has {len(result)} rows at other times than the reference's {len(reference)}")
    return wrong


def _is_discrete(result: Results, reference: Results, name: str) -> bool:
    kinds = {trace.columns[trace.column(name)].type for trace in (result, reference)}
    if kinds & {PortType.INTEGER, PortType.BOOLEAN, PortType.ENUMERATION}:
        return True
    # A result file does not tell types: whole numbers on both sides are flags and counts.
    return all(bool(np.all(trace[name] == np.rint(trace[name]))) for trace in (result, reference))


def _sample(time: FloatArray) -> float:
    steps = np.diff(time)
    return float(np.median(steps[steps > 0]))


# ---- judging


def _judge(
    name: str,
    unit: str,
    discrete: bool,
    time: FloatArray,
    actual: FloatArray,
    low: FloatArray,
    high: FloatArray,
    band: FloatArray,
) -> ColumnComparison:
    outside = np.maximum(np.maximum(low - actual, actual - high), 0.0)
    bad = np.flatnonzero(outside > band)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(outside > 0.0, outside / band, 0.0)
    worst = float(ratio.max(initial=0.0))
    if not bad.size:
        return ColumnComparison(name, unit, discrete, len(actual), worst_ratio=worst)
    k = int(bad[0])
    return ColumnComparison(
        name,
        unit,
        discrete,
        len(actual),
        int(bad.size),
        worst,
        float(time[k]),
        float(actual[k]),
        float(low[k] - band[k]),
        float(high[k] + band[k]),
    )


def _judge_tube(name: str, unit: str, result: Results, reference: Results, tolerance: Tolerance) -> ColumnComparison:
    """The trace must stay in the reference's tube; and the reference in the trace's, lest it skip a peak."""
    actual, expected = result[name], reference[name]
    size = _width(expected, tolerance)
    low, high = tube(reference.time, expected, result.time, tolerance.samples * _sample(reference.time))
    found = _judge(name, unit, False, result.time, actual, low, high, np.full_like(actual, size))
    window = tolerance.samples * max(_sample(reference.time), _sample(result.time))
    low, high = tube(result.time, actual, reference.time, window)
    skipped = _judge(name, unit, False, reference.time, expected, low, high, np.full_like(expected, size))
    if skipped.first_time is None or skipped.first_value is None or not found.passed:
        return found
    here = float(_interpolate(result.time, actual, np.array([skipped.first_time]))[0])
    low_here, high_here = skipped.first_value - size, skipped.first_value + size
    return dataclasses.replace(skipped, samples=len(actual), first_value=here, first_low=low_here, first_high=high_here)


def _judge_discrete(name: str, unit: str, result: Results, reference: Results, window: float) -> ColumnComparison:
    """Each value of the trace must occur in the reference within the window, and the other way round."""
    slack = window * (1.0 + 1e-9)
    found = []
    for one, other in ((result, reference), (reference, result)):
        values, others = one[name], other[name]
        first = np.searchsorted(other.time, one.time - slack, side="left")
        last = np.searchsorted(other.time, one.time + slack, side="right")
        # The value that holds when the window opens.
        first = np.maximum(first - 1, 0)
        for k, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            if not np.any(others[a:b] == values[k]):
                found.append((float(one.time[k]), one is result, k))
    if not found:
        return ColumnComparison(name, unit, True, len(result))
    time, is_trace, k = min(found)
    nearest = int(np.searchsorted((reference if is_trace else result).time, time).clip(0, None))
    here = float(result[name][k]) if is_trace else float(result[name][min(nearest, len(result) - 1)])
    there = float(reference[name][min(nearest, len(reference) - 1)]) if is_trace else float(reference[name][k])
    count = len(found)
    return ColumnComparison(name, unit, True, len(result), count, float("inf"), time, here, there, there)
