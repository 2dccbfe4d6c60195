"""Rigid bodies and their mass properties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pxr import Usd

from cosim import frame, inertia
from cosim.mechanism import Collider, MassProperties, Motion, Pose, RigidBody, Shape, ShapeKind, Vector
from cosim.usd.colliders import ShapeRefused, bound_density, geometry
from cosim.usd.placement import Placement, Placements, quaternion, vector
from cosim.usd.reader import StageReader

# UsdPhysics: a body without any density is of water.
_WATER = 1000.0
_ASSUMED_RADIUS = 0.1


def read_bodies(reader: StageReader, placements: Placements, colliders: Sequence[Collider]) -> list[RigidBody]:
    """Every rigid body that can be admitted; the others are reported."""
    owned: dict[str, list[Collider]] = {}
    for collider in colliders:
        owned.setdefault(collider.body, []).append(collider)
    found = []
    for prim in reader.prims():
        if reader.has_schema(prim, "PhysicsRigidBodyAPI"):
            body = _read(prim, reader, placements, owned.get(str(prim.GetPath()), ()))
            if body is not None:
                found.append(body)
    return found


def _read(
    prim: Usd.Prim, reader: StageReader, placements: Placements, colliders: Sequence[Collider]
) -> RigidBody | None:
    placement = placements.of(prim)
    reader.declare_inert(prim, "bodies do not sleep", "physics:startsAsleep")
    reader.consume_schema(prim, "PhysxRigidBodyAPI")
    motion = _motion(prim, reader)
    linear, angular = (
        _velocity(prim, reader, placements, "velocity"),
        _velocity(prim, reader, placements, "angularVelocity"),
    )
    dampings = [_damping(prim, reader, f"physxRigidBody:{n}") for n in ("linearDamping", "angularDamping")]
    gravity = not reader.get(prim, "physxRigidBody:disableGravity", False)
    if placement is None:
        return None
    mass = _MassReader(prim, reader, placement, colliders).read(motion)
    if mass is None and motion is Motion.DYNAMIC:
        return None
    if linear is None or angular is None:
        return None
    return RigidBody(
        str(prim.GetPath()),
        motion,
        placement.pose,
        mass,
        linear,
        angular,
        dampings[0],
        dampings[1],
        gravity,
        reader.locate(prim),
    )


def _motion(prim: Usd.Prim, reader: StageReader) -> Motion:
    enabled, kinematic = (
        reader.get(prim, "physics:rigidBodyEnabled", True),
        reader.get(prim, "physics:kinematicEnabled", False),
    )
    if not enabled:
        return Motion.STATIC
    return Motion.KINEMATIC if kinematic else Motion.DYNAMIC


def _velocity(prim: Usd.Prim, reader: StageReader, placements: Placements, name: str) -> Vector | None:
    """Authored in the space of the prim's transform, that of its parent; stage lengths or degrees per second."""
    value = reader.get(prim, f"physics:{name}")
    if value is None:
        return frame.ZERO
    factor = math.radians(1.0) if name == "angularVelocity" else reader.metres
    x, y, z = (factor * c for c in vector(value))
    if not all(math.isfinite(c) for c in (x, y, z)):
        reader.log.error(
            "physics-velocity-invalid",
            f"the {name} of {prim.GetPath()} is {tuple(value)}",
            reader.locate(prim, f"physics:{name}"),
        )
        return None
    if (x, y, z) == frame.ZERO:
        return frame.ZERO
    parent = prim.GetParent()
    placement = placements.of(parent) if parent and not parent.IsPseudoRoot() else None
    return frame.rotate(placement.pose.orientation if placement else placements.world, (x, y, z))


def _damping(prim: Usd.Prim, reader: StageReader, name: str) -> float:
    value = float(reader.get(prim, name, 0.0))
    if math.isfinite(value) and value >= 0.0:
        return value
    reader.log.error("damping-invalid", f"{name} of {prim.GetPath()} is {value}", reader.locate(prim, name))
    return 0.0


class _MassReader:
    """Mass properties of one body: authored values first, then what its colliders say."""

    def __init__(
        self, prim: Usd.Prim, reader: StageReader, placement: Placement, colliders: Sequence[Collider]
    ) -> None:
        self.prim, self.reader, self.placement, self.colliders = prim, reader, placement, colliders
        self.failed = False

    def read(self, motion: Motion) -> MassProperties | None:
        prim, reader = self.prim, self.reader
        if not reader.has_schema(prim, "PhysicsMassAPI") and reader.authored(prim, "physics:mass"):
            reader.log.info(
                "mass-api-not-applied",
                f"{prim.GetPath()} authors physics:mass and does not apply PhysicsMassAPI: it counts",
                reader.locate(prim, "physics:mass"),
            )
        authored = self._number(prim, "physics:mass") * reader.kilograms
        center = self._center()
        moments = self._moments()
        axes = self._axes()
        shaped = self._from_colliders()
        if self.failed:
            return None
        if moments is not None and authored > 0.0:
            at = center if center is not None else _center_of(shaped)
            return self._valid(MassProperties(authored, at, moments, axes or frame.IDENTITY))
        lump = shaped or self._from_geometry(authored, motion)
        if lump is None:
            return None
        if authored > 0.0:
            lump = lump.scaled(authored)
        found = inertia.principal(lump)
        if center is not None:
            found = replace(found, center_of_mass=center)
        if moments is not None:
            found = replace(found, diagonal_inertia=moments, principal_axes=axes or frame.IDENTITY)
        return self._valid(found)

    # ---- authored values; USD's sentinels mean "not authored"

    def _number(self, prim: Usd.Prim, name: str) -> float:
        """A mass or density; 0 where it is not authored."""
        value = self.reader.get_authored(prim, name)
        if value is None or float(value) == 0.0:
            return 0.0
        if not (math.isfinite(value) and value > 0.0):
            self._refuse(f"{name} of {prim.GetPath()} is {value}", name, prim)
            return 0.0
        return float(value)

    def _center(self) -> Vector | None:
        value = self.reader.get_authored(self.prim, "physics:centerOfMass")
        if value is None or any(c == -math.inf for c in value):
            return None
        if not all(math.isfinite(c) for c in value):
            self._refuse(f"the centre of mass is {tuple(value)}", "physics:centerOfMass")
            return None
        x, y, z = (float(c) * self.reader.metres * s for c, s in zip(value, self.placement.scale, strict=True))
        return (x, y, z)

    def _moments(self) -> Vector | None:
        value = self.reader.get_authored(self.prim, "physics:diagonalInertia")
        if value is None or tuple(value) == (0.0, 0.0, 0.0):
            return None
        factor = self.reader.kilograms * self.reader.metres**2
        x, y, z = (factor * c for c in vector(value))
        if not all(math.isfinite(c) and c > 0.0 for c in (x, y, z)):
            self._refuse(
                f"the diagonal inertia is {tuple(value)}; every moment must be positive", "physics:diagonalInertia"
            )
            return None
        if 2.0 * max(x, y, z) > (x + y + z) * (1.0 + 1e-6):
            self.reader.log.warning(
                "inertia-not-physical",
                f"no mass distribution has the moments {tuple(value)} of {self.prim.GetPath()}: the largest exceeds "
                "the sum of the others",
                self.reader.locate(self.prim, "physics:diagonalInertia"),
            )
        return (x, y, z)

    def _axes(self) -> frame.Quaternion | None:
        value = self.reader.get_authored(self.prim, "physics:principalAxes")
        if value is None:
            return None
        q = quaternion(value)
        length = math.sqrt(sum(c * c for c in q))
        if length == 0.0:
            return None
        if not abs(length - 1.0) <= 1e-3:
            self._refuse(f"the principal axes {q} are no unit quaternion", "physics:principalAxes")
            return None
        return frame.normalised(q)

    def _refuse(self, text: str, name: str, prim: Usd.Prim | None = None) -> None:
        self.failed = True
        self.reader.log.error(
            "physics-mass-invalid",
            f"{self.prim.GetPath()}: {text}",
            self.reader.locate(prim or self.prim, name),
            hint="author positive finite values, or none to take the colliders' mass properties",
        )

    # ---- what shapes say

    def _from_colliders(self) -> inertia.Lump | None:
        body_density = self._number(self.prim, "physics:density")
        lumps = []
        for collider in self.colliders:
            at = self.reader.stage.GetPrimAtPath(collider.path)
            if collider.shape.kind is ShapeKind.MESH and len(collider.shape.triangles) <= 2:
                continue  # a finite plane has no volume
            own = collider.path != str(self.prim.GetPath())
            if own:
                self.reader.has_schema(at, "PhysicsMassAPI")
            density = (self._number(at, "physics:density") if own else 0.0) or body_density
            density = density or bound_density(at, self.reader) or 0.0
            factor = self.reader.kilograms / self.reader.metres**3
            try:
                lump = inertia.of_shape(collider.shape, density * factor if density else _WATER)
            except ValueError as error:
                self._refuse(f"its collider {collider.path} has no mass properties: {error}", "", at)
                continue
            mass = self._number(at, "physics:mass") * self.reader.kilograms if own else 0.0
            lumps.append((lump.scaled(mass) if mass else lump).placed(collider.pose))
        return inertia.combined(lumps) if lumps else None

    def _from_geometry(self, authored: float, motion: Motion) -> inertia.Lump | None:
        """Nothing collides: the prim's own geometry, else a small ball."""
        prim, log = self.prim, self.reader.log
        if motion is not Motion.DYNAMIC and not authored:
            return None
        try:
            shape, turn = geometry(prim, self.reader, self.placement.scale)
            if shape.kind is not ShapeKind.MESH or len(shape.triangles) > 2:
                lump = inertia.of_shape(shape, _WATER).placed(Pose(orientation=turn))
                log.info(
                    "inertia-from-geometry",
                    f"{prim.GetPath()} has no collider: its inertia is that of its own geometry",
                    self.reader.locate(prim),
                )
                return lump
        except (ShapeRefused, ValueError):
            pass
        mass = authored or 1.0
        ball = inertia.of_shape(Shape(ShapeKind.SPHERE, radius=_ASSUMED_RADIUS), _WATER).scaled(mass)
        if motion is Motion.DYNAMIC:
            what = "inertia" if authored else "mass and inertia"
            log.warning(
                "inertia-assumed",
                f"{prim.GetPath()} has no collider and authors no {what}: taken as a ball of {mass:g} kg and "
                f"{_ASSUMED_RADIUS} m",
                self.reader.locate(prim),
                hint="author physics:mass and physics:diagonalInertia, or add a collider",
            )
        return ball

    def _valid(self, found: MassProperties) -> MassProperties | None:
        """Mass and inverse tensor must be numbers that the core can use."""
        with np.errstate(all="ignore"):
            values = np.array([found.mass, *found.diagonal_inertia])
            single = values.astype(np.float32)
            fine = [np.all(np.isfinite(v)) and np.all(v > 0) and np.all(np.isfinite(1 / v)) for v in (values, single)]
        if not all(fine):
            self._refuse(
                f"mass {found.mass:g} kg and inertia {found.diagonal_inertia} have no usable inverse", "physics:mass"
            )
            return None
        return found


def _center_of(lump: inertia.Lump | None) -> Vector:
    if lump is None:
        return frame.ZERO
    x, y, z = lump.center.tolist()
    return (x, y, z)
