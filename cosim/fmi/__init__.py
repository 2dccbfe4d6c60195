"""The FMU host: open, run and free FMUs of any vendor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosim.fmi.component import FmuComponent
from cosim.fmi.library import Fmu, open_fmu

if TYPE_CHECKING:
    from cosim.fmi.isolated import FmuCrash, IsolatedFmuComponent
    from cosim.fmi.simulate import InputTable, simulate_fmu

_LATER = {
    "FmuCrash": "cosim.fmi.isolated",
    "IsolatedFmuComponent": "cosim.fmi.isolated",
    "InputTable": "cosim.fmi.simulate",
    "simulate_fmu": "cosim.fmi.simulate",
}

__all__ = ["Fmu", "FmuComponent", "FmuCrash", "InputTable", "IsolatedFmuComponent", "open_fmu", "simulate_fmu"]


def __getattr__(name: str) -> Any:
    """What not every run needs is imported when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
