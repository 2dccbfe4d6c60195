"""From UsdPhysics and the raw sensors of a stage to a `RigidBodyModel` in SI."""

from __future__ import annotations

from pxr import UsdPhysics

from cosim.mechanism import RigidBodyModel
from cosim.usd.bodies import read_bodies, read_motions
from cosim.usd.colliders import read_colliders
from cosim.usd.filtering import read_filtering
from cosim.usd.gravity import read_gravity
from cosim.usd.joints import read_joints
from cosim.usd.leftover import report_left_out
from cosim.usd.materials import Materials
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
    placements, materials = Placements(reader), Materials(reader)
    gravity = read_gravity(reader, placements)
    motions = read_motions(reader)
    colliders = read_colliders(reader, placements, materials, motions)
    bodies = read_bodies(reader, placements, materials, motions, colliders)
    admitted = {body.path for body in bodies}
    colliders = [c for c in colliders if not c.body or c.body in admitted]
    joints, portless = read_joints(reader, placements, admitted)
    sensors = read_sensors(reader, placements, admitted)
    _read_owners(reader)
    _declare_inert(reader)
    report_left_out(reader)
    return RigidBodyModel(
        gravity=gravity,
        bodies=tuple(sorted(bodies, key=lambda b: b.path)),
        colliders=tuple(sorted(colliders, key=lambda c: c.path)),
        joints=tuple(sorted(joints, key=lambda j: j.path)),
        rays=tuple(sorted(sensors.rays, key=lambda r: r.path)),
        probes=tuple(sorted(sensors.probes, key=lambda p: p.path)),
        lights=tuple(sorted(sensors.lights, key=lambda light: light.path)),
        actuators=tuple(sorted(sensors.actuators, key=lambda a: a.path)),
        portless=tuple(sorted(portless)),
        filtered_pairs=read_filtering(reader, admitted, colliders),
    )


def _read_owners(reader: StageReader) -> None:
    """`physics:simulationOwner` is realised where it names the only scene there is."""
    scenes = [prim.GetPath() for prim in reader.prims() if prim.IsA(UsdPhysics.Scene)]
    for prim in reader.prims():
        relationship = prim.GetRelationship("physics:simulationOwner")
        if relationship and relationship.GetForwardedTargets() == scenes:
            reader.consume(prim, "physics:simulationOwner")


def _declare_inert(reader: StageReader) -> None:
    for prim in reader.prims():
        for schema in reader.unread_schemas(prim):
            if schema in _INERT:
                reader.declare_inert(prim, _INERT[schema], schema)
        for name in reader.authored_names(prim):
            if name.startswith(_INERT_NAMES):
                reader.declare_inert(prim, "metadata of LunCoSim's editor", name)
