"""Joints: endpoints, frames, limits and drives.

Frames of both ends are turned so that the joint axis is their x axis. Angles arrive in degrees and
rotational gains per degree; they leave in radians, converted here and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pxr import Sdf, Usd, UsdPhysics

from cosim import frame
from cosim.mechanism import Drive, Joint, JointKind, Pose, Quaternion
from cosim.usd.placement import Placements
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, authored_number, authored_quaternion, finite, flag, settle, token, vector

_KINDS = {
    "PhysicsFixedJoint": JointKind.FIXED,
    "PhysicsRevoluteJoint": JointKind.REVOLUTE,
    "PhysicsPrismaticJoint": JointKind.PRISMATIC,
}
# x of the joint frame onto the authored axis.
_AXES: dict[str, Quaternion] = {
    "X": frame.IDENTITY,
    "Y": (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)),
    "Z": (math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0),
}
# Limits from here on are none; writers of single precision author FLT_MAX.
_UNBOUNDED = 0.5e38
_CURES = {
    "joint-axis-invalid": "author X, Y or Z, and turn the frames with localRot0 and localRot1",
    "joint-endpoints-invalid": "name one rigid body at each end, or none for the world, and two different ones",
    "joint-limit-invalid": "author lower ≤ upper; leave a limit out where there is none",
    "drive-invalid": "author finite values, gains and maxForce not negative, and type force or acceleration",
}
# A drive without gains is a position motor of 3 Hz with damping ratio 2.
MOTOR_FREQUENCY = 2.0 * math.pi * 3.0
MOTOR_STIFFNESS = MOTOR_FREQUENCY**2
MOTOR_DAMPING = 2.0 * 2.0 * MOTOR_FREQUENCY


@dataclass(frozen=True, slots=True)
class _End:
    """One endpoint: the body ("" for the world) and the joint frame in it."""

    body: str
    pose: Pose


class JointRefused(Exception):
    """A joint that cannot be built; the text says why."""

    def __init__(self, code: str, text: str, name: str = "") -> None:
        super().__init__(text)
        self.code, self.name = code, name


def read_joints(
    reader: StageReader, placements: Placements, bodies: set[str]
) -> tuple[list[Joint], list[tuple[str, str]]]:
    """Joints that are realised, and joints without ports with the reason.

    Args:
        reader: the stage.
        placements: where prims are.
        bodies: paths of admitted bodies.
    """
    joints: list[Joint] = []
    portless: list[tuple[str, str]] = []
    for prim in reader.prims():
        if not _is_joint(prim):
            continue
        path, kind = str(prim.GetPath()), _KINDS.get(str(prim.GetTypeName()))
        if kind is None:
            portless.append((path, f"a {prim.GetTypeName()} is not realised"))
            _report_unrealised(prim, reader)
            continue
        try:
            joints.append(_JointReader(prim, kind, reader, placements, bodies).read())
        except ValueRefused as refused:
            refused.report(reader)
        except JointRefused as refused:
            where = reader.locate(prim, refused.name)
            reader.log.error(refused.code, f"{path}: {refused}", where, _CURES[refused.code])
            settle(prim, reader)
        else:
            if kind is JointKind.FIXED:
                portless.append((path, "a fixed joint has no ports"))
            continue
        portless.append((path, "the joint has errors and is not built"))
    return joints, portless


def _is_joint(prim: Usd.Prim) -> bool:
    name = str(prim.GetTypeName())
    # Joints of vendors are no UsdPhysicsJoint in usd-core.
    return prim.IsA(UsdPhysics.Joint) or (name.startswith("Physx") and name.endswith("Joint"))


def _report_unrealised(prim: Usd.Prim, reader: StageReader) -> None:
    reader.log.warning(
        "joint-not-realised",
        f"{prim.GetPath()} is a {prim.GetTypeName()}, which is not realised: it holds nothing together",
        reader.locate(prim),
        hint="use fixed, revolute and prismatic joints",
    )
    # Said once for the joint, not once for each of its properties.
    settle(prim, reader)


class _JointReader:
    def __init__(
        self, prim: Usd.Prim, kind: JointKind, reader: StageReader, placements: Placements, bodies: set[str]
    ) -> None:
        self.prim, self.kind, self.reader, self.placements, self.bodies = prim, kind, reader, placements, bodies

    def read(self) -> Joint:
        prim, reader = self.prim, self.reader
        reader.declare_inert(prim, "every tree of joints is an articulation", "physics:excludeFromArticulation")
        is_enabled = flag(prim, reader, "physics:jointEnabled", True)
        collide = flag(prim, reader, "physics:collisionEnabled", False)
        axis = self._axis()
        lower, upper = self._limits()
        drive = self._drive()
        one, other = self._end(0, axis), self._end(1, axis)
        if one.body == other.body:
            what = f"{one.body} to itself" if one.body else "the world to itself"
            raise JointRefused("joint-endpoints-invalid", f"it joins {what}", "physics:body1")
        return Joint(
            path=str(prim.GetPath()),
            kind=self.kind,
            body0=one.body,
            body1=other.body,
            frame0=one.pose,
            frame1=other.pose,
            lower=lower,
            upper=upper,
            drive=drive,
            enabled=is_enabled,
            collision_enabled=collide,
            where=reader.locate(prim),
        )

    # ---- endpoints

    def _end(self, index: int, axis: Quaternion) -> _End:
        name = f"physics:body{index}"
        targets = self.reader.targets(self.prim, name)
        local = self._local(index, axis)
        if len(targets) > 1:
            raise JointRefused("joint-endpoints-invalid", f"{name} has {len(targets)} targets", name)
        if not targets:
            # Authored in the world, whose axes may be turned.
            x, y, z = (self.reader.metres * c for c in local.position)
            pose = frame.compose(Pose(orientation=self.placements.world), Pose((x, y, z), local.orientation))
            return _End("", pose)
        target = self.reader.stage.GetPrimAtPath(targets[0]) if targets[0].IsAbsoluteRootOrPrimPath() else None
        if not target:
            raise JointRefused(
                "joint-endpoints-invalid", f"{name} points to {targets[0]}, and there is no such prim", name
            )
        if _is_joint(target):
            raise JointRefused("joint-endpoints-invalid", f"{name} points to {targets[0]}, which is a joint", name)
        return self._end_at(target, targets[0], local, name)

    def _end_at(self, target: Usd.Prim, path: Sdf.Path, local: Pose, name: str) -> _End:
        body = self.placements.body_of(target)
        if body is not None and str(body.GetPath()) not in self.bodies:
            raise JointRefused("joint-endpoints-invalid", f"{name} points to {path}, a body that is not admitted", name)
        placement = self.placements.relative(target, body)
        if placement is None:
            raise JointRefused(
                "joint-endpoints-invalid", f"{name} points to {path}, which has no valid transform", name
            )
        x, y, z = (self.reader.metres * s * c for s, c in zip(placement.scale, local.position, strict=True))
        # A target below its body: its frame is lifted into the body's; the body itself is the identity.
        pose = frame.compose(placement.pose, Pose((x, y, z), local.orientation))
        return _End(str(body.GetPath()) if body is not None else "", pose)

    def _local(self, index: int, axis: Quaternion) -> Pose:
        """localPos, in stage lengths, and localRot turned to the joint axis."""
        name = f"physics:localPos{index}"
        position = finite(self.prim, name, vector(self.prim, self.reader, name, frame.ZERO))
        name = f"physics:localRot{index}"
        turn = authored_quaternion(self.prim, self.reader, name) or frame.IDENTITY
        if not any(turn):
            self.reader.log.warning(
                "joint-rotation-invalid",
                f"localRot{index} of {self.prim.GetPath()} is the zero quaternion: taken as no rotation",
                self.reader.locate(self.prim, name),
                hint="author (1, 0, 0, 0)",
            )
            turn = frame.IDENTITY
        return Pose(position, frame.multiply(frame.normalised(turn), axis))

    def _axis(self) -> Quaternion:
        if self.kind is JointKind.FIXED:
            return frame.IDENTITY
        axis = token(self.prim, self.reader, "physics:axis", "X")
        if axis not in _AXES:
            raise JointRefused("joint-axis-invalid", f"its axis is {axis!r}; it must be X, Y or Z", "physics:axis")
        return _AXES[axis]

    # ---- limits and drives

    @property
    def _unit(self) -> float:
        """From authored coordinates to SI."""
        return math.radians(1.0) if self.kind is JointKind.REVOLUTE else self.reader.metres

    def _limits(self) -> tuple[float | None, float | None]:
        if self.kind is JointKind.FIXED:
            return None, None
        lower = self._bound("physics:lowerLimit", -math.inf)
        upper = self._bound("physics:upperLimit", math.inf)
        if lower is not None and upper is not None and lower > upper:
            raise JointRefused(
                "joint-limit-invalid",
                f"its lower limit {lower:g} is above its upper limit {upper:g}",
                "physics:lowerLimit",
            )
        if self.kind is JointKind.REVOLUTE and (lower is None) != (upper is None):
            self.reader.log.info(
                "joint-limit-one-sided",
                f"{self.prim.GetPath()} is limited on one side only",
                self.reader.locate(self.prim, "physics:lowerLimit" if upper is None else "physics:upperLimit"),
            )
        return (
            None if lower is None else lower * self._unit,
            None if upper is None else upper * self._unit,
        )

    def _bound(self, name: str, unbounded: float) -> float | None:
        """A limit in the units of the stage, None where there is none."""
        value = authored_number(self.prim, self.reader, name)
        if value is None or value == unbounded or math.copysign(1.0, unbounded) * value >= _UNBOUNDED:
            return None
        if not math.isfinite(value):
            raise JointRefused("joint-limit-invalid", f"{name} is {value}", name)
        return value

    def _drive(self) -> Drive:
        if self.kind is JointKind.FIXED:
            return Drive()
        prim, reader = self.prim, self.reader
        instance = "angular" if self.kind is JointKind.REVOLUTE else "linear"
        prefix = f"drive:{instance}:physics:"
        names = ("targetPosition", "targetVelocity", "stiffness", "damping", "maxForce")
        values = {name: authored_number(prim, reader, prefix + name) for name in names}
        kind = token(prim, reader, f"{prefix}type", "force")
        if not reader.has_schema(prim, f"PhysicsDriveAPI:{instance}") and any(v is not None for v in values.values()):
            reader.log.info(
                "drive-api-not-applied",
                f"{prim.GetPath()} authors {prefix}… and does not apply PhysicsDriveAPI:{instance}: it counts",
                reader.locate(prim),
            )
        for name, value in values.items():
            if value is None:
                continue
            is_negative = name in ("stiffness", "damping", "maxForce") and value < 0.0
            if math.isnan(value) or is_negative or (math.isinf(value) and name != "maxForce"):
                raise JointRefused("drive-invalid", f"{prefix}{name} is {value}", prefix + name)
        if kind not in ("force", "acceleration"):
            raise JointRefused(
                "drive-invalid", f"{prefix}type is {kind!r}; it must be force or acceleration", f"{prefix}type"
            )
        return self._made(values, is_acceleration=kind == "acceleration")

    def _made(self, values: dict[str, float | None], *, is_acceleration: bool) -> Drive:
        unit, reader = self._unit, self.reader
        position, velocity = values["targetPosition"], values["targetVelocity"]
        stiffness, damping = values["stiffness"] or 0.0, values["damping"] or 0.0
        # Stage units: a force is kg·length/s², a torque kg·length²/s².
        force = reader.kilograms * reader.metres
        torque = force * reader.metres
        limit = math.inf if values["maxForce"] is None else values["maxForce"]
        limit *= torque if self.kind is JointKind.REVOLUTE else force
        target = None if position is None else position * unit
        speed = 0.0 if velocity is None else velocity * unit
        is_active = position is not None or velocity is not None or stiffness > 0.0 or damping > 0.0
        if stiffness == 0.0 and damping == 0.0:
            if velocity is not None and position is None:
                # Only a speed is asked for: a velocity motor of the same bandwidth.
                return Drive(None, speed, 0.0, MOTOR_DAMPING, limit, True, is_active)
            return Drive(target, speed, MOTOR_STIFFNESS, MOTOR_DAMPING, limit, True, is_active)
        per = 1.0
        if self.kind is JointKind.REVOLUTE:
            per = math.degrees(1.0) * (1.0 if is_acceleration else torque)
        elif not is_acceleration:
            per = reader.kilograms
        if target is None and stiffness > 0.0:
            target = 0.0
        return Drive(target, speed, stiffness * per, damping * per, limit, is_acceleration, is_active)
