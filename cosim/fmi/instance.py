"""What the FMI 2 and FMI 3 instances have in common."""

from __future__ import annotations

import abc
import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_double, c_int, c_size_t, c_uint32, c_void_p
from typing import Any, ClassVar

from cosim.diagnostic import FmuError
from cosim.fmi.description import CallType, Capabilities, Variable
from cosim.fmi.library import Fmu, Library
from cosim.fmi.log import FmuLog

OK, WARNING, DISCARD, ERROR, FATAL, PENDING = range(6)


class Instance(abc.ABC):
    """One instance of an FMU. Calls answer with the FMI status; who calls decides what it means.

    Attributes:
        fmu: what it is an instance of.
        log: what the FMU says.
        handle: the C pointer, not null.
    """

    major: ClassVar[int]
    state_name: ClassVar[str]

    def __init__(self, fmu: Fmu, interface: Capabilities, library: Library, name: str, log: FmuLog) -> None:
        self.fmu = fmu
        self.interface = interface
        self.library = library
        self.log = log
        self.name = name
        pointer = self._instantiate(name.encode())
        if not pointer:
            said = "".join(f"\n  {line}" for line in log.tail())
            raise FmuError.of(
                "fmu-instantiate-failed",
                f"{fmu.path.name} refused to make an instance for {name}; it was given the token "
                f"{fmu.description.token!r} of its modelDescription.xml{said}",
                fmu.where,
                hint="the binary may be of another model than the description (its own token differs), "
                "or it misses a resource or licence",
            )
        self.handle = c_void_p(pointer)
        self.is_alive = True
        library.live += 1
        self._time, self._size = c_double(), c_double()
        self._no_restore = c_int(1)
        self._step: Callable[[], int] | None = None

    @abc.abstractmethod
    def _instantiate(self, name: bytes) -> int | None: ...

    @abc.abstractmethod
    def enter_initialization(self, start: float, stop: float | None, tolerance: float | None) -> tuple[str, int]:
        """Set up the experiment and enter initialization mode; the last call and its status."""

    @abc.abstractmethod
    def _prepared_step(self) -> Callable[[], int]:
        """`DoStep` with all its arguments, which reads the time and size that are set before."""

    def step(self, time: float, size: float) -> int:
        """One communication step from `time` [s] over `size` [s]; the status."""
        self._time.value = time
        self._size.value = size
        if self._step is None:
            self._step = self._prepared_step()
        return self._step()

    @abc.abstractmethod
    def stop_reason(self) -> str:
        """After a step that was not OK, or that stopped short: what the FMU says of it."""

    def native_step(self) -> tuple[int, tuple[int, int, int, int] | None] | None:
        """Addresses of `DoStep` and, for FMI 3, of its flags and time; None where the host steps itself."""
        return None

    @property
    def step_call(self) -> str:
        """The function that answered in the last step."""
        return "DoStep"

    def host_state(self) -> Any:
        """What the host itself keeps for this instance, for snapshots."""
        return None

    def set_host_state(self, state: Any) -> None:  # noqa: B027
        """Go back to what `host_state` gave."""

    def exit_initialization(self) -> int:
        """Leave initialization mode."""
        return self.call("ExitInitializationMode")

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function that returns a status."""
        return int(self.library.function(name)(self.handle, *arguments))

    def getter(self, call_type: CallType) -> Any:
        """The C function that reads this type."""
        return self.library.function(f"Get{call_type}")

    def setter(self, call_type: CallType) -> Any:
        """The C function that writes this type."""
        return self.library.function(f"Set{call_type}")

    # ---- text

    def get_text(self, variable: Variable) -> tuple[int, list[str | bytes]]:
        """Status and values of a String variable."""
        pointers = (c_char_p * variable.size)()
        reference = c_uint32(variable.reference)
        arguments = [ctypes.byref(reference), c_size_t(1), pointers, *self._count(variable)]
        status = self.call("GetString", *arguments)
        return status, [(p or b"").decode("utf-8", "replace") for p in pointers]

    def set_text(self, variable: Variable, values: Sequence[str | bytes]) -> int:
        """Write a String variable; the status."""
        encoded = [v.encode() if isinstance(v, str) else bytes(v) for v in values]
        pointers = (c_char_p * variable.size)(*encoded)
        reference = c_uint32(variable.reference)
        return self.call("SetString", ctypes.byref(reference), c_size_t(1), pointers, *self._count(variable))

    def _count(self, variable: Variable) -> list[Any]:
        return [c_size_t(variable.size)] if self.major == 3 else []

    # ---- state

    def keep_states(self) -> None:
        """From now on tell the FMU that it may be taken back behind a communication point."""
        self._no_restore.value = 0

    def get_state(self) -> tuple[int, int | None]:
        """Status and a pointer to a copy of the state."""
        pointer = c_void_p()
        status = self.call(f"Get{self.state_name}", ctypes.byref(pointer))
        return status, pointer.value

    def set_state(self, pointer: int) -> int:
        """Go back to a state."""
        return self.call(f"Set{self.state_name}", c_void_p(pointer))

    def free_state(self, pointer: int) -> None:
        """Give a state back."""
        if self.is_alive:
            held = c_void_p(pointer)
            self.call(f"Free{self.state_name}", ctypes.byref(held))

    # ---- end

    def terminate(self) -> int:
        """End the simulation; outputs may still be read."""
        return self.call("Terminate")

    def free(self) -> None:
        """Free the instance."""
        if self.is_alive:
            self.is_alive = False
            self.library.live -= 1
            function = self.library.function("FreeInstance")
            function(self.handle)

    def abandon(self) -> None:
        """Forget an instance that must not be called any more (after Fatal)."""
        self.is_alive = False


def optional_double(value: float | None) -> tuple[c_int, c_double]:
    """A flag and a value, as FMI passes what may be undefined."""
    return c_int(value is not None), c_double(value or 0.0)
