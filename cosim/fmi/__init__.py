"""The FMU host: open, run and free FMUs of any vendor."""

from __future__ import annotations

from cosim.fmi.component import FmuComponent
from cosim.fmi.isolated import FmuCrash, IsolatedFmuComponent
from cosim.fmi.library import Fmu, open_fmu
from cosim.fmi.simulate import InputTable, simulate_fmu

__all__ = ["Fmu", "FmuComponent", "FmuCrash", "InputTable", "IsolatedFmuComponent", "open_fmu", "simulate_fmu"]
