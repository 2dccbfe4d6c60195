"""The ports that the rigid-body core offers, as one table (ports.md, section 2).

The component, `cosim ports` and the generated reference in `docs/` read this table; nothing
else lists port names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cosim.component import Causality, Direction, Port, PortRef, PortType, Variability
from cosim.diagnostic import SourceLocation
from cosim.mechanism import ActuatorKind, JointKind, Motion, RigidBodyModel
from cosim.unit import parse_unit

AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class PortSpec:
    """One quantity of a kind of prim; the fields are those of `Port`."""

    name: str
    direction: Direction
    unit: str
    frame: str
    description: str
    variability: Variability = Variability.CONTINUOUS
    type: PortType = PortType.REAL
    accumulate: bool = False
    minimum: float | None = None
    maximum: float | None = None

    def port(self, path: str, where: SourceLocation | None) -> Port:
        """The port of this quantity on a prim."""
        return Port(
            PortRef(path, self.direction, self.name),
            Causality.INPUT if self.direction is Direction.INPUT else Causality.OUTPUT,
            type=self.type,
            variability=self.variability,
            unit=parse_unit(self.unit) if self.unit else None,
            frame=self.frame,
            start=0.0 if self.accumulate else None,
            minimum=self.minimum,
            maximum=self.maximum,
            description=self.description,
            accumulate=self.accumulate,
            where=where,
        )


def _out(name: str, unit: str, frame: str, description: str, **options: object) -> PortSpec:
    return PortSpec(name, Direction.OUTPUT, unit, frame, description, **options)  # type: ignore[arg-type]


def _in(name: str, unit: str, frame: str, description: str, **options: object) -> PortSpec:
    return PortSpec(name, Direction.INPUT, unit, frame, description, **options)  # type: ignore[arg-type]


def _vector(make: object, name: str, unit: str, frame: str, description: str, **options: object) -> list[PortSpec]:
    return [make(f"{name}_{a}", unit, frame, f"{description}, {a}", **options) for a in AXES]  # type: ignore[operator]


def _flag(name: str, description: str) -> PortSpec:
    return _out(
        name, "1", "", description, variability=Variability.DISCRETE, type=PortType.BOOLEAN, minimum=0, maximum=1
    )


# The order of the outputs of a kind is the order of its rows in the component's sample.
BODY_OUTPUTS: tuple[PortSpec, ...] = (
    *_vector(_out, "position", "m", "world", "position of the prim's origin"),
    *(_out(f"quat_{c}", "1", "world", f"orientation, body to world, {c}") for c in ("w", "x", "y", "z")),
    *_vector(_out, "velocity", "m/s", "world", "velocity of the prim's origin"),
    *_vector(_out, "angvel", "rad/s", "world", "angular velocity"),
    *_vector(
        _out,
        "acceleration",
        "m/s2",
        "world",
        "coordinate acceleration of the prim's origin (0 at rest, g in free fall)",
    ),
    _out("speed", "m/s", "", "magnitude of the velocity"),
    _out("yaw", "rad", "world", "first angle of the YXZ Euler angles: about y"),
    _out("pitch", "rad", "world", "second angle of the YXZ Euler angles: about the turned x"),
    _out("roll", "rad", "world", "third angle of the YXZ Euler angles: about the turned z"),
    _flag("acceleration_valid", "1 once two samples of the velocity exist"),
    _flag("state_valid", "1 while pose and velocity are solved and finite"),
)
MASS_OUTPUTS: tuple[PortSpec, ...] = (
    _out("mass", "kg", "", "mass", variability=Variability.TUNABLE),
    *(
        _out(
            f"inertia_{a}{a}",
            "kg.m2",
            "principal",
            f"principal moment of inertia {a}{a}",
            variability=Variability.TUNABLE,
        )
        for a in AXES
    ),
    *_vector(_out, "com", "m", "body", "centre of mass", variability=Variability.TUNABLE),
)
CONTACT_OUTPUTS: tuple[PortSpec, ...] = (
    _flag("contact", "1 while it touches anything"),
    _out("contact_force", "N", "", "sum of the normal forces of its contacts", minimum=0.0),
)
BODY_INPUTS: tuple[PortSpec, ...] = (
    *_vector(_in, "force", "N", "world", "force at the centre of mass", accumulate=True),
    *_vector(_in, "force_local", "N", "body", "force at the centre of mass", accumulate=True),
    *_vector(_in, "torque", "N.m", "world", "torque", accumulate=True),
)
MASS_INPUTS: tuple[PortSpec, ...] = (
    _in("mass", "kg", "", "mass", minimum=0.0),
    *(_in(f"inertia_{a}{a}", "kg.m2", "principal", f"principal moment of inertia {a}{a}", minimum=0.0) for a in AXES),
)
POSE_INPUTS: tuple[PortSpec, ...] = (
    *_vector(_in, "position", "m", "world", "prescribed position of a kinematic body"),
    *(_in(f"quat_{c}", "1", "world", f"prescribed orientation of a kinematic body, {c}") for c in ("w", "x", "y", "z")),
)
REVOLUTE_OUTPUTS: tuple[PortSpec, ...] = (
    _out("angle", "rad", "joint", "measured joint angle in (−π, π]"),
    _out("angular_velocity", "rad/s", "joint", "measured joint rate"),
    _out("torque", "N.m", "joint", "moment of body0 on body1 about the joint axis: motor, without the stop of a limit"),
)
PRISMATIC_OUTPUTS: tuple[PortSpec, ...] = (
    _out("displacement", "m", "joint", "measured distance of the anchors along the joint axis, signed"),
    _out("velocity", "m/s", "joint", "measured joint rate"),
    _out("force", "N", "joint", "force of body0 on body1 along the joint axis: motor, without the stop of a limit"),
)
REVOLUTE_INPUTS: tuple[PortSpec, ...] = (_in("angle", "rad", "joint", "target of the native motor"),)
PRISMATIC_INPUTS: tuple[PortSpec, ...] = (_in("displacement", "m", "joint", "target of the native motor"),)
RAY_OUTPUTS: tuple[PortSpec, ...] = (
    _out("ray_distance", "m", "", "distance of the hit along the ray, 0 on a miss", minimum=0.0),
    _flag("ray_hit_valid", "1 while the ray hits something"),
    *_vector(_out, "ray_hit_position", "m", "world", "position of the hit, 0 on a miss"),
    *_vector(_out, "ray_hit_normal", "1", "world", "normal of the surface that is hit, 0 on a miss"),
    _out("ray_sample_time", "s", "", "time of this sample"),
    *_vector(
        _out, "ray_origin_body_local", "m", "body", "origin of the ray in its body", variability=Variability.TUNABLE
    ),
    *_vector(
        _out,
        "ray_direction_body_local",
        "1",
        "body",
        "direction of the ray in its body",
        variability=Variability.TUNABLE,
    ),
)
PROBE_OUTPUTS: tuple[PortSpec, ...] = (
    _out("gravity_accel", "m/s2", "", "magnitude of gravity", minimum=0.0),
    *_vector(_out, "gravity", "m/s2", "world", "acceleration of gravity"),
)
SUN_OUTPUTS: tuple[PortSpec, ...] = tuple(
    _vector(_out, "sun_mount", "1", "mount", "unit vector toward the sun in the probe's mount frame")
)
LIGHT_INPUTS: tuple[PortSpec, ...] = tuple(
    _vector(_in, "direction", "1", "world", "direction toward the light; any length but zero")
)
FORCE_INPUTS: tuple[PortSpec, ...] = (
    _in("force_command", "N", "actuator", "commanded force, clamped to 0…maxForce", accumulate=True),
)
TORQUE_INPUTS: tuple[PortSpec, ...] = (
    _in("torque_command", "N.m", "actuator", "commanded torque, clamped to ±maxTorque", accumulate=True),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of prim with the ports that it offers, for the reference table."""

    title: str
    specs: tuple[PortSpec, ...]


KINDS: tuple[Kind, ...] = (
    Kind("rigid body", BODY_OUTPUTS + MASS_OUTPUTS + CONTACT_OUTPUTS),
    Kind("dynamic rigid body", BODY_INPUTS + MASS_INPUTS),
    Kind("kinematic rigid body", POSE_INPUTS),
    Kind("collider", CONTACT_OUTPUTS),
    Kind("`PhysicsRevoluteJoint`", REVOLUTE_OUTPUTS + REVOLUTE_INPUTS),
    Kind("`PhysicsPrismaticJoint`", PRISMATIC_OUTPUTS + PRISMATIC_INPUTS),
    Kind("`LunCoRaycastAPI` sensor", RAY_OUTPUTS),
    Kind("`LunCoEnvironmentProbeAPI`", PROBE_OUTPUTS),
    Kind("`LunCoEnvironmentProbeAPI` of a stage with a DistantLight", SUN_OUTPUTS),
    Kind("`DistantLight`", LIGHT_INPUTS),
    Kind("`LunCoForceActuatorAPI`", FORCE_INPUTS),
    Kind("`LunCoTorqueActuatorAPI`", TORQUE_INPUTS),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """Where the value of a port lives: a block of the sample, its row and its column.

    Attributes:
        block: "body", "mass", "contact", "joint", "ray", "probe", "sun" for outputs; "force", "mass_input",
            "pose", "target", "light", "actuator" for inputs.
        row: quantity within the block.
        column: index of the prim in its tuple of the model.
    """

    block: str
    row: int
    column: int


class PortTable:
    """Every port of a model, found by address.

    Args:
        model: the rigid-body model.
    """

    def __init__(self, model: RigidBodyModel) -> None:
        self._ports: dict[PortRef, Port] = {}
        self._cells: dict[PortRef, Cell] = {}
        for block, specs, path, where, column in _entries(model):
            for row, spec in enumerate(specs):
                port = spec.port(path, where)
                # A body with a collider of its own offers the contact of the whole body.
                if port.ref not in self._ports:
                    self._ports[port.ref] = port
                    self._cells[port.ref] = Cell(block, row, column)

    def ports(self) -> tuple[Port, ...]:
        """All, sorted."""
        return tuple(self._ports[ref] for ref in sorted(self._ports))

    def find(self, ref: PortRef) -> Port | None:
        """The port of an address."""
        return self._ports.get(ref)

    def cell(self, ref: PortRef) -> Cell:
        """Where the value of a port lives."""
        return self._cells[ref]


_Entry = tuple[str, tuple[PortSpec, ...], str, SourceLocation | None, int]


def _entries(model: RigidBodyModel) -> Iterator[_Entry]:
    """Blocks of ports, bodies before colliders before sensors (ports.md section 1)."""
    contacts = len(model.bodies)
    for i, body in enumerate(model.bodies):
        yield "body", BODY_OUTPUTS, body.path, body.where, i
        yield "contact", CONTACT_OUTPUTS, body.path, body.where, i
        if body.mass is not None:
            yield "mass", MASS_OUTPUTS, body.path, body.where, i
        if body.motion is Motion.DYNAMIC:
            yield "force", BODY_INPUTS, body.path, body.where, i
            yield "mass_input", MASS_INPUTS, body.path, body.where, i
        elif body.motion is Motion.KINEMATIC:
            yield "pose", POSE_INPUTS, body.path, body.where, i
    for i, collider in enumerate(model.colliders):
        yield "contact", CONTACT_OUTPUTS, collider.path, collider.where, contacts + i
    yield from _joint_entries(model)
    yield from _sensor_entries(model)


def _joint_entries(model: RigidBodyModel) -> Iterable[_Entry]:
    for i, joint in enumerate(model.joints):
        if joint.kind is JointKind.REVOLUTE:
            yield "joint", REVOLUTE_OUTPUTS, joint.path, joint.where, i
            yield "target", REVOLUTE_INPUTS, joint.path, joint.where, i
        elif joint.kind is JointKind.PRISMATIC:
            yield "joint", PRISMATIC_OUTPUTS, joint.path, joint.where, i
            yield "target", PRISMATIC_INPUTS, joint.path, joint.where, i


def _sensor_entries(model: RigidBodyModel) -> Iterable[_Entry]:
    for i, ray in enumerate(model.rays):
        yield "ray", RAY_OUTPUTS, ray.path, ray.where, i
    for i, probe in enumerate(model.probes):
        yield "probe", PROBE_OUTPUTS, probe.path, probe.where, i
        if probe.sun:
            yield "sun", SUN_OUTPUTS, probe.path, probe.where, i
    for i, light in enumerate(model.lights):
        yield "light", LIGHT_INPUTS, light.path, light.where, i
    for i, actuator in enumerate(model.actuators):
        specs = FORCE_INPUTS if actuator.kind is ActuatorKind.FORCE else TORQUE_INPUTS
        yield "actuator", specs, actuator.path, actuator.where, i
