"""An FMU as a component of the co-simulation."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cosim.component import Causality, Experiment, FloatArray, Port, PortRef, StepStatus, Variability
from cosim.diagnostic import Diagnostic, DiagnosticLog, FmuError, Severity, SourceLocation, StepError
from cosim.fmi.access import Access
from cosim.fmi.exchange import InexactValue, InputBlock, OutputBlock, ValueBlock, blocks
from cosim.fmi.instance import DISCARD, FATAL, WARNING, Instance
from cosim.fmi.kinds import make_instance
from cosim.fmi.library import Fmu
from cosim.fmi.log import FmuLog, LogLine, status_name
from cosim.fmi.ports import Binding, PortTable
from cosim.fmi.retry import StepRetry
from cosim.fmi.state import FmuState
from cosim.native.exchange import HostedCalls, address_of

_FILED_MESSAGES = 10


class FmuComponent:
    """One instance of an FMU.

    Args:
        fmu: from `open_fmu`.
        name: prim path.
        variables: port name → FMU variable name, where the alias rule does not serve.
        period: communication period [s]; None follows the base step.
        where: what authored the component.
        log: gets names that clash or do not exist, and what the FMU warns of.
        retries: how often a step that the FMU discards is halved and tried again from its beginning; needs an
            FMU that can save its state, which is then saved before every step.
    """

    def __init__(
        self,
        fmu: Fmu,
        name: str,
        *,
        variables: Mapping[str, str] | None = None,
        period: Fraction | None = None,
        where: SourceLocation | None = None,
        log: DiagnosticLog,
        retries: int = 0,
    ) -> None:
        self.fmu = fmu
        self.where = where
        self._name = name
        self._period = period
        self._diagnostics = log
        self._table = PortTable(fmu.description, name, fmu.path.name, variables or {}, where, log)
        self._log = FmuLog()
        self._instance: Instance | None = None
        self._access: Access
        self._experiment: Experiment | None = None
        self._initialized = False
        self._failed = False
        self._closed = False
        self._time = 0.0
        self._retry: StepRetry | None = None
        self._retries = retries
        self._end_tick: int | None = None
        self._interval = (0, 0.0)
        self._inputs: tuple[Binding, ...] = ()
        self._outputs: tuple[Binding, ...] = ()
        self._text_inputs: tuple[Binding, ...] = ()
        self._text_outputs: tuple[Binding, ...] = ()
        self._parameters: list[list[Any]] = []
        self._input_blocks: list[InputBlock] = []
        self._output_blocks: list[OutputBlock] = []
        self._own = np.zeros(0)
        # All bound ports in one call, where they are Reals in the order of the bus: nearly always.
        self._set_all: ValueBlock | None = None
        self._get_all: ValueBlock | None = None
        self._undriven = np.zeros(0, dtype=bool)
        self._finite = np.zeros(0, dtype=bool)
        self._states: weakref.WeakSet[FmuState] = weakref.WeakSet()

    # ---- description

    @property
    def name(self) -> str:
        """The prim path."""
        return self._name

    @property
    def period(self) -> Fraction | None:
        """Communication period [s]; None follows the base step."""
        return self._period

    @property
    def messages(self) -> tuple[LogLine, ...]:
        """The last messages of the FMU, oldest first."""
        return tuple(self._log.lines)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with every message of the FMU when it comes."""
        self._log.listener = listener

    def ports(self) -> Iterable[Port]:
        """Every port, sorted; internal quantities of a very large FMU are found but not listed."""
        return iter(self._table)

    def find(self, ref: PortRef) -> Port | None:
        """The port of this address."""
        return self._table.find(ref)

    def dependencies(self, output: PortRef) -> frozenset[PortRef] | None:
        """Inputs that this output depends on at the same instant, by the FMU's model structure."""
        if self._table.find(output) is None:
            return None
        names = self.fmu.description.dependencies.get(self._table.binding(output).variable.name)
        if names is None:
            return None
        return frozenset(ref for name in names for ref in self._table.inputs_of(name))

    def bind(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Fix which inputs will be written and which outputs will be read, and their order."""
        for port in (*inputs, *outputs):
            self._table.check(port)
        ins = [self._table.binding(p.ref) for p in inputs]
        outs = [self._table.binding(p.ref) for p in outputs]
        self._inputs = tuple(b for b in ins if b.port.type.is_numeric)
        self._outputs = tuple(b for b in outs if b.port.type.is_numeric)
        self._text_inputs = tuple(b for b in ins if not b.port.type.is_numeric)
        self._text_outputs = tuple(b for b in outs if not b.port.type.is_numeric)

    # ---- life cycle

    def enter_initialization(self, experiment: Experiment, start_values: Sequence[tuple[Port, Any]]) -> None:
        """Instantiate, write start values of parameters and inputs, enter initialization mode.

        Raises:
            FmuError: the FMU cannot be loaded or instantiated.
            StepError: a value does not fit, or the FMU refuses it.
        """
        self._experiment = experiment
        self._time = experiment.time(0)
        self._end_tick = None if experiment.stop is None else experiment.ticks
        instance = self._instance = make_instance(self.fmu, self._name, self._log, experiment.tolerance)
        self._access = Access(instance, self._check, self._inexact)
        if self._retries and instance.interface.save_state:
            self._retry = StepRetry(instance, self._retries, self._check, self._note_retry)
        self._prepare(instance)
        by_causality: dict[bool, list[tuple[Binding, Any]]] = {True: [], False: []}
        structural = []
        for port, value in start_values:
            self._table.check(port)
            binding = self._table.binding(port.ref)
            if port.causality is Causality.STRUCTURAL_PARAMETER:
                structural.append((binding, value))
            else:
                by_causality[port.causality is Causality.INPUT].append((binding, value))
        self._refuse_structural(structural)
        self._access.write_start(by_causality[False])
        stop = None if experiment.stop is None else float(experiment.stop)
        call, status = instance.enter_initialization(self._time, stop, experiment.tolerance)
        self._check(call, status)
        self._access.write_start(by_causality[True])
        self._fill_own()

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._check("ExitInitializationMode", self._running().exit_initialization())
        self._initialized = True

    def step(self, tick: int, ticks: int) -> StepStatus:
        """Advance from `tick` over `ticks` base steps.

        Raises:
            StepError: the FMU answered with anything but OK and Warning.
        """
        instance, experiment = self._instance, self._experiment
        if instance is None or experiment is None or self._failed:
            self._running()
            raise AssertionError
        time = self._time = experiment.time(tick)
        size = self._step_size(tick, ticks)
        status = instance.step(time, size) if self._retry is None else self._retry.step(time, size)
        if status > WARNING or status < 0:
            reason = instance.stop_reason() if status == DISCARD else ""
            self._check(instance.step_call, status, reason, is_step=True)
        self._time = experiment.time(tick + ticks)
        return StepStatus.OK if status == 0 else StepStatus.WARNING

    def close(self) -> None:
        """End and free the instance. Idempotent."""
        if self._closed:
            return
        self._closed = True
        instance, self._instance = self._instance, None
        if instance is None:
            return
        for state in list(self._states):
            state.free()
        if self._retry is not None:
            self._retry.free()
        status = 0
        try:
            if self._initialized and not self._failed:
                status = instance.terminate()
        finally:
            if status == FATAL:
                instance.abandon()
            else:
                instance.free()
        self._file_messages()
        if status > WARNING:
            self._diagnostics.warning(
                "fmu-terminate-failed", f"{self._name} answered Terminate with {status_name(status)}", self.where
            )

    def _file_messages(self) -> None:
        """What the FMU said goes to the diagnostics: the last of it, and how much there was."""
        lines = list(self._log.lines)[-_FILED_MESSAGES:]
        left_out = self._log.count - len(lines)
        for k, line in enumerate(lines):
            more = f" ({left_out} earlier messages are left out)" if k == 0 and left_out else ""
            severity = Severity.WARNING if line.status else Severity.INFO
            self._diagnostics.add(severity, "fmu-message", f"{self._name} said: {line}{more}", self.where)

    # ---- the native loop

    def native_calls(self) -> HostedCalls | None:
        """How the exchange loop in C can drive this FMU; None where it cannot (see `cosim.exchange_loop`)."""
        instance = self._instance
        if instance is None or self._retry is not None or (self._set_all is None and self._inputs):
            return None
        addresses = instance.native_step()
        outputs = [block.native_call(instance.getter) for block in self._output_blocks]
        if addresses is None or None in outputs:
            return None
        step, flags = addresses
        return HostedCalls(
            version=instance.major,
            instance=instance.handle.value or 0,
            set=None if self._set_all is None else address_of(instance.setter(self._set_all.call_type)),
            step=step,
            set_references=np.zeros(0, dtype=np.uint32) if self._set_all is None else self._set_all.references,
            outputs=tuple(call for call in outputs if call is not None),
            own=self._own if len(self._own) else np.zeros(1),
            flags=flags,
            keep=self,
        )

    def native_stopped(self, what: str, status: int, block: int, start: int, end: int, values: FloatArray) -> None:
        """Raise what stopped the native loop, as `set_inputs`, `step` and `get_outputs` would.

        Args:
            what: "set", "step", "get" or "not finite".
            status: of the call.
            block: of outputs, for "get".
            start: tick at which the step began.
            end: tick at which it ends.
            values: the bound outputs.

        Raises:
            StepError: always.
        """
        instance, experiment = self._running(), self._experiment
        assert experiment is not None
        self._time = experiment.time(start if what in ("set", "step") else end)
        if what == "not finite":
            self._report_not_finite(values)
        elif what == "step":
            reason = instance.stop_reason() if status == DISCARD else ""
            self._check(instance.step_call, status, reason, is_step=True)
        elif what == "get":
            self._check(f"Get{self._output_blocks[block].block.call_type}", status)
        elif self._set_all is not None:
            self._check(f"Set{self._set_all.call_type}", status)

    def native_advanced(self, tick: int) -> None:
        """The native loop reached a tick."""
        if self._experiment is not None:
            self._time = self._experiment.time(tick)

    # ---- values

    def set_inputs(self, values: FloatArray) -> None:
        """Write the bound inputs; NaN gives an input back to its own value.

        Raises:
            StepError: a value does not fit the type of its variable.
        """
        if np.count_nonzero(np.isnan(values, out=self._undriven)):
            values = np.where(self._undriven, self._own, values)
        if self._set_all is not None:
            self._set_all.buffer[:] = values
            status = self._set_all.call()
            if status:
                self._check(f"Set{self._set_all.call_type}", status)
            return
        for block in self._input_blocks:
            try:
                status = block.write(values)
            except InexactValue as error:
                raise self._inexact(self._inputs[int(block.outside[error.position])].port, error) from None
            if status:
                self._check(f"Set{block.block.call_type}", status)
        if self._parameters:
            self._follow_parameters(values)

    def get_outputs(self, values: FloatArray) -> None:
        """Fill in the bound outputs.

        Raises:
            StepError: an output is not finite.
        """
        if self._get_all is not None:
            status = self._get_all.call()
            if status:
                self._check(f"Get{self._get_all.call_type}", status)
            values[:] = self._get_all.buffer
            if self._initialized and np.count_nonzero(np.isfinite(values, out=self._finite)) != len(values):
                self._report_not_finite(values)
            return
        for block in self._output_blocks:
            status = block.call()
            if status:
                self._check(f"Get{block.block.call_type}", status)
            try:
                block.read(values)
            except InexactValue as error:
                raise self._inexact(self._outputs[int(block.outside[error.position])].port, error) from None
        # Before the end of initialization values may still be undefined.
        if self._initialized and np.count_nonzero(np.isfinite(values, out=self._finite)) != len(values):
            self._report_not_finite(values)

    def get_text(self) -> list[Any]:
        """Values of the bound String and Binary outputs, in the order given to `bind`."""
        access = self._reach()
        return [access.read_text(b.variable)[b.position] for b in self._text_outputs]

    def set_text(self, values: Sequence[Any]) -> None:
        """Write the bound String and Binary inputs, in the order given to `bind`; None leaves one as it is."""
        for binding, value in zip(self._text_inputs, values, strict=True):
            if value is not None:
                self._write_now(binding, value)

    def hold(self, port: Port, value: Any) -> None:
        """Keep an unbound input or a tunable parameter at a value until `release`.

        Raises:
            StepError: the value cannot be changed now.
        """
        self._table.check(port)
        if self._initialized and port.causality is not Causality.INPUT and port.variability is not Variability.TUNABLE:
            raise StepError.of(
                "fmu-parameter-fixed",
                f"{port.ref} is a {port.variability} {port.causality}: it cannot change after initialization",
                port.where,
                hint="give it before the run, or declare it tunable in the model",
            )
        self._write_now(self._table.binding(port.ref), value)

    def release(self, port: Port) -> None:
        """Give an unbound input or a parameter back to its declared start value."""
        self._table.check(port)
        if port.start is None:
            raise StepError.of("fmu-start-missing", f"{port.ref} declares no start value to go back to", port.where)
        self._write_now(self._table.binding(port.ref), port.start)

    # ---- state

    def save(self) -> FmuState:
        """A snapshot for `restore`; it is freed with its last reference, or when the component closes.

        Raises:
            StepError: the FMU cannot save its state.
        """
        instance = self._running()
        if not instance.interface.save_state:
            raise StepError.of(
                "fmu-state-unsupported",
                f"{self._name} cannot save its state: {self.fmu.path.name} does not declare canGetAndSetFMUstate",
                self.where,
            )
        status, pointer = instance.get_state()
        self._check(f"Get{instance.state_name}", status)
        if pointer is None:
            raise self._failure("fmu-call-failed", f"Get{instance.state_name} gave no state")
        instance.keep_states()
        state = FmuState(instance, pointer, self._time, instance.host_state())
        self._states.add(state)
        return state

    def restore(self, state: FmuState) -> None:
        """Return to a snapshot."""
        instance = self._running()
        if not state.is_of(instance):
            raise StepError.of("fmu-state-foreign", f"the snapshot is not one of {self._name} in this run", self.where)
        self._check(f"Set{instance.state_name}", instance.set_state(state.pointer))
        instance.set_host_state(state.host)
        self._time = state.time

    # ---- inside

    def _running(self) -> Instance:
        if self._instance is None or self._failed:
            what = "failed before" if self._failed else "is closed" if self._closed else "is not initialized"
            raise StepError.of("fmu-not-running", f"{self._name} {what}", self.where)
        return self._instance

    def _reach(self) -> Access:
        self._running()
        return self._access

    def _step_size(self, tick: int, ticks: int) -> float:
        assert self._experiment is not None
        if self._end_tick is not None and tick + ticks >= self._end_tick:
            return self._experiment.interval(tick, ticks)
        if self._interval[0] != ticks:
            self._interval = (ticks, float(self._experiment.step * ticks))
        return self._interval[1]

    def _prepare(self, instance: Instance) -> None:
        """Buffers and calls for the bound ports."""
        major, handle = instance.major, instance.handle
        followed = [b.port.causality is not Causality.INPUT for b in self._inputs]
        driven = [k for k, follows in enumerate(followed) if not follows]
        n = len(self._inputs)
        self._input_blocks = [
            InputBlock(block, np.array(driven, dtype=np.intp)[outside], inside, n)
            for block, outside, inside in blocks(
                handle,
                instance.setter,
                [(self._inputs[k].variable, self._inputs[k].position) for k in driven],
                major,
            )
        ]
        self._output_blocks = [
            OutputBlock(block, outside, inside, len(self._outputs))
            for block, outside, inside in blocks(
                handle, instance.getter, [(b.variable, b.position) for b in self._outputs], major
            )
        ]
        # A parameter is on the bus only where someone reads it there; it is written when it changes.
        self._parameters = [[k, b, None] for k, b in enumerate(self._inputs) if followed[k]]
        self._undriven, self._finite = np.zeros(n, dtype=bool), np.zeros(len(self._outputs), dtype=bool)
        is_simple = len(self._input_blocks) == 1 and self._input_blocks[0].is_whole and not self._parameters
        self._set_all = self._input_blocks[0].block if is_simple else None
        is_simple = len(self._output_blocks) == 1 and self._output_blocks[0].is_whole
        self._get_all = self._output_blocks[0].block if is_simple else None
        self._own = np.array(
            [b.port.start if isinstance(b.port.start, float | int) else np.nan for b in self._inputs], dtype=float
        )

    def _fill_own(self) -> None:
        """What unbound elements of bound arrays, and inputs that nothing drives, go on with."""
        for block in self._input_blocks:
            values = block.block
            if all(v.start for v in values.variables) and len(values.variables) == values.buffer.size:
                continue
            current = np.concatenate([self._access.read(v) for v in values.variables])
            values.buffer[:] = current
            own = current[block.inside]
            self._own[block.outside] = np.where(np.isnan(self._own[block.outside]), own, self._own[block.outside])

    def _note_retry(self, time: float, parts: int) -> None:
        self._diagnostics.info(
            "fmu-step-retried",
            f"{self._name} discarded a step at t = {time:.9g} s and took it in {parts} parts; later ones are not told",
            self.where,
            hint="a smaller communication step size may be what this FMU wants",
        )

    def _follow_parameters(self, values: FloatArray) -> None:
        for entry in self._parameters:
            index, binding, last = entry
            value = float(values[index])
            if value == last or value != value:
                continue
            if last is None and not self._initialized:
                entry[2] = value  # its start value was written on entering
                continue
            entry[2] = value
            if last is not None:
                self.hold(binding.port, value)

    def _refuse_structural(self, values: Sequence[tuple[Binding, Any]]) -> None:
        for binding, value in values:
            if value != binding.port.start:
                raise FmuError.of(
                    "fmu-structural-unsupported",
                    f"{binding.port.ref} is a structural parameter: it stays at {binding.port.start!r}, since array "
                    "sizes are fixed when the stage is read",
                    binding.port.where,
                )

    def _write_now(self, binding: Binding, value: Any) -> None:
        """Write one element now, keeping the rest of its array and of its block."""
        content = self._reach().write_element(binding, value)
        for block in self._input_blocks:
            at = block.block.offsets.get(binding.variable.name)
            if at is not None:
                block.block.buffer[at : at + binding.variable.size] = content

    # ---- failures

    def _check(self, call: str, status: int, detail: str = "", *, is_step: bool = False) -> None:
        """OK and Warning go on; everything else ends the run."""
        if 0 <= status <= WARNING:
            return
        instance = self._instance
        self._failed = True
        if instance is not None and status == FATAL:
            instance.abandon()  # FMI forbids any further call, also FreeInstance
        code = "fmu-step-discarded" if status == DISCARD and is_step else "fmu-call-failed"
        prefix = f"fmi{self.fmu.description.major}"
        raise self._failure(
            code, f"{prefix}{call} was answered with {status_name(status)}" + (f" ({detail})" if detail else "")
        )

    def _failure(self, code: str, what: str) -> StepError:
        message = f"{self._name} ({self.fmu.path.name}) at t = {self._time:.9g} s: {what}"
        said = self._log.tail()
        if said:
            message += "; the FMU said:" + "".join(f"\n    {line}" for line in said)
        return StepError(Diagnostic(Severity.ERROR, code, message, self.where))

    def _inexact(self, port: Port, error: InexactValue) -> StepError:
        return StepError.of(
            "fmu-value-inexact",
            f"{port.ref} would be {error.value!r} at t = {self._time:.9g} s, which {error.what}",
            port.where or self.where,
            hint="round it in the program that publishes it, or make the variable a Real",
        )

    def _report_not_finite(self, values: FloatArray) -> None:
        wrong = np.flatnonzero(~np.isfinite(values))
        port = self._outputs[int(wrong[0])].port
        others = f" (and {len(wrong) - 1} other outputs)" if len(wrong) > 1 else ""
        self._failed = True
        raise self._failure("fmu-nan", f"output {port.ref} is {values[wrong[0]]}{others}, with status OK")
