"""Raw sensors, environment probes, lights and actuators."""

from __future__ import annotations

import math

from pxr import Usd

from cosim import frame
from cosim.mechanism import Actuator, ActuatorKind, DistantLight, EnvironmentProbe, RaySensor, Vector
from cosim.usd.placement import Placements, vector
from cosim.usd.reader import StageReader

_RAY, _PROBE = "LunCoRaycastAPI", "LunCoEnvironmentProbeAPI"
_ACTUATORS = {
    "LunCoForceActuatorAPI": (ActuatorKind.FORCE, "maxForce"),
    "LunCoTorqueActuatorAPI": (ActuatorKind.TORQUE, "maxTorque"),
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
        body = placements.body_of(prim)
        owner = str(body.GetPath()) if body is not None else ""
        if reader.has_schema(prim, _RAY):
            _read_ray(prim, reader, placements, body, found)
        if reader.has_schema(prim, _PROBE):
            placement = placements.relative(prim, body)
            if placement is not None:
                at = reader.locate(prim)
                found.probes.append(EnvironmentProbe(str(prim.GetPath()), owner, placement.pose.orientation, sun, at))
        for schema, (kind, limit) in _ACTUATORS.items():
            if reader.has_schema(prim, schema):
                _read_actuator(prim, kind, limit, reader, placements, body if owner in bodies else None, found)
    return found


def _sun(lights: list[DistantLight]) -> str:
    """The light that stands for the sun: one named Sun, else the first."""
    named = [light.path for light in lights if light.path.rpartition("/")[2].lower() == "sun"]
    return next(iter(sorted(named) or sorted(light.path for light in lights)), "")


def _read_light(prim: Usd.Prim, reader: StageReader, placements: Placements, found: Sensors) -> None:
    placement = placements.of(prim)
    if placement is not None:
        # A DistantLight shines along its −z.
        toward = frame.rotate(placement.pose.orientation, (0.0, 0.0, 1.0))
        found.lights.append(DistantLight(str(prim.GetPath()), toward, reader.locate(prim)))


def _read_ray(
    prim: Usd.Prim, reader: StageReader, placements: Placements, body: Usd.Prim | None, found: Sensors
) -> None:
    axis = str(reader.get(prim, "lunco:raycast:axis", "-Y"))
    reach = float(reader.get(prim, "lunco:raycast:maxDistance", 100.0)) * reader.metres
    offset = vector(reader.get(prim, "lunco:raycast:offset", (0.0, 0.0, 0.0)))
    direction = _axis(axis)
    if direction is None:
        _invalid(prim, reader, "lunco:raycast:axis", f"{axis!r} is no axis", "X, Y, Z, -X, -Y or -Z")
        return
    if not (math.isfinite(reach) and reach > 0.0):
        _invalid(prim, reader, "lunco:raycast:maxDistance", f"a ray of {reach} m sees nothing", "a positive length")
        return
    if not all(math.isfinite(c) for c in offset):
        _invalid(prim, reader, "lunco:raycast:offset", f"it is {offset}", "finite numbers")
        return
    placement = placements.relative(prim, body)
    if placement is None:
        return
    x, y, z = (reader.metres * s * c for s, c in zip(placement.scale, offset, strict=True))
    origin = frame.transform(placement.pose, (x, y, z))
    owner = str(body.GetPath()) if body is not None else ""
    turned = frame.rotate(placement.pose.orientation, direction)
    found.rays.append(RaySensor(str(prim.GetPath()), owner, origin, turned, reach, reader.locate(prim)))


def _axis(token: str) -> Vector | None:
    sign = -1.0 if token.startswith("-") else 1.0
    axes: dict[str, Vector] = {"X": (sign, 0.0, 0.0), "Y": (0.0, sign, 0.0), "Z": (0.0, 0.0, sign)}
    return axes.get(token.lstrip("+-"))


def _read_actuator(
    prim: Usd.Prim,
    kind: ActuatorKind,
    limit_name: str,
    reader: StageReader,
    placements: Placements,
    body: Usd.Prim | None,
    found: Sensors,
) -> None:
    def get(name: str, default: object) -> tuple[str, object]:
        """LunCoSim's attributes exist with and without a namespace of their own."""
        for full in (f"lunco:actuator:{name}", f"lunco:{name}"):
            if reader.authored(prim, full):
                return full, reader.get(prim, full)
        return f"lunco:actuator:{name}", default

    direction_name, raw = get("direction", (0.0, 1.0, 0.0))
    limit_full, limit = get(limit_name, math.inf)
    direction = vector(raw)
    length = frame.norm(direction)
    if not (math.isfinite(length) and length > 0.0):
        _invalid(prim, reader, direction_name, f"the direction {direction} has no length", "a vector that is not zero")
        return
    number = float(limit)  # type: ignore[arg-type]
    if math.isnan(number) or number <= 0.0:
        _invalid(prim, reader, limit_full, f"it is {number}", "a positive number")
        return
    if body is None:
        reader.log.error(
            "actuator-without-body",
            f"{prim.GetPath()} is an actuator and neither it nor anything above it is a rigid body",
            reader.locate(prim),
            hint="put it below a prim with PhysicsRigidBodyAPI",
        )
        return
    placement = placements.relative(prim, body)
    if placement is None:
        return
    x, y, z = (c / length for c in direction)
    turned = frame.rotate(placement.pose.orientation, (x, y, z))
    where = reader.locate(prim)
    found.actuators.append(
        Actuator(str(prim.GetPath()), kind, str(body.GetPath()), placement.pose.position, turned, number, where)
    )


def _invalid(prim: Usd.Prim, reader: StageReader, name: str, what: str, cure: str) -> None:
    reader.log.error(
        "sensor-invalid", f"{name} of {prim.GetPath()}: {what}", reader.locate(prim, name), f"author {cure}"
    )
