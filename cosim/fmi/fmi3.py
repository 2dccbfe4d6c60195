"""An FMI 3.0 co-simulation instance."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_bool, c_char_p, c_double, c_size_t, c_ubyte, c_uint32, c_void_p
from functools import partial
from typing import ClassVar

from cosim.fmi.description import CallType, Variable
from cosim.fmi.instance import DISCARD, OK, Instance
from cosim.fmi.log import logger3
from cosim.native.exchange import address_of


class Fmi3Instance(Instance):
    """Calls the `fmi3` functions (FMI 3.0, chapters 2 and 4), without event mode and early return."""

    major: ClassVar[int] = 3
    state_name: ClassVar[str] = "FMUState"

    def _instantiate(self, name: bytes) -> int | None:
        self._event, self._terminate, self._early = c_bool(), c_bool(), c_bool()
        self._reached = c_double()
        function = self.library.function("InstantiateCoSimulation")
        function.restype = c_void_p
        pointer: int | None = function(
            c_char_p(name),
            c_char_p(self.fmu.description.token.encode()),
            c_char_p((str(self.library.resources) + os.sep).encode()),
            c_bool(False),  # visible
            c_bool(False),  # logging
            c_bool(False),  # event mode
            c_bool(False),  # early return
            c_void_p(None),
            c_size_t(0),
            c_void_p(self.log.key),
            logger3,
            c_void_p(None),
        )
        return pointer

    def enter_initialization(self, start: float, stop: float | None, tolerance: float | None) -> tuple[str, int]:
        """Enter initialization mode; the call and its status."""
        status = self.call(
            "EnterInitializationMode",
            c_bool(tolerance is not None),
            c_double(tolerance or 0.0),
            c_double(start),
            c_bool(stop is not None),
            c_double(stop or 0.0),
        )
        return "EnterInitializationMode", status

    def native_step(self) -> tuple[int, tuple[int, int, int, int] | None] | None:
        """Addresses of `fmi3DoStep`, of the flags that it sets, and of the time that it reaches."""
        event, terminate, early, reached = (
            ctypes.addressof(x) for x in (self._event, self._terminate, self._early, self._reached)
        )
        return address_of(self.library.function("DoStep")), (event, terminate, early, reached)

    def _prepared_step(self) -> Callable[[], int]:
        do_step = partial(
            self.library.function("DoStep"),
            self.handle,
            self._time,
            self._size,
            self._no_restore,
            ctypes.byref(self._event),
            ctypes.byref(self._terminate),
            ctypes.byref(self._early),
            ctypes.byref(self._reached),
        )

        def step() -> int:
            """Count a step that stops short, or an FMU that wants to end, as Discard."""
            status: int = do_step()
            if status <= 1 and (self._terminate.value or self._early.value):
                return DISCARD
            return status

        return step

    def stop_reason(self) -> str:
        """After a step that was not OK, or that stopped short: what the FMU says of it."""
        said = []
        if self._terminate.value:
            said.append("it asks to end the simulation")
        if self._early.value:
            said.append("it returned early, which was not allowed")
        said.append(f"its last successful time is {self._reached.value:.9g} s")
        return ", ".join(said)

    # ---- text

    def get_text(self, variable: Variable) -> tuple[int, list[str | bytes]]:
        """Status and values of a String or Binary variable."""
        if variable.call_type is CallType.STRING:
            return super().get_text(variable)
        sizes = (c_size_t * variable.size)()
        pointers = (c_void_p * variable.size)()
        reference = c_uint32(variable.reference)
        status = self.call("GetBinary", ctypes.byref(reference), c_size_t(1), sizes, pointers, c_size_t(variable.size))
        if status > OK + 1:
            return status, []
        return status, [ctypes.string_at(p, n) if p and n else b"" for p, n in zip(pointers, sizes, strict=True)]

    def set_text(self, variable: Variable, values: Sequence[str | bytes]) -> int:
        """Write a String or Binary variable; the status."""
        if variable.call_type is CallType.STRING:
            return super().set_text(variable, values)
        contents = [v.encode() if isinstance(v, str) else bytes(v) for v in values]
        buffers = [(c_ubyte * max(1, len(c))).from_buffer_copy(c or b"\0") for c in contents]
        pointers = (POINTER(c_ubyte) * variable.size)(*(ctypes.cast(b, POINTER(c_ubyte)) for b in buffers))
        sizes = (c_size_t * variable.size)(*(len(c) for c in contents))
        reference = c_uint32(variable.reference)
        return self.call("SetBinary", ctypes.byref(reference), c_size_t(1), sizes, pointers, c_size_t(variable.size))
