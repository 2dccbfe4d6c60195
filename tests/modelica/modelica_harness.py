"""Compile a model text and drive its FMU through fmpy, by the names of variables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Model, FMU2Slave, defaultCallbacks, fmi2CallbackFunctions, fmi2CallbackLoggerTYPE
from fmpy.fmi3 import FMU3Model, FMU3Slave

from cosim.diagnostic import DiagnosticLog, ModelicaError
from cosim.modelica import BuiltFmu, build_fmu

VERSIONS = ("2.0", "3.0")


def build(code: str, version: str = "2.0", **options: Any) -> BuiltFmu:
    """Compile, or take from the cache."""
    return build_fmu(None, code=code, fmi_version=version, log=DiagnosticLog(), **options)


def refusal(code: str) -> ModelicaError:
    """The error that a text must give."""
    try:
        build(code)
    except ModelicaError as error:
        return error
    raise AssertionError("the text was compiled")


class Fmu:
    """One instance: `with Fmu(code) as fmu: fmu["u"] = 1; fmu.step(0.1); fmu["y"]`."""

    def __init__(
        self,
        code: str,
        version: str = "2.0",
        *,
        exchange: bool = False,
        event_mode: bool = False,
        start: float = 0.0,
        tolerance: float | None = 1e-9,
        **values: Any,
    ) -> None:
        self._open(build(code, version), version, exchange, event_mode, start, tolerance, values)

    @classmethod
    def of(cls, built: BuiltFmu, version: str = "2.0", **values: Any) -> Fmu:
        """An instance of an FMU that is there already."""
        fmu = cls.__new__(cls)
        fmu._open(built, version, False, False, 0.0, 1e-9, values)
        return fmu

    def _open(
        self,
        built: BuiltFmu,
        version: str,
        exchange: bool,
        event_mode: bool,
        start: float,
        tolerance: float | None,
        values: Mapping[str, Any],
    ) -> None:
        self.path = Path(built.path)
        self.model = fmpy.read_model_description(str(self.path), validate=True)
        self.known = {v.name: v for v in self.model.modelVariables}
        self.second, self.time, self.messages = version == "2.0", start, []
        self.folder = fmpy.extract(str(self.path))
        interface = self.model.modelExchange if exchange else self.model.coSimulation
        token = {"guid": self.model.guid if self.second else self.model.instantiationToken}
        kinds = (FMU2Model, FMU3Model) if exchange else (FMU2Slave, FMU3Slave)
        kind = kinds[0 if self.second else 1]
        self.raw = kind(
            **token, unzipDirectory=self.folder, modelIdentifier=interface.modelIdentifier, instanceName="it"
        )
        if self.second:
            self.raw.instantiate(callbacks=self._callbacks())
            self.raw.setupExperiment(tolerance=tolerance, startTime=start)
        else:
            asked = {"eventModeUsed": True, "earlyReturnAllowed": True} if event_mode else {}
            self.raw.instantiate(logMessage=self._log3, **asked)
        self.options = {} if self.second else {"tolerance": tolerance, "startTime": start}
        for name, value in values.items():
            self[name] = value
        self.raw.enterInitializationMode(**self.options)

    def _callbacks(self) -> Any:
        def logger(*arguments: Any) -> None:
            self.messages.append(arguments[4].decode())

        self._kept = fmi2CallbackFunctions()
        self._kept.logger = fmi2CallbackLoggerTYPE(logger)
        self._kept.allocateMemory = defaultCallbacks.allocateMemory
        self._kept.freeMemory = defaultCallbacks.freeMemory
        return self._kept

    def _log3(self, environment: Any, status: Any, category: Any, message: Any) -> None:
        self.messages.append(message.decode() if isinstance(message, bytes) else message)

    def __enter__(self) -> Fmu:
        self.raw.exitInitializationMode()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the instance and what was extracted."""
        self.raw.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)

    def step(self, size: float) -> None:
        """One communication step."""
        self.raw.doStep(currentCommunicationPoint=self.time, communicationStepSize=size)
        self.time += size

    def _references(self, name: str) -> tuple[list[int], int, str]:
        if name in self.known:
            variable = self.known[name]
            sizes = [int(d.start) for d in variable.dimensions] if variable.dimensions else []
            return [variable.valueReference], int(np.prod(sizes)) if sizes else 1, variable.type
        elements = [v for v in self.known.values() if v.name.startswith(f"{name}[")]
        if not elements:
            raise KeyError(name)
        return [v.valueReference for v in elements], len(elements), elements[0].type

    def _call(self, action: str, type_name: str) -> Callable[..., Any]:
        names = {"Real": "Real", "Float64": "Float64", "Boolean": "Boolean", "Int32": "Int32", "String": "String"}
        names |= {"Integer": "Integer", "Enumeration": "Integer" if self.second else "Int64"}
        return getattr(self.raw, action + names[type_name])

    def __setitem__(self, name: str, value: Any) -> None:
        references, _, type_name = self._references(name)
        values = [value] if isinstance(value, str) else [x.item() for x in np.atleast_1d(value).reshape(-1)]
        self._call("set", type_name)(references, values)

    def __getitem__(self, name: str) -> Any:
        references, size, type_name = self._references(name)
        call = self._call("get", type_name)
        found = list(call(references) if self.second else call(references, nValues=size))
        found = [x.decode() if isinstance(x, bytes) else x for x in found]
        return found[0] if size == 1 else np.array(found)


def simulate(
    code: str,
    outputs: Sequence[str],
    *,
    version: str = "2.0",
    step: float,
    steps: int,
    inputs: Callable[[float], Mapping[str, Any]] | None = None,
    **values: Any,
) -> dict[str, np.ndarray]:
    """Outputs at every communication point, the first after initialization; inputs are held over each step."""
    rows: dict[str, list[Any]] = {name: [] for name in outputs}
    given = inputs or (lambda t: {})
    fmu = Fmu(code, version, **values)
    for name, value in given(0.0).items():
        fmu[name] = value
    with fmu:
        for k in range(steps + 1):
            if k:
                fmu.time = (k - 1) * step
                for name, value in given(fmu.time).items():
                    fmu[name] = value
                fmu.step(step)
            for name in outputs:
                rows[name].append(fmu[name])
    return {name: np.array(found, float) for name, found in rows.items()}
