"""The fixed-step master algorithm: it knows components and a plan, nothing of USD, FMI or Bullet.

This loop is the readable specification. Time is an integer tick; at each tick a group
gathers its inputs from the bus, its components step, and their outputs go back to the
bus. Under Jacobi there is one group, so every connection carries the previous
communication point; under Gauss-Seidel there is one group per component in execution
order, so connections carry fresh values except where a cycle had to be cut.

A component with a decimation factor n latches its inputs at ticks that are multiples of
n (Jacobi; under Gauss-Seidel when it steps), steps over n base steps when its
communication period ends, and its outputs are held in between.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.component import Causality, Component, Experiment, FloatArray, Port, PortRef, StepStatus
from cosim.diagnostic import CosimError, Diagnostic, DiagnosticLog, Severity, SourceLocation, StepError
from cosim.exchange_loop import NativeLoop, Outcome, Stopped
from cosim.plan import Gather, MasterAlgorithm, StepPlan
from cosim.result import Column, Recorder

INITIALIZATION_SWEEPS = 100
_STOPPED = {
    Outcome.SET_FAILED: "set",
    Outcome.STEP_FAILED: "step",
    Outcome.GET_FAILED: "get",
    Outcome.NOT_FINITE_OUTPUT: "not finite",
}
_TOLERANCE = 1e-12


class Loop(enum.StrEnum):
    """Where the exchange loop runs."""

    AUTO = "auto"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole system at a communication point."""

    tick: int
    bus: FloatArray
    holds: dict[int, float]
    latched: tuple[int, ...]
    components: tuple[Any, ...]
    rows: int


class Master:
    """Runs a plan, one communication point at a time.

    Args:
        plan: the compiled graph.
        experiment: the time base.
        log: gets what happens on the way (an initialization that does not settle).
        loop: AUTO runs what it can in C, PYTHON nothing; both give the same bits.
    """

    def __init__(
        self, plan: StepPlan, experiment: Experiment, log: DiagnosticLog, *, loop: Loop | str = Loop.AUTO
    ) -> None:
        loop = Loop(loop)
        self.plan = plan
        self.experiment = experiment
        self.tick = 0
        self._log = log
        self._components: tuple[Component, ...] = plan.graph.components
        self._bus = plan.initial.copy()
        self._holds: dict[int, float] = {}
        self._outside: dict[PortRef, float] = {}
        self._slot = {port.ref: i for i, port in enumerate(plan.bus_ports)}
        self._all_outputs = self._bus[: max((c.output_slice.stop for c in plan.components), default=0)]
        self._zeros = np.zeros(len(self._all_outputs))
        self._current = 0
        self._inputs = [self._bus[c.input_slice] for c in plan.components]
        self._outputs = [self._bus[c.output_slice] for c in plan.components]
        self._latched_at = [0] * len(self._components)
        self._groups = [(_GatherKernel(g.gather, self._bus), g.components) for g in plan.groups]
        self._is_jacobi = plan.algorithm is MasterAlgorithm.JACOBI
        self._dividers = [c.divider for c in plan.components]
        self._text: list[list[Any]] = [[p.start for p in ins] for ins, _ in plan.text_ports]
        self._is_closed = False
        self.recorder = Recorder([_column(p) for p in plan.recorded_ports], plan.recorded)
        self._wants_native = loop is not Loop.PYTHON
        self._native: NativeLoop | None = None

    @property
    def time(self) -> float:
        """The current communication point [s]."""
        return self.experiment.time(self.tick)

    # ---- life cycle

    def initialize(self) -> None:
        """Bind, instantiate, iterate the initial values to a fixed point, record the first row.

        Raises:
            CosimError: a component cannot start, or an initial value is not finite.
        """
        values: list[list[tuple[Port, Any]]] = [[] for _ in self._components]
        for start in self.plan.graph.start_values:
            values[start.component].append((start.port, start.value))
            texts = self.plan.text_ports[start.component][0]
            if start.port in texts:
                self._text[start.component][texts.index(start.port)] = start.value
        for index, component in enumerate(self._components):
            part, (text_in, text_out) = self.plan.components[index], self.plan.text_ports[index]
            self._guarded(index, component.bind, (*part.inputs, *text_in), (*part.outputs, *text_out))
            self._guarded(index, component.enter_initialization, self.experiment, values[index])
        with _guards_of_our_own():
            self._settle()
            for index, component in enumerate(self._components):
                self._guarded(index, component.exit_initialization)
                self._guarded(index, component.get_outputs, self._outputs[index])
            self._check_outputs()
        self.recorder.append(self.time, self._bus)
        if self._wants_native:
            self._prepare_native()

    def step(self) -> None:
        """Advance by one base step and record a row.

        Raises:
            StepError: a component failed, or a value is not finite; the rows before stay readable.
        """
        self.run(1)

    def run(self, ticks: int, on_tick: Callable[[int], None] | None = None) -> None:
        """Advance by a number of base steps.

        Args:
            ticks: how many.
            on_tick: called after every step with the tick reached.
        """
        end = self.tick + ticks
        with _guards_of_our_own():
            while self.tick < end:
                if self._native is not None:
                    self._run_native(self._native, 1 if on_tick is not None else end - self.tick)
                else:
                    self._step()
                if on_tick is not None:
                    on_tick(self.tick)
        if self._native is not None:
            for component in self._components:
                advanced = getattr(component, "native_advanced", None)
                if advanced is not None:
                    advanced(self.tick)

    def close(self) -> None:
        """Close every component, also when closing one of them fails."""
        if self._is_closed:
            return
        self._is_closed = True
        failures: list[Exception] = []
        for component in self._components:
            try:
                component.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    # ---- values

    def get(self, ref: PortRef) -> float:
        """The value of a bound port.

        Raises:
            StepError: the port is not on the bus.
        """
        slot = self._slot.get(ref)
        if slot is None:
            if ref in self._outside:
                return self._outside[ref]
            raise StepError.of(
                "port-not-recorded", f"{ref} is neither connected nor recorded", hint="add it to the recorded ports"
            )
        return float(self._bus[slot])

    def hold(self, ref: PortRef, value: float) -> None:
        """Keep an input at a value, over its wire and its authored value, until `release`.

        Raises:
            StepError: no such input, or the value is not finite.
        """
        if not np.isfinite(value):
            raise StepError.of("value-not-finite", f"{ref} cannot be set to {value}")
        index, port = self._input(ref)
        slot = self._slot.get(ref)
        if slot is None:
            self._components[index].hold(port, value)
            self._outside[ref] = value
        else:
            self._holds[slot] = value
            self._bus[slot] = value
            self._tell_holds()

    def release(self, ref: PortRef) -> None:
        """Give an input back to its wire, else to its authored value."""
        index, port = self._input(ref)
        slot = self._slot.get(ref)
        if slot is None:
            self._components[index].release(port)
            self._outside.pop(ref, None)
        elif self._holds.pop(slot, None) is not None:
            self._bus[slot] = self.plan.initial[slot]
            self._tell_holds()

    def _input(self, ref: PortRef) -> tuple[int, Port]:
        found = self.plan.graph.resolve(ref)
        if found is None or found[1].causality not in (Causality.INPUT, Causality.PARAMETER):
            raise StepError.of("port-unknown", f"there is no input {ref}", hint="`cosim ports STAGE` lists every port")
        return found

    # ---- state

    def save(self) -> Snapshot:
        """A snapshot of the whole system.

        Raises:
            StepError: a component cannot save its state.
        """
        return Snapshot(
            self.tick,
            self._bus.copy(),
            dict(self._holds),
            tuple(self._latched_at),
            tuple(c.save() for c in self._components),
            len(self.recorder),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, bit for bit; rows recorded since are forgotten."""
        for component, state in zip(self._components, snapshot.components, strict=True):
            component.restore(state)
        self.tick = snapshot.tick
        self._bus[:] = snapshot.bus
        self._holds = dict(snapshot.holds)
        self._tell_holds()
        self._latched_at = list(snapshot.latched)
        self.recorder.rewind(snapshot.rows)

    # ---- the native loop

    def _prepare_native(self) -> None:
        """The loop in C for what it can drive; without a compiler everything stays in Python."""
        try:
            self._native = NativeLoop.of(self.plan, self.experiment, self._components, self._bus, self.recorder)
        except CosimError as error:
            reason = error.diagnostics[0].message
            self._log.info("loop-in-python", f"the exchange loop runs in Python, which is slower: {reason}")
        self._tell_holds()

    def _tell_holds(self) -> None:
        if self._native is not None:
            self._native.hold(self._holds)

    def _run_native(self, native: NativeLoop, count: int) -> None:
        tick = self.tick
        last = self.experiment.stop is not None and tick + 1 >= self.experiment.ticks
        try:
            done, stopped = native.ticks(tick, count, lambda index: self._advance_guarded(index, tick, last))
        except CosimError:
            raise
        except Exception as error:
            raise self._failure(self._current, f"{type(error).__name__}: {error}", "component-failed") from error
        self.tick = tick + done
        if stopped is not None:
            self._raise_stopped(stopped)

    def _advance_guarded(self, index: int, tick: int, last: bool) -> None:
        self._current = index
        self._advance(index, tick, last)

    def _raise_stopped(self, stopped: Stopped) -> None:
        """Raise what stopped the native loop in the words of the loop in Python."""
        if stopped.outcome is Outcome.NOT_FINITE_INPUT:
            self._gather(self._groups[stopped.group][0])
        elif stopped.component < 0:
            self.tick += 1
            self._check_outputs()
        else:
            index, divider = stopped.component, self._dividers[stopped.component]
            start, end = self.tick - self.tick % divider, self.tick + 1
            what = _STOPPED[stopped.outcome]
            component: Any = self._components[index]
            component.native_stopped(what, stopped.status, stopped.block, start, end, self._outputs[index])
        raise self._failure(max(0, stopped.component), f"the exchange loop stopped ({stopped})", "component-failed")

    # ---- one tick

    def _step(self) -> None:
        tick = self.tick
        last = self.experiment.stop is not None and tick + 1 >= self.experiment.ticks
        try:
            for kernel, members in self._groups:
                self._gather(kernel)
                for index in members:
                    self._current = index
                    self._advance(index, tick, last)
        except CosimError:
            raise
        except Exception as error:
            raise self._failure(self._current, f"{type(error).__name__}: {error}", "component-failed") from error
        self.tick = tick + 1
        self._check_outputs()
        self.recorder.append(self.experiment.time(tick + 1), self._bus)

    def _advance(self, index: int, tick: int, last: bool) -> None:
        """Latch, step and publish one component, as far as its communication period says."""
        component, divider = self._components[index], self._dividers[index]
        start = tick
        if divider == 1:
            component.set_inputs(self._inputs[index])
        else:
            begins = tick % divider == 0
            ends = last or (tick + 1) % divider == 0
            if begins:
                self._latched_at[index] = tick
            if begins if self._is_jacobi else ends:
                component.set_inputs(self._inputs[index])
            if not ends:
                return
            start = self._latched_at[index]
        status = component.step(start, tick + 1 - start)
        if status is not StepStatus.OK and status is not StepStatus.WARNING:
            raise self._failure(index, f"the step was answered with {status.value}", "step-status")
        component.get_outputs(self._outputs[index])

    def _gather(self, kernel: _GatherKernel) -> None:
        failed = kernel.run()
        if failed is not None:
            port = self.plan.bus_ports[failed]
            raise StepError.of(
                "input-not-finite",
                f"{port.ref} would be {self._bus[failed]} at t = {self.time:.9g} s",
                port.where,
                hint="look at its sources, factor and offset",
            )
        for slot, value in self._holds.items():
            self._bus[slot] = value
        if self.plan.text_wires:
            self._move_text()

    def _move_text(self) -> None:
        for wire in self.plan.text_wires:
            (source, at), (target, to) = wire.source, wire.target
            self._text[target][to] = self._components[source].get_text()[at]  # type: ignore[attr-defined]
        for index in sorted({wire.target[0] for wire in self.plan.text_wires}):
            self._components[index].set_text(self._text[index])  # type: ignore[attr-defined]

    def _settle(self) -> None:
        """Iterate outputs into inputs in initialization mode until nothing changes."""
        for index, component in enumerate(self._components):
            self._guarded(index, component.get_outputs, self._outputs[index])
        kernels = [(_GatherKernel(g.gather, self._bus), g.components[0]) for g in self.plan.initialization]
        residual = np.zeros(0)
        for _ in range(INITIALIZATION_SWEEPS):
            before = self._bus.copy()
            for kernel, index in kernels:
                self._gather(kernel)
                self._guarded(index, self._components[index].set_inputs, self._inputs[index])
                self._guarded(index, self._components[index].get_outputs, self._outputs[index])
            residual = np.abs(self._bus - before)
            # An undriven input is NaN before and after.
            if np.all((residual <= _TOLERANCE * (1.0 + np.abs(before))) | np.isnan(before)):
                return
        worst = int(np.nanargmax(residual))
        self._log.warning(
            "initialization-not-converged",
            f"initial values still change by {residual[worst]:.3g} at {self.plan.bus_ports[worst].ref} "
            f"after {INITIALIZATION_SWEEPS} sweeps",
            self.plan.bus_ports[worst].where,
            hint="an algebraic loop does not settle: look at `loop-algebraic` above, or author start values",
        )

    # ---- failures

    def _check_outputs(self) -> None:
        # Any NaN or infinity makes this product NaN; one BLAS call costs a tenth of isfinite().all().
        outputs = self._all_outputs
        if outputs.dot(self._zeros) == 0.0:
            return
        slot = int(np.flatnonzero(~np.isfinite(outputs))[0])
        port = self.plan.bus_ports[slot]
        owner = next(
            c.name
            for c, p in zip(self._components, self.plan.components, strict=True)
            if p.output_slice.start <= slot < p.output_slice.stop
        )
        raise StepError.of(
            "output-not-finite",
            f"{port.ref} is {outputs[slot]} at t = {self.time:.9g} s, published by {owner}",
            port.where,
            hint="the run stops here; everything before is in the results",
        )

    def _guarded(self, index: int, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call a component; an exception that is not ours gets component and time."""
        try:
            return call(*arguments)
        except CosimError:
            raise
        except Exception as error:
            raise self._failure(index, f"{type(error).__name__}: {error}", "component-failed") from error

    def _failure(self, index: int, what: str, code: str) -> StepError:
        component = self._components[index]
        where: SourceLocation | None = getattr(component, "where", None)
        message = f"{component.name} failed in the step that begins at t = {self.time:.9g} s (tick {self.tick}): {what}"
        return StepError(Diagnostic(Severity.ERROR, code, message, where))


def _guards_of_our_own() -> Any:
    """numpy would warn of an overflow; the guards turn it into an error with port and time."""
    return np.errstate(over="ignore", invalid="ignore")


class _GatherKernel:
    """A gather as a few vectorised assignments.

    Targets of one level do not read each other; within a level, term k of every target is one
    vectorised operation, so each sum adds its terms in row order.
    """

    def __init__(self, gather: Gather, bus: FloatArray) -> None:
        self._bus = bus
        self._operations: list[tuple[bool, Any, Any, FloatArray, FloatArray, FloatArray, FloatArray]] = []
        level_of: dict[int, int] = {}
        terms: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for k, target in enumerate(gather.targets.tolist()):
            rows = range(int(gather.starts[k]), int(gather.starts[k + 1]))
            level = max((level_of.get(int(gather.sources[r]), -1) + 1 for r in rows), default=0)
            level_of[target] = level
            for rank, row in enumerate(rows):
                terms.setdefault((level, rank), []).append((target, row))
        for (_, rank), found in sorted(terms.items()):
            targets = np.array([t for t, _ in found], dtype=np.intp)
            rows_ = np.array([r for _, r in found], dtype=np.intp)
            size = len(found)
            self._operations.append(
                (
                    rank == 0,
                    targets,
                    gather.sources[rows_],
                    gather.factors[rows_],
                    gather.offsets[rows_],
                    np.empty(size),
                    np.zeros(size),
                )
            )

    def run(self) -> int | None:
        """Gather; the bus index of the first value that is not finite, or None."""
        bus = self._bus
        for is_first, targets, sources, factors, offsets, term, zeros in self._operations:
            bus.take(sources, out=term, mode="clip")
            term *= factors
            term += offsets
            if not is_first:
                term += bus[targets]
            bus[targets] = term
            if term.dot(zeros) != 0.0:
                return int(targets[int(np.flatnonzero(~np.isfinite(term))[0])])
        return None


def _column(port: Port) -> Column:
    return Column(str(port.ref), port.unit_name, port.type, port.frame, port.description)
