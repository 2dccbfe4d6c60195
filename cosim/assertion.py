"""Whether a trace keeps what a scenario asserts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.component import FloatArray
from cosim.diagnostic import Diagnostic, Severity
from cosim.result import Results
from cosim.scenario import Assertion, AssertionKind, Scenario


@dataclass(frozen=True, slots=True)
class AssertionOutcome:
    """What came of an assertion.

    Attributes:
        assertion: which.
        passed: whether it holds.
        time: where it was decided: the first violation, the first fulfilment, the time of settling [s].
        value: of the port there; None where the trace has no such time.
        detail: one sentence.
    """

    assertion: Assertion
    passed: bool
    time: float | None
    value: float | None
    detail: str

    def __str__(self) -> str:
        return f"{'holds ' if self.passed else 'FAILED'}  {self.assertion}: {self.detail}"

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "assertion": str(self.assertion),
            "line": self.assertion.line,
            "passed": self.passed,
            "time": self.time,
            "value": self.value,
            "detail": self.detail,
        }

    def diagnostic(self, scenario: Scenario) -> Diagnostic:
        """The finding of a failed assertion."""
        where = scenario.where(self.assertion.line)
        return Diagnostic(Severity.ERROR, "assertion-failed", f"{self.assertion}: {self.detail}", where)


def judge(scenario: Scenario, results: Results, columns: Mapping[str, str]) -> tuple[AssertionOutcome, ...]:
    """Judge every assertion of a scenario.

    Args:
        scenario: with the assertions.
        results: of the run.
        columns: port as written → column of the results.
    """
    return tuple(_judge(a, results.time, results[columns[a.port]]) for a in scenario.assertions)


def _judge(assertion: Assertion, time: FloatArray, values: FloatArray) -> AssertionOutcome:
    judge_one = {
        AssertionKind.AT: _at,
        AssertionKind.ALWAYS: _always,
        AssertionKind.EVENTUALLY: _eventually,
        AssertionKind.SETTLES: _settles,
    }[assertion.kind]
    slack = 1e-9 * max(1.0, float(np.abs(time).max(initial=0.0)))
    begin = -np.inf if assertion.begin is None else assertion.begin - slack
    # What settles by a time stays so to the end of the trace.
    last = None if assertion.kind is AssertionKind.SETTLES else assertion.end
    end = np.inf if last is None else last + slack
    rows = np.flatnonzero((time >= begin) & (time <= end))
    if not rows.size:
        span = f"{time[0]:.9g} s to {time[-1]:.9g} s" if len(time) else "nothing"
        return AssertionOutcome(assertion, False, None, None, f"the trace has no such time; it spans {span}")
    return judge_one(assertion, time[rows], values[rows])


def _here(time: FloatArray, values: FloatArray, k: int) -> tuple[float, float, str]:
    return float(time[k]), float(values[k]), f"{values[k]:.9g} at t = {time[k]:.9g} s"


def _holds(assertion: Assertion, values: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    assert assertion.condition is not None
    return assertion.condition.holds(values)


def _at(assertion: Assertion, time: FloatArray, values: FloatArray) -> AssertionOutcome:
    """At the first communication point that is not before the time."""
    t, value, text = _here(time, values, 0)
    return AssertionOutcome(assertion, bool(_holds(assertion, values[:1])[0]), t, value, text)


def _always(assertion: Assertion, time: FloatArray, values: FloatArray) -> AssertionOutcome:
    bad = np.flatnonzero(~_holds(assertion, values))
    if bad.size:
        t, value, text = _here(time, values, int(bad[0]))
        return AssertionOutcome(
            assertion, False, t, value, f"{bad.size} of {len(time)} points violate it, first {text}"
        )
    t, value, _ = _here(time, values, len(time) - 1)
    return AssertionOutcome(assertion, True, t, value, f"at all {len(time)} points")


def _eventually(assertion: Assertion, time: FloatArray, values: FloatArray) -> AssertionOutcome:
    good = np.flatnonzero(_holds(assertion, values))
    if good.size:
        t, value, text = _here(time, values, int(good[0]))
        return AssertionOutcome(assertion, True, t, value, f"first {text}")
    assert assertion.condition is not None
    seen = np.abs(values) if assertion.condition.is_absolute else values
    nearest = int(np.argmin(np.abs(seen - assertion.condition.bound)))
    t, value, text = _here(time, values, nearest)
    return AssertionOutcome(assertion, False, t, value, f"never in {len(time)} points, nearest {text}")


def _settles(assertion: Assertion, time: FloatArray, values: FloatArray) -> AssertionOutcome:
    """Inside the band around the value from some point on, which is not the last one alone."""
    target = float(values[-1]) if assertion.value is None else assertion.value
    outside = np.flatnonzero(~(np.abs(values - target) <= assertion.within))
    first = int(outside[-1]) + 1 if outside.size else 0
    if first >= len(values) - 1 and len(values) > 1:
        t, value, text = _here(time, values, int(outside[-1]) if outside.size else 0)
        return AssertionOutcome(
            assertion, False, t, value, f"outside {target:.6g} ± {assertion.within:g} still: {text}"
        )
    t, value, _ = _here(time, values, first)
    is_in_time = assertion.end is None or t <= assertion.end * (1 + 1e-9)
    detail = f"inside {target:.6g} ± {assertion.within:g} from t = {t:.9g} s"
    return AssertionOutcome(assertion, is_in_time, t, value, detail if is_in_time else f"{detail} only")
