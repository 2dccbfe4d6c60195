"""The rigid-body model in SI: bodies, colliders, joints, sensors and actuators.

What `cosim.usd` reads and `cosim.rigid` builds; neither knows the other. Everything is in
metres, kilograms, seconds and radians; quaternions are (w, x, y, z) of unit length. The
world frame is right-handed and Y-up: a Z-up stage is turned by −90° about x on the way in,
so that its ports have the values of the same scene authored Y-up.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cosim.diagnostic import SourceLocation

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Triangle = tuple[int, int, int]

ZERO: Vector = (0.0, 0.0, 0.0)
IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
# Standard gravity, CGPM 1901 [m/s²].
EARTH_GRAVITY = 9.80665


@dataclass(frozen=True, slots=True)
class Pose:
    """A rigid transformation, local to parent: x_parent = R(orientation)·x_local + position.

    Attributes:
        position: [m].
        orientation: unit quaternion (w, x, y, z).
    """

    position: Vector = ZERO
    orientation: Quaternion = IDENTITY


class Motion(enum.Enum):
    """What moves a body."""

    DYNAMIC = "dynamic"
    KINEMATIC = "kinematic"
    STATIC = "static"


class ShapeKind(enum.Enum):
    """Geometry of a collider."""

    BOX = "box"
    SPHERE = "sphere"
    CAPSULE = "capsule"
    CYLINDER = "cylinder"
    CONE = "cone"
    HULL = "hull"
    MESH = "mesh"


@dataclass(frozen=True, slots=True)
class Shape:
    """Geometry in the collider's own frame, centred at its origin; round shapes have z as their axis.

    Attributes:
        kind: which of the fields below count.
        half_extents: box [m].
        radius: sphere, capsule, cylinder, cone [m].
        height: capsule (between the centres of its caps), cylinder, cone (apex at +z) [m].
        points: hull and mesh [m].
        triangles: mesh, indices into `points`, counter-clockwise seen from outside.
    """

    kind: ShapeKind
    half_extents: Vector = ZERO
    radius: float = 0.0
    height: float = 0.0
    points: tuple[Vector, ...] = ()
    triangles: tuple[Triangle, ...] = ()


@dataclass(frozen=True, slots=True)
class SurfaceMaterial:
    """Contact properties.

    Attributes:
        static_friction: [1].
        dynamic_friction: [1].
        restitution: [1].
    """

    static_friction: float = 0.5
    dynamic_friction: float = 0.5
    restitution: float = 0.0


@dataclass(frozen=True, slots=True)
class Collider:
    """A collision surface.

    Attributes:
        path: prim path.
        body: path of the body that owns it, "" for a static collider.
        pose: in the frame of the body's prim; in the world where `body` is "".
        shape: geometry.
        material: contact properties.
        where: what authored it.
    """

    path: str
    body: str
    pose: Pose
    shape: Shape
    material: SurfaceMaterial = SurfaceMaterial()
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class MassProperties:
    """Resolved mass properties of a body, in the frame of its prim.

    Attributes:
        mass: [kg].
        center_of_mass: [m].
        diagonal_inertia: principal moments about the centre of mass [kg·m²].
        principal_axes: principal frame to prim frame.
    """

    mass: float
    center_of_mass: Vector
    diagonal_inertia: Vector
    principal_axes: Quaternion = IDENTITY


@dataclass(frozen=True, slots=True)
class RigidBody:
    """A body, whatever moves it.

    Attributes:
        path: prim path.
        motion: dynamic, kinematic, or static (`rigidBodyEnabled = false`).
        pose: of the prim in the world, at the start.
        mass: resolved mass properties; None for a static body without any.
        linear_velocity: of the prim's origin in the world [m/s].
        angular_velocity: in the world [rad/s].
        linear_damping: [1/s].
        angular_damping: [1/s].
        gravity: whether gravity acts on it.
        where: what authored it.
    """

    path: str
    motion: Motion
    pose: Pose
    mass: MassProperties | None
    linear_velocity: Vector = ZERO
    angular_velocity: Vector = ZERO
    linear_damping: float = 0.0
    angular_damping: float = 0.0
    gravity: bool = True
    where: SourceLocation | None = None


class JointKind(enum.Enum):
    """The joints that the core realises."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"


@dataclass(frozen=True, slots=True)
class Drive:
    """A motor on a joint coordinate: effort = stiffness·(target − q) + damping·(target_velocity − q̇).

    Attributes:
        target: position target [rad or m]; None where only a velocity is driven.
        target_velocity: [rad/s or m/s].
        stiffness: [N·m/rad or N/m]; with `acceleration` per unit of effective inertia [1/s²].
        damping: [N·m·s/rad or N·s/m]; with `acceleration` [1/s].
        max_effort: [N·m or N], inf without a limit.
        acceleration: whether the gains are per unit of inertia (`type = "acceleration"`).
        is_active: whether it acts without a wire: a target or a gain was authored.
    """

    target: float | None = None
    target_velocity: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    max_effort: float = float("inf")
    acceleration: bool = False
    is_active: bool = False


@dataclass(frozen=True, slots=True)
class Joint:
    """A constraint between two bodies, or a body and the world.

    The axis of a revolute or prismatic joint is the x axis of both frames. The coordinate is
    positive where body1 turns or moves along that axis as seen from body0.

    Attributes:
        path: prim path.
        kind: fixed, revolute or prismatic.
        body0: path of a body, "" for the world.
        body1: path of a body, "" for the world.
        frame0: joint frame in body0's prim frame (in the world where body0 is "").
        frame1: joint frame in body1's prim frame (in the world where body1 is "").
        lower: limit of the coordinate [rad or m], None if unbounded.
        upper: limit of the coordinate [rad or m], None if unbounded.
        drive: the motor, also where only a wire will use it.
        enabled: `physics:jointEnabled`.
        collision_enabled: whether the jointed bodies collide with each other.
        where: what authored it.
    """

    path: str
    kind: JointKind
    body0: str
    body1: str
    frame0: Pose
    frame1: Pose
    lower: float | None = None
    upper: float | None = None
    drive: Drive = Drive()
    enabled: bool = True
    collision_enabled: bool = False
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class RaySensor:
    """A raw ray cast.

    Attributes:
        path: prim path.
        body: path of the nearest ancestor body, "" for none (fixed in the world).
        origin: in the body's prim frame [m] (world where `body` is "").
        direction: unit vector in the body's prim frame.
        max_distance: [m].
        where: what authored it.
    """

    path: str
    body: str
    origin: Vector
    direction: Vector
    max_distance: float
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentProbe:
    """What a place knows of its environment: gravity, and directions to celestial bodies.

    Attributes:
        path: prim path.
        body: path of the nearest ancestor body, "" for none.
        mount: orientation of the mount frame in the body's prim frame (world where `body` is "").
        sun: path of the light that stands for the sun, "" where the stage has none.
        where: what authored it.
    """

    path: str
    body: str
    mount: Quaternion
    sun: str = ""
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class DistantLight:
    """A light at infinity.

    Attributes:
        path: prim path.
        toward: unit vector from the scene toward the light, world frame.
        where: what authored it.
    """

    path: str
    toward: Vector
    where: SourceLocation | None = None


class ActuatorKind(enum.Enum):
    """What a command of an actuator means."""

    FORCE = "force"
    TORQUE = "torque"


@dataclass(frozen=True, slots=True)
class Actuator:
    """A commanded force or torque on a body.

    Attributes:
        path: prim path.
        kind: force (clamped to 0…limit) or torque (clamped to ±limit).
        body: path of the nearest ancestor body.
        position: where the force acts, body's prim frame [m].
        direction: unit vector, body's prim frame.
        limit: [N or N·m], inf without a limit.
        where: what authored it.
    """

    path: str
    kind: ActuatorKind
    body: str
    position: Vector
    direction: Vector
    limit: float
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class RigidBodyModel:
    """Everything that the rigid-body core simulates; every tuple is sorted by path.

    Attributes:
        gravity: acceleration of gravity, world frame [m/s²].
        bodies: bodies.
        colliders: collision surfaces.
        joints: constraints.
        rays: ray sensors.
        probes: environment probes.
        lights: lights at infinity.
        actuators: force and torque actuators.
        portless: joints and other prims without ports → why (for error messages).
        filtered_pairs: pairs of bodies or colliders that never collide, each pair sorted.
    """

    gravity: Vector = (0.0, -EARTH_GRAVITY, 0.0)
    bodies: tuple[RigidBody, ...] = ()
    colliders: tuple[Collider, ...] = ()
    joints: tuple[Joint, ...] = ()
    rays: tuple[RaySensor, ...] = ()
    probes: tuple[EnvironmentProbe, ...] = ()
    lights: tuple[DistantLight, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    portless: tuple[tuple[str, str], ...] = ()
    filtered_pairs: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to simulate and nothing that has ports."""
        return not (
            self.bodies or self.colliders or self.joints or self.rays or self.probes or self.lights or self.actuators
        )
