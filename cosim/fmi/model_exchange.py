"""FMUs that bring no solver: model exchange instances that the host integrates itself.

At communication points such an instance is in event mode, where every input may be set and
every output read. A step leaves it, integrates, handles the events on the way, and comes back.
"""

from __future__ import annotations

import ctypes
import math
import os
from abc import abstractmethod
from collections.abc import Callable
from ctypes import c_bool, c_char_p, c_double, c_int, c_size_t, c_void_p
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cosim.component import FloatArray
from cosim.fmi.fmi2 import Fmi2Instance
from cosim.fmi.fmi3 import Fmi3Instance
from cosim.fmi.instance import DISCARD, ERROR, OK, WARNING, Instance
from cosim.fmi.log import logger3
from cosim.fmi.solver import DomainError, Model, Solver, SolverError

_MOST_ITERATIONS = 1000


class _CallFailed(Exception):
    """A call inside a step was not answered with OK or Warning."""

    def __init__(self, call: str, status: int, reason: str = "") -> None:
        super().__init__(call)
        self.call = call
        self.status = status
        self.reason = reason


class _ModelExchange(Instance, Model):
    """What is the same in FMI 2 and 3."""

    tolerance: float = 1e-6

    @abstractmethod
    def _update_discrete_states(self) -> bool:
        """One event iteration; whether another is needed."""

    def exit_initialization(self) -> int:
        """Leave initialization mode, iterate the first events, and set up the solver."""
        status = super().exit_initialization()
        if status > WARNING or status < 0:
            return status
        self._next_event = math.inf
        self._failure = _CallFailed("UpdateDiscreteStates", ERROR)
        try:
            self._iterate_events()
            self._buffers()
        except _CallFailed as error:
            self._failure = error
            return error.status
        return status

    def _buffers(self) -> None:
        n, m = self._numbers()
        self._x, self._dx, self._z, self._nominal = np.zeros(n), np.zeros(n), np.zeros(m), np.ones(n)
        self._worst = OK
        self._get_states = self._vector("GetContinuousStates", self._x)
        self._set_states = self._vector("SetContinuousStates", self._x)
        self._get_derivatives = self._vector(self._derivatives_call, self._dx)
        self._get_indicators = self._vector("GetEventIndicators", self._z)
        if n and self.library.find("GetNominalsOfContinuousStates") is not None:
            self._answer(
                "GetNominalsOfContinuousStates", self._vector("GetNominalsOfContinuousStates", self._nominal)()
            )
        self._nominal[~np.isfinite(self._nominal) | (self._nominal == 0)] = 1.0
        self._set_time = partial(self.library.function("SetTime"), self.handle, self._time)
        self._solver = Solver(self, self._nominal, self.tolerance)

    @abstractmethod
    def _numbers(self) -> tuple[int, int]:
        """Numbers of states and of event indicators."""

    _derivatives_call: ClassVar[str]

    def _vector(self, name: str, buffer: FloatArray) -> Callable[[], int]:
        if not buffer.size:
            return lambda: OK
        return partial(self.library.function(name), self.handle, c_void_p(buffer.ctypes.data), c_size_t(buffer.size))

    # ---- as an instance

    def step(self, time: float, size: float) -> int:
        """Integrate over one communication step; the worst status of its calls."""
        self._worst = OK
        self._failure = _CallFailed("the solver", ERROR)
        try:
            self._iterate_events()
            self._solver.advance(time, time + size)
        except _CallFailed as error:
            self._failure = error
            return error.status
        except (SolverError, DomainError) as error:
            reason = str(error) or "the model cannot be evaluated at the event"
            self._failure = _CallFailed("step of the host's solver", DISCARD, reason)
            return DISCARD
        return self._worst

    def native_step(self) -> tuple[int, tuple[int, int, int, int] | None] | None:
        """None: the solver is in Python."""
        return None

    @property
    def step_call(self) -> str:
        """The function that failed in the last step."""
        return self._failure.call

    def stop_reason(self) -> str:
        """After a step that was not OK: what happened."""
        return self._failure.reason

    def host_state(self) -> Any:
        """The solver's step size and the next time event."""
        return self._solver.step_size, self._next_event

    def set_host_state(self, state: Any) -> None:
        """Go back to a solver state."""
        self._solver.step_size, self._next_event = state

    def _prepared_step(self) -> Callable[[], int]:
        raise AssertionError("a model exchange instance integrates")

    # ---- as a model of the solver

    def set_point(self, time: float, states: FloatArray) -> None:
        """Set time [s] and states."""
        self._time.value = time
        self._answer("SetTime", self._set_time())
        self._x[:] = states
        self._answer("SetContinuousStates", self._set_states())

    def states(self) -> FloatArray:
        """A copy of the states."""
        self._answer("GetContinuousStates", self._get_states())
        return self._x.copy()

    def derivatives(self) -> FloatArray:
        """A copy of the state derivatives at the point that is set."""
        self._answer(self._derivatives_call, self._get_derivatives())
        if not np.isfinite(self._dx).all():
            raise DomainError
        return self._dx.copy()

    def indicators(self) -> FloatArray:
        """A copy of the event indicators at the point that is set."""
        self._answer("GetEventIndicators", self._get_indicators())
        return self._z.copy()

    def enter_continuous_time(self) -> None:
        """Leave event mode."""
        self._answer("EnterContinuousTimeMode", self.call("EnterContinuousTimeMode"))

    def handle_events(self) -> None:
        """Enter event mode and iterate it to the end."""
        self._answer("EnterEventMode", self.call("EnterEventMode"))
        self._iterate_events()

    def _iterate_events(self) -> None:
        for _ in range(_MOST_ITERATIONS):
            if not self._update_discrete_states():
                return
        raise _CallFailed("UpdateDiscreteStates", DISCARD, f"{_MOST_ITERATIONS} event iterations do not settle")

    @property
    def next_event(self) -> float:
        """Time of the next time event [s]."""
        return self._next_event

    def _answer(self, call: str, status: int) -> None:
        if status == OK:
            return
        if status == WARNING:
            self._worst = WARNING
        elif status == DISCARD:
            raise DomainError
        else:
            raise _CallFailed(call, status)

    def _after_update(self, call: str, status: int, wants_end: bool, has_event: bool, time: float) -> None:
        if status > WARNING or status < 0:
            raise _CallFailed(call, status)
        if wants_end:
            raise _CallFailed(call, DISCARD, "it asks to end the simulation")
        self._next_event = time if has_event else math.inf


class _EventInfo2(ctypes.Structure):
    _fields_ = (
        ("newDiscreteStatesNeeded", c_int),
        ("terminateSimulation", c_int),
        ("nominalsOfContinuousStatesChanged", c_int),
        ("valuesOfContinuousStatesChanged", c_int),
        ("nextEventTimeDefined", c_int),
        ("nextEventTime", c_double),
    )


class Fmi2ModelExchange(_ModelExchange, Fmi2Instance):
    """An FMI 2.0 model exchange instance (FMI 2.0.4, chapter 3)."""

    _kind: ClassVar[int] = 0
    _derivatives_call: ClassVar[str] = "GetDerivatives"

    def _numbers(self) -> tuple[int, int]:
        return len(self.fmu.description.derivatives), self.fmu.description.event_indicators

    def _update_discrete_states(self) -> bool:
        info = _EventInfo2()
        status = self.call("NewDiscreteStates", ctypes.byref(info))
        self._after_update(
            "NewDiscreteStates",
            status,
            bool(info.terminateSimulation),
            bool(info.nextEventTimeDefined),
            info.nextEventTime,
        )
        return bool(info.newDiscreteStatesNeeded)

    def completed_step(self) -> bool:
        """Tell that a step was accepted; whether an event must be handled now."""
        if self.interface.completed_step_not_needed:
            return False
        event, end = c_int(), c_int()
        status = self.call("CompletedIntegratorStep", self._no_restore, ctypes.byref(event), ctypes.byref(end))
        self._after_update("CompletedIntegratorStep", status, bool(end.value), True, self._next_event)
        return bool(event.value)


class Fmi3ModelExchange(_ModelExchange, Fmi3Instance):
    """An FMI 3.0 model exchange instance (FMI 3.0, chapter 3)."""

    _derivatives_call: ClassVar[str] = "GetContinuousStateDerivatives"

    def _instantiate(self, name: bytes) -> int | None:
        function = self.library.function("InstantiateModelExchange")
        function.restype = c_void_p
        pointer: int | None = function(
            c_char_p(name),
            c_char_p(self.fmu.description.token.encode()),
            c_char_p((str(self.library.resources) + os.sep).encode()),
            c_bool(False),  # visible
            c_bool(False),  # logging
            c_void_p(self.log.key),
            logger3,
        )
        return pointer

    def _numbers(self) -> tuple[int, int]:
        found = []
        for name in ("GetNumberOfContinuousStates", "GetNumberOfEventIndicators"):
            count = c_size_t()
            status = self.call(name, ctypes.byref(count))
            if status > WARNING or status < 0:
                raise _CallFailed(name, status)
            found.append(count.value)
        return found[0], found[1]

    def _update_discrete_states(self) -> bool:
        again, end, nominals, values, defined = (c_bool() for _ in range(5))
        time = c_double()
        status = self.call(
            "UpdateDiscreteStates", *(ctypes.byref(f) for f in (again, end, nominals, values, defined, time))
        )
        self._after_update("UpdateDiscreteStates", status, end.value, defined.value, time.value)
        return again.value

    def completed_step(self) -> bool:
        """Tell that a step was accepted; whether an event must be handled now."""
        if self.interface.completed_step_not_needed:
            return False
        event, end = c_bool(), c_bool()
        status = self.call("CompletedIntegratorStep", self._no_restore, ctypes.byref(event), ctypes.byref(end))
        self._after_update("CompletedIntegratorStep", status, end.value, True, self._next_event)
        return event.value
