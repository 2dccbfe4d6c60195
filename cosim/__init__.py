"""cosim: couple USD rigid-body physics with FMUs.

    import cosim

    system = cosim.load("stages/lander.usda")
    results = cosim.simulate(system, stop=10, step="1/240")
    results.plot()

Names are loaded on first use: importing `cosim` alone takes no USD, physics engine or FMI library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.diagnostic import CosimError as CosimError
    from cosim.diagnostic import Diagnostic as Diagnostic
    from cosim.diagnostic import Severity as Severity
    from cosim.result import Results as Results
    from cosim.session import Simulation as Simulation
    from cosim.session import System as System
    from cosim.session import check as check
    from cosim.session import load as load
    from cosim.session import open as open
    from cosim.session import simulate as simulate

__version__ = "0.1.0"

_HOMES = {
    "CosimError": "cosim.diagnostic",
    "Diagnostic": "cosim.diagnostic",
    "Severity": "cosim.diagnostic",
    "Results": "cosim.result",
    "Simulation": "cosim.session",
    "System": "cosim.session",
    "check": "cosim.session",
    "load": "cosim.session",
    "open": "cosim.session",
    "simulate": "cosim.session",
}
__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cosim' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
