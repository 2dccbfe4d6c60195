"""Mass properties of a body: authored values first, then what its shapes say.

Precedence, as in UsdPhysics: the mass of the body, else the mass or density of each collider, the
density of the body, of the collider's physics material, and of water. USD's sentinels (0, −inf, the
zero quaternion) mean "not authored".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pxr import Usd

from cosim import frame, inertia
from cosim.mechanism import Collider, MassProperties, Motion, Pose, Quaternion, Shape, ShapeKind, Vector
from cosim.usd.materials import Materials
from cosim.usd.placement import Placement
from cosim.usd.reader import StageReader
from cosim.usd.shapes import ShapeRefused, is_flat, read_shape
from cosim.usd.values import ValueRefused, authored_number, authored_quaternion, authored_vector

WATER = 1000.0
ASSUMED_RADIUS = 0.1
_NAMES = ("mass", "density", "centerOfMass", "diagonalInertia", "principalAxes")


class MassReader:
    """Reads the mass properties of one body.

    Args:
        prim: the body.
        reader: its stage.
        scale: signed scale of the body's transform.
        colliders: those that it owns.
        materials: the stage's physics materials.
    """

    def __init__(
        self,
        prim: Usd.Prim,
        reader: StageReader,
        placement: Placement,
        colliders: Sequence[Collider],
        materials: Materials,
    ) -> None:
        self._prim, self._reader, self._scale = prim, reader, placement.scale
        self._colliders, self._materials = colliders, materials

    def read(self, motion: Motion) -> MassProperties | None:
        """Mass properties; None for a body that physics does not move and that has none.

        Raises:
            ValueRefused: they are authored and make no body.
        """
        self._check_schema()
        authored = self._positive(self._prim, "physics:mass") * self._reader.kilograms
        density = self._density(self._prim)
        center, moments, axes = self._center(), self._moments(), self._axes()
        if moments is None and axes is not None:
            self._reader.log.warning(
                "principal-axes-unused",
                f"{self._prim.GetPath()} authors principal axes and no diagonal inertia: they have no effect",
                self._reader.locate(self._prim, "physics:principalAxes"),
            )
        if authored and moments is not None and center is not None:
            return self._valid(MassProperties(authored, center, moments, axes or frame.IDENTITY))
        lump = self._lump(density, motion, authored, is_needed=moments is None or not authored)
        if lump is None:
            return None
        if authored:
            lump = lump.scaled(authored)
        if center is not None:
            lump = lump.about(np.array(center))
        found = inertia.principal(lump)
        if moments is not None:
            found = replace(found, diagonal_inertia=moments, principal_axes=axes or frame.IDENTITY)
        return self._valid(found)

    def _check_schema(self) -> None:
        if self._reader.has_schema(self._prim, "PhysicsMassAPI"):
            return
        names = [n for n in _NAMES if self._reader.authored(self._prim, f"physics:{n}")]
        if names:
            self._reader.log.info(
                "mass-api-not-applied",
                f"{self._prim.GetPath()} authors physics:{', physics:'.join(names)} and does not apply "
                "PhysicsMassAPI: it counts",
                self._reader.locate(self._prim, f"physics:{names[0]}"),
            )

    # ---- authored values

    def _positive(self, prim: Usd.Prim, name: str) -> float:
        value = authored_number(prim, self._reader, name)
        if value is None or value == 0.0:
            return 0.0
        if not (math.isfinite(value) and value > 0.0):
            raise ValueRefused(prim, name, f"is {value}; it must be positive and finite")
        return value

    def _density(self, prim: Usd.Prim) -> float:
        return self._positive(prim, "physics:density") * self._reader.kilograms / self._reader.metres**3

    def _center(self) -> Vector | None:
        name = "physics:centerOfMass"
        value = authored_vector(self._prim, self._reader, name)
        if value is None or -math.inf in value:
            return None
        if not all(math.isfinite(c) for c in value):
            raise ValueRefused(self._prim, name, f"is {value}, which is not finite")
        x, y, z = (c * self._reader.metres * s for c, s in zip(value, self._scale, strict=True))
        return (x, y, z)

    def _moments(self) -> Vector | None:
        name = "physics:diagonalInertia"
        value = authored_vector(self._prim, self._reader, name)
        if value is None or value == frame.ZERO:
            return None
        factor = self._reader.kilograms * self._reader.metres**2
        x, y, z = (factor * c for c in value)
        if not all(math.isfinite(c) and c > 0.0 for c in (x, y, z)):
            raise ValueRefused(self._prim, name, f"is {value}; every moment must be positive and finite")
        if 2.0 * max(x, y, z) > (x + y + z) * (1.0 + 1e-6):
            self._reader.log.warning(
                "inertia-not-physical",
                f"no mass distribution has the moments {value} of {self._prim.GetPath()}: the largest exceeds the "
                "sum of the others",
                self._reader.locate(self._prim, name),
            )
        return (x, y, z)

    def _axes(self) -> Quaternion | None:
        name = "physics:principalAxes"
        q = authored_quaternion(self._prim, self._reader, name)
        if q is None or not any(q):
            return None
        if abs(math.sqrt(sum(c * c for c in q)) - 1.0) > 1e-3:
            raise ValueRefused(self._prim, name, f"is {q}, which is no unit quaternion")
        return frame.normalised(q)

    # ---- what shapes say

    def _lump(self, density: float, motion: Motion, authored: float, *, is_needed: bool) -> inertia.Lump | None:
        try:
            shaped = self._from_colliders(density)
        except ValueRefused:
            # Only the centre of mass is asked for, or the body is not moved at all.
            if motion is Motion.DYNAMIC and is_needed:
                raise
            shaped = None
        if shaped is not None:
            return shaped
        if motion is not Motion.DYNAMIC and not authored:
            return None
        return self._from_geometry(density) or self._assumed(authored, motion, is_needed)

    def _from_colliders(self, body_density: float) -> inertia.Lump | None:
        lumps = []
        for collider in self._colliders:
            if is_flat(collider.shape):
                continue
            prim = self._reader.stage.GetPrimAtPath(collider.path)
            density, mass = body_density, 0.0
            if prim != self._prim:
                self._reader.has_schema(prim, "PhysicsMassAPI")
                density = self._density(prim) or body_density
                mass = self._positive(prim, "physics:mass") * self._reader.kilograms
            density = density or self._materials.bound_to(prim).density or WATER
            try:
                lump = inertia.of_shape(collider.shape, density)
            except ValueError as error:
                raise ValueRefused(prim, "", f"gives its body no mass properties: {error}") from None
            lumps.append((lump.scaled(mass) if mass else lump).placed(collider.pose))
        return inertia.combined(lumps) if lumps else None

    def _from_geometry(self, density: float) -> inertia.Lump | None:
        """Nothing collides: the body's own geometry, if it is any."""
        try:
            shape, turn = read_shape(self._prim, self._reader, self._scale)
            if is_flat(shape):
                return None
            lump = inertia.of_shape(shape, density or WATER).placed(Pose(orientation=turn))
        except (ShapeRefused, ValueError):
            return None
        self._reader.log.info(
            "inertia-from-geometry",
            f"{self._prim.GetPath()} has no collider: its mass properties are those of its own geometry",
            self._reader.locate(self._prim),
        )
        return lump

    def _assumed(self, authored: float, motion: Motion, is_needed: bool) -> inertia.Lump:
        """A ball, with a warning where its inertia will be seen."""
        mass = authored or 1.0
        if motion is Motion.DYNAMIC and is_needed:
            what = "inertia" if authored else "mass"
            self._reader.log.warning(
                "inertia-assumed",
                f"{self._prim.GetPath()} has no collider and authors no {what}: it is taken as a ball of {mass:g} kg "
                f"and radius {ASSUMED_RADIUS} m",
                self._reader.locate(self._prim),
                hint="author physics:mass and physics:diagonalInertia, or add a collider",
            )
        return inertia.of_shape(Shape(ShapeKind.SPHERE, radius=ASSUMED_RADIUS), WATER).scaled(mass)

    def _valid(self, found: MassProperties) -> MassProperties:
        """Mass and inverse tensor must be numbers that a core can use, also in single precision."""
        values = np.array([found.mass, *found.diagonal_inertia])
        with np.errstate(all="ignore"):
            inverse = 1.0 / values
            forms = np.array([values, inverse, values.astype(np.float32), inverse.astype(np.float32)])
        if not np.all(np.isfinite(forms) & (forms > 0.0)):
            name = "physics:mass" if self._prim.GetAttribute("physics:mass") else ""
            text = f"makes {found.mass:g} kg with the inertia {found.diagonal_inertia}: no usable inverse"
            raise ValueRefused(self._prim, name, text)
        return found
