"""Run one FMU alone, against a table of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cosim.component import Causality, Direction, Experiment, FloatArray, Port, PortRef, Variability
from cosim.diagnostic import DiagnosticLog, FmuError, UsageError, WiringError
from cosim.fmi.component import FmuComponent
from cosim.fmi.library import open_fmu

_PATH = "/Fmu"


@dataclass(frozen=True, slots=True)
class InputTable:
    """Values of inputs over time.

    Attributes:
        time: not decreasing [s], shape (n,); a repeated time is a jump.
        values: columns by port or variable name, each of shape (n,), in the variable's unit.
    """

    time: FloatArray
    values: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.time.ndim != 1 or len(self.time) == 0 or np.any(np.diff(self.time) < 0) or np.isnan(self.time).any():
            raise UsageError.of(
                "input-table-invalid", "the times of an input table must be numbers that do not decrease"
            )
        for name, column in self.values.items():
            if column.shape != self.time.shape:
                raise UsageError.of(
                    "input-table-invalid",
                    f"the input column {name!r} has shape {column.shape}; the times have {self.time.shape}",
                )

    @staticmethod
    def of(time: ArrayLike, **values: ArrayLike) -> InputTable:
        """A table from anything that numpy takes."""
        columns = {name: np.asarray(column, dtype=float) for name, column in values.items()}
        return InputTable(np.asarray(time, dtype=float), columns)

    def at(self, name: str, time: float, *, interpolate: bool) -> float:
        """The value at a time: interpolated, or the last one given; the ends are held outside the table.

        At a jump the value after it is taken.
        """
        column = self.values[name]
        before = int(np.searchsorted(self.time, time, side="right")) - 1
        if before < 0:
            return float(column[0])
        if before == len(column) - 1 or not interpolate:
            return float(column[before])
        t0, t1 = self.time[before], self.time[before + 1]
        return float(column[before] + (column[before + 1] - column[before]) * ((time - t0) / (t1 - t0)))


def simulate_fmu(
    path: Path | str,
    *,
    inputs: InputTable | None = None,
    start_values: Mapping[str, float | str] | None = None,
    outputs: Sequence[str] | None = None,
    start: str | int | float | Fraction = 0,
    stop: str | int | float | Fraction | None = None,
    step: str | int | float | Fraction | None = None,
    tolerance: float | None = None,
    variables: Mapping[str, str] | None = None,
    log: DiagnosticLog | None = None,
) -> dict[str, FloatArray]:
    """Run one FMU alone.

    Row k holds the outputs at communication point k. An input is written before the step that
    begins at its time: continuous ones interpolated linearly, others as last given.

    Args:
        path: the `.fmu` file.
        inputs: values of inputs over time.
        start_values: values of parameters and inputs by port or variable name.
        outputs: port or variable names to read; None reads every output.
        start: start time [s].
        stop: stop time [s]; None takes the FMU's default experiment, else 1 s after the start.
        step: communication step size [s]; None takes the FMU's default experiment, else 1/500 of the run.
        tolerance: relative tolerance for a solver inside the FMU.
        variables: port name → variable name, as for `FmuComponent`.
        log: gets the findings.

    Returns:
        "time" and the outputs under the names that were asked for (port names by default).

    Raises:
        FmuError: the FMU cannot run.
        WiringError: a name does not exist.
        StepError: the run stopped.
    """
    log = DiagnosticLog() if log is None else log
    fmu = open_fmu(Path(path), log=log)
    component = FmuComponent(fmu, _PATH, variables=variables, log=log)
    log.raise_errors(FmuError)
    default = fmu.description.experiment
    begin = _seconds(start)
    end = _seconds(stop if stop is not None else default.stop_time if default.stop_time is not None else begin + 1)
    size = _seconds(step if step is not None else default.step_size if default.step_size else (end - begin) / 500)
    if size <= 0 or end < begin:
        raise UsageError.of(
            "step-size-invalid", f"a run from {begin} s to {end} s with a step of {size} s makes no sense"
        )
    names = _Names(component)
    table = inputs or InputTable(np.array([float(begin)]))
    driven = {name: names.find(name, Direction.INPUT) for name in table.values}
    values = {name: names.find(name, Direction.INPUT) for name in start_values or {}}
    wanted = names.outputs() if outputs is None else {n: names.find(n, Direction.OUTPUT) for n in outputs}
    experiment = Experiment(step=size, start=begin, stop=end, tolerance=tolerance)
    given = [(values[name], value) for name, value in (start_values or {}).items()]
    return _run(component, experiment, table, driven, given, wanted)


def _run(
    component: FmuComponent,
    experiment: Experiment,
    table: InputTable,
    driven: Mapping[str, Port],
    start_values: list[tuple[Port, float | str]],
    wanted: Mapping[str, Port],
) -> dict[str, FloatArray]:
    ticks = experiment.ticks
    time = np.array([experiment.time(k) for k in range(ticks + 1)])
    schedule = np.empty((ticks + 1, len(driven)))
    for column, (name, port) in enumerate(driven.items()):
        smooth = port.variability is Variability.CONTINUOUS
        schedule[:, column] = [table.at(name, t, interpolate=smooth) for t in time]
    distinct = {p.ref: p for p in wanted.values()}
    rows = np.empty((ticks + 1, len(distinct)))
    component.bind(list(driven.values()), list(distinct.values()))
    try:
        component.enter_initialization(experiment, start_values)
        component.set_inputs(schedule[0])
        component.exit_initialization()
        component.get_outputs(rows[0])
        for k in range(ticks):
            component.set_inputs(schedule[k])
            component.step(k, 1)
            component.get_outputs(rows[k + 1])
    finally:
        component.close()
    at = {ref: k for k, ref in enumerate(distinct)}
    return {"time": time, **{name: rows[:, at[port.ref]] for name, port in wanted.items()}}


class _Names:
    """Ports by port name or by the FMU's own variable name."""

    def __init__(self, component: FmuComponent) -> None:
        self._component = component
        self._ports = list(component.ports())
        self._by_variable = {(p.ref.direction, p.variable): p for p in self._ports if p.variable}

    def find(self, name: str, direction: Direction) -> Port:
        """The port of a name."""
        port = self._component.find(PortRef(_PATH, direction, name)) or self._by_variable.get((direction, name))
        if port is None or not port.type.is_numeric:
            known = ", ".join(sorted(p.ref.name for p in self._ports if p.ref.direction is direction)[:20])
            raise WiringError.of(
                "port-unknown", f"{self._component.fmu.path.name} has no numeric port {name!r}", hint=f"it has: {known}"
            )
        return port

    def outputs(self) -> dict[str, Port]:
        """Every numeric output."""
        return {p.ref.name: p for p in self._ports if p.causality is Causality.OUTPUT and p.type.is_numeric}


def _seconds(value: str | int | float | Fraction) -> Fraction:
    """An exact time; a float means the simple fraction that it is nearest to."""
    if isinstance(value, float):
        near = Fraction(value).limit_denominator(1_000_000)
        return near if float(near) == value else Fraction(repr(value))
    return Fraction(value)
