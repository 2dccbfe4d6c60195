"""From UsdPhysics and the raw sensors of a stage to a `RigidBodyModel` in SI."""

from __future__ import annotations

from cosim.mechanism import RigidBodyModel
from cosim.usd.bodies import read_bodies
from cosim.usd.colliders import read_colliders
from cosim.usd.gravity import read_gravity
from cosim.usd.joints import read_joints
from cosim.usd.placement import Placements
from cosim.usd.reader import StageReader
from cosim.usd.sensors import read_sensors

# What is known and has no effect on the simulation by design.
_INERT = {
    "PhysicsArticulationRootAPI": "every tree of joints is an articulation",
    "PhysxArticulationAPI": "every tree of joints is an articulation",
    "LunCoCatalogAPI": "metadata of LunCoSim's editor",
    "LunCoTerrainAPI": "metadata of LunCoSim's renderer",
    "LunCoAvatarAPI": "metadata of LunCoSim's editor",
    "LunCoShadowAPI": "metadata of LunCoSim's renderer",
}
_INERT_NAMES = ("lunco:spawnable", "lunco:spawnLift", "lunco:avatar", "lunco:camera", "lunco:scenario", "lunco:shadow:")


def read_mechanism(reader: StageReader) -> RigidBodyModel:
    """Bodies, joints, sensors and actuators; every finding goes to the reader's log."""
    placements = Placements(reader)
    gravity = read_gravity(reader, placements)
    colliders = read_colliders(reader, placements)
    bodies = read_bodies(reader, placements, colliders)
    admitted = {body.path for body in bodies}
    joints, portless = read_joints(reader, placements, admitted)
    sensors = read_sensors(reader, placements, admitted)
    pairs = _filtered_pairs(reader)
    _declare_inert(reader)
    return RigidBodyModel(
        gravity=gravity,
        bodies=tuple(sorted(bodies, key=lambda b: b.path)),
        colliders=tuple(sorted((c for c in colliders if not c.body or c.body in admitted), key=lambda c: c.path)),
        joints=tuple(sorted(joints, key=lambda j: j.path)),
        rays=tuple(sorted((r for r in sensors.rays if not r.body or r.body in admitted), key=lambda r: r.path)),
        probes=tuple(sorted((p for p in sensors.probes if not p.body or p.body in admitted), key=lambda p: p.path)),
        lights=tuple(sorted(sensors.lights, key=lambda light: light.path)),
        actuators=tuple(sorted(sensors.actuators, key=lambda a: a.path)),
        portless=tuple(sorted(portless)),
        filtered_pairs=pairs,
    )


def _filtered_pairs(reader: StageReader) -> tuple[tuple[str, str], ...]:
    """One opinion on either side is the whole pair."""
    found = set()
    for prim in reader.prims():
        if not reader.has_schema(prim, "PhysicsFilteredPairsAPI"):
            continue
        for target in reader.targets(prim, "physics:filteredPairs"):
            if not reader.stage.GetPrimAtPath(target):
                reader.log.warning(
                    "filtered-pair-dangling",
                    f"{prim.GetPath()} filters {target}, which does not exist",
                    reader.locate(prim, "physics:filteredPairs"),
                )
                continue
            one, other = sorted((str(prim.GetPath()), str(target)))
            found.add((one, other))
    return tuple(sorted(found))


def _declare_inert(reader: StageReader) -> None:
    for prim in reader.prims():
        for schema in reader.unread_schemas(prim):
            if schema in _INERT:
                reader.declare_inert(prim, _INERT[schema], schema)
        for name in reader.authored_names(prim):
            if name.startswith(_INERT_NAMES):
                reader.declare_inert(prim, "metadata of LunCoSim's editor", name)
