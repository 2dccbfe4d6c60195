"""The frozen description of a system: what a stage says, in SI, with nothing of USD inside.

A description is data. It can be compared, pickled, turned into JSON or SSP, and built
by hand in a test. It says what was authored; ports, plans and running state are other
types (`component`, `plan`, `master`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction

from cosim.component import Connection, PortRef
from cosim.diagnostic import SourceLocation
from cosim.mechanism import RigidBodyModel


class ProgramKind(enum.StrEnum):
    """What hosts a program."""

    FMU = "fmu"
    MODELICA = "mo"
    SSP = "ssp"


@dataclass(frozen=True, slots=True)
class AuthoredValue:
    """`inputs:x = c` without a connection: a start value of a parameter, or a constant input."""

    ref: PortRef
    value: float | str
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class DeclaredPort:
    """An `inputs:` or `outputs:` attribute that a prim declares, whatever its value."""

    ref: PortRef
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program prim: the source that it binds and how it is run.

    Attributes:
        path: prim path.
        kind: the host.
        source: the file, absolute; the authored text where its asset root is unknown; "" for inline code.
        authored_source: the asset path as the user wrote it.
        class_name: Modelica class inside the source ("" takes the file's own).
        code: inline Modelica source, None for a file.
        period: communication period [s], None follows the base step.
        variables: explicit port → FMU variable names (`cosim:variable:<port>`).
        where: what authored the program.
    """

    path: str
    kind: ProgramKind
    source: str
    authored_source: str = ""
    class_name: str = ""
    code: str | None = None
    period: Fraction | None = None
    variables: tuple[tuple[str, str], ...] = ()
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class SystemDescription:
    """Everything that a stage says about a co-simulated system.

    Attributes:
        stage: the root layer, as the user named it.
        mechanism: bodies, joints, sensors and actuators of the rigid-body core.
        programs: sorted by path.
        unsupported: paths of program prims whose source nothing here can host, sorted.
        connections: sorted by (target, source).
        forwards: `outputs:X.connect` on a prim: the target is an alias of the source.
        values: authored values of unconnected inputs, sorted by port.
        declared: ports that the stage declares, sorted.
        summary: ports whose final values a run prints (`customLayerData` key `cosim:summary`).
        layers: every layer that was read, with the SHA-256 of its content.
        metres_per_unit: of the stage [m].
        kilograms_per_unit: of the stage [kg].
        up_axis: "Y" or "Z".
    """

    stage: str
    mechanism: RigidBodyModel
    programs: tuple[Program, ...] = ()
    unsupported: tuple[str, ...] = ()
    connections: tuple[Connection, ...] = ()
    forwards: tuple[Connection, ...] = ()
    values: tuple[AuthoredValue, ...] = ()
    declared: tuple[DeclaredPort, ...] = ()
    summary: tuple[str, ...] = ()
    layers: tuple[tuple[str, str], ...] = ()
    metres_per_unit: float = 1.0
    kilograms_per_unit: float = 1.0
    up_axis: str = "Y"
