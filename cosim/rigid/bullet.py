"""Bullet as the rigid-body core, through pybullet.

Each tree of the forest becomes one multibody in reduced coordinates. What Bullet does by default
and USD does not say is undone here, and each trap has its comment (measured on pybullet 3.2.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import frame
from cosim.component import FloatArray
from cosim.diagnostic import DiagnosticLog, StageError, StepError
from cosim.mechanism import (
    Collider,
    JointKind,
    MassProperties,
    Motion,
    Pose,
    Quaternion,
    RigidBody,
    RigidBodyModel,
    Vector,
)
from cosim.rigid.bullet_library import import_pybullet
from cosim.rigid.bullet_shape import create_shape
from cosim.rigid.core import Capabilities, RayHit, Selection
from cosim.rigid.forest import Link, Tree
from cosim.rigid.motor import Motor

# "Unlimited": Bullet multiplies it by the step, so it must stay finite in float64.
_UNLIMITED = 1e30
# pybullet's limit for one call.
_RAY_BATCH = 16_384
# Bullet reports a box again up to about 1e-3 m below its surface: the way past it doubles from this [m].
_PAST_SURFACE = 1e-4


@dataclass(slots=True)
class _Part:
    """A body inside Bullet: (multibody, link) and its centre-of-mass frame in the prim frame."""

    multibody: int
    link: int
    inertial: Pose
    link_frame: Pose  # Bullet's link frame in the prim frame; for a base it is the inertial frame


@dataclass(slots=True)
class _Axis:
    """A one-degree-of-freedom joint inside Bullet."""

    multibody: int
    link: int
    sign: float  # of the reaction: −1 where the parent is body1


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
        self._saved: list[int] = []

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
        self._body_index = {b.path: i for i, b in enumerate(model.bodies)}
        self._parts: list[_Part | None] = [None] * len(model.bodies)
        self._axes: list[_Axis | None] = [None] * len(model.joints)
        self._owner: dict[tuple[int, int], int] = {}
        self._surface: dict[tuple[int, int], int] = {}
        self._joint_index = {j.path: i for i, j in enumerate(model.joints)}
        colliders: dict[str, list[int]] = {}
        for i, collider in enumerate(model.colliders):
            colliders.setdefault(collider.body, []).append(i)
        for tree in trees:
            self._create_tree(tree, colliders)
        for i in colliders.get("", ()):
            self._create_static(i)
        self._filter_pairs(trees)
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

    def _create_tree(self, tree: Tree, colliders: dict[str, list[int]]) -> None:
        bullet, kw = self._bullet, self._kw
        base_mass = 0.0 if tree.is_fixed or tree.base is None or tree.base.mass is None else tree.base.mass.mass
        base_frame = _inertial(tree.base.mass if tree.base else None)
        frames = [base_frame, *(link.child_frame for link in tree.links)]
        bodies = [tree.base, *(link.body for link in tree.links)]
        inertials = [base_frame, *(_inertial(link.body.mass) for link in tree.links)]
        links = _LinkArrays(bullet)
        for link in tree.links:
            links.add_link(link, frames[link.parent + 1], _inertial(link.body.mass))
        # The first collider of a body is its link's own shape; Bullet filters, rays and contacts work per
        # link, so each further one is a massless link welded to it.
        base_shape = -1
        surfaces: list[tuple[int, int]] = []
        for k, body in enumerate(bodies):
            for n, i in enumerate(colliders.get(body.path, ()) if body else ()):
                shape = self._shape(self._model.colliders[i], frames[k])
                if n:
                    links.add_weld(k, shape)
                    surfaces.append((len(links.masses) - 1, i))
                elif k == 0:
                    base_shape = shape
                    surfaces.append((-1, i))
                else:
                    links.shapes[k - 1] = shape
                    surfaces.append((k - 1, i))
        start = frame.compose(tree.pose, base_frame)
        multibody = bullet.createMultiBody(
            baseMass=base_mass,
            baseCollisionShapeIndex=base_shape,
            basePosition=start.position,
            baseOrientation=_xyzw(start.orientation),
            flags=bullet.URDF_USE_SELF_COLLISION,
            **links.arguments(),
            **kw,
        )
        if multibody < 0:
            raise StageError.of("bullet-refused", f"Bullet refuses the multibody of {_name(tree)}", _where(tree))
        for k, body in enumerate(bodies):
            if body is not None:
                index = self._body_index[body.path]
                self._parts[index] = _Part(multibody, k - 1, inertials[k], frames[k])
                self._owner[(multibody, k - 1)] = index
        for number, i in surfaces:
            self._surface[(multibody, number)] = i
            self._owner[(multibody, number)] = self._body_index[self._model.colliders[i].body]
        self._tune(tree, multibody, links.welds)
        self._start(tree, multibody)

    def _shape(self, collider: Collider, link_frame: Pose) -> int:
        pose = frame.compose(frame.inverse(link_frame), collider.pose)
        return create_shape(self._bullet, self._kw, collider, pose, self._log)

    def _create_static(self, i: int) -> None:
        collider = self._model.colliders[i]
        shape = create_shape(self._bullet, self._kw, collider, Pose(), self._log)
        multibody = self._bullet.createMultiBody(
            baseMass=0.0,
            baseCollisionShapeIndex=shape,
            basePosition=collider.pose.position,
            baseOrientation=_xyzw(collider.pose.orientation),
            **self._kw,
        )
        self._surface[(multibody, -1)] = i
        self._apply_material(multibody, -1, collider)

    def _tune(self, tree: Tree, multibody: int, welds: Sequence[int]) -> None:
        """Undo Bullet's defaults. Each family in a call of its own: together they drop one another silently."""
        bullet, kw = self._bullet, self._kw
        count = bullet.getNumJoints(multibody, **kw)
        damping = self._damping(tree)
        # Defaults: damping 0.04, and a clamp of 100 on every velocity.
        bullet.changeDynamics(multibody, -1, linearDamping=damping[0], angularDamping=damping[1], **kw)
        for number in range(-1, count):
            bullet.changeDynamics(multibody, number, maxJointVelocity=_UNLIMITED, **kw)
            if number >= 0:
                bullet.changeDynamics(multibody, number, jointDamping=0.0, **kw)
            surface = self._surface.get((multibody, number))
            if surface is not None:
                self._apply_material(multibody, number, self._model.colliders[surface])
        for number, link in enumerate(tree.links):
            if link.joint.kind is JointKind.FIXED:
                continue
            # Default: a motor that brakes every joint.
            bullet.setJointMotorControl2(multibody, number, bullet.VELOCITY_CONTROL, force=0.0, **kw)
            lower, upper = link.joint.lower, link.joint.upper
            if lower is not None or upper is not None:
                bullet.changeDynamics(
                    multibody,
                    number,
                    jointLowerLimit=-1e9 if lower is None else lower,
                    jointUpperLimit=1e9 if upper is None else upper,
                    **kw,
                )
        for number, body in enumerate((tree.base, *(link.body for link in tree.links)), start=-1):
            if body is not None and body.mass is not None and body.motion is Motion.DYNAMIC:
                self._apply_mass(multibody, number, body, body.mass.mass, body.mass.diagonal_inertia)

    def _damping(self, tree: Tree) -> tuple[float, float]:
        """Bullet damps a whole multibody."""
        bodies = [b for b in (tree.base, *(link.body for link in tree.links)) if b is not None]
        bodies = [b for b in bodies if b.motion is Motion.DYNAMIC] or bodies
        found = sorted({(b.linear_damping, b.angular_damping) for b in bodies})
        if len(found) > 1:
            self._log.warning(
                "damping-approximate",
                f"Bullet damps an articulation as a whole: {found[-1]} of all bodies jointed to {bodies[0].path}",
                bodies[0].where,
            )
        return found[-1] if found else (0.0, 0.0)

    def _apply_material(self, multibody: int, link: int, collider: Collider) -> None:
        # Bullet multiplies the two coefficients of a contact, USD averages them. With the roots the product is
        # the geometric mean: equal to the average for equal materials, and close to it for others.
        material = collider.material
        self._bullet.changeDynamics(
            multibody,
            link,
            lateralFriction=math.sqrt(material.dynamic_friction),
            restitution=math.sqrt(material.restitution),
            **self._kw,
        )

    def _apply_mass(self, multibody: int, link: int, body: RigidBody, mass: float, inertia: Vector) -> None:
        bullet, kw = self._bullet, self._kw
        # `mass` resets the inertia: set it first, then the inertia, each alone, and look at what came of it.
        bullet.changeDynamics(multibody, link, mass=mass, **kw)
        bullet.changeDynamics(multibody, link, localInertiaDiagonal=inertia, **kw)
        found = bullet.getDynamicsInfo(multibody, link, **kw)
        if not math.isclose(found[0], mass, rel_tol=1e-9) or not np.allclose(found[2], inertia, rtol=1e-9, atol=0.0):
            raise StageError.of(
                "physics-mass-invalid",
                f"Bullet did not take mass {mass:g} kg and inertia {inertia} of {body.path}: it has {found[0]:g}, "
                f"{found[2]}",
                body.where,
            )

    def _start(self, tree: Tree, multibody: int) -> None:
        """Initial joint coordinates, rates and base velocity."""
        bullet, kw = self._bullet, self._kw
        for number, link in enumerate(tree.links):
            if link.joint.kind is not JointKind.FIXED:
                bullet.resetJointState(multibody, number, link.coordinate, link.rate, **kw)
                index = self._joint_index[link.joint.path]
                self._axes[index] = _Axis(multibody, number, -1.0 if link.is_reversed else 1.0)
        base = tree.base
        if base is not None and base.motion is Motion.DYNAMIC:
            arm = frame.rotate(base.pose.orientation, base.mass.center_of_mass if base.mass else frame.ZERO)
            linear = frame.add(base.linear_velocity, frame.cross(base.angular_velocity, arm))
            bullet.resetBaseVelocity(multibody, linear, base.angular_velocity, **kw)

    # ---- collision filters

    def _filter_pairs(self, trees: Sequence[Tree]) -> None:
        """Armed before the first step: colliders of one body, jointed pairs, authored pairs."""
        links: dict[str, list[tuple[int, int]]] = {}
        for place, i in self._surface.items():
            collider = self._model.colliders[i]
            links.setdefault(collider.path, []).append(place)
            if collider.body and collider.body != collider.path:
                links.setdefault(collider.body, []).append(place)
        pairs = {(body.path, body.path) for body in self._model.bodies}
        pairs |= {
            (j.body0, j.body1)
            for j in self._model.joints
            if j.enabled and not j.collision_enabled and j.body0 and j.body1
        }
        pairs |= set(self._model.filtered_pairs)
        for one, other in sorted(pairs):
            for a in links.get(one, ()):
                for b in links.get(other, ()):
                    if a != b:
                        self._bullet.setCollisionFilterPair(a[0], b[0], a[1], b[1], 0, **self._kw)

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

    def _center(self, part: _Part) -> Any:
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
            part.multibody, placed.position, _xyzw(placed.orientation), **self._kw
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
        self._apply_mass(part.multibody, part.link, about, mass, inertia)

    def _part(self, body: int) -> _Part:
        part = self._parts[body]
        assert part is not None, f"body {body} is in no tree"
        return part

    # ---- state

    def save(self) -> Any:
        """A snapshot with motor targets, which Bullet's own leaves out."""
        state = self._bullet.saveState(**self._kw)
        self._saved.append(state)
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


class _LinkArrays:
    """The parallel lists of `createMultiBody`."""

    def __init__(self, bullet: Any) -> None:
        self._bullet = bullet
        self.masses: list[float] = []
        self.shapes: list[int] = []
        self.welds: list[int] = []
        self._poses: list[Pose] = []
        self._inertials: list[Pose] = []
        self._parents: list[int] = []
        self._kinds: list[int] = []
        self._axes: list[Vector] = []

    def add_link(self, link: Link, parent_link_frame: Pose, inertial: Pose) -> None:
        kinds = {
            JointKind.FIXED: self._bullet.JOINT_FIXED,
            JointKind.REVOLUTE: self._bullet.JOINT_REVOLUTE,
            JointKind.PRISMATIC: self._bullet.JOINT_PRISMATIC,
        }
        assert link.body.mass is not None, f"{link.body.path} has no mass"
        self._add(
            link.body.mass.mass,
            frame.compose(frame.inverse(parent_link_frame), link.parent_frame),
            frame.compose(frame.inverse(link.child_frame), inertial),
            link.parent + 1,
            kinds[link.joint.kind],
            # Seen from body1 the same turn is about the opposite axis.
            (-1.0 if link.is_reversed else 1.0, 0.0, 0.0),
        )

    def add_weld(self, parent: int, shape: int) -> None:
        self.welds.append(len(self.masses))
        self._add(0.0, Pose(), Pose(), parent, self._bullet.JOINT_FIXED, (1.0, 0.0, 0.0))
        self.shapes[-1] = shape

    def _add(self, mass: float, pose: Pose, inertial: Pose, parent: int, kind: int, axis: Vector) -> None:
        self.masses.append(mass)
        self.shapes.append(-1)
        self._poses.append(pose)
        self._inertials.append(inertial)
        self._parents.append(parent)
        self._kinds.append(kind)
        self._axes.append(axis)

    def arguments(self) -> dict[str, Any]:
        return {
            "linkMasses": self.masses,
            "linkCollisionShapeIndices": self.shapes,
            "linkVisualShapeIndices": [-1] * len(self.masses),
            "linkPositions": [p.position for p in self._poses],
            "linkOrientations": [_xyzw(p.orientation) for p in self._poses],
            "linkInertialFramePositions": [p.position for p in self._inertials],
            "linkInertialFrameOrientations": [_xyzw(p.orientation) for p in self._inertials],
            "linkParentIndices": self._parents,
            "linkJointTypes": self._kinds,
            "linkJointAxis": self._axes,
        }


def _inertial(mass: MassProperties | None) -> Pose:
    return Pose() if mass is None else Pose(mass.center_of_mass, mass.principal_axes)


def _xyzw(q: Quaternion) -> tuple[float, float, float, float]:
    return (q[1], q[2], q[3], q[0])


def _beyond(position: Vector, end: Vector, distance: float) -> Vector:
    way = frame.subtract(end, position)
    step = distance / frame.norm(way)
    return (position[0] + step * way[0], position[1] + step * way[1], position[2] + step * way[2])


def _name(tree: Tree) -> str:
    return tree.base.path if tree.base else tree.links[0].body.path


def _where(tree: Tree) -> Any:
    return tree.base.where if tree.base else tree.links[0].body.where
