"""An FMI 2.0 co-simulation instance."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_double, c_int, c_void_p
from functools import partial
from typing import ClassVar

from cosim.fmi.instance import OK, Instance, optional_double
from cosim.fmi.log import callbacks2
from cosim.native.exchange import address_of

_MODEL_EXCHANGE, _COSIMULATION = 0, 1
_LAST_SUCCESSFUL_TIME = 2
_TERMINATED = 3
_ERROR_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal")


class Fmi2Instance(Instance):
    """Calls the `fmi2` functions (FMI 2.0.4, chapters 2 and 4)."""

    major: ClassVar[int] = 2
    state_name: ClassVar[str] = "FMUstate"
    _kind: ClassVar[int] = _COSIMULATION

    def _instantiate(self, name: bytes) -> int | None:
        self._callbacks = callbacks2(self.log)
        function = self.library.function("Instantiate")
        function.restype = c_void_p
        pointer: int | None = function(
            c_char_p(name),
            c_int(self._kind),
            c_char_p(self.fmu.description.token.encode()),
            c_char_p(self.library.resources.as_uri().encode()),
            ctypes.byref(self._callbacks),
            c_int(0),
            c_int(0),
        )
        return pointer

    def enter_initialization(self, start: float, stop: float | None, tolerance: float | None) -> tuple[str, int]:
        """Set up the experiment and enter initialization mode; the last call and its status."""
        self._log_errors()
        tolerance_given, tolerance_value = optional_double(tolerance)
        stop_given, stop_value = optional_double(stop)
        status = self.call("SetupExperiment", tolerance_given, tolerance_value, c_double(start), stop_given, stop_value)
        if status > 1:
            return "SetupExperiment", status
        return "EnterInitializationMode", self.call("EnterInitializationMode")

    def _log_errors(self) -> None:
        """Ask for messages of failures only: a verbose FMU is slow."""
        wanted = [c.encode() for c in _ERROR_CATEGORIES if c in self.fmu.description.log_categories]
        if wanted and self.library.find("SetDebugLogging") is not None:
            names = (c_char_p * len(wanted))(*wanted)
            self.call("SetDebugLogging", c_int(1), ctypes.c_size_t(len(wanted)), names)

    def _prepared_step(self) -> Callable[[], int]:
        return partial(self.library.function("DoStep"), self.handle, self._time, self._size, self._no_restore)

    def native_step(self) -> tuple[int, tuple[int, int, int, int] | None] | None:
        """The address of `fmi2DoStep`."""
        return address_of(self.library.function("DoStep")), None

    def stop_reason(self) -> str:
        """After a step that was not OK: what the FMU says of it."""
        said = []
        terminated, reached = c_int(0), c_double(0.0)
        if self.library.find("GetBooleanStatus") is not None:
            status = self.call("GetBooleanStatus", c_int(_TERMINATED), ctypes.byref(terminated))
            if status == OK and terminated.value:
                said.append("it asks to end the simulation")
        if self.library.find("GetRealStatus") is not None:
            status = self.call("GetRealStatus", c_int(_LAST_SUCCESSFUL_TIME), ctypes.byref(reached))
            if status == OK:
                said.append(f"its last successful time is {reached.value:.9g} s")
        return ", ".join(said)
