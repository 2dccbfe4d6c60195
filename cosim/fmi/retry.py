"""Steps that an FMU discards: go back and take them in smaller parts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_void_p

from cosim.fmi.instance import DISCARD, WARNING, Instance


class StepRetry:
    """Takes steps of one instance, halving those that are discarded.

    Args:
        instance: can save its state.
        retries: how often a step is halved at most.
        check: raises on a status that is not OK or Warning.
        note: told of the first step that needed parts: its time [s] and their number.
    """

    def __init__(
        self,
        instance: Instance,
        retries: int,
        check: Callable[[str, int, str], None],
        note: Callable[[float, int], None],
    ) -> None:
        self._instance = instance
        self._retries = retries
        self._check = check
        self._note: Callable[[float, int], None] | None = note
        self._state = c_void_p()
        instance.keep_states()

    def step(self, time: float, size: float) -> int:
        """One communication step; the status of its last attempt."""
        instance = self._instance
        name = instance.state_name
        self._check(f"Get{name}", instance.call(f"Get{name}", ctypes.byref(self._state)), "")
        host = instance.host_state()
        status = instance.step(time, size)
        for halvings in range(1, self._retries + 1):
            if status != DISCARD:
                break
            self._check(f"Set{name}", instance.call(f"Set{name}", self._state), "")
            instance.set_host_state(host)
            parts = 2**halvings
            status = self._in_parts(time, size, parts)
            if 0 <= status <= WARNING and self._note is not None:
                self._note(time, parts)
                self._note = None
        return status

    def _in_parts(self, time: float, size: float, parts: int) -> int:
        worst = 0
        for k in range(parts):
            start = time + size * k / parts
            status = self._instance.step(start, time + size * (k + 1) / parts - start)
            if status > WARNING or status < 0:
                return status
            worst = max(worst, status)
        return worst

    def free(self) -> None:
        """Give the saved state back."""
        if self._state.value and self._instance.is_alive:
            self._instance.call(f"Free{self._instance.state_name}", ctypes.byref(self._state))
