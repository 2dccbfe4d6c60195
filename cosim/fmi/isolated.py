"""An FMU in a process of its own: whatever it does, the host lives on and says what happened."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

from cosim.component import Experiment, FloatArray, Port, PortRef, StepStatus
from cosim.diagnostic import Diagnostic, DiagnosticLog, Severity, SourceLocation, StepError
from cosim.fmi import wire_format as wire
from cosim.fmi.component import FmuComponent
from cosim.fmi.library import Fmu

_TICKS = struct.Struct("<qq")
_START_DEADLINE = 60.0
_CLOSE_DEADLINE = 5.0
_KEPT_OUTPUT = 64 * 1024
_STATUS = {"O": StepStatus.OK, "W": StepStatus.WARNING}


class FmuCrash(StepError):
    """The process of an isolated FMU ended, or had to be ended."""


class IsolatedFmuComponent:
    """A component like `FmuComponent`, whose FMU runs in a worker process.

    Args:
        fmu: from `open_fmu`.
        name: prim path.
        variables: port name → FMU variable name, where the alias rule does not serve.
        period: communication period [s]; None follows the base step.
        where: what authored the component.
        log: gets what is found.
        deadline: wall-clock time for one call [s]; an FMU that takes longer is ended.
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
        deadline: float = 30.0,
    ) -> None:
        self.fmu = fmu
        self.where = where
        self._described = FmuComponent(fmu, name, variables=variables, period=period, where=where, log=log)
        self._variables = dict(variables or {})
        self._log = log
        self._deadline = deadline
        self._process: _Process | None = None
        self._inputs: list[Port] = []
        self._outputs: list[Port] = []
        self._experiment: Experiment | None = None
        self._time = 0.0
        self._pending: bytes | None = None
        self._published: FloatArray | None = None
        self._is_closed = False
        self._forgotten: list[int] = []

    # ---- description

    @property
    def name(self) -> str:
        """The prim path."""
        return self._described.name

    @property
    def period(self) -> Fraction | None:
        """Communication period [s]."""
        return self._described.period

    def ports(self) -> Iterable[Port]:
        """Every port, sorted."""
        return self._described.ports()

    def find(self, ref: PortRef) -> Port | None:
        """The port of this address."""
        return self._described.find(ref)

    def dependencies(self, output: PortRef) -> frozenset[PortRef] | None:
        """Inputs that this output depends on at the same instant."""
        return self._described.dependencies(output)

    def bind(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Fix which inputs will be written and which outputs will be read, and their order."""
        self._described.bind(inputs, outputs)
        self._inputs, self._outputs = list(inputs), list(outputs)

    # ---- life cycle

    def enter_initialization(self, experiment: Experiment, start_values: Sequence[tuple[Port, Any]]) -> None:
        """Start the worker and the FMU in it.

        Raises:
            FmuError: the FMU cannot be loaded or instantiated.
            StepError: a value does not fit, or the FMU refuses it.
            FmuCrash: the FMU ended its process.
        """
        self._experiment = experiment
        self._time = experiment.time(0)
        self._process = _Process(self.name)
        self._call("open", str(self.fmu.path), self.name, self._variables, deadline=_START_DEADLINE)
        self._call(
            "start",
            wire.experiment_to_json(experiment),
            [str(p.ref) for p in self._inputs],
            [str(p.ref) for p in self._outputs],
            [[str(p.ref), value] for p, value in start_values],
        )

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._flush()
        self._call("exit_initialization")
        self._published = None

    def step(self, tick: int, ticks: int) -> StepStatus:
        """Advance from `tick` over `ticks` base steps.

        Raises:
            StepError: the FMU answered with anything but OK and Warning.
            FmuCrash: the FMU ended its process, or took too long.
        """
        assert self._experiment is not None
        self._time = self._experiment.time(tick)
        message = wire.STEP + _TICKS.pack(tick, ticks) + (self._pending or b"")
        self._pending = None
        status = self._take_values(self._exchange(message, "DoStep"))
        self._time = self._experiment.time(tick + ticks)
        return _STATUS[status]

    def close(self) -> None:
        """Free the FMU and end its process. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if process.is_alive:
                self._process = process
                found = self._call("close", deadline=_CLOSE_DEADLINE)
                self._log.extend(wire.diagnostics_from_json(found["diagnostics"]))
        except StepError as error:
            # The results are complete; an FMU that dies while it is freed is worth a warning only.
            self._log.extend(
                Diagnostic(Severity.WARNING, d.code, d.message, d.where, d.hint) for d in error.diagnostics
            )
        finally:
            self._process = None
            process.end()

    # ---- values

    def set_inputs(self, values: FloatArray) -> None:
        """Write the bound inputs; they travel with the next call."""
        self._pending = values.tobytes()

    def get_outputs(self, values: FloatArray) -> None:
        """Fill in the bound outputs."""
        if self._pending is not None or self._published is None:
            self._flush()
            self._take_values(self._exchange(wire.GET, "the reading of outputs"))
        assert self._published is not None
        values[:] = self._published

    def get_text(self) -> list[Any]:
        """Values of the bound String and Binary outputs."""
        self._flush()
        return list(self._call("get_text"))

    def set_text(self, values: Sequence[Any]) -> None:
        """Write the bound String and Binary inputs."""
        self._call("set_text", list(values))

    def hold(self, port: Port, value: Any) -> None:
        """Keep an unbound input or a tunable parameter at a value until `release`."""
        self._call("hold", str(port.ref), value)
        self._published = None

    def release(self, port: Port) -> None:
        """Give an unbound input or a parameter back to its declared start value."""
        self._call("release", str(port.ref))
        self._published = None

    # ---- state

    def save(self) -> IsolatedState:
        """A snapshot for `restore`."""
        self._flush()
        return IsolatedState(self, self._call("save"), self._time)

    def restore(self, state: IsolatedState) -> None:
        """Return to a snapshot."""
        if state.owner is not self:
            raise StepError.of("fmu-state-foreign", f"the snapshot is not one of {self.name} in this run", self.where)
        self._pending = self._published = None
        self._call("restore", state.number)
        self._time = state.time

    def forget(self, number: int) -> None:
        """Free a state with the next call."""
        self._forgotten.append(number)

    # ---- inside

    def _flush(self) -> None:
        if self._pending is not None:
            message, self._pending = wire.SET + self._pending, None
            self._published = None
            self._exchange(message, "the setting of inputs")

    def _take_values(self, answer: bytes) -> str:
        numeric = sum(p.type.is_numeric for p in self._outputs)
        values = np.frombuffer(answer, offset=1)
        if answer[:1].decode("ascii", "replace") not in _STATUS or len(values) != numeric:
            raise self._crash("answers with nonsense", "DoStep")
        self._published = values
        return answer[:1].decode()

    def _call(self, name: str, *arguments: Any, deadline: float | None = None) -> Any:
        if self._forgotten and name != "close":
            numbers, self._forgotten = self._forgotten, []
            self._exchange(wire.CALL + wire.pack(["forget", numbers]), "FreeFMUState")
        answer = self._exchange(wire.CALL + wire.pack([name, *arguments]), name, deadline)
        return wire.unpack(answer)

    def _exchange(self, message: bytes, call: str, deadline: float | None = None) -> bytes:
        """Send a message and wait for the answer: its payload."""
        process = self._process
        if process is None or not process.is_alive:
            raise StepError.of("fmu-not-running", f"{self.name} is not running", self.where)
        limit = self._deadline if deadline is None else deadline
        try:
            process.connection.send_bytes(message)
            if not process.connection.poll(limit):
                process.end()
                raise self._crash(f"did not answer within {limit:g} s and was ended", call, "fmu-deadline")
            answer = process.connection.recv_bytes()
        except (EOFError, OSError):
            raise self._crash(process.how_it_ended(), call) from None
        except KeyboardInterrupt:
            process.end()
            raise
        if answer[:1] == wire.FAILED:
            raise wire.error_from_json(wire.unpack(answer[1:]))
        return answer[1:]

    def _crash(self, what: str, call: str, code: str = "fmu-crashed") -> FmuCrash:
        process = self._process
        if process is not None:
            process.end()
        message = (
            f"{self.name} ({self.fmu.path.name}) at t = {self._time:.9g} s: the process of the FMU {what}, in {call}"
        )
        said = process.last_lines() if process else []
        if said:
            message += "; its last words:" + "".join(f"\n    {line}" for line in said)
        hint = "everything before is in the results; look at the inputs of that time, and at the FMU's own log"
        return FmuCrash(Diagnostic(Severity.ERROR, code, message, self.where, hint))


class _Process:
    """A worker process and the connection to it."""

    def __init__(self, name: str) -> None:
        key = secrets.token_bytes(32)
        self._output: deque[bytes] = deque()
        self._size = 0
        self._is_connected = False
        package = str(Path(__file__).resolve().parents[2])
        with Listener(authkey=key) as listener:
            self._address = listener.address
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "cosim.fmi.worker", str(listener.address)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])},
            )
            assert self._popen.stdin is not None
            # A process that is gone already is told below, with what it said.
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.write(key)
                self._popen.stdin.flush()
            self._reader = threading.Thread(target=self._read, name=f"output of {name}", daemon=True)
            self._reader.start()
            try:
                self.connection: Connection = listener.accept()
            except (AuthenticationError, OSError, EOFError):
                _kill(self._popen)
                said = "".join(f"\n    {line}" for line in self.last_lines())
                raise StepError.of("fmu-worker-failed", f"the process for {name} does not start:{said}") from None
            self._is_connected = True
        self.is_alive = True
        self._finalizer = weakref.finalize(self, _kill, self._popen)

    def _read(self) -> None:
        """Keep the last of what the FMU prints, however much it is."""
        assert self._popen.stdout is not None
        while chunk := os.read(self._popen.stdout.fileno(), 4096):
            self._output.append(chunk)
            self._size += len(chunk)
            while self._size > _KEPT_OUTPUT and len(self._output) > 1:
                self._size -= len(self._output.popleft())
        if not self._is_connected:
            # It died before it called: a wrong call ends the waiting for it.
            with contextlib.suppress(OSError, EOFError, AuthenticationError):
                Client(self._address, authkey=b"none").close()

    def last_lines(self, count: int = 8) -> list[str]:
        """The last lines that the FMU printed or logged."""
        self._reader.join(timeout=1.0)
        text = b"".join(list(self._output)).decode("utf-8", "replace")
        return [line[:300] for line in text.splitlines() if line.strip()][-count:]

    def how_it_ended(self) -> str:
        """What became of the process after the connection broke."""
        try:
            code = self._popen.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        self.is_alive = False
        if code < 0:
            try:
                return f"was ended by {signal.Signals(-code).name}"
            except ValueError:
                return f"was ended by signal {-code}"
        if code >= 0xC0000000:
            return f"was ended by the exception 0x{code:08X}"
        return f"ended itself with exit code {code}"

    def end(self) -> None:
        """End the process now."""
        self.is_alive = False
        self.connection.close()
        self._finalizer()


def _kill(popen: subprocess.Popen[bytes]) -> None:
    if popen.poll() is None:
        popen.kill()
    popen.wait()
    if popen.stdin is not None:
        # Closing flushes what a process that is gone never read.
        with contextlib.suppress(BrokenPipeError):
            popen.stdin.close()


@dataclass(eq=False)
class IsolatedState:
    """A saved state that lives in the worker.

    Attributes:
        owner: whose state it is.
        number: what the worker calls it.
        time: the communication point of the state [s].
    """

    owner: IsolatedFmuComponent
    number: int
    time: float

    def __del__(self) -> None:
        self.owner.forget(self.number)
