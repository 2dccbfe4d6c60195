"""Compile the library's programs and run them through fmpy, one held input per communication step."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from numpy.typing import NDArray

from cosim.modelica import build_fmu

LIBRARY = Path(__file__).resolve().parents[2] / "fmus"
VERSIONS = ("2.0", "3.0")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One experiment: `inputs[name][k]` is held from communication point k to k + 1.

    Outputs have one value more than the inputs: point 0 is after initialization with the first
    inputs, point k after the step that ended there, still with the inputs of that step.
    """

    step: float
    inputs: Mapping[str, Sequence[float] | Array] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0

    @property
    def count(self) -> int:
        """Number of communication steps."""
        return self.steps or len(next(iter(self.inputs.values())))

    @property
    def time(self) -> Array:
        """The communication points [s], shape (count + 1,)."""
        return np.arange(self.count + 1) * self.step

    def u(self, name: str, default: float = 0.0) -> Array:
        """The input that each output sees, shape (count + 1,); the start value where it is not driven."""
        held = np.asarray(self.inputs.get(name, np.full(self.count, self.parameters.get(name, default))), float)
        return np.concatenate([held[:1], held])

    def p(self, name: str, default: float) -> float:
        """The parameter, or the program's own value."""
        return float(self.parameters.get(name, default))


@functools.cache
def fmu(program: str, version: str) -> Path:
    """The FMU of a program of the library, compiled once per test session."""
    folder = Path(_folder().name)
    output = folder / f"{program}_fmi{version[0]}.fmu"
    return Path(build_fmu(LIBRARY / f"{program}.mo", fmi_version=version, output=output).path)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="cosim-fmus-")


@functools.cache
def description(program: str, version: str) -> Any:
    """The FMU's model description as fmpy reads it."""
    return fmpy.read_model_description(str(fmu(program, version)), validate=False)


def outputs_of(program: str) -> list[str]:
    """The names of a program's outputs, in the order of declaration."""
    return [v.name for v in description(program, "3.0").modelVariables if v.causality == "output"]


def simulate(program: str, version: str, run: Run, *, tolerance: float = 1e-10) -> dict[str, Array]:
    """Run a program and read every output at every communication point.

    Args:
        program: name of the class and of its file in the library.
        version: "2.0" or "3.0".
        run: inputs, parameters and step.
        tolerance: relative tolerance asked of the FMU's solver.
    """
    names = outputs_of(program)
    rows = np.empty((run.count + 1, len(names)))
    first = {name: values[0] for name, values in run.inputs.items()}
    with Instance(program, version, parameters=run.parameters, inputs=first, tolerance=tolerance) as instance:
        rows[0] = instance.read(names)
        for k in range(run.count):
            instance.write({name: values[k] for name, values in run.inputs.items()})
            instance.step(run.step)
            rows[k + 1] = instance.read(names)
    return {name: rows[:, i] for i, name in enumerate(names)}


class Instance:
    """An initialized FMU instance; on leaving it is freed, with its extracted files, whatever happens."""

    def __init__(
        self,
        program: str,
        version: str,
        *,
        parameters: Mapping[str, float] | None = None,
        inputs: Mapping[str, float] | None = None,
        tolerance: float = 1e-10,
    ) -> None:
        model = description(program, version)
        self.known = {v.name: v for v in model.modelVariables}
        self.second = version == "2.0"
        self.steps, self.time = 0, 0.0
        self.folder = fmpy.extract(str(fmu(program, version)))
        token = {"guid": model.guid if self.second else model.instantiationToken}
        kind = FMU2Slave if self.second else FMU3Slave
        identifier = model.coSimulation.modelIdentifier
        self.slave = kind(**token, unzipDirectory=self.folder, modelIdentifier=identifier, instanceName=program)
        self.slave.instantiate()
        if self.second:
            self.slave.setupExperiment(tolerance=tolerance, startTime=0.0)
        self.write(parameters or {})
        if self.second:
            self.slave.enterInitializationMode()
        else:
            self.slave.enterInitializationMode(tolerance=tolerance, startTime=0.0)
        self.write(inputs or {})
        self.slave.exitInitializationMode()

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, *_: object) -> None:
        self.slave.terminate()
        self.slave.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)

    def step(self, size: float) -> None:
        """One communication step; time is the number of steps times the size, never a sum."""
        self.slave.doStep(currentCommunicationPoint=self.time, communicationStepSize=size)
        self.steps += 1
        self.time = self.steps * size

    def write(self, values: Mapping[str, float]) -> None:
        """Set variables of any type by name."""
        reals = {self.known[name].valueReference: float(x) for name, x in values.items() if self._is_real(name)}
        if reals:
            (self.slave.setReal if self.second else self.slave.setFloat64)(list(reals), list(reals.values()))
        for name, value in values.items():
            reference = [self.known[name].valueReference]
            match self.known[name].type:
                case "Boolean":
                    self.slave.setBoolean(reference, [bool(value)])
                case "Integer":
                    self.slave.setInteger(reference, [int(value)])
                case "Int32":
                    self.slave.setInt32(reference, [int(value)])
                case "Enumeration":
                    (self.slave.setInteger if self.second else self.slave.setInt64)(reference, [int(value)])

    def read(self, names: Sequence[str]) -> list[float]:
        """The values of variables of any type as numbers."""
        found: list[float] = []
        for name in names:
            reference = [self.known[name].valueReference]
            match self.known[name].type:
                case "Real":
                    found += self.slave.getReal(reference)
                case "Float64":
                    found += self.slave.getFloat64(reference)
                case "Boolean":
                    found += [float(x) for x in self.slave.getBoolean(reference)]
                case "Int32":
                    found += self.slave.getInt32(reference)
                case "Enumeration" if not self.second:
                    found += self.slave.getInt64(reference)
                case _:
                    found += self.slave.getInteger(reference)
        return found

    def _is_real(self, name: str) -> bool:
        return self.known[name].type in ("Real", "Float64")
