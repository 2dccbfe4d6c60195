"""Collision surfaces: which prims collide, who owns them, and of what they are made."""

from __future__ import annotations

from pxr import Usd, UsdGeom

from cosim import frame
from cosim.mechanism import Collider, Motion, Pose, ShapeKind
from cosim.usd.materials import Materials
from cosim.usd.placement import Placements
from cosim.usd.reader import StageReader
from cosim.usd.shapes import ShapeRefused, is_flat, read_shape
from cosim.usd.values import ValueRefused, flag, settle


def read_colliders(
    reader: StageReader, placements: Placements, materials: Materials, motions: dict[str, Motion]
) -> list[Collider]:
    """Every collider of the stage; what cannot be one is reported.

    Args:
        reader: the stage.
        placements: where prims are.
        materials: its physics materials.
        motions: path of a rigid body → what moves it.
    """
    found = []
    for prim in reader.prims():
        try:
            collider = _read(prim, reader, placements, materials, motions) if _collides(prim, reader) else None
        except ValueRefused as refused:
            refused.report(reader)
            continue
        except ShapeRefused as refused:
            reader.log.error(
                "collider-unsupported",
                f"{prim.GetPath()} cannot be a collider: {refused}",
                reader.locate(prim),
                hint="use a primitive, a finite plane, or a mesh with approximation none (static) or convexHull",
            )
            settle(prim, reader)
            continue
        if collider is not None:
            found.append(collider)
    return found


def _collides(prim: Usd.Prim, reader: StageReader) -> bool:
    """Whether a prim is authored to be a collider, with a finding where it almost is."""
    name = "physics:collisionEnabled"
    if not reader.has_schema(prim, "PhysicsCollisionAPI"):
        _check_lone_switch(prim, reader, name)
        return False
    if not flag(prim, reader, name, True):
        reader.consume_schema(prim, "PhysicsMeshCollisionAPI")
        reader.declare_inert(prim, "its collisions are disabled", "physics:approximation")
        return False
    if UsdGeom.Imageable(prim).ComputePurpose() == UsdGeom.Tokens.guide:
        where = reader.locate(prim)
        reader.log.info("collider-guide", f"{prim.GetPath()} has purpose guide and does not collide", where)
        return False
    return True


def _check_lone_switch(prim: Usd.Prim, reader: StageReader, name: str) -> None:
    """`physics:collisionEnabled` without the schema: on visual children, false is common and harmless."""
    if "Joint" in str(prim.GetTypeName()) or not prim.GetAttribute(name).HasAuthoredValue():
        return  # a joint has an attribute of the same name
    if not flag(prim, reader, name, False):
        where = reader.locate(prim, name)
        reader.log.info("collision-off", f"{prim.GetPath()} switches collisions off and is no collider anyway", where)
        return
    reader.log.warning(
        "collision-api-missing",
        f"{prim.GetPath()} enables collisions and does not apply PhysicsCollisionAPI: it is no collider",
        reader.locate(prim, name),
        hint='prepend apiSchemas = ["PhysicsCollisionAPI"]',
    )


def _read(
    prim: Usd.Prim, reader: StageReader, placements: Placements, materials: Materials, motions: dict[str, Motion]
) -> Collider | None:
    body = placements.body_of(prim)
    owner = str(body.GetPath()) if body is not None else ""
    placement = placements.relative(prim, body)
    if placement is None:
        return None
    shape, turn = read_shape(prim, reader, placement.scale)
    if shape.kind is ShapeKind.MESH and motions.get(owner) is Motion.DYNAMIC:
        what = "a finite plane" if is_flat(shape) else "a mesh with approximation none"
        raise ShapeRefused(f"{what} is a bare surface, which only a static body can have, and {owner} is dynamic")
    pose = frame.compose(placement.pose, Pose(orientation=turn))
    surface = materials.bound_to(prim).surface
    return Collider(str(prim.GetPath()), owner, pose, shape, surface, reader.locate(prim))
