"""Bullet as the rigid-body core, through pybullet.

`bullet_build` makes the world; here it is stepped, read and written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosim import frame
from cosim.component import FloatArray
from cosim.diagnostic import DiagnosticLog, StepError
from cosim.mechanism import (
    JointKind,
    Motion,
    Pose,
    Quaternion,
    RigidBodyModel,
    Vector,
)
from cosim.rigid.bullet_build import Part, apply_mass, build_world, xyzw
from cosim.rigid.bullet_library import import_pybullet
from cosim.rigid.core import Capabilities, RayHit, Selection
from cosim.rigid.forest import Tree
from cosim.rigid.motor import Motor

# pybullet's limit for one call.
_RAY_BATCH = 16_384
# Bullet reports a box again up to about 1e-3 m below its surface: the way past it doubles from this [m].
_PAST_SURFACE = 1e-4


class BulletCore:
    """A `RigidBodyCore` on Bullet.

    Args:
        log: gets approximations that Bullet forces.
    """

    def __init__(self, log: DiagnosticLog) -> None:
        self._log = log
        self._bullet = import_pybullet()
        self._client = self._bullet.connect(self._bullet.DIRECT)
        self._kw = {"physicsClientId": self._client}
        self._is_open = True
        self._interval = 0.0
        self._selection = Selection()

    def capabilities(self) -> Capabilities:
        """What Bullet can do."""
        return Capabilities("bullet", str(self._bullet.getAPIVersion()), "semi-implicit Euler", True)

    # ---- building

    def build(self, model: RigidBodyModel, trees: Sequence[Tree]) -> None:
        """Create every body, collider and joint."""
        bullet, kw = self._bullet, self._kw
        # Without deterministic pairs a restored world diverges from eight boxes up.
        bullet.setPhysicsEngineParameter(
            deterministicOverlappingPairs=1, jointFeedbackMode=bullet.JOINT_FEEDBACK_IN_JOINT_FRAME, **kw
        )
        bullet.setGravity(*model.gravity, **kw)
        self._model = model
        world = build_world(bullet, kw, model, trees, self._log)
        self._parts, self._axes, self._owner, self._surface = world.parts, world.axes, world.owner, world.surface
        self._floating = [
            (i, (-b.mass.mass * model.gravity[0], -b.mass.mass * model.gravity[1], -b.mass.mass * model.gravity[2]))
            for i, b in enumerate(model.bodies)
            if not b.gravity and b.mass is not None and b.motion is Motion.DYNAMIC
        ]
        self._motors = {
            i: Motor(j, self._bullet, self._kw, axis.multibody, axis.link)
            for i, (j, axis) in enumerate(zip(model.joints, self._axes, strict=True))
            if axis is not None
        }

    # ---- stepping

    def select(self, selection: Selection) -> None:
        """Fix what is read."""
        self._selection = selection
        parts = [self._parts[i] for i in selection.bodies]
        self._bases = [(k, p.multibody) for k, p in enumerate(parts) if p is not None and p.link < 0]
        by_multibody: dict[int, list[tuple[int, int]]] = {}
        for k, part in enumerate(parts):
            if part is not None and part.link >= 0:
                by_multibody.setdefault(part.multibody, []).append((k, part.link))
        self._linked = [(m, [link for _, link in found]) for m, found in by_multibody.items()]
        order = [k for k, _ in self._bases] + [k for found in by_multibody.values() for k, _ in found]
        # Where each state that is read goes, and the inertial frame that it is converted from.
        self._order = [(k, _Conversion.of(part.inertial)) for k in order if (part := parts[k]) is not None]
        joints: dict[int, list[tuple[int, int]]] = {}
        for k, i in enumerate(selection.joints):
            axis = self._axes[i]
            if axis is not None:
                joints.setdefault(axis.multibody, []).append((k, axis.link))
                if i in selection.efforts:
                    self._bullet.enableJointForceTorqueSensor(axis.multibody, axis.link, True, **self._kw)
        self._jointed = [(m, [k for k, _ in found], [n for _, n in found]) for m, found in joints.items()]
        self._effort = [
            (k, 3 if self._model.joints[i].kind is JointKind.REVOLUTE else 0, axis.sign)
            if i in selection.efforts and (axis := self._axes[i]) is not None
            else None
            for k, i in enumerate(selection.joints)
        ]

    def step(self, interval: float) -> None:
        """Advance by an interval [s]."""
        if interval != self._interval:
            self._bullet.setTimeStep(interval, **self._kw)
            self._interval = interval
        for body, force in self._floating:
            self.apply_wrench(body, force, frame.ZERO, self._center(self._part(body))[0])
        for motor in self._motors.values():
            motor.update(interval)
        self._bullet.stepSimulation(**self._kw)

    def read_bodies(self) -> list[float]:
        """States of the selected bodies, 13 numbers each."""
        bullet, kw = self._bullet, self._kw
        read: list[Any] = []
        for _, multibody in self._bases:
            read.append(
                (*bullet.getBasePositionAndOrientation(multibody, **kw), *bullet.getBaseVelocity(multibody, **kw))
            )
        for multibody, links in self._linked:
            found = bullet.getLinkStates(multibody, links, computeLinkVelocity=1, computeForwardKinematics=1, **kw)
            read += [(one[0], one[1], one[6], one[7]) for one in found]
        states: list[Any] = [None] * len(read)
        for (place, conversion), state in zip(self._order, read, strict=True):
            states[place] = conversion.prim_state(*state)
        return [number for state in states for number in state]

    def read_joints(self, state: FloatArray) -> None:
        """Coordinate, rate and effort of the selected joints, shape (joints, 3)."""
        for multibody, columns, links in self._jointed:
            found = self._bullet.getJointStates(multibody, links, **self._kw)
            for column, (coordinate, rate, reaction, motor) in zip(columns, found, strict=True):
                # The sensor leaves the motor out.
                effort = self._effort[column]
                total = effort[2] * reaction[effort[1]] + motor if effort is not None else 0.0
                state[column] = (coordinate, rate, total)

    def read_contacts(self, state: FloatArray) -> None:
        """Touching and normal force of bodies, then of colliders."""
        bodies, surfaces, owners = len(self._model.bodies), self._surface, self._owner
        touching, forces = [0.0] * len(state), [0.0] * len(state)
        for point in self._bullet.getContactPoints(**self._kw):
            force = point[9]
            touches = point[8] <= 0.0 or force > 0.0
            for place in ((point[1], point[3]), (point[2], point[4])):
                surface, owner = surfaces.get(place), owners.get(place)
                for column in (None if surface is None else bodies + surface, owner):
                    if column is not None:
                        forces[column] += force
                        if touches:
                            touching[column] = 1.0
        state[:, 0], state[:, 1] = touching, forces

    def cast(self, origins: Sequence[Vector], ends: Sequence[Vector], owners: Sequence[int]) -> list[RayHit | None]:
        """Rays in the world, each blind to its owner."""
        hits: list[RayHit | None] = [None] * len(origins)
        blocked: list[tuple[int, Any]] = []
        for i, found in enumerate(self._ray_test(origins, ends)):
            if found[0] >= 0:
                if owners[i] >= 0 and self._owner.get((found[0], found[1])) == owners[i]:
                    blocked.append((i, found))
                else:
                    hits[i] = RayHit(math.dist(found[3], origins[i]), found[3], found[4])
        for i, found in blocked:
            hits[i] = self._cast_past(found, origins[i], ends[i], owners[i])
        return hits

    def _cast_past(self, found: Any, origin: Vector, end: Vector, owner: int) -> RayHit | None:
        """A ray that is mounted outside its own body goes on behind the surface; inside it is blind."""
        past = _PAST_SURFACE
        while found[0] >= 0 and self._owner.get((found[0], found[1])) == owner:
            if not past < math.dist(found[3], end):
                return None
            found = self._ray_test([_beyond(found[3], end, past)], [end])[0]
            past = 2.0 * past if found[2] == 0.0 else _PAST_SURFACE
        return None if found[0] < 0 else RayHit(math.dist(found[3], origin), found[3], found[4])

    def _ray_test(self, starts: Sequence[Vector], ends: Sequence[Vector]) -> list[Any]:
        # A batch has a fixed cost of two and a half single rays, and a limit.
        if len(starts) <= 2:
            return [self._bullet.rayTest(a, b, **self._kw)[0] for a, b in zip(starts, ends, strict=True)]
        found: list[Any] = []
        for k in range(0, len(starts), _RAY_BATCH):
            found += self._bullet.rayTestBatch(starts[k : k + _RAY_BATCH], ends[k : k + _RAY_BATCH], **self._kw)
        return found

    # ---- writing

    def pose(self, body: int) -> Pose:
        """Of one body's prim now."""
        part = self._part(body)
        position, orientation = self._center(part)
        x, y, z, w = orientation
        return frame.compose(Pose(position, (w, x, y, z)), frame.inverse(part.inertial))

    def _center(self, part: Part) -> Any:
        """Position and orientation (x, y, z, w) of the inertial frame."""
        if part.link < 0:
            return self._bullet.getBasePositionAndOrientation(part.multibody, **self._kw)
        return self._bullet.getLinkState(part.multibody, part.link, 0, 1, **self._kw)[:2]

    def apply_wrench(self, body: int, force: Vector, torque: Vector, center: Vector) -> None:
        """A force at the centre of mass and a torque, in the world."""
        part, bullet = self._part(body), self._bullet
        if force != frame.ZERO:
            bullet.applyExternalForce(part.multibody, part.link, force, center, bullet.WORLD_FRAME, **self._kw)
        if torque != frame.ZERO:
            bullet.applyExternalTorque(part.multibody, part.link, torque, bullet.WORLD_FRAME, **self._kw)

    def set_target(self, joint: int, target: float | None) -> None:
        """The motor's target, or back to the authored drive."""
        motor = self._motors.get(joint)
        if motor is not None:
            motor.command(target)

    def set_pose(self, body: int, pose: Pose) -> None:
        """Place a kinematic body."""
        part = self._part(body)
        placed = frame.compose(pose, part.inertial)
        self._bullet.resetBasePositionAndOrientation(
            part.multibody, placed.position, xyzw(placed.orientation), **self._kw
        )

    def set_mass(self, body: int, mass: float, inertia: Vector) -> None:
        """Change mass and principal moments."""
        part, about = self._part(body), self._model.bodies[body]
        if not (mass > 0.0 and all(i > 0.0 for i in inertia)):
            raise StepError.of(
                "physics-mass-invalid",
                f"{about.path}: mass {mass:g} kg, inertia {inertia} kg·m² must be positive",
                about.where,
            )
        apply_mass(self._bullet, self._kw, part.multibody, part.link, about, mass, inertia)

    def _part(self, body: int) -> Part:
        part = self._parts[body]
        assert part is not None, f"body {body} is in no tree"
        return part

    # ---- state

    def save(self) -> Any:
        """A snapshot with motor targets, which Bullet's own leaves out."""
        state = self._bullet.saveState(**self._kw)
        return state, {i: motor.save() for i, motor in self._motors.items()}

    def restore(self, state: Any) -> None:
        """Back to a snapshot."""
        number, motors = state
        self._bullet.restoreState(stateId=number, **self._kw)
        for i, saved in motors.items():
            self._motors[i].restore(saved)

    def close(self) -> None:
        """Disconnect."""
        if self._is_open:
            self._is_open = False
            self._bullet.disconnect(**self._kw)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """From Bullet's centre-of-mass frame to the prim's frame."""

    center: Vector
    axes_back: Quaternion
    has_center: bool
    has_axes: bool

    @classmethod
    def of(cls, inertial: Pose) -> _Conversion:
        center, axes = inertial.position, inertial.orientation
        return cls(center, frame.conjugate(axes), center != frame.ZERO, axes != frame.IDENTITY)

    def prim_state(self, position: Vector, xyzw: Any, linear: Vector, angular: Vector) -> tuple[float, ...]:
        """Position, orientation wxyz, velocity and angular velocity of the prim's origin."""
        x, y, z, w = xyzw
        turn: Quaternion = (w, x, y, z)
        if self.has_axes:
            turn = frame.multiply(turn, self.axes_back)
        if self.has_center:
            arm = frame.rotate(turn, self.center)
            position = frame.subtract(position, arm)
            linear = frame.subtract(linear, frame.cross(angular, arm))
        return (*position, *turn, *linear, *angular)


def _beyond(position: Vector, end: Vector, distance: float) -> Vector:
    way = frame.subtract(end, position)
    step = distance / frame.norm(way)
    return (position[0] + step * way[0], position[1] + step * way[1], position[2] + step * way[2])
