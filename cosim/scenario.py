"""Scenario files: what happens to a stage from outside, and what must come of it.

    [run]
    stop_time = 5
    step_size = "1/240"
    record = ["/Lander/*"]

    [start_values]
    "/Lander/Guidance.inputs:target_speed" = -1

    [inputs]
    "/Arm/Controller.inputs:setpoint" = { points = [[0, 0], [1, 0.5]], interpolation = "linear" }
    "/Sun.inputs:elevation" = { file = "sun.csv", column = "elevation" }

    [[event]]
    at = 2
    hold = { "/Arm/Controller.inputs:setpoint" = 1 }

    [[event]]
    when = "/Lander.outputs:position_y < 10"
    release = ["/Arm/Controller.inputs:setpoint"]

    [[fault]]
    port = "/Lander/Imu.outputs:gyro_z"
    kind = "noise"
    standard_deviation = 0.01
    from = 1
    to = 3

    [[stop]]
    when = "/Lander/Touchdown.outputs:landed > 0.5"

    [[assert]]
    always = "/Lander.outputs:position_y > 0"

    [[assert]]
    settles = "/Arm/Elbow.outputs:angle"
    value = 0.5
    within = 0.01
    by = 4

`set` and `hold` of an event mean the same: the value stays, over a connection too, until a release.
`cosim.scenario_file.read_scenario` reads and checks a file; every finding names its line.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cosim.component import FloatArray
from cosim.diagnostic import SourceLocation
from cosim.fmi import InputTable


@dataclass(frozen=True, slots=True)
class Condition:
    """A port compared with a number: `/A.outputs:y > 0.5`, `abs(/A.outputs:y) <= 1`.

    Attributes:
        port: as written.
        operator: <, <=, >, >=, == or !=.
        bound: in the port's unit.
        is_absolute: whether the value's magnitude is compared.
    """

    port: str
    operator: str
    bound: float
    is_absolute: bool = False

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition.

        Raises:
            ValueError: it is none.
        """
        found = _CONDITION.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no condition")
        bound = float(found["bound"])
        if not math.isfinite(bound):
            raise ValueError(f"{found['bound']} is not finite")
        return cls(found["inner"] or found["plain"], found["operator"], bound, found["inner"] is not None)

    def holds(self, values: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where the condition holds; it does not where a value is not a number."""
        seen = np.abs(values) if self.is_absolute else values
        return np.asarray(_COMPARE[self.operator](seen, self.bound) & np.isfinite(seen))

    def __str__(self) -> str:
        port = f"abs({self.port})" if self.is_absolute else self.port
        return f"{port} {self.operator} {self.bound:g}"


_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_CONDITION = re.compile(
    r"(?:abs\(\s*(?P<inner>[^\s()]+)\s*\)|(?P<plain>[^\s()]+))\s*"
    r"(?P<operator><=|>=|==|!=|<|>)\s*(?P<bound>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
)


@dataclass(frozen=True, slots=True)
class Stimulus:
    """What an input follows.

    Attributes:
        port: as written.
        table: its one column, named as the port, in the input's unit; a repeated time is a jump.
        is_linear: interpolated linearly, else the last value is held. Outside the ends are held.
        line: in the file.
    """

    port: str
    table: InputTable
    is_linear: bool
    line: int

    def at(self, time: float) -> float:
        """The value at a time [s]; at a jump the one after it."""
        return self.table.at(self.port, time, interpolate=self.is_linear)


@dataclass(frozen=True, slots=True)
class Event:
    """What is done once, at a time or when a condition first holds.

    Attributes:
        at: [s], or None.
        when: the condition, or None.
        hold: input → value, kept over its connection until a release.
        release: inputs that go back to their connection, stimulus or authored value.
        line: in the file.
    """

    at: Fraction | None
    when: Condition | None
    hold: Mapping[str, float]
    release: tuple[str, ...]
    line: int


class FaultKind(enum.StrEnum):
    """What is wrong with a signal."""

    STUCK = "stuck"
    OFFSET = "offset"
    GAIN = "gain"
    NOISE = "noise"
    DROP_OUT = "drop-out"
    DELAY = "delay"
    QUANTISE = "quantise"


# What each kind needs and what it may have.
FAULT_KEYS: Mapping[FaultKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    FaultKind.STUCK: ((), ("value",)),
    FaultKind.OFFSET: (("value",), ()),
    FaultKind.GAIN: (("value",), ()),
    FaultKind.NOISE: (("standard_deviation",), ("seed",)),
    FaultKind.DROP_OUT: ((), ("probability", "value", "seed")),
    FaultKind.DELAY: (("seconds",), ()),
    FaultKind.QUANTISE: (("step",), ()),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Of a port, between it and what reads it.

    Attributes:
        port: an output (everything that is connected to it sees the fault) or an input.
        kind: what is wrong.
        begin: active from here [s].
        end: active before here [s]; None if for good.
        parameters: of the kind; see FAULT_KEYS.
        line: in the file.
    """

    port: str
    kind: FaultKind
    begin: Fraction | None
    end: Fraction | None
    parameters: Mapping[str, float]
    line: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Ends the run at the first communication point where a condition holds."""

    when: Condition
    reason: str
    line: int


class AssertionKind(enum.StrEnum):
    """What must hold."""

    AT = "at"
    ALWAYS = "always"
    EVENTUALLY = "eventually"
    SETTLES = "settles"


@dataclass(frozen=True, slots=True)
class Assertion:
    """What must come of the run.

    Attributes:
        kind: at, always, eventually, settles.
        condition: of all but `settles`, whose condition is |port − value| ≤ within.
        port: as written.
        begin: from here [s]; of `at` the time itself; None for the start.
        end: until here [s] (of `settles`: settled by then); None for the end of the run.
        value: of `settles`; None takes the last value.
        within: of `settles`, in the port's unit.
        name: "" if it has none.
        line: in the file.
    """

    kind: AssertionKind
    condition: Condition | None
    port: str
    begin: float | None
    end: float | None
    value: float | None
    within: float
    name: str
    line: int

    def __str__(self) -> str:
        if self.name:
            return self.name
        span = "".join(f" {word} {t:g} s" for word, t in (("from", self.begin), ("to", self.end)) if t is not None)
        if self.kind is AssertionKind.AT:
            return f"at {self.begin:g} s: {self.condition}"
        if self.kind is AssertionKind.SETTLES:
            target = f" at {self.value:g}" if self.value is not None else ""
            by = f" by {self.end:g} s" if self.end is not None else ""
            return f"{self.port} settles{target} within {self.within:g}{by}"
        return f"{self.kind} {self.condition}{span}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file.

    Attributes:
        path: the file.
        run: options of the run: start_time, stop_time, step_size, order, seed, tolerance, record.
        start_values: port → value.
        stimuli: what inputs follow.
        events: in the order of the file.
        faults: in the order in which they apply to a port.
        stops: conditions that end the run.
        assertions: what must hold.
    """

    path: Path
    run: Mapping[str, Any] = field(default_factory=dict)
    start_values: Mapping[str, float | str] = field(default_factory=dict)
    stimuli: tuple[Stimulus, ...] = ()
    events: tuple[Event, ...] = ()
    faults: tuple[Fault, ...] = ()
    stops: tuple[Stop, ...] = ()
    assertions: tuple[Assertion, ...] = ()

    @property
    def observed(self) -> tuple[tuple[str, int], ...]:
        """Ports whose values conditions and assertions read, with their lines."""
        conditions = [(e.when.port, e.line) for e in self.events if e.when is not None]
        conditions += [(s.when.port, s.line) for s in self.stops]
        return (*conditions, *((a.port, a.line) for a in self.assertions))

    def where(self, line: int) -> SourceLocation:
        """A place in the file."""
        return SourceLocation(str(self.path), line=line)
