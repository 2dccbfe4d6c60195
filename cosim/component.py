"""Ports, connections, and the one interface of everything that takes part in a run.

The rigid-body core, an FMU, an environment probe and a scenario input are all
components with ports: the master algorithm knows nothing else about them. A port is
one scalar (`/World/Elbow.outputs:angle`); vectors are three ports `_x _y _z`,
quaternions four `_w _x _y _z`, Booleans the values 0.0 and 1.0.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cosim.diagnostic import SourceLocation, UsageError
from cosim.unit import Unit

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


class Direction(enum.StrEnum):
    """The namespace of a port. Inputs and outputs of one prim may share a name."""

    INPUT = "inputs"
    OUTPUT = "outputs"


class Causality(enum.StrEnum):
    """What a port is for, with the FMI spellings."""

    PARAMETER = "parameter"
    CALCULATED_PARAMETER = "calculatedParameter"
    STRUCTURAL_PARAMETER = "structuralParameter"
    INPUT = "input"
    OUTPUT = "output"
    LOCAL = "local"
    INDEPENDENT = "independent"


class Variability(enum.StrEnum):
    """When a value may change, with the FMI spellings."""

    CONSTANT = "constant"
    FIXED = "fixed"
    TUNABLE = "tunable"
    DISCRETE = "discrete"
    CONTINUOUS = "continuous"


class PortType(enum.StrEnum):
    """The type of a port at its component. The exchange bus carries numbers as float64."""

    REAL = "Real"
    INTEGER = "Integer"
    BOOLEAN = "Boolean"
    ENUMERATION = "Enumeration"
    STRING = "String"
    BINARY = "Binary"

    @property
    def is_numeric(self) -> bool:
        """Whether values of this type travel on the float64 bus."""
        return self not in (PortType.STRING, PortType.BINARY)


@dataclass(frozen=True, slots=True, order=True)
class PortRef:
    """The address of a port. The total order makes every sum and every file deterministic."""

    path: str
    direction: Direction
    name: str

    def __str__(self) -> str:
        return f"{self.path}.{self.direction.value}:{self.name}"

    @staticmethod
    def parse(text: str) -> PortRef:
        """Read `/World/Elbow.inputs:angle`.

        Raises:
            UsageError: the text is not a port address.
        """
        path, dot, rest = text.partition(".")
        direction, colon, name = rest.partition(":")
        if not (path.startswith("/") and dot and colon and name) or direction not in ("inputs", "outputs"):
            raise UsageError.of(
                "port-address-invalid",
                f"{text!r} is not a port address",
                hint="write PRIM.inputs:NAME or PRIM.outputs:NAME, such as /World/Elbow.inputs:angle",
            )
        return PortRef(path, Direction(direction), name)


@dataclass(frozen=True, slots=True)
class Port:
    """A scalar quantity that a component offers.

    Attributes:
        ref: where it is.
        causality: `input`, `output`, `parameter` …; a parameter is set once, before the run.
        type: the type at the component.
        unit: None when nothing is declared.
        frame: "world", "body", "joint" … ("" where it has no meaning).
        start: value before anything is written [unit].
        minimum: smallest legal value [unit], None if unbounded.
        maximum: largest legal value [unit], None if unbounded.
        nominal: order of magnitude [unit], None if not given.
        description: one line.
        accumulate: an input whose sources sum and which is 0 when nothing is written (forces).
        relative: a difference of quantities (FMI `relativeQuantity`): unit offsets do not apply.
        variable: the component's own name, where it differs from `ref.name` (an FMU's `imu.gyro[1]`).
        where: what authored it.
    """

    ref: PortRef
    causality: Causality
    type: PortType = PortType.REAL
    variability: Variability = Variability.CONTINUOUS
    unit: Unit | None = None
    frame: str = ""
    start: float | str | bytes | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""
    accumulate: bool = False
    relative: bool = False
    variable: str = ""
    where: SourceLocation | None = None

    @property
    def unit_name(self) -> str:
        """The unit as text, "" if undeclared."""
        return self.unit.name if self.unit else ""


@dataclass(frozen=True, slots=True)
class LinearTransformation:
    """`target = factor * source + offset`, in the units of the target (SSP's LinearTransformation)."""

    factor: float = 1.0
    offset: float = 0.0

    def then(self, outer: LinearTransformation) -> LinearTransformation:
        """This transformation followed by `outer`."""
        return LinearTransformation(outer.factor * self.factor, outer.factor * self.offset + outer.offset)


@dataclass(frozen=True, slots=True)
class Connection:
    """One authored connection, from a source port to the input that consumes it."""

    source: PortRef
    target: PortRef
    transformation: LinearTransformation = LinearTransformation()
    where: SourceLocation | None = None


class StepStatus(enum.Enum):
    """What a component says of a step, with the FMI names."""

    OK = "OK"
    WARNING = "Warning"
    DISCARD = "Discard"
    ERROR = "Error"
    FATAL = "Fatal"


@dataclass(frozen=True, slots=True)
class Experiment:
    """The time base of a run: an integer tick and a rational step, never `t += h`.

    Attributes:
        start: start time [s].
        step: communication step size [s].
        stop: stop time [s] where the user gave one; None runs open-ended.
        tolerance: relative tolerance for solvers inside FMUs; None leaves it to them.
        seed: seed of every random generator of the run.
    """

    step: Fraction
    start: Fraction = Fraction(0)
    stop: Fraction | None = None
    tolerance: float | None = None
    seed: int = 0
    _num: tuple[int, int, int] = field(init=False, repr=False, compare=False)
    _ticks: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # start + tick * step = (a + tick * b) / c with integers: one correctly rounded division.
        common = self.start.denominator * self.step.denominator
        object.__setattr__(
            self,
            "_num",
            (self.start.numerator * self.step.denominator, self.step.numerator * self.start.denominator, common),
        )
        # Asked in every step, and fractions are slow.
        ticks = None if self.stop is None else -((self.start - self.stop) // self.step)
        object.__setattr__(self, "_ticks", ticks)

    def time(self, tick: int) -> float:
        """`start + tick * step` [s], rounded once, clipped to the stop time."""
        if self._ticks is not None and tick >= self._ticks:
            return float(self.stop)  # type: ignore[arg-type]
        a, b, c = self._num
        return (a + tick * b) / c

    @property
    def ticks(self) -> int:
        """Number of steps to the stop time; the last one may be shorter."""
        if self._ticks is None:
            raise ValueError("an open-ended experiment has no number of ticks")
        return self._ticks

    def interval(self, tick: int, ticks: int = 1) -> float:
        """Length of the `ticks` steps that begin at `tick` [s], exact where the last is clipped."""
        if self.stop is not None and tick + ticks >= self.ticks:
            return float(self.stop - (self.start + tick * self.step))
        return self._num[1] * ticks / self._num[2]


@runtime_checkable
class Component(Protocol):
    """A participant of the co-simulation.

    Legal call sequence::

        find, ports, dependencies      any time: they describe, nothing runs
        bind                           once
        enter_initialization           once: instantiates, applies start values
        ( set_inputs get_outputs )*    while initial values iterate to a fixed point
        exit_initialization            once
        ( set_inputs step get_outputs )*   per communication point of this component
        hold release                   between steps, for inputs and tunable parameters that are not bound
        save restore                   between steps
        close                          once, in every case, also after an error

    After an exception from `step` only `get_outputs` of what was published before and
    `close` are legal. Arrays are in the order given to `bind`; the component copies
    what it keeps.
    """

    @property
    def name(self) -> str:
        """Unique name: the prim path of a program, "/" for the rigid-body core."""
        ...

    @property
    def period(self) -> Fraction | None:
        """Communication period [s]; None follows the base step."""
        ...

    def ports(self) -> Iterable[Port]:
        """Every port, sorted by `ref`."""
        ...

    def find(self, ref: PortRef) -> Port | None:
        """The port of this address, without listing the others."""
        ...

    def dependencies(self, output: PortRef) -> frozenset[PortRef] | None:
        """Inputs that this output depends on directly, at the same instant.

        None means unknown, which the graph takes as "all inputs" (FMI).
        """
        ...

    def bind(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Fix which inputs will be written and which outputs will be read, and their order."""
        ...

    def enter_initialization(self, experiment: Experiment, start_values: Sequence[tuple[Port, Any]]) -> None:
        """Instantiate, write start values of parameters and inputs, enter initialization mode."""
        ...

    def set_inputs(self, values: FloatArray) -> None:
        """Write the bound inputs, shape (len(inputs),).

        NaN means that nothing drives this input now (a released joint target): the component
        goes back to its own value.
        """
        ...

    def get_outputs(self, values: FloatArray) -> None:
        """Fill in the bound outputs, shape (len(outputs),)."""
        ...

    def exit_initialization(self) -> None:
        """Leave initialization mode; the next call is `get_outputs` or `step`."""
        ...

    def step(self, tick: int, ticks: int) -> StepStatus:
        """Advance from `tick` over `ticks` base steps."""
        ...

    def hold(self, port: Port, value: Any) -> None:
        """Keep an unbound input or a tunable parameter at a value until `release`.

        Raises:
            StepError: the value cannot be changed now (a fixed parameter).
        """
        ...

    def release(self, port: Port) -> None:
        """Give an unbound input back to its authored or own value."""
        ...

    def save(self) -> Any:
        """A snapshot for `restore`.

        Raises:
            StepError: the component cannot save its state.
        """
        ...

    def restore(self, state: Any) -> None:
        """Return to a snapshot, bit for bit."""
        ...

    def close(self) -> None:
        """Free everything. Idempotent."""
        ...
