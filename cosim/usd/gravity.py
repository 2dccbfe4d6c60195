"""Gravity of the one physics scene."""

from __future__ import annotations

import math

from pxr import Usd, UsdPhysics

from cosim import frame
from cosim.mechanism import EARTH_GRAVITY, Vector
from cosim.usd.placement import Placements
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, finite, number, vector

# Beyond this an authored magnitude is a mistake: the photosphere of the sun has 274 m/s².
_LARGEST = 1e6
_CURE = "author a finite vector and magnitude, or none for the gravity of the Earth"


def read_gravity(reader: StageReader, placements: Placements) -> Vector:
    """The acceleration of gravity in the Y-up world [m/s²]; Earth's, downwards, where nothing is authored."""
    down: Vector = (0.0, 0.0, -1.0) if reader.up_axis == "Z" else (0.0, -1.0, 0.0)
    found: list[tuple[Usd.Prim, Vector]] = []
    for prim in reader.prims():
        if prim.IsA(UsdPhysics.Scene):
            try:
                found.append((prim, _of_scene(prim, reader, placements, down)))
            except ValueRefused as refused:
                refused.report(reader, "usd-physics-gravity-invalid", _CURE)
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


def _of_scene(prim: Usd.Prim, reader: StageReader, placements: Placements, down: Vector) -> Vector:
    name = "physics:gravityDirection"
    direction = finite(prim, name, vector(prim, reader, name, frame.ZERO))
    name = "physics:gravityMagnitude"
    magnitude = number(prim, reader, name, -math.inf)
    if math.isnan(magnitude) or magnitude == math.inf:
        raise ValueRefused(prim, name, f"is {magnitude}, which is not finite")
    # Any negative magnitude means the Earth's, also USD's own fallback of −inf.
    amount = EARTH_GRAVITY if magnitude < 0.0 else magnitude * reader.metres
    if amount > _LARGEST:
        raise ValueRefused(prim, name, f"is {magnitude}, that is {amount:g} m/s², which no world has")
    # The largest component first, so that the length of a huge or a tiny vector is a number.
    largest = max(abs(c) for c in direction)
    x, y, z = (c / largest for c in direction) if largest > 0.0 else down
    length = frame.norm((x, y, z))
    x, y, z = placements.direction((x / length, y / length, z / length))
    return (amount * x, amount * y, amount * z)


def _text(gravity: Vector) -> str:
    return "(" + ", ".join(f"{c:.6g}" for c in gravity) + ")"
