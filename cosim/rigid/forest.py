"""From bodies and joints to articulation trees, with the joints seated.

A core in reduced coordinates wants trees: a base that is fixed or floats, and links, each on
one joint to its parent. `plant` chooses the trees, computes the initial joint coordinates from
the authored poses, and seats every link: where an authored pose misses the joint frame, the
movable endpoint is moved and the distance is reported. Nothing here knows Bullet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cosim import frame
from cosim.diagnostic import DiagnosticLog
from cosim.mechanism import Joint, JointKind, Motion, Pose, RigidBody, RigidBodyModel

# Seating below these is rounding of authored floats, not worth a word.
SEATING_LENGTH = 1e-4
SEATING_ANGLE = 1e-3


@dataclass(frozen=True, slots=True)
class Link:
    """A body that hangs on its parent by a joint.

    Attributes:
        body: the body.
        parent: index of the parent link in the tree, −1 for the base.
        joint: what it hangs on.
        is_reversed: whether the parent is the joint's body1.
        parent_frame: joint frame in the parent's prim frame.
        child_frame: joint frame in this body's prim frame.
        coordinate: initial joint coordinate [rad or m], 0 for a fixed joint.
        rate: initial joint rate [rad/s or m/s].
        pose: seated initial pose of the prim in the world.
    """

    body: RigidBody
    parent: int
    joint: Joint
    is_reversed: bool
    parent_frame: Pose
    child_frame: Pose
    coordinate: float
    rate: float
    pose: Pose


@dataclass(frozen=True, slots=True)
class Tree:
    """An articulation.

    Attributes:
        base: the body at the root; None for an anchor fixed in the world.
        pose: of the base in the world.
        is_fixed: whether the base does not move by forces.
        links: each after its parent.
    """

    base: RigidBody | None
    pose: Pose
    is_fixed: bool
    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class _Sprout:
    base: RigidBody | None
    pose: Pose
    is_fixed: bool
    links: list[Link] = field(default_factory=list)


def plant(model: RigidBodyModel, log: DiagnosticLog) -> tuple[Tree, ...]:
    """Choose the trees of a model; every body is in exactly one.

    Args:
        model: the rigid-body model.
        log: gets what cannot be realised (loops, several joints on one pair) and what was moved.
    """
    return _Planter(model, log).plant()


class _Planter:
    def __init__(self, model: RigidBodyModel, log: DiagnosticLog) -> None:
        self.log = log
        self.bodies = {body.path: body for body in model.bodies}
        self.joints = [j for j in model.joints if j.enabled and self._is_realisable(j)]
        self.at: dict[str, list[Joint]] = {}
        for joint in self.joints:
            for end in (joint.body0, joint.body1):
                self.at.setdefault(end, []).append(joint)
        self.placed: dict[str, Pose] = {}
        self.used: set[str] = set()

    def plant(self) -> tuple[Tree, ...]:
        trees: list[Tree] = []
        immovable = [b for b in self.bodies.values() if b.motion is not Motion.DYNAMIC]
        for body in immovable:
            trees.append(self._grow(body, body.pose, self.at.get(body.path, ())))
        for joint in self.at.get("", ()):
            if joint.path not in self.used:
                # Each world joint has an anchor of its own, fixed in the world.
                trees.append(self._grow(None, Pose(), (joint,)))
        for body in self._floating_roots():
            if body.path not in self.placed:
                trees.append(self._grow(body, body.pose, self.at.get(body.path, ())))
        for joint in self.joints:
            if joint.path not in self.used:
                self._report_loop(joint)
        return tuple(trees)

    def _floating_roots(self) -> Iterable[RigidBody]:
        """Bodies that are nobody's body1 first: they carry the rest."""
        carried = {j.body1 for j in self.joints}
        return sorted(self.bodies.values(), key=lambda b: (b.path in carried, b.path))

    def _grow(self, base: RigidBody | None, pose: Pose, joints: Iterable[Joint]) -> Tree:
        sprout = _Sprout(base, pose, base is None or base.motion is not Motion.DYNAMIC)
        root = base.path if base else ""
        if base is not None:
            self.placed[root] = pose
        queue: list[tuple[str, int, Joint]] = [(root, -1, j) for j in joints]
        while queue:
            path, index, joint = queue.pop(0)
            if joint.path in self.used:
                continue
            child = joint.body1 if joint.body0 == path else joint.body0
            if child in self.placed or not self._is_movable(child):
                continue
            self.used.add(joint.path)
            parent_pose = sprout.links[index].pose if index >= 0 else pose
            link = self._link(joint, path, child, index, parent_pose, base if index < 0 else sprout.links[index].body)
            sprout.links.append(link)
            self.placed[child] = link.pose
            queue += [(child, len(sprout.links) - 1, j) for j in self.at.get(child, ()) if j.path not in self.used]
        return Tree(sprout.base, sprout.pose, sprout.is_fixed, tuple(sprout.links))

    def _is_movable(self, path: str) -> bool:
        return path in self.bodies and self.bodies[path].motion is Motion.DYNAMIC

    def _link(
        self, joint: Joint, parent: str, child: str, index: int, parent_pose: Pose, parent_body: RigidBody | None
    ) -> Link:
        body = self.bodies[child]
        is_reversed = joint.body1 == parent
        parent_frame, child_frame = joint.frame0, joint.frame1
        if is_reversed:
            parent_frame, child_frame = child_frame, parent_frame
        at_parent = frame.compose(parent_pose, parent_frame)
        at_child = frame.compose(body.pose, child_frame)
        relative = frame.compose(frame.inverse(at_parent), at_child)
        sign = -1.0 if is_reversed else 1.0
        coordinate, moved = 0.0, Pose()
        if joint.kind is JointKind.REVOLUTE:
            coordinate = sign * frame.twist_about_x(relative.orientation)
            moved = Pose(orientation=frame.about_x(sign * coordinate))
        elif joint.kind is JointKind.PRISMATIC:
            coordinate = sign * relative.position[0]
            moved = Pose(position=(sign * coordinate, 0.0, 0.0))
        seated = frame.compose(frame.compose(at_parent, moved), frame.inverse(child_frame))
        self._report_seating(joint, body, seated)
        rate = sign * _relative_rate(joint, body, parent_body, at_parent)
        return Link(body, index, joint, is_reversed, parent_frame, child_frame, coordinate, rate, seated)

    # ---- what cannot be, or was changed

    def _is_realisable(self, joint: Joint) -> bool:
        ends = (joint.body0, joint.body1)
        if not any(self._is_movable(end) for end in ends):
            self._check_immovable(joint)
            return False
        return True

    def _check_immovable(self, joint: Joint) -> None:
        """Both ends are prescribed: compatible frames need no constraint, others cannot be satisfied."""
        poses = [self.bodies[end].pose if end in self.bodies else Pose() for end in (joint.body0, joint.body1)]
        at0, at1 = frame.compose(poses[0], joint.frame0), frame.compose(poses[1], joint.frame1)
        relative = frame.compose(frame.inverse(at0), at1)
        x, y, z = relative.position
        gap = frame.norm((0.0 if joint.kind is JointKind.PRISMATIC else x, y, z))
        turned = relative.orientation
        if joint.kind is JointKind.REVOLUTE:
            turned = frame.multiply(frame.conjugate(frame.about_x(frame.twist_about_x(turned))), turned)
        angle = frame.angle_of(turned)
        if gap > SEATING_LENGTH or angle > SEATING_ANGLE:
            self.log.error(
                "physics-joint-seating-invalid",
                f"{joint.path} joins {joint.body0 or 'the world'} and {joint.body1 or 'the world'}, which physics "
                f"does not move, and their joint frames are {gap:.4g} m and {angle:.4g} rad apart",
                joint.where,
                hint="correct localPos/localRot, or make one of the bodies dynamic",
            )
        else:
            self.log.info(
                "joint-all-static", f"{joint.path} joins bodies that physics does not move: no constraint", joint.where
            )

    def _report_seating(self, joint: Joint, body: RigidBody, seated: Pose) -> None:
        distance = frame.norm(frame.subtract(seated.position, body.pose.position))
        turn = frame.angle_of(frame.multiply(frame.conjugate(body.pose.orientation), seated.orientation))
        if distance > SEATING_LENGTH or turn > SEATING_ANGLE:
            self.log.warning(
                "joint-seated",
                f"{body.path} starts {distance:.4g} m and {turn:.4g} rad from where it is authored, "
                f"so that {joint.path} holds",
                joint.where,
                hint="make localPos and localRot of both ends meet at the authored poses",
            )

    def _report_loop(self, joint: Joint) -> None:
        pair = {joint.body0, joint.body1}
        others = [j.path for j in self.joints if j.path != joint.path and {j.body0, j.body1} == pair]
        if others:
            self.log.error(
                "joint-pair-overconstrained",
                f"{joint.path} joins the same two bodies as {others[0]}",
                joint.where,
                hint="keep one joint per pair of bodies",
            )
            return
        self.log.error(
            "joint-loop-unsupported",
            f"{joint.path} closes a loop of joints, which this core does not realise",
            joint.where,
            hint="leave one joint of the loop out",
        )


def _relative_rate(joint: Joint, child: RigidBody, parent: RigidBody | None, at_parent: Pose) -> float:
    """Authored velocity of the child relative to its parent, along or about the joint axis."""
    if joint.kind is JointKind.FIXED:
        return 0.0
    axis = frame.rotate(at_parent.orientation, (1.0, 0.0, 0.0))
    if joint.kind is JointKind.REVOLUTE:
        before = parent.angular_velocity if parent else frame.ZERO
        return frame.dot(axis, frame.subtract(child.angular_velocity, before))
    before = frame.ZERO
    if parent is not None:
        arm = frame.subtract(at_parent.position, parent.pose.position)
        before = frame.add(parent.linear_velocity, frame.cross(parent.angular_velocity, arm))
    arm = frame.subtract(at_parent.position, child.pose.position)
    now = frame.add(child.linear_velocity, frame.cross(child.angular_velocity, arm))
    return frame.dot(axis, frame.subtract(now, before))
