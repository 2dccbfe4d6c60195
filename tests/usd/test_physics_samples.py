"""What LunCoSim's sample stages hold, read as they are."""

from __future__ import annotations

import pytest

from cosim.diagnostic import DiagnosticLog
from cosim.mechanism import JointKind, Motion, ShapeKind
from cosim.usd.physics import read_mechanism
from cosim.usd.stage import open_stage
from cosim.usd.system import read_system

pytestmark = pytest.mark.conformance

STATIC, KINEMATIC, DYNAMIC = Motion.STATIC, Motion.KINEMATIC, Motion.DYNAMIC
ROOT = "/SandboxScene"


@pytest.fixture
def sample(lunco):
    """A model of a sample stage, which must have no errors."""

    def read(name):
        log = DiagnosticLog()
        model = read_mechanism(
            open_stage(lunco / "scenes/tests" / f"{name}.usda", asset_roots={"lunco": lunco}, log=log)
        )
        assert log.errors == ()
        return model

    return read


def motions(model):
    return {b.path.rpartition("/")[2]: b.motion for b in model.bodies}


def test_joint(sample):
    m = sample("joint")
    assert motions(m) == {"CubeA": KINEMATIC, "CubeB": DYNAMIC, "FreeCube": DYNAMIC}
    (j,) = m.joints
    assert (j.kind, j.body0, j.body1) == (JointKind.FIXED, f"{ROOT}/CubeA", f"{ROOT}/CubeB")
    assert m.gravity == pytest.approx((0, -1.62, 0))


def test_revolute_motor(sample):
    m = sample("revolute_motor")
    assert motions(m) == {"Anchor": KINEMATIC, "Arm": DYNAMIC}
    (j,) = m.joints
    assert (j.kind, j.lower, j.upper, j.drive.is_active) == (JointKind.REVOLUTE, None, None, False)


def test_prismatic_drive(sample):
    (j,) = sample("prismatic_drive").joints
    assert (j.kind, j.drive.target, j.drive.max_effort) == (JointKind.PRISMATIC, -1.5, 5000.0)
    assert j.drive.is_active and j.drive.acceleration


def test_prismatic_spring(sample):
    m = sample("prismatic_spring")
    assert [j.path.rpartition("/")[2] for j in m.joints] == ["StrutComp", "StrutExt", "StrutLegLike"]
    assert {(j.drive.stiffness, j.drive.damping) for j in m.joints} == {(4000.0, 2200.0)}


def test_sensor(sample):
    m = sample("sensor")
    assert {b.path.rpartition("/")[2]: b.mass.mass for b in m.bodies} == {"Box": 100.0, "Box50": 50.0}
    (ray,) = m.rays
    assert (ray.body, ray.direction, ray.max_distance) == (f"{ROOT}/Box", (0.0, -1.0, 0.0), 10.0)
    (probe,) = m.probes
    assert (probe.body, probe.sun) == (f"{ROOT}/Box", f"{ROOT}/Sun")


def test_sun_tracker(sample):
    m = sample("sun_tracker")
    assert motions(m) == {"Mast": STATIC, "YawHead": DYNAMIC}
    (j,) = m.joints
    assert (j.kind, j.body0.rpartition("/")[2], j.body1.rpartition("/")[2]) == (JointKind.REVOLUTE, "Mast", "YawHead")
    (probe,) = m.probes
    assert probe.body == "" and probe.sun.endswith("/Sun")
    assert sum(c * c for c in m.lights[0].toward) == pytest.approx(1.0)


def test_balloon_on_earth(sample):
    m = sample("modelica_balloon_earth")
    assert m.gravity == pytest.approx((0, -9.80665, 0), rel=1e-3)
    assert [b.motion for b in m.bodies] == [DYNAMIC]
    assert m.colliders and all(c.shape.kind in (ShapeKind.SPHERE, ShapeKind.BOX) for c in m.colliders)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("filtered_pairs", ((f"{ROOT}/Rig/Hull", f"{ROOT}/Rig/Pad"),)),
        ("collision_groups", ((f"{ROOT}/Rig/Hull", f"{ROOT}/Rig/Pad"),)),
        ("filtered_pairs_unfiltered", ()),
    ],
)
def test_filtered_pairs(sample, name, pairs):
    m = sample(name)
    assert motions(m) == {"Arm": DYNAMIC, "Hull": KINEMATIC, "Pad": DYNAMIC}
    assert m.filtered_pairs == pairs


def test_escape_containment(sample):
    m = sample("escape_containment")
    assert [c.body for c in m.colliders] == ["/EscapeContainmentTest/Escapee", ""]
    assert m.bodies[0].pose.position[1] < -1000.0


def test_differential_rig(sample):
    m = sample("differential_rig")
    assert motions(m) == {"Rig": KINEMATIC, "RockerL": DYNAMIC, "RockerR": DYNAMIC}
    assert [j.kind for j in m.joints] == [JointKind.REVOLUTE] * 2
    assert m.portless == (("/DiffRigTest/Rig/Differential", "a PhysxPhysicsGearJoint is not realised"),)


def test_g7_joints(sample):
    m = sample("g7_joints")
    assert m.joints == ()
    assert {path.rpartition("/")[2] for path, _ in m.portless} == {"BallJoint", "D6Hinge", "Tether"}


def test_p90_every_authored_physics_attribute_of_the_samples_is_read_or_reported(lunco):
    """Nothing of physics: is left as not realised in the stages that this version runs."""
    for name in ("joint", "revolute_motor", "prismatic_drive", "prismatic_spring", "sensor", "sun_tracker"):
        log = DiagnosticLog()
        read_system(lunco / "scenes/tests" / f"{name}.usda", asset_roots={"lunco": lunco}, log=log)
        silent = ("attribute-not-realised", "schema-not-realised")
        left = [d.where.property for d in log if d.code in silent and d.where]
        assert [name for name in left if name.startswith(("physics:", "drive:", "physx", "limit:"))] == []
