"""Mass, centre of mass and inertia of shapes of uniform density.

Closed forms of the primitives: any table of moments of inertia (e.g. D. Eberly, "Polyhedral Mass
Properties (Revisited)", 2002, for the meshes). Tensors are about the centre of mass [kg·m²].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim import frame
from cosim.component import FloatArray
from cosim.mechanism import MassProperties, Pose, Quaternion, Shape, ShapeKind, Vector

_UNIT: tuple[Vector, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Lump:
    """A mass with its inertia.

    Attributes:
        mass: [kg].
        center: centre of mass [m], shape (3,).
        tensor: about the centre of mass [kg·m²], shape (3, 3).
    """

    mass: float
    center: FloatArray
    tensor: FloatArray

    def scaled(self, mass: float) -> Lump:
        """The same shape with another mass."""
        return Lump(mass, self.center, self.tensor * (mass / self.mass))

    def placed(self, pose: Pose) -> Lump:
        """Seen from the frame that `pose` maps to."""
        turn = np.array([frame.rotate(pose.orientation, axis) for axis in _UNIT]).T
        x, y, z = self.center.tolist()
        return Lump(self.mass, np.array(frame.transform(pose, (x, y, z))), turn @ self.tensor @ turn.T)


def of_shape(shape: Shape, density: float) -> Lump:
    """Mass properties of a shape in its own frame.

    Args:
        shape: its geometry; a mesh must be closed.
        density: [kg/m³].
    """
    if shape.kind is ShapeKind.BOX:
        x, y, z = (2.0 * h for h in shape.half_extents)
        mass = density * x * y * z
        return _lump(
            mass, (mass / 12.0 * (y * y + z * z), mass / 12.0 * (x * x + z * z), mass / 12.0 * (x * x + y * y))
        )
    r, h = shape.radius, shape.height
    if shape.kind is ShapeKind.SPHERE:
        mass = density * 4.0 / 3.0 * math.pi * r**3
        return _lump(mass, (0.4 * mass * r * r,) * 3)
    if shape.kind is ShapeKind.CYLINDER:
        mass = density * math.pi * r * r * h
        across = mass * (3.0 * r * r + h * h) / 12.0
        return _lump(mass, (across, across, mass * r * r / 2.0))
    if shape.kind is ShapeKind.CONE:
        # Apex at +h/2: the centre of mass is a quarter of the height above the base.
        mass = density * math.pi * r * r * h / 3.0
        across = mass * (3.0 / 20.0 * r * r + 3.0 / 80.0 * h * h)
        return _lump(mass, (across, across, 0.3 * mass * r * r), (0.0, 0.0, -h / 4.0))
    if shape.kind is ShapeKind.CAPSULE:
        middle, caps = density * math.pi * r * r * h, density * 4.0 / 3.0 * math.pi * r**3
        # Hemispheres: centre of mass 3r/8 from their base, moment 83/320·m·r² about it (both together).
        across = middle * (3.0 * r * r + h * h) / 12.0 + caps * (0.4 * r * r + h * h / 4.0 + 3.0 / 8.0 * r * h)
        return _lump(middle + caps, (across, across, middle * r * r / 2.0 + caps * 0.4 * r * r))
    triangles = shape.triangles if shape.kind is ShapeKind.MESH else hull_triangles(shape.points)
    return _polyhedron(np.array(shape.points, dtype=float), np.array(triangles, dtype=np.intp), density)


def _lump(mass: float, diagonal: tuple[float, float, float], center: Vector = frame.ZERO) -> Lump:
    return Lump(mass, np.array(center, dtype=float), np.diag(diagonal))


def _polyhedron(points: FloatArray, triangles: np.ndarray, density: float) -> Lump:
    """Signed tetrahedra from the points' mean to each triangle."""
    origin = points.mean(axis=0)
    a, b, c = ((points - origin)[triangles[:, k]] for k in range(3))
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    if volume < 0.0:
        volumes, volume = -volumes, -volume
    if not volume > 0.0:
        raise ValueError("the mesh encloses no volume")
    total = a + b + c
    center = (volumes[:, None] * total).sum(axis=0) / (4.0 * volume)
    # ∫ x·xᵀ over a tetrahedron with a vertex at 0: V/20·(Σ vᵢvᵢᵀ + s·sᵀ), s = a + b + c.
    outer = sum(np.einsum("n,ni,nj->ij", volumes, v, v) for v in (a, b, c, total)) / 20.0
    second = density * (outer - volume * np.outer(center, center))
    mass = density * volume
    return Lump(mass, center + origin, np.trace(second) * np.eye(3) - second)


def hull_triangles(points: Sequence[Vector]) -> tuple[tuple[int, int, int], ...]:
    """Outward triangles of the convex hull, by insertion of one point after another.

    Raises:
        ValueError: the points are coplanar.
    """
    p = np.array(points, dtype=float)
    size = float(np.ptp(p, axis=0).max()) if len(p) else 0.0
    faces = _first_tetrahedron(p, 1e-9 * size)
    done = {i for face in faces for i in face}
    for i in range(len(p)):
        if i in done:
            continue
        seen = [f for f in faces if _height(p, f, p[i]) > 1e-9 * size]
        if not seen:
            continue
        edges = {(f[k], f[(k + 1) % 3]) for f in seen for k in range(3)}
        faces = [f for f in faces if f not in seen]
        faces += [(a, b, i) for a, b in sorted(edges) if (b, a) not in edges]
    return tuple(faces)


def _height(p: FloatArray, face: tuple[int, int, int], point: FloatArray) -> float:
    a, b, c = (p[k] for k in face)
    normal = np.cross(b - a, c - a)
    length = float(np.linalg.norm(normal))
    return float(np.dot(normal, point - a)) / length if length > 0.0 else 0.0


def _first_tetrahedron(p: FloatArray, tolerance: float) -> list[tuple[int, int, int]]:
    if len(p) < 4:
        raise ValueError("a hull needs four points")
    a = 0
    b = int(np.argmax(np.linalg.norm(p - p[a], axis=1)))
    c = int(np.argmax(np.linalg.norm(np.cross(p - p[a], p[b] - p[a]), axis=1)))
    normal = np.cross(p[b] - p[a], p[c] - p[a])
    heights = (p - p[a]) @ normal / max(float(np.linalg.norm(normal)), 1e-300)
    d = int(np.argmax(np.abs(heights)))
    if not abs(heights[d]) > tolerance:
        raise ValueError("the points lie in a plane")
    if heights[d] > 0.0:
        b, c = c, b
    return [(a, b, c), (a, c, d), (a, d, b), (b, d, c)]


def combined(lumps: Sequence[Lump]) -> Lump:
    """All of them as one (parallel axis theorem)."""
    mass = sum(lump.mass for lump in lumps)
    center = sum((lump.mass * lump.center for lump in lumps), np.zeros(3)) / mass
    tensor = np.zeros((3, 3))
    for lump in lumps:
        arm = lump.center - center
        tensor += lump.tensor + lump.mass * (np.dot(arm, arm) * np.eye(3) - np.outer(arm, arm))
    return Lump(mass, center, tensor)


def principal(lump: Lump) -> MassProperties:
    """With principal moments and axes.

    A tensor that is diagonal already keeps the axes of its frame; else the moments ascend and each axis
    points so that its largest component is positive, the last so that the frame is right-handed.
    """
    x, y, z = lump.center.tolist()
    off = np.abs(lump.tensor - np.diag(np.diag(lump.tensor))).max()
    if off <= 1e-12 * np.abs(lump.tensor).max():
        i, j, k = np.diag(lump.tensor).tolist()
        return MassProperties(lump.mass, (x, y, z), (i, j, k))
    moments, axes = np.linalg.eigh((lump.tensor + lump.tensor.T) / 2.0)
    for column in range(3):
        axis = axes[:, column]
        axes[:, column] = axis * math.copysign(1.0, axis[int(np.argmax(np.abs(axis)))])
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] = -axes[:, 2]
    i, j, k = moments.tolist()
    return MassProperties(lump.mass, (x, y, z), (i, j, k), of_matrix(axes))


def of_matrix(turn: FloatArray) -> Quaternion:
    """The quaternion of a rotation matrix with columns x, y, z; Shepperd's method (1978)."""
    m = turn
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    squares = (trace, m[0, 0], m[1, 1], m[2, 2])
    largest = max(range(4), key=lambda n: squares[n])
    if largest == 0:
        q = (1.0 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])
    elif largest == 1:
        q = (m[2, 1] - m[1, 2], 1.0 + 2.0 * m[0, 0] - trace, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0])
    elif largest == 2:
        q = (m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1.0 + 2.0 * m[1, 1] - trace, m[1, 2] + m[2, 1])
    else:
        q = (m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1.0 + 2.0 * m[2, 2] - trace)
    w, x, y, z = (float(c) for c in q)
    return frame.normalised((w, x, y, z))
