"""Gravity of the one physics scene."""

from __future__ import annotations

import math

from pxr import Usd, UsdPhysics

from cosim import frame
from cosim.mechanism import EARTH_GRAVITY, Vector
from cosim.usd.placement import Placements, vector
from cosim.usd.reader import StageReader

# Beyond this an authored magnitude is a mistake: the photosphere of the sun has 274 m/s².
_LARGEST = 1e6


def read_gravity(reader: StageReader, placements: Placements) -> Vector:
    """The acceleration of gravity in the Y-up world [m/s²]; Earth's, downwards, where nothing is authored."""
    down: Vector = (0.0, 0.0, -1.0) if reader.up_axis == "Z" else (0.0, -1.0, 0.0)
    found: list[tuple[Usd.Prim, Vector]] = []
    for prim in reader.prims():
        if prim.IsA(UsdPhysics.Scene):
            gravity = _of_scene(prim, reader, placements, down)
            if gravity is not None:
                found.append((prim, gravity))
    if not found:
        x, y, z = placements.direction(down)
        return (EARTH_GRAVITY * x, EARTH_GRAVITY * y, EARTH_GRAVITY * z)
    first, gravity = found[0]
    for prim, other in found[1:]:
        if math.dist(gravity, other) > 1e-9 * max(1.0, frame.norm(gravity)):
            reader.log.error(
                "usd-physics-gravity-invalid",
                f"{prim.GetPath()} says {_text(other)} m/s² and {first.GetPath()} {_text(gravity)} m/s²: a world has "
                "one gravity",
                reader.locate(prim, "physics:gravityMagnitude"),
                hint="remove one of the scenes, or author the same in both",
            )
    return gravity


def _of_scene(prim: Usd.Prim, reader: StageReader, placements: Placements, down: Vector) -> Vector | None:
    raw = reader.get(prim, "physics:gravityDirection")
    magnitude = float(reader.get(prim, "physics:gravityMagnitude", -math.inf))
    direction = vector(raw) if raw is not None else frame.ZERO
    length = frame.norm(direction)
    if not math.isfinite(length):
        return _invalid(prim, reader, "physics:gravityDirection", str(direction))
    if math.isnan(magnitude) or magnitude == math.inf:
        return _invalid(prim, reader, "physics:gravityMagnitude", str(magnitude))
    # Any negative magnitude means the Earth's, also USD's own fallback of −inf.
    amount = EARTH_GRAVITY if magnitude < 0.0 else magnitude * reader.metres
    if amount > _LARGEST:
        return _invalid(prim, reader, "physics:gravityMagnitude", f"{magnitude} ({amount:g} m/s²)")
    unit = down if length == 0.0 else (direction[0] / length, direction[1] / length, direction[2] / length)
    x, y, z = placements.direction(unit)
    return (amount * x, amount * y, amount * z)


def _invalid(prim: Usd.Prim, reader: StageReader, name: str, value: str) -> Vector | None:
    reader.log.error(
        "usd-physics-gravity-invalid",
        f"{name} of {prim.GetPath()} is {value}",
        reader.locate(prim, name),
        hint="author a finite vector and magnitude, or none for the Earth's",
    )
    return None


def _text(gravity: Vector) -> str:
    return "(" + ", ".join(f"{c:.6g}" for c in gravity) + ")"
