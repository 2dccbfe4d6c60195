"""Components without FMU or engine, so that graph, plan and master are tested alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from cosim.component import (
    Causality,
    Connection,
    Direction,
    Experiment,
    LinearTransformation,
    Port,
    PortRef,
    StepStatus,
)
from cosim.mechanism import RigidBodyModel
from cosim.system import AuthoredValue, SystemDescription
from cosim.unit import parse_unit


def output(path: str, name: str, unit: str = "", **more: Any) -> Port:
    return Port(PortRef(path, Direction.OUTPUT, name), Causality.OUTPUT, unit=parse_unit(unit), **more)


def input_(path: str, name: str, unit: str = "", **more: Any) -> Port:
    more.setdefault("start", 0.0)
    return Port(PortRef(path, Direction.INPUT, name), Causality.INPUT, unit=parse_unit(unit), **more)


def wire(source: str, target: str, factor: float = 1.0, offset: float = 0.0) -> Connection:
    return Connection(PortRef.parse(source), PortRef.parse(target), LinearTransformation(factor, offset))


def value(port: str, number: float | str) -> AuthoredValue:
    return AuthoredValue(PortRef.parse(port), number)


def description(connections: Iterable[Connection] = (), **more: Any) -> SystemDescription:
    return SystemDescription(
        stage="fake.usda",
        mechanism=RigidBodyModel(),
        connections=tuple(sorted(connections, key=lambda c: (c.target, c.source))),
        **more,
    )


class Fake:
    """A component given by functions.

    Args:
        name: prim path.
        inputs: name → start value.
        outputs: name → f(state, u) where u maps input names to values.
        advance: f(state, u, t, h) → new state; None keeps the state.
        state: initial state.
        feedthrough: output → inputs; None (unknown) means all.
    """

    where = None

    def __init__(
        self,
        name: str,
        *,
        inputs: Mapping[str, float] | None = None,
        outputs: Mapping[str, Callable[[Any, Mapping[str, float]], float]] | None = None,
        advance: Callable[[Any, Mapping[str, float], float, float], Any] | None = None,
        state: Any = 0.0,
        feedthrough: Mapping[str, Iterable[str]] | None = None,
        period: Fraction | None = None,
        units: Mapping[str, str] | None = None,
        accumulate: Iterable[str] = (),
    ) -> None:
        units = units or {}
        self.name = name
        self.period = period
        self.state = state
        self.calls: list[tuple[Any, ...]] = []
        self._functions = dict(outputs or {})
        self._advance = advance
        self._feedthrough = feedthrough
        self._ports = {
            p.ref: p
            for p in (
                *(output(name, o, units.get(o, "")) for o in self._functions),
                *(
                    input_(name, i, units.get(i, ""), start=s, accumulate=i in tuple(accumulate))
                    for i, s in (inputs or {}).items()
                ),
            )
        }
        self.u = dict(inputs or {})

    def ports(self) -> Sequence[Port]:
        return [self._ports[ref] for ref in sorted(self._ports)]

    def find(self, ref: PortRef) -> Port | None:
        return self._ports.get(ref)

    def dependencies(self, ref: PortRef) -> frozenset[PortRef] | None:
        if self._feedthrough is None:
            return None
        return frozenset(PortRef(self.name, Direction.INPUT, i) for i in self._feedthrough.get(ref.name, ()))

    def bind(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        self.calls.append(("bind",))
        self._inputs, self._outputs = list(inputs), list(outputs)

    def enter_initialization(self, experiment: Experiment, start_values: Sequence[tuple[Port, Any]]) -> None:
        self.calls.append(("enter",))
        self.experiment = experiment
        for port, number in start_values:
            self.u[port.ref.name] = number

    def set_inputs(self, values: Any) -> None:
        self.calls.append(("set",))
        for port, number in zip(self._inputs, values, strict=True):
            self.u[port.ref.name] = float(number)

    def get_outputs(self, values: Any) -> None:
        for k, port in enumerate(self._outputs):
            values[k] = self._functions[port.ref.name](self.state, self.u)

    def exit_initialization(self) -> None:
        self.calls.append(("exit",))

    def step(self, tick: int, ticks: int) -> StepStatus:
        self.calls.append(("step", tick, ticks))
        if self._advance is not None:
            time = self.experiment.time(tick)
            self.state = self._advance(self.state, dict(self.u), time, self.experiment.interval(tick, ticks))
        return StepStatus.OK

    def hold(self, port: Port, number: Any) -> None:
        self.u[port.ref.name] = number

    def release(self, port: Port) -> None:
        self.u[port.ref.name] = port.start

    def save(self) -> Any:
        return (self.state, dict(self.u))

    def restore(self, state: Any) -> None:
        self.state, self.u = state[0], dict(state[1])

    def close(self) -> None:
        self.calls.append(("close",))


def source(path: str, function: Callable[[float], float], name: str = "y", unit: str = "") -> Fake:
    """A component that publishes a function of time."""
    return Fake(
        path,
        outputs={name: lambda s, u: function(s)},
        advance=lambda s, u, t, h: t + h,
        feedthrough={},
        units={name: unit},
    )


def gain(path: str, factor: float = 1.0) -> Fake:
    """y = factor · u, with direct feedthrough."""
    return Fake(path, inputs={"u": 0.0}, outputs={"y": lambda s, u: factor * u["u"]}, feedthrough={"y": ["u"]})


def integrator(path: str, start: float = 0.0) -> Fake:
    """dy/dt = u by explicit Euler over one communication step, no feedthrough."""
    return Fake(
        path,
        inputs={"u": 0.0},
        outputs={"y": lambda s, u: s},
        advance=lambda s, u, t, h: s + h * u["u"],
        state=start,
        feedthrough={},
    )
