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
from cosim.usd.placement import Placements, quaternion, vector
from cosim.usd.reader import StageReader

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
# A drive without gains is a position motor of 3 Hz with damping ratio 2.
MOTOR_FREQUENCY = 2.0 * math.pi * 3.0
MOTOR_STIFFNESS = MOTOR_FREQUENCY**2
MOTOR_DAMPING = 2.0 * 2.0 * MOTOR_FREQUENCY


@dataclass(frozen=True, slots=True)
class _End:
    """One endpoint: the body ("" for the world) and the joint frame in it."""

    body: str
    pose: Pose


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
        if kind is JointKind.FIXED:
            portless.append((path, "a fixed joint has no ports"))
        joint = _JointReader(prim, kind, reader, placements, bodies).read()
        if joint is not None:
            joints.append(joint)
    return joints, portless


def _is_joint(prim: Usd.Prim) -> bool:
    name = str(prim.GetTypeName())
    # Vendors' joints are no UsdPhysicsJoint in usd-core.
    return prim.IsA(UsdPhysics.Joint) or (name.startswith("Physx") and name.endswith("Joint"))


def _report_unrealised(prim: Usd.Prim, reader: StageReader) -> None:
    reader.log.warning(
        "joint-not-realised",
        f"{prim.GetPath()} is a {prim.GetTypeName()}, which is not realised: it holds nothing together",
        reader.locate(prim),
        hint="use fixed, revolute and prismatic joints",
    )
    # Said once for the joint, not once for each of its properties.
    reader.consume(prim, *reader.authored_names(prim))
    reader.consume_schema(prim, *reader.unread_schemas(prim))


class _JointReader:
    def __init__(
        self, prim: Usd.Prim, kind: JointKind, reader: StageReader, placements: Placements, bodies: set[str]
    ) -> None:
        self.prim, self.kind, self.reader, self.placements, self.bodies = prim, kind, reader, placements, bodies
        self.failed = False

    def read(self) -> Joint | None:
        prim, reader = self.prim, self.reader
        reader.declare_inert(prim, "every tree of joints is an articulation", "physics:excludeFromArticulation")
        ends = [self._end(k) for k in (0, 1)]
        lower, upper = self._limits()
        drive = self._drive()
        enabled = bool(reader.get(prim, "physics:jointEnabled", True))
        together = bool(reader.get(prim, "physics:collisionEnabled", False))
        if self.failed or ends[0] is None or ends[1] is None:
            return None
        if ends[0].body == ends[1].body:
            where = reader.locate(prim)
            what = f"{ends[0].body} to itself" if ends[0].body else "the world to itself"
            reader.log.error("joint-endpoints-invalid", f"{prim.GetPath()} joins {what}", where)
            return None
        return Joint(
            str(prim.GetPath()),
            self.kind,
            ends[0].body,
            ends[1].body,
            ends[0].pose,
            ends[1].pose,
            lower,
            upper,
            drive,
            enabled,
            together,
            reader.locate(prim),
        )

    # ---- endpoints

    def _end(self, index: int) -> _End | None:
        name = f"physics:body{index}"
        targets = self.reader.targets(self.prim, name)
        local = self._local(index)
        if len(targets) > 1:
            return self._refuse("joint-endpoints-invalid", f"{name} has {len(targets)} targets", name)
        if not targets:
            # Authored in the world, whose axes may be turned.
            x, y, z = (self.reader.metres * c for c in local.position)
            pose = frame.compose(Pose(orientation=self.placements.world), Pose((x, y, z), local.orientation))
            return _End("", pose)
        target = self.reader.stage.GetPrimAtPath(targets[0])
        if not target:
            return self._refuse("joint-endpoints-invalid", f"{name} points to {targets[0]}, which does not exist", name)
        return self._end_at(target, targets[0], local, name)

    def _end_at(self, target: Usd.Prim, path: Sdf.Path, local: Pose, name: str) -> _End | None:
        body = self.placements.body_of(target)
        if body is not None and str(body.GetPath()) not in self.bodies:
            return self._refuse(
                "joint-endpoints-invalid", f"{name} points to {path}, a body that is not admitted", name
            )
        placement = self.placements.relative(target, body)
        if placement is None:
            return self._refuse(
                "joint-endpoints-invalid", f"{name} points to {path}, which has no valid transform", name
            )
        x, y, z = (self.reader.metres * s * c for s, c in zip(placement.scale, local.position, strict=True))
        # A target below its body: its frame is lifted into the body's; the body itself is the identity.
        pose = frame.compose(placement.pose, Pose((x, y, z), local.orientation))
        return _End(str(body.GetPath()) if body is not None else "", pose)

    def _local(self, index: int) -> Pose:
        """localPos, in stage lengths, and localRot turned to the joint axis."""
        position = self.reader.get(self.prim, f"physics:localPos{index}")
        rotation = self.reader.get(self.prim, f"physics:localRot{index}")
        at = vector(position) if position is not None else frame.ZERO
        turn = frame.IDENTITY
        if rotation is not None:
            q = quaternion(rotation)
            try:
                turn = frame.normalised(q)
            except ValueError:
                turn = frame.IDENTITY
                self.reader.log.warning(
                    "joint-rotation-invalid",
                    f"localRot{index} of {self.prim.GetPath()} is {q}: taken as no rotation",
                    self.reader.locate(self.prim, f"physics:localRot{index}"),
                )
        if not all(math.isfinite(c) for c in at):
            self._refuse("joint-endpoints-invalid", f"localPos{index} is {at}", f"physics:localPos{index}")
            at = frame.ZERO
        return Pose(at, frame.multiply(turn, self._axis()))

    def _axis(self) -> Quaternion:
        if self.kind is JointKind.FIXED:
            return frame.IDENTITY
        token = str(self.reader.get(self.prim, "physics:axis", "X"))
        if token not in _AXES:
            self._refuse("joint-axis-invalid", f"its axis is {token!r}", "physics:axis")
            return frame.IDENTITY
        return _AXES[token]

    def _refuse(self, code: str, text: str, name: str) -> _End | None:
        self.failed = True
        self.reader.log.error(code, f"{self.prim.GetPath()}: {text}", self.reader.locate(self.prim, name))
        return None

    # ---- limits and drives

    @property
    def _unit(self) -> float:
        """From authored coordinates to SI."""
        return math.radians(1.0) if self.kind is JointKind.REVOLUTE else self.reader.metres

    def _limits(self) -> tuple[float | None, float | None]:
        if self.kind is JointKind.FIXED:
            return None, None
        bounds: list[float | None] = []
        for name, open_side in (("physics:lowerLimit", -math.inf), ("physics:upperLimit", math.inf)):
            value = self.reader.get_authored(self.prim, name)
            if value is None or float(value) == open_side or abs(float(value)) > 1e37:
                bounds.append(None)
            elif math.isfinite(value):
                bounds.append(float(value) * self._unit)
            else:
                self._refuse("joint-limit-invalid", f"{name} is {value}", name)
                bounds.append(None)
        lower, upper = bounds
        if lower is not None and upper is not None and lower > upper:
            self._refuse(
                "joint-limit-invalid", f"its lower limit {lower:g} is above its upper {upper:g}", "physics:lowerLimit"
            )
        if self.kind is JointKind.REVOLUTE and (lower is None) != (upper is None):
            self.reader.log.info(
                "joint-limit-one-sided",
                f"{self.prim.GetPath()} is limited on one side only",
                self.reader.locate(self.prim, "physics:lowerLimit" if upper is None else "physics:upperLimit"),
            )
        return lower, upper

    def _drive(self) -> Drive:
        if self.kind is JointKind.FIXED:
            return Drive()
        instance = "angular" if self.kind is JointKind.REVOLUTE else "linear"
        prefix = f"drive:{instance}:physics:"
        names = ("targetPosition", "targetVelocity", "stiffness", "damping", "maxForce")
        values = {name: self.reader.get_authored(self.prim, prefix + name) for name in names}
        kind = str(self.reader.get(self.prim, f"{prefix}type", "force"))
        applied = f"PhysicsDriveAPI:{instance}" in self.reader.applied(self.prim)
        self.reader.consume_schema(self.prim, f"PhysicsDriveAPI:{instance}")
        if not applied and any(v is not None for v in values.values()):
            self.reader.log.info(
                "drive-api-not-applied",
                f"{self.prim.GetPath()} authors {prefix}… and does not apply PhysicsDriveAPI:{instance}: it counts",
                self.reader.locate(self.prim),
            )
        for name, value in values.items():
            negative = name in ("stiffness", "damping", "maxForce") and value is not None and value < 0.0
            if value is not None and (
                math.isnan(value) or negative or (name != "maxForce" and not math.isfinite(value))
            ):
                self._refuse("drive-invalid", f"{prefix}{name} is {value}", prefix + name)
                return Drive()
        return self._made(values, kind)

    def _made(self, values: dict[str, float | None], kind: str) -> Drive:
        unit, reader = self._unit, self.reader
        position, velocity = values["targetPosition"], values["targetVelocity"]
        stiffness, damping = values["stiffness"] or 0.0, values["damping"] or 0.0
        limit = math.inf if values["maxForce"] is None else float(values["maxForce"])
        # Stage units: a force is kg·length/s², a torque kg·length²/s².
        force = reader.kilograms * reader.metres
        torque = force * reader.metres
        if math.isfinite(limit):
            limit *= torque if self.kind is JointKind.REVOLUTE else force
        target = None if position is None else float(position) * unit
        speed = 0.0 if velocity is None else float(velocity) * unit
        active = position is not None or stiffness > 0.0 or damping > 0.0 or bool(velocity)
        if stiffness == 0.0 and damping == 0.0:
            if velocity and position is None:
                # Only a speed is asked for: a velocity motor of the same bandwidth.
                return Drive(None, speed, 0.0, MOTOR_DAMPING, limit, True, active)
            return Drive(target, speed, MOTOR_STIFFNESS, MOTOR_DAMPING, limit, True, active)
        acceleration = kind == "acceleration"
        per = 1.0
        if self.kind is JointKind.REVOLUTE:
            per = math.degrees(1.0) * (1.0 if acceleration else torque)
        elif not acceleration:
            per = reader.kilograms
        if target is None and stiffness > 0.0:
            target = 0.0
        return Drive(target, speed, stiffness * per, damping * per, limit, acceleration, active)
