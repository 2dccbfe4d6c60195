"""Building a Bullet world: one multibody per tree, with what Bullet does by default undone.

Each trap has its comment (measured on pybullet 3.2.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosim import frame
from cosim.diagnostic import DiagnosticLog, StageError
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
from cosim.rigid.bullet_shape import create_shape
from cosim.rigid.forest import Link, Tree

# "Unlimited": Bullet multiplies it by the step, so it must stay finite in float64.
_UNLIMITED = 1e30


@dataclass(slots=True)
class Part:
    """A body inside Bullet: (multibody, link) and its centre-of-mass frame in the prim frame."""

    multibody: int
    link: int
    inertial: Pose
    link_frame: Pose  # Bullet's link frame in the prim frame; for a base it is the inertial frame


@dataclass(slots=True)
class Axis:
    """A one-degree-of-freedom joint inside Bullet."""

    multibody: int
    link: int
    sign: float  # of the reaction: −1 where the parent is body1


@dataclass(slots=True)
class World:
    """Where everything of a model is inside Bullet; places are (multibody, link).

    Attributes:
        parts: of the bodies, in the order of the model.
        axes: of the joints, None for a joint without a coordinate.
        owner: place → index of the body.
        surface: place → index of the collider.
    """

    parts: list[Part | None]
    axes: list[Axis | None]
    owner: dict[tuple[int, int], int] = field(default_factory=dict)
    surface: dict[tuple[int, int], int] = field(default_factory=dict)


def build_world(
    bullet: Any, kw: dict[str, Any], model: RigidBodyModel, trees: Sequence[Tree], log: DiagnosticLog
) -> World:
    """Create every body, collider and joint.

    Args:
        bullet: the pybullet module.
        kw: the physics client.
        model: what to build.
        trees: its articulations.
        log: gets approximations that Bullet forces.

    Raises:
        StageError: Bullet refuses something.
    """
    return _Builder(bullet, kw, model, log).build(trees)


class _Builder:
    def __init__(self, bullet: Any, kw: dict[str, Any], model: RigidBodyModel, log: DiagnosticLog) -> None:
        self._bullet, self._kw, self._model, self._log = bullet, kw, model, log
        self._body_index = {b.path: i for i, b in enumerate(model.bodies)}
        self._joint_index = {j.path: i for i, j in enumerate(model.joints)}
        self.world = World([None] * len(model.bodies), [None] * len(model.joints))

    def build(self, trees: Sequence[Tree]) -> World:
        colliders: dict[str, list[int]] = {}
        for i, collider in enumerate(self._model.colliders):
            colliders.setdefault(collider.body, []).append(i)
        for tree in trees:
            self._create_tree(tree, colliders)
        for i in colliders.get("", ()):
            self._create_static(i)
        self._filter_pairs()
        return self.world

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
            baseOrientation=xyzw(start.orientation),
            flags=bullet.URDF_USE_SELF_COLLISION,
            **links.arguments(),
            **kw,
        )
        if multibody < 0:
            raise StageError.of("bullet-refused", f"Bullet refuses the multibody of {_name(tree)}", _where(tree))
        for k, body in enumerate(bodies):
            if body is not None:
                index = self._body_index[body.path]
                self.world.parts[index] = Part(multibody, k - 1, inertials[k], frames[k])
                self.world.owner[(multibody, k - 1)] = index
        for number, i in surfaces:
            self.world.surface[(multibody, number)] = i
            self.world.owner[(multibody, number)] = self._body_index[self._model.colliders[i].body]
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
            baseOrientation=xyzw(collider.pose.orientation),
            **self._kw,
        )
        self.world.surface[(multibody, -1)] = i
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
            surface = self.world.surface.get((multibody, number))
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
                apply_mass(self._bullet, self._kw, multibody, number, body, body.mass.mass, body.mass.diagonal_inertia)

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

    def _start(self, tree: Tree, multibody: int) -> None:
        """Initial joint coordinates, rates and base velocity."""
        bullet, kw = self._bullet, self._kw
        for number, link in enumerate(tree.links):
            if link.joint.kind is not JointKind.FIXED:
                bullet.resetJointState(multibody, number, link.coordinate, link.rate, **kw)
                index = self._joint_index[link.joint.path]
                self.world.axes[index] = Axis(multibody, number, -1.0 if link.is_reversed else 1.0)
        base = tree.base
        if base is not None and base.motion is Motion.DYNAMIC:
            arm = frame.rotate(base.pose.orientation, base.mass.center_of_mass if base.mass else frame.ZERO)
            linear = frame.add(base.linear_velocity, frame.cross(base.angular_velocity, arm))
            bullet.resetBaseVelocity(multibody, linear, base.angular_velocity, **kw)

    # ---- collision filters

    def _filter_pairs(self) -> None:
        """Armed before the first step: colliders of one body, jointed pairs, authored pairs."""
        links: dict[str, list[tuple[int, int]]] = {}
        for place, i in self.world.surface.items():
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


def apply_mass(
    bullet: Any, kw: dict[str, Any], multibody: int, link: int, body: RigidBody, mass: float, inertia: Vector
) -> None:
    """Give a link its mass [kg] and principal moments [kg·m²].

    Raises:
    StageError: Bullet did not take them.
    """
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
            "linkOrientations": [xyzw(p.orientation) for p in self._poses],
            "linkInertialFramePositions": [p.position for p in self._inertials],
            "linkInertialFrameOrientations": [xyzw(p.orientation) for p in self._inertials],
            "linkParentIndices": self._parents,
            "linkJointTypes": self._kinds,
            "linkJointAxis": self._axes,
        }


def _inertial(mass: MassProperties | None) -> Pose:
    return Pose() if mass is None else Pose(mass.center_of_mass, mass.principal_axes)


def xyzw(q: Quaternion) -> tuple[float, float, float, float]:
    """Bullet's order."""
    return (q[1], q[2], q[3], q[0])


def _name(tree: Tree) -> str:
    return tree.base.path if tree.base else tree.links[0].body.path


def _where(tree: Tree) -> Any:
    return tree.base.where if tree.base else tree.links[0].body.where
