"""Collision surfaces: the shapes of colliders, who owns them, and their materials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pxr import Usd, UsdGeom, UsdPhysics, UsdShade

from cosim import frame
from cosim.mechanism import Collider, Pose, Quaternion, Shape, ShapeKind, SurfaceMaterial, Vector
from cosim.usd.placement import Placements
from cosim.usd.reader import StageReader

# Turns the z axis of a round shape onto the authored axis.
_AXES: dict[str, Quaternion] = {
    "X": (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0),
    "Y": (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0),
    "Z": frame.IDENTITY,
}
_EQUAL = 1e-6
_RINGS, _SEGMENTS = 12, 24


class ShapeRefused(Exception):
    """A geometry that is no collision shape here; the text says why."""


def read_colliders(reader: StageReader, placements: Placements) -> list[Collider]:
    """Every collider of the stage; what cannot be one is reported."""
    found = []
    for prim in reader.prims():
        if prim.HasAPI(UsdPhysics.MaterialAPI):
            _read_material(prim, reader)
        if not reader.has_schema(prim, "PhysicsCollisionAPI"):
            _check_lone_switch(prim, reader)
            continue
        reader.consume_schema(prim, "PhysicsMeshCollisionAPI")
        reader.consume(prim, "physics:approximation")
        if not reader.get(prim, "physics:collisionEnabled", True):
            continue
        if UsdGeom.Imageable(prim).ComputePurpose() == UsdGeom.Tokens.guide:
            where = reader.locate(prim)
            reader.log.info("collider-guide", f"{prim.GetPath()} has purpose guide and does not collide", where)
            continue
        collider = _read(prim, reader, placements)
        if collider is not None:
            found.append(collider)
    return found


def _check_lone_switch(prim: Usd.Prim, reader: StageReader) -> None:
    """`physics:collisionEnabled` without the schema: false on visual children is common and harmless."""
    if reader.authored(prim, "physics:collisionEnabled") and reader.get(prim, "physics:collisionEnabled"):
        reader.log.warning(
            "collision-api-missing",
            f"{prim.GetPath()} enables collisions and does not apply PhysicsCollisionAPI: it is no collider",
            reader.locate(prim, "physics:collisionEnabled"),
            hint='prepend apiSchemas = ["PhysicsCollisionAPI"]',
        )


def _read(prim: Usd.Prim, reader: StageReader, placements: Placements) -> Collider | None:
    body = placements.body_of(prim)
    placement = placements.relative(prim, body)
    if placement is None:
        return None
    try:
        shape, turn = geometry(prim, reader, placement.scale)
        if shape.kind is ShapeKind.MESH and body is not None and _is_moved(body):
            raise ShapeRefused("a concave surface can only be static; a moving body needs convexHull")
    except ShapeRefused as refused:
        reader.log.error(
            "collider-unsupported",
            f"{prim.GetPath()} cannot be a collider: {refused}",
            reader.locate(prim),
            hint="use a primitive, a finite plane, or a mesh with approximation none (static) or convexHull",
        )
        return None
    pose = frame.compose(placement.pose, Pose(orientation=turn))
    owner = str(body.GetPath()) if body is not None else ""
    return Collider(str(prim.GetPath()), owner, pose, shape, bound_material(prim, reader), reader.locate(prim))


def _is_moved(body: Usd.Prim) -> bool:
    api = UsdPhysics.RigidBodyAPI(body)
    return bool(api.GetRigidBodyEnabledAttr().Get()) and not bool(api.GetKinematicEnabledAttr().Get())


# ---- geometry


def geometry(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    """The shape of a geometry prim in metres and the rotation from shape to prim frame.

    Raises:
        ShapeRefused: it has none.
    """
    readers: dict[str, Callable[[Usd.Prim, StageReader, Vector], tuple[Shape, Quaternion]]] = {
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
    shape, turn = read(prim, reader, scale)
    sizes = (*shape.half_extents, shape.radius, shape.height, *(c for p in shape.points for c in p))
    if not all(math.isfinite(size) for size in sizes):
        raise ShapeRefused("its size is not finite")
    return shape, turn


def _positive(prim: Usd.Prim, reader: StageReader, name: str, default: float) -> float:
    value = float(reader.get(prim, name, default))
    if not (math.isfinite(value) and value > 0.0):
        raise ShapeRefused(f"its {name} is {value}")
    return value * reader.metres


def _cube(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    half = _positive(prim, reader, "size", 2.0) / 2.0
    x, y, z = (half * abs(s) for s in scale)
    return Shape(ShapeKind.BOX, half_extents=(x, y, z)), frame.IDENTITY


def _sphere(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    radius = _positive(prim, reader, "radius", 1.0)
    if _is_uniform(scale):
        return Shape(ShapeKind.SPHERE, radius=radius * abs(scale[0])), frame.IDENTITY
    return _hull_of(prim, reader, _profile_sphere(radius, 0.0), frame.IDENTITY, scale), frame.IDENTITY


def _capsule(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    radius, height, turn = _radius_height_turn(prim, reader, 0.5, 1.0)
    if _is_uniform(scale):
        factor = abs(scale[0])
        return Shape(ShapeKind.CAPSULE, radius=radius * factor, height=height * factor), turn
    return _hull_of(prim, reader, _profile_sphere(radius, height), turn, scale), frame.IDENTITY


def _round(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    radius, height, turn = _radius_height_turn(prim, reader, 1.0, 2.0)
    kind = ShapeKind.CYLINDER if prim.GetTypeName() == "Cylinder" else ShapeKind.CONE
    along = "XYZ".index(str(reader.get(prim, "axis", "Z")))
    radial = [abs(scale[k]) for k in range(3) if k != along]
    if abs(radial[0] - radial[1]) <= _EQUAL * max(radial):
        # A reflection along the axis turns a cone over.
        if kind is ShapeKind.CONE and scale[along] < 0.0:
            turn = frame.multiply(turn, (0.0, 1.0, 0.0, 0.0))
        return Shape(kind, radius=radius * radial[0], height=height * abs(scale[along])), turn
    rings = [(radius, -height / 2.0), (radius if kind is ShapeKind.CYLINDER else 0.0, height / 2.0)]
    return _hull_of(prim, reader, rings, turn, scale), frame.IDENTITY


def _radius_height_turn(
    prim: Usd.Prim, reader: StageReader, radius: float, height: float
) -> tuple[float, float, Quaternion]:
    axis = str(reader.get(prim, "axis", "Z"))
    if axis not in _AXES:
        raise ShapeRefused(f"its axis is {axis!r}")
    return _positive(prim, reader, "radius", radius), _positive(prim, reader, "height", height), _AXES[axis]


def _is_uniform(scale: Vector) -> bool:
    sizes = [abs(s) for s in scale]
    return max(sizes) - min(sizes) <= _EQUAL * max(sizes)


def _profile_sphere(radius: float, height: float) -> list[tuple[float, float]]:
    """(radius, z) of rings on a sphere, or on a capsule whose caps' centres are `height` apart."""
    found = []
    for k in range(_RINGS + 1):
        angle = math.pi * (k / _RINGS - 0.5)
        found.append((radius * math.cos(angle), radius * math.sin(angle) + math.copysign(height / 2.0, angle)))
    return found


def _hull_of(
    prim: Usd.Prim, reader: StageReader, rings: Sequence[tuple[float, float]], turn: Quaternion, scale: Vector
) -> Shape:
    """A round shape that its scale makes oval."""
    points = []
    for radius, z in rings:
        for k in range(_SEGMENTS if radius > 1e-12 else 1):
            angle = 2.0 * math.pi * k / _SEGMENTS
            x, y, w = frame.rotate(turn, (radius * math.cos(angle), radius * math.sin(angle), z))
            points.append((x * scale[0], y * scale[1], w * scale[2]))
    reader.log.info(
        "collider-oval",
        f"{prim.GetPath()} is scaled to an oval: its collider is the hull of {len(points)} points on it",
        reader.locate(prim),
    )
    return Shape(ShapeKind.HULL, points=tuple(points))


def _plane(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    """Two triangles: width and length along the schema's axes, no thickness."""
    width, length = _positive(prim, reader, "width", 2.0) / 2.0, _positive(prim, reader, "length", 2.0) / 2.0
    axis = str(reader.get(prim, "axis", "Z"))
    # UsdGeomPlane: X: width along z, length along y. Y: width x, length z. Z: width x, length y.
    corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    make: dict[str, Callable[[float, float], Vector]] = {
        "X": lambda w, n: (0.0, n, w),
        "Y": lambda w, n: (w, 0.0, n),
        "Z": lambda w, n: (w, n, 0.0),
    }
    if axis not in make:
        raise ShapeRefused(f"its axis is {axis!r}")
    points = []
    for w, n in corners:
        x, y, z = make[axis](w * width, n * length)
        points.append((x * scale[0], y * scale[1], z * scale[2]))
    return Shape(ShapeKind.MESH, points=tuple(points), triangles=((0, 1, 2), (0, 2, 3))), frame.IDENTITY


def _mesh(prim: Usd.Prim, reader: StageReader, scale: Vector) -> tuple[Shape, Quaternion]:
    approximation = str(reader.get(prim, "physics:approximation", "none"))
    if approximation not in ("none", "convexHull"):
        raise ShapeRefused(f"approximation {approximation!r} is not realised, and no other shape stands in for it")
    mesh = UsdGeom.Mesh(prim)
    points = [
        (float(x) * reader.metres * scale[0], float(y) * reader.metres * scale[1], float(z) * reader.metres * scale[2])
        for x, y, z in (mesh.GetPointsAttr().Get() or ())
    ]
    if len(points) < 3:
        raise ShapeRefused(f"it has {len(points)} points")
    if approximation == "convexHull":
        return Shape(ShapeKind.HULL, points=tuple(points)), frame.IDENTITY
    flipped = mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded
    flipped ^= scale[0] * scale[1] * scale[2] < 0.0
    triangles = _triangles(mesh, len(points), flipped)
    return Shape(ShapeKind.MESH, points=tuple(points), triangles=tuple(triangles)), frame.IDENTITY


def _triangles(mesh: UsdGeom.Mesh, count: int, flipped: bool) -> list[tuple[int, int, int]]:
    """Faces as fans."""
    counts = mesh.GetFaceVertexCountsAttr().Get() or ()
    indices = [int(i) for i in (mesh.GetFaceVertexIndicesAttr().Get() or ())]
    if sum(counts) != len(indices) or any(not 0 <= i < count for i in indices):
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
    return triangles


# ---- materials


def bound_material(prim: Usd.Prim, reader: StageReader) -> SurfaceMaterial:
    """The physics material that is bound to a prim or above it; USD's fallbacks without one."""
    material = _bound(prim)
    return SurfaceMaterial() if material is None else _read_material(material, reader)


def bound_density(prim: Usd.Prim, reader: StageReader) -> float:
    """The density of the bound material in stage units, 0 if it has none."""
    material = _bound(prim)
    return 0.0 if material is None else float(reader.get(material, "physics:density", 0.0))


def _bound(prim: Usd.Prim) -> Usd.Prim | None:
    found, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
    material = found.GetPrim() if found else None
    return material if material and material.HasAPI(UsdPhysics.MaterialAPI) else None


def _read_material(prim: Usd.Prim, reader: StageReader) -> SurfaceMaterial:
    reader.consume_schema(prim, "PhysicsMaterialAPI")
    reader.consume(prim, "physics:density")
    values = [
        float(reader.get(prim, f"physics:{n}", 0.0)) for n in ("staticFriction", "dynamicFriction", "restitution")
    ]
    authored = [reader.authored(prim, f"physics:{n}") for n in ("staticFriction", "dynamicFriction", "restitution")]
    if not all(math.isfinite(v) and v >= 0.0 for v in values):
        reader.log.error(
            "material-invalid", f"friction and restitution of {prim.GetPath()} are {values}", reader.locate(prim)
        )
        return SurfaceMaterial()
    static, dynamic, restitution = values
    if authored[0] and authored[1] and static != dynamic:
        reader.log.info(
            "friction-one-coefficient",
            f"{prim.GetPath()} has static friction {static:g} and dynamic friction {dynamic:g}; the core has one "
            f"coefficient and takes {dynamic:g}",
            reader.locate(prim, "physics:staticFriction"),
        )
    return SurfaceMaterial(static, dynamic, restitution)
