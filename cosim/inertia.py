"""Mass, centre of mass and inertia of shapes of uniform density.

Closed forms of the primitives: any table of moments of inertia (e.g. D. Eberly, "Polyhedral Mass
Properties (Revisited)", 2002, for the meshes). Tensors are about the centre of mass [kg·m²].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cosim import frame
from cosim.component import FloatArray
from cosim.mechanism import MassProperties, Pose, Quaternion, Shape, ShapeKind, Triangle, Vector

IndexArray = npt.NDArray[np.intp]
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

    def about(self, center: FloatArray) -> Lump:
        """The same mass, its centre declared to be elsewhere: the tensor is taken about that point.

        So do usd-core's `ComputeMassProperties` and PhysX where only the centre of mass is authored.
        """
        return Lump(self.mass, center, self.tensor + _steiner(self.mass, self.center - center))

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

    Raises:
        ValueError: a hull or mesh encloses no volume, or the mass is beyond the range of floats.
    """
    found = _of_shape(shape, density)
    if not (math.isfinite(found.mass) and np.all(np.isfinite(found.tensor)) and np.all(np.isfinite(found.center))):
        raise ValueError("its size is beyond the range of numbers")
    return found


def _of_shape(shape: Shape, density: float) -> Lump:
    if shape.kind is ShapeKind.BOX:
        x, y, z = (2.0 * h for h in shape.half_extents)
        mass = density * x * y * z
        return _lump(
            mass, (mass / 12.0 * (y * y + z * z), mass / 12.0 * (x * x + z * z), mass / 12.0 * (x * x + y * y))
        )
    r, h = shape.radius, shape.height
    if shape.kind is ShapeKind.SPHERE:
        mass = density * 4.0 / 3.0 * math.pi * r * r * r
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
        middle, caps = density * math.pi * r * r * h, density * 4.0 / 3.0 * math.pi * r * r * r
        # Hemispheres: centre of mass 3r/8 from their base, moment 83/320·m·r² about it (both together).
        across = middle * (3.0 * r * r + h * h) / 12.0 + caps * (0.4 * r * r + h * h / 4.0 + 3.0 / 8.0 * r * h)
        return _lump(middle + caps, (across, across, middle * r * r / 2.0 + caps * 0.4 * r * r))
    triangles = shape.triangles if shape.kind is ShapeKind.MESH else hull_triangles(shape.points)
    return _polyhedron(np.array(shape.points, dtype=float), np.array(triangles, dtype=np.intp), density)


def _lump(mass: float, diagonal: tuple[float, float, float], center: Vector = frame.ZERO) -> Lump:
    return Lump(mass, np.array(center, dtype=float), np.diag(diagonal))


def _polyhedron(points: FloatArray, triangles: IndexArray, density: float) -> Lump:
    """Signed tetrahedra from the points' mean to each triangle."""
    # Sizes beyond the range of floats leave a mass that is not finite, for the caller to refuse.
    with np.errstate(all="ignore"):
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


def hull_triangles(points: Sequence[Vector]) -> tuple[Triangle, ...]:
    """Outward triangles of the convex hull.

    Quickhull: C. B. Barber, D. P. Dobkin, H. Huhdanpaa, "The Quickhull Algorithm for Convex Hulls" (1996).

    Raises:
        ValueError: the points are coplanar.
    """
    return Hull(np.array(points, dtype=float).reshape(-1, 3)).triangles()


class Hull:
    """A convex hull that grows by the farthest point above one of its faces.

    Args:
        points: shape (n, 3).

    Raises:
        ValueError: the points are coplanar.
    """

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self._tolerance = 1e-9 * float(np.max(np.ptp(points, axis=0))) if len(points) else 0.0
        self._faces: list[Triangle] = []
        # One row per face: outward unit normal and distance from the origin.
        self._normals, self._distances = np.zeros((0, 3)), np.zeros(0)
        self._above: list[IndexArray] = []
        self._add(_first_tetrahedron(points, self._tolerance), np.arange(len(points)))
        while self._grow():
            pass

    def triangles(self) -> tuple[Triangle, ...]:
        """Faces as indices into the points, counter-clockwise seen from outside."""
        return tuple(self._faces)

    def _grow(self) -> bool:
        index = next((i for i, above in enumerate(self._above) if len(above)), None)
        if index is None:
            return False
        above = self._above[index]
        apex = int(above[int(np.argmax(self._points[above] @ self._normals[index]))])
        visible = self._normals @ self._points[apex] - self._distances > self._tolerance
        visible[index] = True
        seen = [self._faces[i] for i in np.flatnonzero(visible)]
        orphans = np.unique(np.concatenate([self._above[i] for i in np.flatnonzero(visible)]))
        edges = {(face[k], face[(k + 1) % 3]) for face in seen for k in range(3)}
        kept = ~visible
        self._faces = [face for face, keep in zip(self._faces, kept, strict=True) if keep]
        self._above = [points for points, keep in zip(self._above, kept, strict=True) if keep]
        self._normals, self._distances = self._normals[kept], self._distances[kept]
        horizon = [(a, b, apex) for a, b in sorted(edges) if (b, a) not in edges]
        self._add(horizon, orphans[orphans != apex])
        return True

    def _add(self, faces: list[Triangle], points: IndexArray) -> None:
        """Append faces and deal each point out to the first of them that it is above."""
        corners = self._points[np.array(faces, dtype=np.intp)]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0.0)
        distances = np.einsum("ij,ij->i", normals, corners[:, 0])
        for face, normal, distance in zip(faces, normals, distances, strict=True):
            is_above = self._points[points] @ normal - distance > self._tolerance
            self._faces.append(face)
            self._above.append(points[is_above])
            points = points[~is_above]
        self._normals = np.concatenate([self._normals, normals])
        self._distances = np.concatenate([self._distances, distances])


def _first_tetrahedron(p: FloatArray, tolerance: float) -> list[Triangle]:
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
        tensor += lump.tensor + _steiner(lump.mass, lump.center - center)
    return Lump(mass, center, tensor)


def _steiner(mass: float, arm: FloatArray) -> FloatArray:
    """What the parallel axis theorem adds to a tensor [kg·m²]."""
    return np.asarray(mass * (np.dot(arm, arm) * np.eye(3) - np.outer(arm, arm)))


def principal(lump: Lump) -> MassProperties:
    """With principal moments and axes.

    Cyclic Jacobi rotations by at most 45° (Golub and Van Loan, "Matrix Computations", section 8.5): a tensor
    that is diagonal keeps the axes of its frame and their order, one that nearly is gets axes close to
    them, and no eigenvalue library decides about signs.
    """
    tensor = (lump.tensor + lump.tensor.T) / 2.0
    axes = np.eye(3)
    for _ in range(60):
        off = np.abs(tensor - np.diag(np.diag(tensor)))
        if off.max() <= 1e-14 * np.abs(tensor).max():
            break
        for p, q in ((0, 1), (0, 2), (1, 2)):
            turn = _jacobi_rotation(tensor, p, q)
            tensor, axes = turn.T @ tensor @ turn, axes @ turn
    i, j, k = np.diag(tensor).tolist()
    x, y, z = lump.center.tolist()
    is_turned = not np.array_equal(axes, np.eye(3))
    return MassProperties(lump.mass, (x, y, z), (i, j, k), of_matrix(axes) if is_turned else frame.IDENTITY)


def _jacobi_rotation(tensor: FloatArray, p: int, q: int) -> FloatArray:
    """The rotation in the plane of two axes that makes their product of inertia zero."""
    turn = np.eye(3)
    if abs(tensor[p, q]) <= 1e-16 * np.abs(tensor).max():
        return turn
    tau = (tensor[q, q] - tensor[p, p]) / (2.0 * tensor[p, q])
    tangent = math.copysign(1.0, tau) / (abs(tau) + math.hypot(1.0, tau))
    cosine = 1.0 / math.hypot(1.0, tangent)
    turn[p, p] = turn[q, q] = cosine
    turn[p, q], turn[q, p] = tangent * cosine, -tangent * cosine
    return turn


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
