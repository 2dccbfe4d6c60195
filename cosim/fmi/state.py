"""Snapshots of FMU instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cosim.fmi.instance import Instance


@dataclass(eq=False)
class FmuState:
    """A saved state of one instance.

    Attributes:
        pointer: the FMU's own copy.
        time: the communication point of the state [s].
        host: what the host keeps beside it (a solver's step size).
    """

    _instance: Instance
    pointer: int
    time: float
    host: Any = None
    _is_live: bool = True

    def is_of(self, instance: Instance) -> bool:
        """Whether the state belongs to this instance and was not freed."""
        return self._is_live and self._instance is instance

    def free(self) -> None:
        """Give the copy back to the FMU."""
        if self._is_live:
            self._is_live = False
            self._instance.free_state(self.pointer)

    def __del__(self) -> None:
        self.free()
