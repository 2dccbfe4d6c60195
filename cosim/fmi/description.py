"""What an FMU says about itself: a frozen form of modelDescription.xml, the same for FMI 2 and 3."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cosim.component import Causality, PortType, Variability
from cosim.fmi.alias import element_name
from cosim.unit import Unit


class CallType(enum.StrEnum):
    """The suffix of the get and set functions that move a variable: `fmi2GetReal`, `fmi3SetInt8`."""

    REAL = "Real"
    INTEGER = "Integer"
    BOOLEAN = "Boolean"
    STRING = "String"
    FLOAT32 = "Float32"
    FLOAT64 = "Float64"
    INT8 = "Int8"
    UINT8 = "UInt8"
    INT16 = "Int16"
    UINT16 = "UInt16"
    INT32 = "Int32"
    UINT32 = "UInt32"
    INT64 = "Int64"
    UINT64 = "UInt64"
    BINARY = "Binary"
    CLOCK = "Clock"

    @property
    def is_text(self) -> bool:
        """Whether values are strings or bytes, which do not travel on the bus."""
        return self in (CallType.STRING, CallType.BINARY)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of an FMU: a scalar, or in FMI 3 an array with one value reference.

    Attributes:
        name: as the FMU calls it.
        reference: the value reference.
        call_type: which get and set functions move it.
        port_type: the type of its ports.
        causality: role.
        variability: when it may change.
        initial: "exact", "approx", "calculated" or "".
        unit: None if undeclared.
        relative: FMI `relativeQuantity`: a difference, without unit offset.
        minimum: None if unbounded.
        maximum: None if unbounded.
        nominal: None if not given.
        start: one value per element, in row-major order; empty if none is given.
        description: one line.
        dimensions: sizes of an FMI 3 array, empty for a scalar.
        dimension_references: value references of the structural parameters that give the sizes.
        clocks: value references of its clocks (FMI 3).
        derivative_of: what it is the derivative of: an index (FMI 2) or a value reference (FMI 3).
        line: line in modelDescription.xml.
    """

    name: str
    reference: int
    call_type: CallType
    port_type: PortType
    causality: Causality
    variability: Variability
    initial: str = ""
    unit: Unit | None = None
    relative: bool = False
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    start: tuple[float | str | bytes, ...] = ()
    description: str = ""
    dimensions: tuple[int, ...] = ()
    dimension_references: tuple[int, ...] = ()
    clocks: tuple[int, ...] = ()
    derivative_of: int | None = None
    line: int | None = None

    @property
    def size(self) -> int:
        """Number of elements, 1 for a scalar."""
        return math.prod(self.dimensions)

    def elements(self) -> Iterator[tuple[int, str]]:
        """Position and name of every element: `q[1]`, `q[2]`; the variable itself for a scalar."""
        if not self.dimensions:
            yield 0, self.name
            return
        for position in range(self.size):
            index, rest = [], position
            for length in reversed(self.dimensions):
                index.append(rest % length + 1)
                rest //= length
            yield position, element_name(self.name, tuple(reversed(index)))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The attributes of a `<CoSimulation>` or `<ModelExchange>` element that matter to a host."""

    model_identifier: str
    needs_execution_tool: bool = False
    once_per_process: bool = False
    variable_step: bool = False
    save_state: bool = False
    serialize_state: bool = False
    has_event_mode: bool = False
    may_return_early: bool = False
    fixed_step: float | None = None
    completed_step_not_needed: bool = False
    source_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DefaultExperiment:
    """What the FMU's author suggests; None where nothing is said [s]."""

    start_time: float | None = None
    stop_time: float | None = None
    step_size: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True, eq=False)
class Description:
    """The model description of an FMU.

    Attributes:
        fmi_version: "1.0", "2.0" or "3.0".
        model_name: name of the model.
        token: FMI 2 `guid`, FMI 3 `instantiationToken`.
        description: one line.
        generation_tool: who made it.
        variables: in file order, which FMI 2 indices refer to.
        units: the unit definitions by name.
        co_simulation: None if the FMU has no co-simulation interface.
        model_exchange: None if the FMU has no model exchange interface.
        experiment: the default experiment.
        dependencies: per output variable name the names of the variables that it depends on at the same
            instant; None for "unknown, take all".
        derivatives: names of the state derivatives, in the order of the state vector.
        event_indicators: number of event indicators.
        log_categories: names of the log categories.
    """

    fmi_version: str
    model_name: str
    token: str
    description: str
    generation_tool: str
    variables: tuple[Variable, ...]
    units: dict[str, Unit]
    co_simulation: Capabilities | None
    model_exchange: Capabilities | None
    experiment: DefaultExperiment
    dependencies: dict[str, tuple[str, ...] | None]
    derivatives: tuple[str, ...] = ()
    event_indicators: int = 0
    log_categories: tuple[str, ...] = ()

    @property
    def guid(self) -> str:
        """The token under its FMI 2 name."""
        return self.token

    @property
    def major(self) -> int:
        """1, 2 or 3."""
        return int(self.fmi_version.partition(".")[0])

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        """Variables by name; the first of a duplicate."""
        found: dict[str, Variable] = {}
        for variable in self.variables:
            found.setdefault(variable.name, variable)
        return found

    @cached_property
    def by_element(self) -> dict[str, tuple[Variable, int]]:
        """Variable and position by the name of a scalar or of an array element."""
        return {name: (v, position) for v in self.by_name.values() for position, name in v.elements()}
