"""Geometry prims as collision shapes, in metres, with the scale of their transform applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pxr import Usd, UsdGeom

from cosim import frame
from cosim.mechanism import Quaternion, Shape, ShapeKind, Vector
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, number, token

# Turns the z axis of a round shape onto the authored axis.
_AXES: dict[str, Quaternion] = {
    "X": (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0),
    "Y": (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0),
    "Z": frame.IDENTITY,
}
# UsdGeomPlane: which axes width and length lie along. The order says where (width, length) turn about the axis.
_PLANE_AXES: dict[str, tuple[int, int]] = {"X": (2, 1), "Y": (0, 2), "Z": (0, 1)}
_EQUAL = 1e-6
_RINGS, _SEGMENTS = 12, 24

Turned = tuple[Shape, Quaternion]


class ShapeRefused(Exception):
    """A geometry that is no collision shape here; the text says why."""


def read_shape(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    """The shape of a geometry prim in metres, and the rotation from the shape's frame to the prim's.

    Args:
        prim: the geometry.
        reader: its stage.
        scale: signed scale of the prim's transform.

    Raises:
        ShapeRefused: it has none, or its attributes make none.
    """
    readers: dict[str, Callable[[Usd.Prim, StageReader, Vector], Turned]] = {
        "Cube": _cube,
        "Sphere": _sphere,
        "Capsule": _capsule,
        "Cylinder": _round,
        "Cone": _round,
        "Plane": _plane,
        "Mesh": _mesh,
    }
    read = readers.get(str(prim.GetTypeName()))
    if read is None:
        raise ShapeRefused(f"a {prim.GetTypeName() or 'prim without a type'} is no collision shape")
    try:
        shape, turn = read(prim, reader, scale)
    except ValueRefused as refused:
        raise ShapeRefused(f"its {refused.name} {refused}") from None
    sizes = (*shape.half_extents, shape.radius, shape.height, *(c for p in shape.points for c in p))
    if not all(math.isfinite(size) for size in sizes):
        raise ShapeRefused("its size is not finite")
    return shape, turn


def is_flat(shape: Shape) -> bool:
    """Whether a shape is a finite plane, which has no volume."""
    return shape.kind is ShapeKind.MESH and len(shape.triangles) <= 2


def _positive(prim: Usd.Prim, reader: StageReader, name: str, default: float) -> float:
    value = number(prim, reader, name, default)
    if not (math.isfinite(value) and value > 0.0):
        raise ValueRefused(prim, name, f"is {value}; it must be positive")
    return value * reader.metres


# ---- primitives


def _cube(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    half = _positive(prim, reader, "size", 2.0) / 2.0
    x, y, z = (half * abs(s) for s in scale)
    return Shape(ShapeKind.BOX, half_extents=(x, y, z)), frame.IDENTITY


def _sphere(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    radius = _positive(prim, reader, "radius", 1.0)
    if _is_uniform(scale):
        return Shape(ShapeKind.SPHERE, radius=radius * abs(scale[0])), frame.IDENTITY
    return _hull_of(prim, reader, _meridian(radius, 0.0), frame.IDENTITY, scale), frame.IDENTITY


def _capsule(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    radius, height = _positive(prim, reader, "radius", 0.5), _positive(prim, reader, "height", 1.0)
    turn = _AXES[_axis(prim, reader)]
    if _is_uniform(scale):
        factor = abs(scale[0])
        return Shape(ShapeKind.CAPSULE, radius=radius * factor, height=height * factor), turn
    return _hull_of(prim, reader, _meridian(radius, height), turn, scale), frame.IDENTITY


def _round(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    """A cylinder or a cone: exact as long as it stays round."""
    radius, height = _positive(prim, reader, "radius", 1.0), _positive(prim, reader, "height", 2.0)
    axis = _axis(prim, reader)
    turn, along = _AXES[axis], "XYZ".index(axis)
    kind = ShapeKind.CYLINDER if prim.GetTypeName() == "Cylinder" else ShapeKind.CONE
    radial = [abs(scale[k]) for k in range(3) if k != along]
    if abs(radial[0] - radial[1]) <= _EQUAL * max(radial):
        # A reflection along the axis turns a cone over.
        if kind is ShapeKind.CONE and scale[along] < 0.0:
            turn = frame.multiply(turn, (0.0, 1.0, 0.0, 0.0))
        return Shape(kind, radius=radius * radial[0], height=height * abs(scale[along])), turn
    rings = [(radius, -height / 2.0), (radius if kind is ShapeKind.CYLINDER else 0.0, height / 2.0)]
    return _hull_of(prim, reader, rings, turn, scale), frame.IDENTITY


def _axis(prim: Usd.Prim, reader: StageReader) -> str:
    axis = token(prim, reader, "axis", "Z")
    if axis not in _AXES:
        raise ValueRefused(prim, "axis", f"is {axis!r}; it must be X, Y or Z")
    return axis


def _is_uniform(scale: Vector) -> bool:
    sizes = [abs(s) for s in scale]
    return max(sizes) - min(sizes) <= _EQUAL * max(sizes)


def _meridian(radius: float, height: float) -> list[tuple[float, float]]:
    """(radius, z) of rings on a sphere, or on a capsule whose caps' centres are `height` apart."""
    found = []
    for k in range(_RINGS + 1):
        angle = math.pi * (k / _RINGS - 0.5)
        # The poles exactly, so that they are one point each.
        across = 0.0 if k in (0, _RINGS) else radius * math.cos(angle)
        ends = (angle,) if angle or not height else (-0.0, 0.0)
        found += [(across, radius * math.sin(angle) + math.copysign(height / 2.0, end)) for end in ends]
    return found


def _hull_of(
    prim: Usd.Prim, reader: StageReader, rings: Sequence[tuple[float, float]], turn: Quaternion, scale: Vector
) -> Shape:
    """A round shape that its scale makes oval."""
    points = []
    for radius, height in rings:
        for k in range(_SEGMENTS if radius > 0.0 else 1):
            angle = 2.0 * math.pi * k / _SEGMENTS
            x, y, z = frame.rotate(turn, (radius * math.cos(angle), radius * math.sin(angle), height))
            points.append((x * scale[0], y * scale[1], z * scale[2]))
    reader.log.info(
        "collider-oval",
        f"{prim.GetPath()} is scaled to an oval: its shape is the hull of {len(points)} points on it",
        reader.locate(prim),
    )
    return Shape(ShapeKind.HULL, points=tuple(points))


# ---- surfaces


def _plane(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    """Two triangles that face along the axis; no thickness."""
    half = (_positive(prim, reader, "width", 2.0) / 2.0, _positive(prim, reader, "length", 2.0) / 2.0)
    axis = _axis(prim, reader)
    along = _PLANE_AXES[axis]
    points: list[Vector] = []
    for corner in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        at = [0.0, 0.0, 0.0]
        for k in (0, 1):
            at[along[k]] = corner[k] * half[k] * scale[along[k]]
        points.append((at[0], at[1], at[2]))
    # Width, length and axis are right-handed for Z only; three reflections turn the surface over.
    is_flipped = (axis != "Z") ^ (scale[0] < 0.0)
    triangles = ((0, 2, 1), (0, 3, 2)) if is_flipped else ((0, 1, 2), (0, 2, 3))
    return Shape(ShapeKind.MESH, points=tuple(points), triangles=triangles), frame.IDENTITY


def _mesh(prim: Usd.Prim, reader: StageReader, scale: Vector) -> Turned:
    reader.consume_schema(prim, "PhysicsMeshCollisionAPI")
    approximation = token(prim, reader, "physics:approximation", "none")
    if approximation not in ("none", "convexHull"):
        raise ShapeRefused(f"approximation {approximation!r} is not realised, and no other shape stands in for it")
    mesh = UsdGeom.Mesh(prim)
    sx, sy, sz = (reader.metres * s for s in scale)
    try:
        points = tuple((x * sx, y * sy, z * sz) for x, y, z in (mesh.GetPointsAttr().Get() or ()))
    except (TypeError, ValueError):
        raise ShapeRefused("its points are no list of points") from None
    if len(points) < 3:
        raise ShapeRefused(f"it has {len(points)} points at the default time")
    if approximation == "convexHull":
        return Shape(ShapeKind.HULL, points=points), frame.IDENTITY
    is_left = mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded
    triangles = _triangles(mesh, len(points), is_left ^ (sx * sy * sz < 0.0))
    return Shape(ShapeKind.MESH, points=points, triangles=triangles), frame.IDENTITY


def _triangles(mesh: UsdGeom.Mesh, count: int, flipped: bool) -> tuple[tuple[int, int, int], ...]:
    """Faces as fans."""
    try:
        counts = [int(n) for n in (mesh.GetFaceVertexCountsAttr().Get() or ())]
        indices = [int(i) for i in (mesh.GetFaceVertexIndicesAttr().Get() or ())]
    except (TypeError, ValueError):
        raise ShapeRefused("its faces are no lists of whole numbers") from None
    if sum(counts) != len(indices) or any(n < 0 for n in counts) or any(not 0 <= i < count for i in indices):
        raise ShapeRefused("its face indices do not fit its points")
    triangles, at = [], 0
    for n in counts:
        face = indices[at : at + n]
        at += n
        for k in range(1, n - 1):
            a, b, c = face[0], face[k], face[k + 1]
            triangles.append((a, c, b) if flipped else (a, b, c))
    if not triangles:
        raise ShapeRefused("it has no faces")
    return tuple(triangles)
