"""Rigid bodies: what moves them, where they start, and how they are damped."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pxr import Usd, UsdGeom

from cosim import frame
from cosim.mechanism import Collider, Motion, RigidBody, Vector
from cosim.usd.mass import MassReader
from cosim.usd.materials import Materials
from cosim.usd.placement import Placements
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, finite, flag, number, vector

_SCHEMA = "PhysicsRigidBodyAPI"
_CURE = "author positive finite values, or none to take the mass properties of the colliders"


def read_motions(reader: StageReader) -> dict[str, Motion]:
    """What moves each rigid body of the stage, by path; a body with invalid switches is left out."""
    found: dict[str, Motion] = {}
    for prim in reader.prims():
        if not reader.has_schema(prim, _SCHEMA):
            continue
        path = str(prim.GetPath())
        if not prim.IsA(UsdGeom.Xformable):
            reader.log.error(
                "body-without-transform",
                f"{path} is a {prim.GetTypeName() or 'prim without a type'}, which has no transform: it is no body",
                reader.locate(prim),
                hint=f"apply {_SCHEMA} to an Xform or a geometry",
            )
            continue
        try:
            is_enabled = flag(prim, reader, "physics:rigidBodyEnabled", True)
            is_kinematic = flag(prim, reader, "physics:kinematicEnabled", False)
        except ValueRefused as refused:
            refused.report(reader)
            continue
        found[path] = Motion.STATIC if not is_enabled else Motion.KINEMATIC if is_kinematic else Motion.DYNAMIC
    return found


def read_bodies(
    reader: StageReader,
    placements: Placements,
    materials: Materials,
    motions: dict[str, Motion],
    colliders: Sequence[Collider],
) -> list[RigidBody]:
    """Every rigid body that can be admitted; the others are reported.

    Args:
        reader: the stage.
        placements: where prims are.
        materials: its physics materials.
        motions: from `read_motions`.
        colliders: every collider of the stage.
    """
    owned: dict[str, list[Collider]] = {}
    for collider in colliders:
        owned.setdefault(collider.body, []).append(collider)
    found = []
    for path, motion in sorted(motions.items()):
        prim = reader.stage.GetPrimAtPath(path)
        try:
            body = _read(prim, motion, reader, placements, materials, owned.get(path, ()))
        except ValueRefused as refused:
            refused.report(reader)
            continue
        if body is not None:
            found.append(body)
    return found


def _read(
    prim: Usd.Prim,
    motion: Motion,
    reader: StageReader,
    placements: Placements,
    materials: Materials,
    colliders: Sequence[Collider],
) -> RigidBody | None:
    reader.declare_inert(prim, "bodies do not sleep", "physics:startsAsleep")
    reader.consume_schema(prim, "PhysxRigidBodyAPI")
    linear, angular = frame.ZERO, frame.ZERO
    if motion is not Motion.STATIC:
        linear = _velocity(prim, reader, placements, "physics:velocity")
        angular = _velocity(prim, reader, placements, "physics:angularVelocity")
    dampings = [_damping(prim, reader, f"physxRigidBody:{n}") for n in ("linearDamping", "angularDamping")]
    is_weightless = flag(prim, reader, "physxRigidBody:disableGravity", False)
    placement = placements.of(prim)
    if placement is None:
        return None
    try:
        mass = MassReader(prim, reader, placement, colliders, materials).read(motion)
    except ValueRefused as refused:
        refused.report(reader, "physics-mass-invalid", _CURE)
        return None
    return RigidBody(
        path=str(prim.GetPath()),
        motion=motion,
        pose=placement.pose,
        mass=mass,
        linear_velocity=linear,
        angular_velocity=angular,
        linear_damping=dampings[0],
        angular_damping=dampings[1],
        gravity=not is_weightless,
        where=reader.locate(prim),
    )


def _velocity(prim: Usd.Prim, reader: StageReader, placements: Placements, name: str) -> Vector:
    """Authored in the space of the prim's transform, that of its parent; stage lengths or degrees per second."""
    authored = finite(prim, name, vector(prim, reader, name, frame.ZERO))
    if authored == frame.ZERO:
        return frame.ZERO
    placement = placements.above(prim)
    is_angular = name == "physics:angularVelocity"
    if placement is None:
        x, y, z = (math.radians(c) if is_angular else reader.metres * c for c in authored)
        return placements.direction((x, y, z))
    # An angular velocity does not grow with the scale, nor does a reflection turn it.
    scale = (1.0, 1.0, 1.0) if is_angular else placement.scale
    factor = math.radians(1.0) if is_angular else reader.metres
    x, y, z = (factor * s * c for s, c in zip(scale, authored, strict=True))
    return frame.rotate(placement.pose.orientation, (x, y, z))


def _damping(prim: Usd.Prim, reader: StageReader, name: str) -> float:
    value = number(prim, reader, name, 0.0)
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueRefused(prim, name, f"is {value}; it must be finite and not negative")
    return value
