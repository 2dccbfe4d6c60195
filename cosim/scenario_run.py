"""A stage under a scenario: stimuli, events and faults act at communication points; assertions judge the trace.

At each communication point, before the step that begins there: events happen, then every input that
a stimulus, a hold or a fault concerns gets its value, then the conditions that end the run are
looked at. A value that is given at a point is in the trace from the row after it. What begins with
the run is part of its initialization; faults act from the first step on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cosim.assertion import AssertionOutcome, judge
from cosim.component import Causality, Direction, LinearTransformation, PortRef
from cosim.diagnostic import DiagnosticLog, SourceLocation, StageError, StepError, UsageError
from cosim.fault import ActiveFault
from cosim.plan import MasterAlgorithm
from cosim.result import Results
from cosim.scenario import Condition, Event, Scenario, Stimulus
from cosim.session import Simulation, System


@dataclass(slots=True)
class _DrivenInput:
    """An input that the scenario concerns, with everything that can give it a value; the first of them does."""

    ref: PortRef
    sources: Sequence[tuple[PortRef, LinearTransformation]]
    authored: float
    stimulus: Stimulus | None = None
    hold: float | None = None
    faults: list[ActiveFault] = field(default_factory=list)
    given: float | None = None


class ScenarioRun:
    """A simulation that a scenario drives.

    Args:
        system: a loaded stage.
        scenario: what happens to it.
        options: options of `Simulation`; those that are not None go before those of the scenario.

    Raises:
        StageError: the scenario names ports that the stage does not have, with their lines.
        UsageError: an option makes no sense, or a fault does not fit the step or the order.
    """

    def __init__(self, system: System, scenario: Scenario, **options: Any) -> None:
        self.scenario = scenario
        known = _options(scenario, options)
        self.simulation = Simulation(system, **known)
        resolve = self.simulation.resolve
        self._start_values = {resolve(n, Direction.INPUT): value for n, value in known["start_values"].items()}
        self._log = DiagnosticLog()
        self._observed = self._observed_ports()
        self.stopped = ""
        self._inputs: dict[PortRef, _DrivenInput] = {}
        self._faulty: dict[PortRef, list[ActiveFault]] = {}
        self._pending = list(scenario.events)
        for stimulus in scenario.stimuli:
            driven = self._driven(stimulus.port, stimulus.line)
            if driven is not None:
                driven.stimulus = stimulus
        self._released = {name: self._driven(name, e.line) for e in scenario.events for name in e.release}
        self._held = {name: self._driven(name, e.line) for e in scenario.events for name in e.hold}
        self._prepare_faults()
        self._log.raise_errors(StageError)

    # ---- preparing

    def _observed_ports(self) -> dict[str, PortRef]:
        """Ports as written → what they mean, for conditions and assertions."""
        found: dict[str, PortRef] = {}
        for name, line in self.scenario.observed:
            ref = self._find(name, Direction.OUTPUT, line)
            if ref is not None:
                found[name] = ref
        return found

    def _find(self, name: str, direction: Direction, line: int) -> PortRef | None:
        ref = self.simulation.resolve(name, direction)
        if self.simulation.graph.resolve(ref) is not None:
            return ref
        hint = f"`cosim ports STAGE '{ref.path}.*'` lists what is there"
        self._log.error("scenario-port-unknown", f"there is no port {name}", self.scenario.where(line), hint)
        return None

    def _driven(self, name: str, line: int) -> _DrivenInput | None:
        ref = self._find(name, Direction.INPUT, line)
        if ref is None:
            return None
        graph = self.simulation.graph
        found = graph.resolve(ref)
        assert found is not None
        if found[1].causality not in (Causality.INPUT, Causality.PARAMETER) or not found[1].type.is_numeric:
            message = f"{name} is no numeric input: a scenario cannot give it a value"
            self._log.error("scenario-port-unknown", message, self.scenario.where(line))
            return None
        if ref not in self._inputs:
            sources = [(w.source.ref, w.transformation) for w in graph.wires if w.target.ref == ref]
            values = [s.value for s in graph.start_values if s.port.ref == ref]
            start = self._start_values.get(ref, values[-1] if values else found[1].start)
            authored = float(start) if isinstance(start, int | float) else 0.0
            self._inputs[ref] = _DrivenInput(ref, sources, authored)
        return self._inputs[ref]

    def _prepare_faults(self) -> None:
        graph = self.simulation.graph
        for fault in self.scenario.faults:
            where = self.scenario.where(fault.line)
            if self.simulation.order is not MasterAlgorithm.JACOBI:
                message = "faults act on values of the communication point: the order must be jacobi"
                raise UsageError.of("fault-order-unsupported", message, where)
            ref = self._find(fault.port, Direction.OUTPUT, fault.line)
            if ref is None:
                continue
            active = ActiveFault(fault, self.simulation.experiment, where)
            if ref.direction is Direction.INPUT:
                driven = self._driven(str(ref), fault.line)
                if driven is not None:
                    driven.faults.append(active)
                continue
            readers = [w.target.ref for w in graph.wires if w.source.ref == ref]
            if not readers:
                message = f"nothing reads {fault.port}: a fault of it has no effect"
                self._log.error("fault-inert", message, where, "connect it, or put the fault on an input")
            self._faulty.setdefault(ref, []).append(active)
            for reader in readers:
                self._driven(str(reader), fault.line)

    # ---- running

    def run(self, on_tick: Callable[[int], None] | None = None) -> Results:
        """Run to the stop time or to the first stop condition; the results.

        Raises:
            CosimError: the run stopped on an error; `results` are those up to there.
        """
        simulation, experiment = self.simulation, self.simulation.experiment
        self._begin()
        while True:
            now = experiment.start + simulation.tick * experiment.step
            self._events(now)
            self._drive(now)
            self.stopped = next((s.reason for s in self.scenario.stops if self._holds(s.when)), "")
            if self.stopped or (experiment.stop is not None and simulation.tick >= experiment.ticks):
                return self.results
            simulation.step()
            if on_tick is not None:
                on_tick(simulation.tick)

    def _begin(self) -> None:
        """What is there at the start is part of the initialization."""
        start = self.simulation.experiment.start
        for event in [e for e in self._pending if e.at is not None and e.at <= start]:
            self._happen(event)
        for driven in self._inputs.values():
            if driven.hold is not None or driven.stimulus is not None:
                self._give(driven, self._value(driven, start, {}))
        self.simulation.initialize()
        for name, line in self.scenario.observed:
            if str(self._observed[name]) not in self.simulation.results.names:
                message = f"{name} is not recorded, so nothing can be asserted of it or depend on it"
                hint = "name an output, or an input that is connected"
                self._log.error("scenario-port-unknown", message, self.scenario.where(line), hint)
        self._log.raise_errors(StageError)

    def _events(self, now: Fraction) -> None:
        due = [e for e in self._pending if (e.at <= now if e.at is not None else e.when and self._holds(e.when))]
        for event in due:
            self._happen(event)

    def _happen(self, event: Event) -> None:
        self._pending.remove(event)
        for name in event.release:
            driven = self._released[name]
            if driven is not None:
                driven.hold = None
        for name, value in event.hold.items():
            driven = self._held[name]
            if driven is not None:
                driven.hold = value

    def _holds(self, condition: Condition) -> bool:
        value = self.simulation.get(str(self._observed[condition.port]))
        return bool(condition.holds(np.array([value]))[0])

    def _drive(self, now: Fraction) -> None:
        """Give every concerned input its value, or give it back."""
        seen: dict[PortRef, float] = {}
        for ref, faults in self._faulty.items():
            value = self.simulation.get(str(ref))
            for fault in faults:
                value = fault.see(value, now)
            seen[ref] = value
        for driven in self._inputs.values():
            value = self._value(driven, now, seen)
            for fault in driven.faults:
                value = fault.see(value, now)
            if driven.hold is not None or driven.stimulus is not None or self._is_faulty(driven, now):
                self._give(driven, value)
            elif driven.given is not None:
                driven.given = None
                self.simulation.release(str(driven.ref))

    def _is_faulty(self, driven: _DrivenInput, now: Fraction) -> bool:
        sources = (f for ref, _ in driven.sources for f in self._faulty.get(ref, ()))
        return any(f.is_active(now) for f in (*driven.faults, *sources))

    def _value(self, driven: _DrivenInput, now: Fraction, seen: Mapping[PortRef, float]) -> float:
        """Without its own faults: what is held, else the stimulus, else the connections, else what is authored."""
        if driven.hold is not None:
            return driven.hold
        if driven.stimulus is not None:
            return driven.stimulus.at(float(now))
        if not driven.sources:
            return driven.authored
        total = 0.0
        for ref, transformation in driven.sources:
            value = seen[ref] if ref in seen else self.simulation.get(str(ref))
            total += transformation.factor * value + transformation.offset
        return total

    def _give(self, driven: _DrivenInput, value: float) -> None:
        if not math.isfinite(value):
            message = f"the scenario makes {driven.ref} {value} at t = {self.simulation.time:.9g} s"
            hint = "look at its faults and at what it is connected to"
            raise StepError.of("input-not-finite", message, SourceLocation(str(self.scenario.path)), hint)
        if driven.given != value:
            driven.given = value
            self.simulation.set(str(driven.ref), value)

    # ---- what came of it

    @property
    def results(self) -> Results:
        """What was recorded so far; its metadata name the scenario."""
        results, path = self.simulation.results, self.scenario.path
        about = {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "stopped": self.stopped}
        return dataclasses.replace(results, metadata={**results.metadata, "scenario": about})

    def judge(self) -> tuple[AssertionOutcome, ...]:
        """What came of every assertion, on what was recorded so far."""
        return judge(self.scenario, self.simulation.results, {name: str(ref) for name, ref in self._observed.items()})


def _options(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `Simulation`: given ones before the scenario's; ports that are looked at are recorded, too."""
    words = {"start_time": "start", "stop_time": "stop", "step_size": "step"}
    options = {words.get(key, key): value for key, value in scenario.run.items()}
    options.update((key, value) for key, value in given.items() if value is not None)
    options["start_values"] = {**scenario.start_values, **(given.get("start_values") or {})}
    options.setdefault("stop", 10)
    if options.get("record"):
        options["record"] = [*options["record"], *dict.fromkeys(name for name, _ in scenario.observed)]
    return options
