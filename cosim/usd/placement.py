"""Where prims are: rigid poses in metres, in a Y-up world, and the scale that they carry."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pxr import Tf, Usd, UsdGeom, UsdPhysics

from cosim import frame
from cosim.component import FloatArray
from cosim.inertia import of_matrix
from cosim.mechanism import IDENTITY, Pose, Quaternion, Vector
from cosim.usd.reader import StageReader

_SHEAR = 1e-4
_SMALLEST = 1e-12
# Z-up to Y-up: (x, y, z) → (x, z, −y), a turn of −90° about x.
_FROM_Z_UP: Quaternion = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Placement:
    """A prim's transform to the world, taken apart.

    Attributes:
        pose: rotation and translation, Y-up world, metres.
        scale: signed; a reflection turns all three signs (as usd-core does).
    """

    pose: Pose
    scale: Vector


@dataclass(frozen=True, slots=True)
class _Invalid:
    """A transform that places nothing: whose it is, why, and whether everything below it is lost too."""

    path: str
    why: str
    is_inherited: bool = True


class Placements:
    """Placements of a stage's prims.

    Args:
        reader: the stage.
    """

    def __init__(self, reader: StageReader) -> None:
        self._reader = reader
        self._cache = UsdGeom.XformCache(Usd.TimeCode.Default())
        self._found: dict[str, Placement | _Invalid] = {}
        self._reported: set[str] = set()
        self.world = _FROM_Z_UP if reader.up_axis == "Z" else IDENTITY

    def of(self, prim: Usd.Prim) -> Placement | None:
        """The placement of a prim; None, with a finding, where it is no rigid transform with scale."""
        found = self._look(prim)
        if isinstance(found, Placement):
            return found
        if found.path not in self._reported:
            self._reported.add(found.path)
            self._reader.log.error(
                "transform-invalid",
                f"the transform of {found.path} {found.why}",
                self._reader.locate(self._reader.stage.GetPrimAtPath(found.path)),
                hint="author translate, rotate and non-zero scale, with rotations below non-uniform scales",
            )
        return None

    def body_of(self, prim: Usd.Prim) -> Usd.Prim | None:
        """The nearest rigid body at or above a prim."""
        at = prim
        while at and not at.IsPseudoRoot():
            if at.HasAPI(UsdPhysics.RigidBodyAPI):
                return at
            at = at.GetParent()
        return None

    def relative(self, prim: Usd.Prim, body: Usd.Prim | None) -> Placement | None:
        """The placement of a prim in the frame of a body's prim above it, or in the world."""
        own = self.of(prim)
        if own is None or body is None:
            return own
        parent = self.of(body)
        if parent is None:
            return None
        # Not by way of the world, whose coordinates would cost digits.
        matrix, is_reset = self._cache.ComputeRelativeTransform(prim, body)
        if is_reset:
            return Placement(frame.compose(frame.inverse(parent.pose), own.pose), own.scale)
        scaled = np.array(matrix, dtype=float)
        scaled[:, :3] *= parent.scale
        return Placement(self._pose(scaled), own.scale)

    def above(self, prim: Usd.Prim) -> Placement | None:
        """The placement of the space that a prim's transform is authored in; None for the world."""
        parent = self._parent(prim)
        return None if parent is None else self.of(parent)

    def _parent(self, prim: Usd.Prim) -> Usd.Prim | None:
        parent = prim.GetParent()
        if not parent or parent.IsPseudoRoot():
            return None
        is_reset = prim.IsA(UsdGeom.Xformable) and UsdGeom.Xformable(prim).GetResetXformStack()
        return None if is_reset else parent

    def direction(self, vector: Vector) -> Vector:
        """A direction of the stage's world in the Y-up world."""
        return frame.rotate(self.world, vector)

    def _look(self, prim: Usd.Prim) -> Placement | _Invalid:
        path = str(prim.GetPath())
        if path not in self._found:
            parent = self._parent(prim)
            above = None if parent is None else self._look(parent)
            is_lost = isinstance(above, _Invalid) and above.is_inherited
            self._found[path] = above if above is not None and is_lost else self._decompose(prim)
        return self._found[path]

    def _decompose(self, prim: Usd.Prim) -> Placement | _Invalid:
        path = str(prim.GetPath())
        try:
            matrix = np.array(self._cache.GetLocalToWorldTransform(prim), dtype=float)
        except Tf.ErrorException as error:
            return _Invalid(path, f"cannot be computed: {str(error).rpartition(' : ')[2].strip()}")
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(matrix[:3, :3], axis=1)
        if not np.all(np.isfinite(matrix)) or not np.all(np.isfinite(lengths)):
            return _Invalid(path, "is not finite")
        if not np.all(lengths > _SMALLEST):
            return _Invalid(path, "has a scale of zero")
        # Rotations are unit only to rounding, and that is no scale.
        lengths = np.where(np.abs(lengths - 1.0) < _SMALLEST, 1.0, lengths)
        unit = matrix[:3, :3] / lengths[:, None]
        if np.abs(unit @ unit.T - np.eye(3)).max() > _SHEAR:
            return _Invalid(path, "has shear, which no rigid frame can carry", is_inherited=False)
        sign = 1.0 if np.linalg.det(unit) > 0.0 else -1.0
        sx, sy, sz = (sign * lengths).tolist()
        return Placement(frame.compose(Pose(orientation=self.world), self._pose(matrix)), (sx, sy, sz))

    def _pose(self, matrix: FloatArray) -> Pose:
        """Rotation and translation in metres of a matrix of USD, without its scale."""
        rows = matrix[:3, :3]
        unit = rows / np.linalg.norm(rows, axis=1)[:, None]
        # Row vectors: the rows are the images of x, y and z. A reflection is left to the scale.
        turn = unit.T if np.linalg.det(unit) > 0.0 else -unit.T
        x, y, z = (self._reader.metres * matrix[3, :3]).tolist()
        return Pose((x, y, z), of_matrix(turn))
