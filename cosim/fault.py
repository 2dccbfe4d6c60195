"""Faults of signals: what a port's readers see instead of its value."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cosim.component import Experiment
from cosim.diagnostic import SourceLocation, UsageError
from cosim.scenario import Fault, FaultKind


class ActiveFault:
    """A fault during a run; it sees every value of its port, also before it begins.

    Args:
        fault: what is wrong.
        experiment: step and seed.
        where: the place in the scenario file.

    Raises:
        UsageError: a delay is no multiple of the communication step size.
    """

    def __init__(self, fault: Fault, experiment: Experiment, where: SourceLocation) -> None:
        self.fault = fault
        self._experiment = experiment
        self._last: float | None = None
        self._history: list[float] = []
        self._delay = _ticks(fault, experiment, where) if fault.kind is FaultKind.DELAY else 0
        # One generator per port and kind: another fault in the file does not change this one's noise.
        name = zlib.crc32(f"{fault.port} {fault.kind}".encode())
        seed = int(fault.parameters.get("seed", experiment.seed))
        self._random = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, name))))
        self._apply: Callable[[float], float] = {
            FaultKind.STUCK: self._stuck,
            FaultKind.OFFSET: lambda x: x + fault.parameters["value"],
            FaultKind.GAIN: lambda x: x * fault.parameters["value"],
            FaultKind.NOISE: lambda x: x + fault.parameters["standard_deviation"] * self._random.standard_normal(),
            FaultKind.DROP_OUT: self._drop_out,
            FaultKind.DELAY: lambda x: self._history[0],
            FaultKind.QUANTISE: lambda x: float(np.rint(x / fault.parameters["step"])) * fault.parameters["step"],
        }[fault.kind]

    def is_active(self, time: Fraction) -> bool:
        """Whether it acts at a communication point [s]."""
        begin, end = self.fault.begin, self.fault.end
        return (begin is None or time >= begin) and (end is None or time < end)

    def see(self, value: float, time: Fraction) -> float:
        """What the readers see at a communication point; called once for each, in order."""
        if self.fault.kind is FaultKind.DELAY:
            self._history.append(value)
            # Before the run there is no value: its first one stands for them.
            del self._history[: -self._delay - 1]
        if not self.is_active(time):
            self._last = value
            return value
        return float(self._apply(value))

    def _stuck(self, value: float) -> float:
        """At a given value, else at the one that the port had when the fault began."""
        if self._last is None or "value" in self.fault.parameters:
            self._last = self.fault.parameters.get("value", value)
        return self._last

    def _drop_out(self, value: float) -> float:
        """A lost sample reads as a given value, else as the last one that came through."""
        is_lost = self._random.random() < self.fault.parameters.get("probability", 1.0)
        if not is_lost or self._last is None:
            self._last = value
        return self.fault.parameters.get("value", self._last) if is_lost else value


def _ticks(fault: Fault, experiment: Experiment, where: SourceLocation) -> int:
    """The delay in communication steps."""
    delay = Fraction(fault.parameters["seconds"]).limit_denominator(1_000_000)
    ticks = delay / experiment.step
    if ticks.denominator != 1 or ticks < 1:
        below, above = max(1, int(ticks)), int(ticks) + 1
        raise UsageError.of(
            "fault-delay-invalid",
            f"a delay of {float(delay):g} s is no multiple of the communication step size {experiment.step} s",
            where,
            hint=f"take {float(below * experiment.step):.9g} s or {float(above * experiment.step):.9g} s",
        )
    return int(ticks)
