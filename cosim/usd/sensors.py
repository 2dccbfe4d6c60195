"""Raw sensors, environment probes, lights and actuators."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pxr import Usd

from cosim import frame
from cosim.mechanism import Actuator, ActuatorKind, DistantLight, EnvironmentProbe, RaySensor, Vector
from cosim.usd.placement import Placement, Placements
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, finite, number, token, vector

_RAY, _PROBE = "LunCoRaycastAPI", "LunCoEnvironmentProbeAPI"
_ACTUATORS = {
    "LunCoForceActuatorAPI": (ActuatorKind.FORCE, "maxForce"),
    "LunCoTorqueActuatorAPI": (ActuatorKind.TORQUE, "maxTorque"),
}
_DIRECTIONS: dict[str, Vector] = {
    f"{sign}{axis}": (s * (axis == "X"), s * (axis == "Y"), s * (axis == "Z"))
    for sign, s in (("", 1.0), ("+", 1.0), ("-", -1.0))
    for axis in "XYZ"
}


class Sensors:
    """What `read_sensors` finds: the fields of `RigidBodyModel` with the same names."""

    def __init__(self) -> None:
        self.rays: list[RaySensor] = []
        self.probes: list[EnvironmentProbe] = []
        self.lights: list[DistantLight] = []
        self.actuators: list[Actuator] = []


def read_sensors(reader: StageReader, placements: Placements, bodies: set[str]) -> Sensors:
    """Every ray sensor, probe, light and actuator.

    Args:
        reader: the stage.
        placements: where prims are.
        bodies: paths of admitted bodies.
    """
    found = Sensors()
    for prim in reader.prims():
        if prim.GetTypeName() == "DistantLight":
            _read_light(prim, reader, placements, found)
    sun = _sun(found.lights)
    for prim in reader.prims():
        schemas = [name for name in (_RAY, _PROBE, *_ACTUATORS) if reader.has_schema(prim, name)]
        if not schemas:
            continue
        body = placements.body_of(prim)
        mount = _Mount(prim, "" if body is None else str(body.GetPath()), placements.relative(prim, body))
        for schema in schemas:
            try:
                _read_one(schema, mount, reader, bodies, sun, found)
            except ValueRefused as refused:
                refused.report(reader, "sensor-invalid", "" if refused.name else "correct the body or transform first")
    return found


@dataclass(frozen=True, slots=True)
class _Mount:
    """Where a sensor or actuator is mounted: its body ("" for the world) and its placement in it."""

    prim: Usd.Prim
    body: str
    placement: Placement | None


def _read_one(schema: str, mount: _Mount, reader: StageReader, bodies: set[str], sun: str, found: Sensors) -> None:
    prim = mount.prim
    if mount.body and mount.body not in bodies:
        raise ValueRefused(prim, "", f"is mounted on {mount.body}, a body that is not admitted")
    if schema == _RAY:
        found.rays.append(_ray(mount, reader))
    elif schema == _PROBE:
        at = _placed(mount).pose.orientation
        found.probes.append(EnvironmentProbe(str(prim.GetPath()), mount.body, at, sun, reader.locate(prim)))
    elif mount.body:
        found.actuators.append(_actuator(schema, mount, reader))
    else:
        reader.log.error(
            "actuator-without-body",
            f"{prim.GetPath()} is an actuator and neither it nor anything above it is a rigid body",
            reader.locate(prim),
            hint="put it below a prim with PhysicsRigidBodyAPI",
        )


def _placed(mount: _Mount) -> Placement:
    if mount.placement is None:
        raise ValueRefused(mount.prim, "", "has no valid transform, nor has its body")
    return mount.placement


def _sun(lights: list[DistantLight]) -> str:
    """The light that stands for the sun: one named Sun, else the first."""
    named = [light.path for light in lights if light.path.rpartition("/")[2].lower() == "sun"]
    return next(iter(sorted(named) or sorted(light.path for light in lights)), "")


def _read_light(prim: Usd.Prim, reader: StageReader, placements: Placements, found: Sensors) -> None:
    placement = placements.of(prim)
    if placement is not None:
        # A DistantLight shines along its −z.
        toward = _direction((0.0, 0.0, 1.0), placement)
        found.lights.append(DistantLight(str(prim.GetPath()), toward, reader.locate(prim)))


def _direction(local: Vector, placement: Placement) -> Vector:
    """The unit vector of a direction of a prim's scaled, perhaps mirrored frame."""
    x, y, z = (s * c for s, c in zip(placement.scale, local, strict=True))
    length = frame.norm((x, y, z))
    return frame.rotate(placement.pose.orientation, (x / length, y / length, z / length))


def _ray(mount: _Mount, reader: StageReader) -> RaySensor:
    prim = mount.prim
    axis = token(prim, reader, "lunco:raycast:axis", "-Y")
    if axis not in _DIRECTIONS:
        raise ValueRefused(prim, "lunco:raycast:axis", f"is {axis!r}; it must be X, Y, Z, -X, -Y or -Z")
    name = "lunco:raycast:maxDistance"
    reach = number(prim, reader, name, 100.0 / reader.metres)
    if not (math.isfinite(reach) and reach > 0.0):
        raise ValueRefused(prim, name, f"is {reach}; it must be a positive length")
    name = "lunco:raycast:offset"
    offset = finite(prim, name, vector(prim, reader, name, frame.ZERO))
    placement = _placed(mount)
    x, y, z = (reader.metres * s * c for s, c in zip(placement.scale, offset, strict=True))
    return RaySensor(
        path=str(prim.GetPath()),
        body=mount.body,
        origin=frame.transform(placement.pose, (x, y, z)),
        direction=_direction(_DIRECTIONS[axis], placement),
        max_distance=reach * reader.metres,
        where=reader.locate(prim),
    )


def _actuator(schema: str, mount: _Mount, reader: StageReader) -> Actuator:
    kind, limit_name = _ACTUATORS[schema]
    prim = mount.prim

    def full(name: str) -> str:
        """The attribute's name with a namespace of its own, or without where only that is authored."""
        names = (f"lunco:actuator:{name}", f"lunco:{name}")
        return next((n for n in names if prim.GetAttribute(n).HasAuthoredValue()), names[0])

    name = full("direction")
    direction = finite(prim, name, vector(prim, reader, name, (0.0, 1.0, 0.0)))
    if direction == frame.ZERO:
        raise ValueRefused(prim, name, "has no length")
    name = full(limit_name)
    limit = number(prim, reader, name, math.inf)
    if not limit > 0.0:
        raise ValueRefused(prim, name, f"is {limit}; it must be positive")
    placement = _placed(mount)
    return Actuator(
        path=str(prim.GetPath()),
        kind=kind,
        body=mount.body,
        position=placement.pose.position,
        direction=_direction(direction, placement),
        limit=limit,
        where=reader.locate(prim),
    )
