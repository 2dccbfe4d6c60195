"""Colliders as Bullet collision shapes."""

from __future__ import annotations

import math
from typing import Any

from cosim.diagnostic import DiagnosticLog, StageError
from cosim.mechanism import Collider, Pose, ShapeKind, Vector

# Bullet's limit for a mesh in memory.
MAX_VERTICES = 131_072
_CONE_SEGMENTS = 64


def create_shape(bullet: Any, kw: dict[str, Any], collider: Collider, pose: Pose, log: DiagnosticLog) -> int:
    """The collision shape of a collider.

    Args:
        bullet: the pybullet module.
        kw: the physics client.
        collider: what it is.
        pose: of the shape in the frame of its link.
        log: gets approximations.

    Raises:
        StageError: Bullet refuses it.
    """
    q = pose.orientation
    place = {"collisionFramePosition": pose.position, "collisionFrameOrientation": (q[1], q[2], q[3], q[0])}
    shape = bullet.createCollisionShape(**_geometry(bullet, collider, log), **place, **kw)
    if shape < 0:
        raise StageError.of(
            "bullet-refused", f"Bullet refuses the {collider.shape.kind.value} of {collider.path}", collider.where
        )
    return int(shape)


def _geometry(bullet: Any, collider: Collider, log: DiagnosticLog) -> dict[str, Any]:
    shape = collider.shape
    if shape.kind is ShapeKind.BOX:
        return {"shapeType": bullet.GEOM_BOX, "halfExtents": shape.half_extents}
    if shape.kind is ShapeKind.SPHERE:
        return {"shapeType": bullet.GEOM_SPHERE, "radius": shape.radius}
    if shape.kind is ShapeKind.CAPSULE:
        return {"shapeType": bullet.GEOM_CAPSULE, "radius": shape.radius, "height": shape.height}
    if shape.kind is ShapeKind.CYLINDER:
        return {"shapeType": bullet.GEOM_CYLINDER, "radius": shape.radius, "height": shape.height}
    points = shape.points
    if shape.kind is ShapeKind.CONE:
        points = _cone(shape.radius, shape.height)
        log.info(
            "collider-approximated",
            f"Bullet has no cone: {collider.path} is the hull of {_CONE_SEGMENTS} points on its rim and its apex",
            collider.where,
        )
    if len(points) > MAX_VERTICES:
        raise StageError.of(
            "collider-too-large",
            f"{collider.path} has {len(points)} points; Bullet takes {MAX_VERTICES}",
            collider.where,
            hint="give a simpler collision mesh",
        )
    if shape.kind is ShapeKind.MESH:
        return {
            "shapeType": bullet.GEOM_MESH,
            "vertices": points,
            "indices": [i for triangle in shape.triangles for i in triangle],
            "flags": bullet.GEOM_FORCE_CONCAVE_TRIMESH,
        }
    return {"shapeType": bullet.GEOM_MESH, "vertices": points}


def _cone(radius: float, height: float) -> tuple[Vector, ...]:
    turns = [2.0 * math.pi * k / _CONE_SEGMENTS for k in range(_CONE_SEGMENTS)]
    rim = tuple((radius * math.cos(a), radius * math.sin(a), -height / 2.0) for a in turns)
    return (*rim, (0.0, 0.0, height / 2.0))
