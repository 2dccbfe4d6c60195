"""The frozen description of a system: what a stage says, in SI, with nothing of USD inside.

A description is data. It can be compared, pickled, turned into JSON or SSP, and built
by hand in a test. It says what was authored; ports, plans and running state are other
types (`component`, `plan`, `master`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from fractions import Fraction

from cosim.component import Connection
from cosim.diagnostic import SourceLocation
from cosim.mechanism import RigidBodyModel


class ProgramKind(enum.StrEnum):
    """What hosts a program."""

    FMU = "fmu"
    MODELICA = "mo"
    SSP = "ssp"


@dataclass(frozen=True, slots=True)
class AuthoredValue:
    """`inputs:x = c` on a program without a connection: a parameter or a constant input."""

    name: str
    value: float | str
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program prim: the source that it binds and how it is run.

    Attributes:
        path: prim path.
        kind: the host.
        source: the file, absolute ("" for inline code).
        authored_source: the asset path as the user wrote it.
        class_name: Modelica class inside the source ("" takes the only or the last one).
        code: inline Modelica source, None for a file.
        period: communication period [s], None follows the base step.
        values: authored values of parameters and constant inputs.
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
    values: tuple[AuthoredValue, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class SystemDescription:
    """Everything that a stage says about a co-simulated system.

    Attributes:
        stage: the root layer, as the user named it.
        mechanism: bodies, joints, sensors and actuators of the rigid-body core.
        programs: sorted by path.
        connections: sorted by (target, source).
        forwards: `outputs:X.connect` on a prim, as (alias, source) connections.
        layers: every layer that was read, with the SHA-256 of its content.
        metres_per_unit: of the stage [m].
        kilograms_per_unit: of the stage [kg].
        up_axis: "Y" or "Z".
    """

    stage: str
    mechanism: RigidBodyModel
    programs: tuple[Program, ...] = ()
    connections: tuple[Connection, ...] = ()
    forwards: tuple[Connection, ...] = ()
    layers: tuple[tuple[str, str], ...] = field(default=())
    metres_per_unit: float = 1.0
    kilograms_per_unit: float = 1.0
    up_axis: str = "Y"
