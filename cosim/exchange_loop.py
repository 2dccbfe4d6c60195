"""The native loop of a run: which parts of a plan the C code drives, and what happens when it stops.

The readable specification is the loop in `cosim.master`; this one gives the same bits. Components
that live in Python, such as the rigid-body core, are stepped by the master between pieces of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.component import Component, Experiment, FloatArray
from cosim.native.exchange import (
    GATHER,
    HOSTED,
    Clock,
    Exchange,
    GatherArrays,
    HostedCalls,
    HostedPlan,
    Outcome,
)
from cosim.plan import MasterAlgorithm, StepPlan
from cosim.result import Recorder

# An open-ended run must stay exact for this many ticks: a thousand years at 240 Hz.
_OPEN_ENDED_TICKS = 2**43


@dataclass(frozen=True, slots=True)
class _Piece:
    """Operations `first` to `last` in C, or one component in Python."""

    first: int
    last: int
    component: int = -1


@dataclass(frozen=True, slots=True)
class Stopped:
    """What stopped the loop.

    Attributes:
        outcome: as the C code says.
        group: of the plan, for an input that is not finite.
        component: index of the component whose call failed, −1 for a guard of the bus.
        status: of the call.
        block: of outputs, for a get that failed.
    """

    outcome: Outcome
    group: int
    component: int
    status: int
    block: int


class NativeLoop:
    """Runs the ticks of one master.

    Args:
        plan: the compiled graph.
        experiment: the time base.
        hosted: component index → how to drive it; the others live in Python.
        bus: of the master, used in place.
        recorder: gets the rows.
    """

    def __init__(
        self,
        plan: StepPlan,
        experiment: Experiment,
        hosted: dict[int, HostedCalls],
        bus: FloatArray,
        recorder: Recorder,
    ) -> None:
        self._recorder = recorder
        self._order = sorted(hosted)
        place = {component: k for k, component in enumerate(self._order)}
        operations: list[tuple[int, int]] = []
        pieces: list[_Piece] = []
        first = 0
        for number, group in enumerate(plan.groups):
            operations.append((GATHER, number))
            operations += [(HOSTED, place[c]) for c in group.components if c in place]
            outside = [c for c in group.components if c not in place]
            if outside:
                pieces.append(_Piece(first, len(operations)))
                pieces += [_Piece(0, 0, c) for c in outside]
                first = len(operations)
        if first < len(operations):
            pieces.append(_Piece(first, len(operations)))
        self._pieces = tuple(pieces)
        self._is_whole = all(piece.component < 0 for piece in pieces)
        self._exchange = Exchange(
            bus,
            [_hosted_plan(plan, experiment, c, hosted[c]) for c in self._order],
            [GatherArrays(*_arrays(g.gather)) for g in plan.groups],
            operations,
            is_jacobi=plan.algorithm is MasterAlgorithm.JACOBI,
            clock=_clock(experiment),
            outputs=max((c.output_slice.stop for c in plan.components), default=0),
            recorded=np.asarray(plan.recorded, dtype=np.int64),
        )

    @classmethod
    def of(
        cls,
        plan: StepPlan,
        experiment: Experiment,
        components: Sequence[Component],
        bus: FloatArray,
        recorder: Recorder,
    ) -> NativeLoop | None:
        """The loop for a run, or None where nothing of it can run in C.

        Raises:
            CosimError: there is no C compiler.
        """
        last = experiment.ticks if experiment.stop is not None else _OPEN_ENDED_TICKS
        if plan.text_wires or not _clock(experiment).is_exact(last):
            return None
        hosted: dict[int, HostedCalls] = {}
        for index, component in enumerate(components):
            calls = getattr(component, "native_calls", None)
            found = calls() if calls is not None else None
            if found is not None:
                hosted[index] = found
        return cls(plan, experiment, hosted, bus, recorder) if hosted else None

    def hold(self, values: dict[int, float]) -> None:
        """Bus entries that keep a value over what is gathered."""
        self._exchange.hold(values)

    def ticks(self, tick: int, count: int, advance: Callable[[int], None]) -> tuple[int, Stopped | None]:
        """Run up to `count` ticks.

        Args:
            tick: the first.
            count: how many at most.
            advance: steps one component that lives in Python.

        Returns:
            How many were done, and what stopped the next one.
        """
        time, row, free = self._recorder.free()
        if self._is_whole:
            done, what = self._exchange.ticks(tick, min(count, free), time, row)
            self._recorder.written(done)
            return done, self._stopped(what) if what else None
        for piece in self._pieces:
            if piece.component >= 0:
                advance(piece.component)
                continue
            what = self._exchange.run(piece.first, piece.last, tick)
            if what:
                return 0, self._stopped(what)
        what = self._exchange.finish(tick, time, row)
        if what:
            return 0, Stopped(Outcome(what), -1, -1, 0, 0)
        self._recorder.written(1)
        return 1, None

    def _stopped(self, what: int) -> Stopped:
        index, status, block = self._exchange.failure
        outcome = Outcome(what)
        if outcome is Outcome.NOT_FINITE_INPUT:
            return Stopped(outcome, index, -1, 0, 0)
        return Stopped(outcome, -1, self._order[index], status, block)


def _arrays(gather: Any) -> tuple[Any, ...]:
    return gather.targets, gather.starts, gather.sources, gather.factors, gather.offsets


def _clock(experiment: Experiment) -> Clock:
    start, step, stop = experiment.start, experiment.step, experiment.stop
    common = start.denominator * step.denominator
    return Clock(
        start.numerator * step.denominator,
        step.numerator * start.denominator,
        common,
        -1 if stop is None else experiment.ticks,
        0.0 if stop is None else float(stop),
    )


def _hosted_plan(plan: StepPlan, experiment: Experiment, component: int, calls: HostedCalls) -> HostedPlan:
    part = plan.components[component]
    last_size = 0.0
    if experiment.stop is not None and experiment.ticks > 0:
        start = (experiment.ticks - 1) // part.divider * part.divider
        last_size = experiment.interval(start, experiment.ticks - start)
    # A period beyond any run: C counts in 64 bits.
    divider = min(part.divider, 2**53)
    return HostedPlan(calls, divider, part.input_slice, part.output_slice, last_size)


__all__ = ["NativeLoop", "Outcome", "Stopped"]
