"""The process in which one isolated FMU runs: `python -m cosim.fmi.worker ADDRESS`.

The authentication key comes on standard input, which then stays open as long as the host
lives: when it closes, this process ends at once, wherever the FMU is.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import numpy as np

from cosim.component import Port, PortRef
from cosim.diagnostic import DiagnosticLog
from cosim.fmi import wire_format as wire
from cosim.fmi.component import FmuComponent
from cosim.fmi.library import open_fmu
from cosim.fmi.state import FmuState

_TICKS = struct.Struct("<qq")
_KEY_LENGTH = 32


class _Worker:
    """Answers the messages of the host."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._log = DiagnosticLog()
        self._component: FmuComponent
        self._outputs = np.zeros(0)
        self._states: dict[int, FmuState] = {}
        self._next_state = 0

    def serve(self) -> None:
        """Until the host closes the component or the connection."""
        while True:
            try:
                message = self._connection.recv_bytes()
            except EOFError:
                return
            tag, payload = message[:1], message[1:]
            try:
                answer = self._answer(tag, payload)
            except Exception as error:
                answer = wire.FAILED + wire.pack(wire.error_to_json(error))
            self._connection.send_bytes(answer)

    def _answer(self, tag: bytes, payload: bytes) -> bytes:
        if tag == wire.STEP:
            tick, ticks = _TICKS.unpack_from(payload)
            if len(payload) > _TICKS.size:
                self._component.set_inputs(np.frombuffer(payload, offset=_TICKS.size))
            status = self._component.step(tick, ticks)
            self._component.get_outputs(self._outputs)
            return wire.VALUES + status.value[:1].encode() + self._outputs.tobytes()
        if tag == wire.SET:
            self._component.set_inputs(np.frombuffer(payload))
            return wire.RESULT + b"null"
        if tag == wire.GET:
            self._component.get_outputs(self._outputs)
            return wire.VALUES + b"O" + self._outputs.tobytes()
        name, *arguments = wire.unpack(payload)
        return wire.RESULT + wire.pack(getattr(self, f"call_{name}")(*arguments))

    # ---- calls by name

    def call_open(self, path: str, name: str, variables: dict[str, str]) -> None:
        """Open the FMU."""
        fmu = open_fmu(Path(path), log=DiagnosticLog())
        self._component = FmuComponent(fmu, name, variables=variables, log=self._log)
        self._component.listen(_say)

    def call_start(
        self, experiment: dict[str, Any], inputs: list[str], outputs: list[str], start_values: list[list[Any]]
    ) -> None:
        """Bind and enter initialization."""
        ins, outs = [self._port(t) for t in inputs], [self._port(t) for t in outputs]
        self._component.bind(ins, outs)
        self._outputs = np.zeros(sum(p.type.is_numeric for p in outs))
        values = [(self._port(text), value) for text, value in start_values]
        self._component.enter_initialization(wire.experiment_from_json(experiment), values)

    def call_exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._component.exit_initialization()

    def call_get_text(self) -> list[Any]:
        """Values of text outputs."""
        return self._component.get_text()

    def call_set_text(self, values: list[Any]) -> None:
        """Write text inputs."""
        self._component.set_text(values)

    def call_hold(self, port: str, value: Any) -> None:
        """Hold an input or parameter."""
        self._component.hold(self._port(port), value)

    def call_release(self, port: str) -> None:
        """Release an input or parameter."""
        self._component.release(self._port(port))

    def call_save(self) -> int:
        """Save a state under a number."""
        self._next_state += 1
        self._states[self._next_state] = self._component.save()
        return self._next_state

    def call_restore(self, number: int) -> None:
        """Go back to a state."""
        self._component.restore(self._states[number])

    def call_forget(self, numbers: list[int]) -> None:
        """Free states."""
        for number in numbers:
            self._states.pop(number, None)

    def call_close(self) -> dict[str, Any]:
        """Free the FMU; what was found, and what it said."""
        self._states.clear()
        self._component.close()
        return {"diagnostics": wire.diagnostics_to_json(self._log)}

    def _port(self, text: str) -> Port:
        port = self._component.find(PortRef.parse(text))
        if port is None:
            raise KeyError(text)
        return port


def _say(text: str) -> None:
    """Hand a message on at once, so that it outlives a crash."""
    os.write(2, f"{text}\n".encode())


def _end_with_the_host() -> None:
    sys.stdin.buffer.read()
    os._exit(70)


def main() -> None:
    """Connect to the host and serve it."""
    key = sys.stdin.buffer.read(_KEY_LENGTH)
    threading.Thread(target=_end_with_the_host, daemon=True).start()
    with Client(sys.argv[1], authkey=key) as connection:
        _Worker(connection).serve()
    # An FMU that closed badly must not keep this process from ending.
    os._exit(0)


if __name__ == "__main__":
    main()
