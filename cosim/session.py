"""The table of contents: stage → description → components → graph → plan → master → results."""

from __future__ import annotations

import enum
import importlib.metadata
import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, TypeVar

from cosim.component import Causality, Component, Direction, Experiment, Port, PortRef
from cosim.diagnostic import CosimError, Diagnostic, DiagnosticLog, StageError, StepError, UsageError
from cosim.graph import PortGraph, build_graph
from cosim.master import Loop, Master, Snapshot
from cosim.plan import MasterAlgorithm, compile_plan, matches
from cosim.program import Isolation, ResolvedProgram, resolve_programs
from cosim.resource import find_stage
from cosim.result import Results
from cosim.rigid.component import RigidBodyComponent
from cosim.system import AuthoredValue, SystemDescription
from cosim.usd.system import read_system

Seconds = str | int | float | Fraction
DEFAULT_STEP = Fraction(1, 240)
_Choice = TypeVar("_Choice", bound=enum.StrEnum)


@dataclass(frozen=True, slots=True)
class System:
    """A loaded stage: its description, its programs, and what was found while reading.

    Attributes:
        description: what the stage says.
        programs: the programs with their FMUs.
        diagnostics: findings of reading; no errors, else `load` would have raised.
        substeps: physics steps per communication step.
    """

    description: SystemDescription
    programs: tuple[ResolvedProgram, ...]
    diagnostics: tuple[Diagnostic, ...]
    substeps: int = 1

    @property
    def name(self) -> str:
        """The stage's file name without suffix."""
        return Path(self.description.stage).stem

    def components(self, log: DiagnosticLog) -> list[Component]:
        """Fresh components, for one run."""
        programs = [p.component(log) for p in self.programs]
        if self.description.mechanism.is_empty:
            return [*programs]
        return [RigidBodyComponent(self.description.mechanism, substeps=self.substeps, log=log), *programs]

    def graph(self, log: DiagnosticLog, start_values: Sequence[AuthoredValue] = ()) -> PortGraph:
        """The port graph over fresh components."""
        return build_graph(self.components(log), self.description, log, start_values=start_values)

    def ports(self, pattern: str = "*") -> tuple[Port, ...]:
        """Every port whose address matches a glob pattern, sorted."""
        log = DiagnosticLog()
        found = [p for c in self.components(log) for p in c.ports() if matches(p.ref, pattern)]
        return tuple(sorted(found, key=lambda p: p.ref))

    def _repr_html_(self) -> str:
        from cosim.adapter.graph_view import as_html

        return as_html(self)


def read(
    stage: Path | str,
    *,
    log: DiagnosticLog,
    asset_roots: Mapping[str, Path | str] | None = None,
    program_path: Sequence[Path | str] = (),
    fmi_version: str = "2.0",
    substeps: int = 1,
    isolate: str = "auto",
) -> System:
    """Load a stage and file every finding in `log`, errors included.

    Raises:
        CosimError: the stage cannot be opened at all.
    """
    if substeps < 1:
        raise UsageError.of("substeps-invalid", f"{substeps} physics steps per communication step make no sense")
    roots = {name: Path(folder) for name, folder in (asset_roots or {}).items()}
    description = read_system(find_stage(Path(stage)), asset_roots=roots, log=log)
    programs = resolve_programs(
        description.programs,
        program_path=[Path(p) for p in program_path],
        fmi_version=fmi_version,
        isolation=_choice(Isolation, isolate, "isolation-unknown"),
        log=log,
    )
    return System(description, programs, tuple(log), substeps)


def load(
    stage: Path | str,
    *,
    asset_roots: Mapping[str, Path | str] | None = None,
    program_path: Sequence[Path | str] = (),
    fmi_version: str = "2.0",
    substeps: int = 1,
    isolate: str = "auto",
) -> System:
    """Load a stage: read it, find and compile its programs.

    Args:
        stage: a USD file, or the name of a shipped stage.
        asset_roots: scheme → folder for asset paths such as `@lunco://x@`.
        program_path: folders that may serve programs which are not where the stage says.
        fmi_version: what Modelica programs are compiled to, "2.0" or "3.0".
        substeps: physics steps per communication step.
        isolate: which FMUs run in a process of their own: "auto" (files from outside the program path),
            "always", "never".

    Raises:
        CosimError: with every error that was found.
    """
    log = DiagnosticLog()
    system = read(
        stage,
        log=log,
        asset_roots=asset_roots,
        program_path=program_path,
        fmi_version=fmi_version,
        substeps=substeps,
        isolate=isolate,
    )
    log.raise_errors(StageError)
    return system


def check(stage: Path | str, *, step: Seconds = DEFAULT_STEP, **options: Any) -> tuple[Diagnostic, ...]:
    """Everything that can be said of a stage without running it; options as for `load`."""
    log = DiagnosticLog()
    try:
        system = read(stage, log=log, **options)
        if not log.errors:
            graph = system.graph(log)
            compile_plan(graph, Experiment(seconds(step)), log)
    except CosimError as error:
        log.extend(d for d in error.diagnostics if d not in log.items)
    return tuple(log)


class Simulation:
    """A running system.

    Use it as a context manager, or call `close`. The first `step`, `run` or `get` initializes;
    `set` before that becomes a start value.
    """

    def __init__(
        self,
        system: System,
        *,
        step: Seconds = DEFAULT_STEP,
        start: Seconds = 0,
        stop: Seconds | None = None,
        record: Sequence[str] | None = None,
        start_values: Mapping[str, float | str] | None = None,
        order: str = "jacobi",
        tolerance: float | None = None,
        seed: int = 0,
        loop: str = "auto",
    ) -> None:
        self.system = system
        self.experiment = _experiment(step, start, stop, tolerance, seed)
        self._algorithm = _choice(MasterAlgorithm, order, "order-unknown")
        self._loop = _choice(Loop, loop, "loop-unknown")
        self._record = record
        self._values: dict[PortRef, float | str] = {}
        self._holds: dict[PortRef, float] = {}
        self._log = DiagnosticLog(list(system.diagnostics))
        self._graph = system.graph(DiagnosticLog())
        self._master: Master | None = None
        self._is_closed = False
        for name, value in (start_values or {}).items():
            self._values[self._resolve(name, Direction.INPUT)] = _finite(name, value)

    # ---- running

    @property
    def time(self) -> float:
        """The current communication point [s]."""
        return self._master.time if self._master else self.experiment.time(0)

    @property
    def tick(self) -> int:
        """Base steps since the start."""
        return self._master.tick if self._master else 0

    @property
    def is_initialized(self) -> bool:
        """Whether there is a first row of results."""
        return self._master is not None and len(self._master.recorder) > 0

    def initialize(self) -> None:
        """Compile the plan, instantiate and initialize every component, record the first row."""
        if self._master is not None:
            return
        if self._is_closed:
            raise StepError.of("simulation-closed", "this simulation is closed", hint="open the stage again")
        values = [AuthoredValue(ref, value) for ref, value in self._values.items()]
        # The components keep this log: what an FMU says during the run belongs to the results.
        graph = self.system.graph(self._log, values)
        plan = compile_plan(graph, self.experiment, self._log, algorithm=self._algorithm, record=self._record)
        self._log.raise_errors(StageError)
        self._master = Master(plan, self.experiment, self._log, loop=self._loop)
        self._graph = graph
        for ref, number in self._holds.items():
            found_port = graph.resolve(ref)
            if found_port is not None and found_port[1].causality is Causality.INPUT:
                self._master.hold(ref, number)
        self._master.initialize()

    def step(self, ticks: int = 1) -> float:
        """Advance by a number of base steps; the time reached [s]."""
        self._running().run(ticks)
        return self.time

    def run(self, until: Seconds | None = None, on_tick: Callable[[int], None] | None = None) -> Results:
        """Advance to a time [s] (default the stop time); the results so far."""
        master = self._running()
        if until is None:
            if self.experiment.stop is None:
                raise UsageError.of("stop-time-missing", "run() of an open-ended simulation needs a time")
            ticks = self.experiment.ticks - master.tick
        else:
            target = (seconds(until) - self.experiment.start) / self.experiment.step
            ticks = math.ceil(target) - master.tick
        master.run(max(0, ticks), on_tick)
        return self.results

    def close(self) -> None:
        """Free everything; results stay."""
        self._is_closed = True
        if self._master is not None:
            self._master.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- values

    def get(self, name: str) -> float:
        """The value of a port: `/Rover/Imu.outputs:gyro_x`, or `/Rover/Imu.gyro_x` for short."""
        master = self._running()
        return master.get(self._resolve(name, Direction.OUTPUT))

    def set(self, name: str, value: float) -> None:
        """Hold an input at a value, over its wire and its authored value, until `release`."""
        ref, number = self._resolve(name, Direction.INPUT), float(_finite(name, value))
        if self._master is None:
            # A start value binds the input; the hold keeps it over its wire.
            self._values[ref] = self._holds[ref] = number
        else:
            self._master.hold(ref, number)

    def resolve(self, name: str, direction: Direction = Direction.OUTPUT) -> PortRef:
        """The address that a name means: itself, or for `PRIM.NAME` the port of this direction, else of the other."""
        return self._resolve(name, direction)

    def release(self, name: str) -> None:
        """Give an input back to its wire, else to its authored value."""
        self._running().release(self._resolve(name, Direction.INPUT))

    def save(self) -> Snapshot:
        """A snapshot of the whole system."""
        return self._running().save()

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, bit for bit."""
        self._running().restore(snapshot)

    # ---- what came of it

    @property
    def order(self) -> MasterAlgorithm:
        """The master algorithm."""
        return self._algorithm

    @property
    def graph(self) -> PortGraph:
        """The port graph of this simulation."""
        return self._graph

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything found so far."""
        return tuple(self._log)

    @property
    def results(self) -> Results:
        """What was recorded so far."""
        master = self._running()
        time, values = master.recorder.values()
        return Results(time, values, master.recorder.columns, self._metadata(), self.diagnostics)

    def _metadata(self) -> dict[str, Any]:
        return {
            **provenance(self.system),
            "start_time": float(self.experiment.start),
            "stop_time": None if self.experiment.stop is None else float(self.experiment.stop),
            "step_size": str(self.experiment.step),
            "substeps": self.system.substeps,
            "order": self._algorithm.value,
            "seed": self.experiment.seed,
            "start_values": {str(ref): value for ref, value in sorted(self._values.items())},
            "connections": connections(self._graph),
        }

    def _running(self) -> Master:
        self.initialize()
        assert self._master is not None
        return self._master

    def _resolve(self, name: str, direction: Direction) -> PortRef:
        """A full address, or `PRIM.NAME` with the direction that makes sense here."""
        path, dot, rest = name.partition(".")
        if dot and rest and not rest.startswith(("inputs:", "outputs:")):
            for side in (direction, *(d for d in Direction if d is not direction)):
                if self._graph.resolve(PortRef(path, side, rest)) is not None:
                    return PortRef(path, side, rest)
            return PortRef(path, direction, rest)
        return PortRef.parse(name)


def open(stage: Path | str | System, *, system_options: Mapping[str, Any] | None = None, **options: Any) -> Simulation:
    """Open a stage for stepping: `sim.step()`, `sim.set(...)`, `sim.get(...)`, `sim.results`.

    Args:
        stage: a file, the name of a shipped stage, or a loaded system.
        system_options: options of `load`.
        options: options of `Simulation`: step, start, stop, record, start_values, order, tolerance, seed.
    """
    system = stage if isinstance(stage, System) else load(stage, **(system_options or {}))
    return Simulation(system, **options)


def simulate(
    stage: Path | str | System,
    *,
    stop: Seconds = 10,
    step: Seconds = DEFAULT_STEP,
    record: Sequence[str] | None = None,
    on_tick: Callable[[int], None] | None = None,
    system_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:
    """Run a stage to its stop time.

    Args:
        stage: a file, the name of a shipped stage, or a loaded system.
        stop: stop time [s].
        step: communication step size [s], such as "1/240".
        record: glob patterns of ports to record; None records everything that changes.
        on_tick: called after every step with the tick reached.
        system_options: options of `load` where a file is given.
        options: further options of `Simulation`.

    Raises:
        CosimError: the stage has errors, or the run stopped.
    """
    with open(stage, stop=stop, step=step, record=record, system_options=system_options, **options) as simulation:
        return simulation.run(on_tick=on_tick)


@contextmanager
def keeping_results(simulation: Simulation) -> Iterator[list[BaseException]]:
    """Run a block; an error or Ctrl-C ends it but leaves the results: the list tells what ended it."""
    ended: list[BaseException] = []
    try:
        yield ended
    except (CosimError, KeyboardInterrupt) as error:
        ended.append(error)
    finally:
        simulation.close()


# ---- arguments


def seconds(value: Seconds) -> Fraction:
    """A time as an exact fraction: "1/240", 0.01 (meaning 1/100), 1/60 as a float (meaning 1/60).

    Raises:
        UsageError: not a finite number.
    """
    try:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError
            near = Fraction(value).limit_denominator(1_000_000)
            return near if float(near) == value else Fraction(repr(value))
        return Fraction(value)
    except (ValueError, ZeroDivisionError, TypeError):
        raise UsageError.of("time-invalid", f"{value!r} is not a time in seconds", hint="write 0.01 or 1/240") from None


def _experiment(step: Seconds, start: Seconds, stop: Seconds | None, tolerance: float | None, seed: int) -> Experiment:
    size, begin = seconds(step), seconds(start)
    end = None if stop is None else seconds(stop)
    if size <= 0:
        raise UsageError.of("step-size-invalid", f"the communication step size is {step}; it must be positive")
    if end is not None and end < begin:
        raise UsageError.of("stop-time-invalid", f"the stop time {stop} is before the start time {start}")
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise UsageError.of("tolerance-invalid", f"the tolerance is {tolerance}; it must be a positive number")
    return Experiment(step=size, start=begin, stop=end, tolerance=tolerance, seed=seed)


def _choice(kind: type[_Choice], name: str, code: str) -> _Choice:
    """A member of an enumeration by its name."""
    try:
        return kind(name)
    except ValueError:
        names = ", ".join(member.value for member in kind)
        raise UsageError.of(code, f"{name!r} is not known", hint=f"one of {names}") from None


def _finite(name: str, value: float | str) -> float | str:
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        raise UsageError.of("value-not-finite", f"the value of {name} is {value}", hint="give a finite number")
    return float(value)


# ---- provenance


def provenance(system: System) -> dict[str, Any]:
    """What a trace came from: hashes of the stage and its FMUs, and versions."""
    return {
        "stage": system.description.stage,
        "layers": dict(system.description.layers),
        "programs": {
            p.program.path: {
                "source": p.source,
                "class": p.program.class_name or p.fmu.description.model_name,
                "fmi_version": p.fmu.description.fmi_version,
                "sha256": p.fmu.sha256,
            }
            for p in system.programs
        },
        "versions": versions(),
    }


def connections(graph: PortGraph) -> list[dict[str, str]]:
    """Every connection with the components at its ends, for whoever follows a difference upstream."""
    names = [c.name for c in graph.components]
    return [
        {
            "source": str(w.source.ref),
            "of": names[w.source_component],
            "target": str(w.target.ref),
            "in": names[w.target_component],
        }
        for w in graph.wires
    ]


def versions() -> dict[str, str]:
    """Versions of cosim, Python and the libraries that take part."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("usd-cosim", "usd-core", "fmpy", "numpy", "networkx", "pybullet", "pybullet-arm64", "rumoca"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
