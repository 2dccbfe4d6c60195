"""Joints: endpoints, frames, limits and drives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pxr import UsdPhysics

from cosim import frame
from cosim.mechanism import JointKind, Pose
from tests.usd.physics_stage import RIGID, moved, prim, read

A = prim("Cube", "A", RIGID, moved(translate=(0, 5, 0)))
B = prim("Cube", "B", RIGID, moved(translate=(0, 9, 0)))
ENDS = "rel physics:body0 = </A>; rel physics:body1 = </B>;"
HALF = math.sqrt(0.5)


def joint(kind="Revolute", body="", ends=ENDS, bodies=A + B, schemas="", **units):
    return read(bodies + prim(f"Physics{kind}Joint", "J", schemas, ends + body), **units)


def made(*args, **kwargs):
    found = joint(*args, **kwargs)
    assert found.errors == [], [str(d) for d in found.log]
    return found.joint()


def x_axis(pose):
    return frame.rotate(pose.orientation, (1.0, 0.0, 0.0))


# ---- what is built


@pytest.mark.parametrize("kind", ["Fixed", "Revolute", "Prismatic"])
def test_p24_ends_and_frames(kind):
    j = made(kind, "point3f physics:localPos0 = (1, 2, 3); point3f physics:localPos1 = (4, 5, 6)")
    assert (j.kind, j.body0, j.body1) == (JointKind(kind.lower()), "/A", "/B")
    assert (j.frame0.position, j.frame1.position) == ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    assert j.enabled and not j.collision_enabled


def test_p28_a_fixed_joint_has_no_ports_and_no_axis():
    found = joint("Fixed", "quatf physics:localRot1 = (0.5, 0.5, 0.5, 0.5)")
    assert found.model.portless == (("/J", "a fixed joint has no ports"),)
    assert found.joint().frame1.orientation == (0.5, 0.5, 0.5, 0.5)


@pytest.mark.parametrize("kind", ["Spherical", "Distance", ""])
def test_p32_p33_other_joints_hold_nothing_and_say_so(kind):
    found = joint(kind, "float physics:breakForce = 3")
    assert found.codes() == ["joint-not-realised"] and found.errors == []
    assert found.model.joints == () and [path for path, _ in found.model.portless] == ["/J"]
    assert f"Physics{kind}Joint" in found.said("joint-not-realised")


def test_a_gear_of_a_vendor_is_reported_once():
    found = read(A + 'def PhysxPhysicsGearJoint "J" {rel physics:body0 = </A>; float physics:gearRatio = 2}')
    assert found.codes() == ["joint-not-realised"]


def test_s1_15_s1_16_switches():
    j = made("Revolute", "bool physics:jointEnabled = false; bool physics:collisionEnabled = true")
    assert not j.enabled and j.collision_enabled


def test_s1_17_s1_18_break_forces_are_reported_and_articulation_flags_inert():
    found = joint("Revolute", "float physics:breakForce = 100; bool physics:excludeFromArticulation = true")
    assert "physics:breakForce" in found.said("attribute-not-realised")
    assert "physics:excludeFromArticulation" in found.said("attribute-inert")


# ---- endpoints


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ("rel physics:body0 = </Nowhere>; rel physics:body1 = </B>;", "no such prim"),
        ("rel physics:body0 = [</A>, </B>]; rel physics:body1 = </B>;", "2 targets"),
        ("rel physics:body0 = </B>; rel physics:body1 = </B>;", "/B to itself"),
        ("", "the world to itself"),
        ("rel physics:body1 = </J>;", "which is a joint"),
        ("rel physics:body1 = </A.size>;", "no such prim"),
    ],
)
def test_s1_10_ends_that_make_no_joint(ends, why):
    found = joint(ends=ends)
    assert found.errors == ["joint-endpoints-invalid"] and found.model.joints == ()
    assert why in found.said("joint-endpoints-invalid")
    assert found.model.portless == (("/J", "the joint has errors and is not built"),)


def test_a_joint_to_a_body_that_is_not_admitted():
    bad = prim("Cube", "A", RIGID + " MassAPI", "float physics:mass = -1")
    found = joint(bodies=bad + B)
    assert found.errors == ["physics-mass-invalid", "joint-endpoints-invalid"]


def test_s1_14_an_absent_end_is_the_world():
    j = made(ends="rel physics:body1 = </B>; point3f physics:localPos0 = (0, 9, 0);")
    assert (j.body0, j.frame0.position) == ("", (0.0, 9.0, 0.0))


def test_s1_14_the_world_end_of_a_z_up_stage_is_turned():
    j = made(ends='rel physics:body1 = </B>; point3f physics:localPos0 = (1, 2, 3); token physics:axis = "Z";', up="Z")
    assert j.frame0.position == pytest.approx((1, 3, -2))
    assert x_axis(j.frame0) == pytest.approx((0, 1, 0), abs=1e-12)
    assert x_axis(j.frame1) == pytest.approx((0, 0, 1), abs=1e-12)


def test_s1_10_s1_12_a_target_below_a_body_is_lifted_into_the_body():
    hook = prim("Xform", "Hook", "", moved(translate=(1, 1, 1), rotateXYZ=(0, 0, 90), scale=(5, 5, 5)))
    body = prim("Xform", "A", "RigidBodyAPI", moved(translate=(0, 5, 0), scale=(2, 2, 2)) + hook)
    ends = "rel physics:body0 = </A/Hook>; rel physics:body1 = </B>;"
    j = made("Fixed", "point3f physics:localPos0 = (1, 0, 0)", ends, body + B)
    assert j.body0 == "/A"
    assert j.frame0.position == pytest.approx((2, 12, 2))
    assert j.frame0.orientation == pytest.approx((HALF, 0, 0, HALF))


def test_s1_14_a_target_that_is_no_body_is_a_place_in_the_world():
    place = prim("Xform", "P", "", moved(translate=(1, 2, 3), rotateXYZ=(0, 90, 0)))
    j = made(
        "Fixed",
        "point3f physics:localPos0 = (1, 0, 0)",
        "rel physics:body0 = </P>; rel physics:body1 = </B>;",
        place + B,
    )
    assert (j.body0, j.frame0.position) == ("", pytest.approx((1, 2, 2)))


def test_a_disabled_body_is_a_static_end_in_its_own_frame():
    mast = prim("Cube", "A", RIGID, "bool physics:rigidBodyEnabled = false;" + moved(translate=(0, 5, 0)))
    j = made(body="point3f physics:localPos0 = (0, 1, 0)", bodies=mast + B)
    assert (j.body0, j.frame0.position) == ("/A", (0.0, 1.0, 0.0))


def test_s1_11_anchors_are_scaled_with_their_body():
    body = prim("Cube", "B", RIGID, moved(scale=(2, 3, 4)))
    j = made(body="point3f physics:localPos1 = (1, 1, 1)", bodies=A + body)
    assert j.frame1.position == (2.0, 3.0, 4.0)
    centimetres = made(body="point3f physics:localPos1 = (1, 1, 1)", bodies=A + body, metres=0.01)
    assert centimetres.frame1.position == pytest.approx((0.02, 0.03, 0.04))


def test_s1_13_rotations_are_normalised_and_zero_is_none():
    assert made("Fixed", "quatf physics:localRot0 = (2, 2, 2, 2)").frame0.orientation == (0.5, 0.5, 0.5, 0.5)
    found = joint("Fixed", "quatf physics:localRot0 = (0, 0, 0, 0)")
    assert found.codes() == ["joint-rotation-invalid"]
    assert found.joint().frame0 == Pose()
    assert joint("Fixed", "quatf physics:localRot0 = (nan, 0, 0, 0)").errors == ["physics-value-invalid"]


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(*[st.integers(-3, 3)] * 4).filter(any), st.sampled_from("XYZ"), st.sampled_from(("Revolute", "Prismatic"))
)
def test_s1_19_the_axis_is_x_of_both_frames(q, axis, kind):
    j = made(
        kind, f'quatf physics:localRot0 = {q}; quatf physics:localRot1 = {q}; uniform token physics:axis = "{axis}"'
    )
    unit = frame.normalised(tuple(float(c) for c in q))
    along = tuple(float(axis == name) for name in "XYZ")
    for pose in (j.frame0, j.frame1):
        assert x_axis(pose) == pytest.approx(frame.rotate(unit, along), abs=1e-6)
    # Both ends are turned alike: the coordinate is zero where the authored frames meet.
    assert j.frame0.orientation == j.frame1.orientation


def test_an_unknown_axis_is_an_error():
    assert joint(body='uniform token physics:axis = "W"').errors == ["joint-axis-invalid"]


@pytest.mark.filterwarnings("ignore:LoadUsdPhysicsFromRange")
def test_frames_are_those_of_usds_own_parser():
    body = prim(
        "Xform",
        "B",
        "RigidBodyAPI",
        moved(translate=(3, 1, 2), rotateXYZ=(10, 20, 30), scale=(2, 2, 2))
        + prim("Xform", "In", "", moved(translate=(1, 2, 3), rotateXYZ=(0, 40, 0))),
    )
    found = joint(
        "Fixed",
        "point3f physics:localPos0 = (1, 2, 3); point3f physics:localPos1 = (1, 2, 3);"
        "quatf physics:localRot1 = (0.5, 0.5, 0.5, 0.5)",
        "rel physics:body0 = </A>; rel physics:body1 = </B/In>;",
        A + body,
    )
    (theirs,) = UsdPhysics.LoadUsdPhysicsFromRange(found.reader.stage, ["/"])[UsdPhysics.ObjectType.FixedJoint][1]
    j = found.joint()
    assert j.frame0.position == pytest.approx(tuple(theirs.localPose0Position), abs=1e-5)
    assert j.frame1.position == pytest.approx(tuple(theirs.localPose1Position), abs=1e-5)
    turn = theirs.localPose1Orientation
    q = (turn.GetReal(), *turn.GetImaginary())
    assert abs(sum(a * b for a, b in zip(q, j.frame1.orientation, strict=True))) == pytest.approx(1.0, abs=1e-5)


# ---- limits


def test_p40_limits_are_in_degrees_and_stage_lengths():
    both = "float physics:lowerLimit = -90; float physics:upperLimit = 45"
    j = made("Revolute", both)
    assert (j.lower, j.upper) == (pytest.approx(-math.pi / 2), pytest.approx(math.pi / 4))
    j = made("Prismatic", both, metres=0.01)
    assert (j.lower, j.upper) == (pytest.approx(-0.9), pytest.approx(0.45))


@pytest.mark.parametrize(
    "body", ["", "float physics:lowerLimit = -inf; float physics:upperLimit = inf", "float physics:upperLimit = 3.4e38"]
)
def test_limits_that_are_none(body):
    for kind in ("Revolute", "Prismatic"):
        j = made(kind, body)
        assert (j.lower, j.upper) == (None, None)


def test_l3_14_half_a_limit_holds_with_a_remark_on_a_hinge():
    found = joint("Revolute", "float physics:upperLimit = 30")
    assert found.codes() == ["joint-limit-one-sided"]
    assert (found.joint().lower, found.joint().upper) == (None, pytest.approx(math.pi / 6))
    assert joint("Prismatic", "float physics:lowerLimit = -1").codes() == []


@pytest.mark.parametrize(
    "body",
    [
        "float physics:lowerLimit = 10; float physics:upperLimit = -10",
        "float physics:lowerLimit = nan",
        "float physics:lowerLimit = inf",
        "float physics:upperLimit = -inf",
    ],
)
@pytest.mark.parametrize("kind", ["Revolute", "Prismatic"])
def test_limits_that_cannot_be(kind, body):
    found = joint(kind, body)
    assert found.errors == ["joint-limit-invalid"] and found.model.joints == ()


def test_an_error_shows_authored_units_and_leaves_no_remarks_behind():
    found = joint("Revolute", "float physics:lowerLimit = 10; float physics:upperLimit = -10")
    assert found.codes() == ["joint-limit-invalid"]
    assert "10 is above its upper limit -10" in found.said("joint-limit-invalid")


def test_l3_1_a_limit_schema_on_a_hinge_is_reported():
    found = joint("Revolute", "float limit:rotX:physics:low = -10", schemas="LimitAPI:rotX")
    assert sorted(found.codes()) == ["attribute-not-realised", "schema-not-realised"]


# ---- drives

SHOULDER = (
    "float drive:angular:physics:targetPosition = 30.0; float drive:angular:physics:targetVelocity = 0.0;"
    "float drive:angular:physics:maxForce = 40.0"
)


def test_p36_the_shoulder_example_seeks_its_target():
    """The seed's example authors drive:angular:… and applies no schema."""
    found = joint("Revolute", 'uniform token physics:axis = "Y";' + SHOULDER)
    assert found.codes() == ["drive-api-not-applied"]
    drive = found.joint().drive
    assert drive.target == pytest.approx(0.5236, abs=1e-4)
    assert drive.max_effort == 40.0 and drive.is_active


def test_p36_a_drive_without_gains_is_a_motor_of_3_hz_and_damping_ratio_2():
    for body in (SHOULDER, ""):
        drive = made("Revolute", body).drive
        assert drive.acceleration
        assert math.sqrt(drive.stiffness) / math.tau == pytest.approx(3.0)
        assert drive.damping / (2 * math.sqrt(drive.stiffness)) == pytest.approx(2.0)
    assert not drive.is_active and drive.target is None and drive.max_effort == math.inf


def test_p37_p40_angular_gains_are_per_degree():
    body = (
        "float drive:angular:physics:stiffness = 10; float drive:angular:physics:damping = 2;"
        "float drive:angular:physics:targetPosition = 90; float drive:angular:physics:targetVelocity = 180"
    )
    found = joint("Revolute", body, schemas="DriveAPI:angular")
    assert found.codes() == []
    drive = found.joint().drive
    assert (drive.stiffness, drive.damping) == (pytest.approx(10 * 180 / math.pi), pytest.approx(2 * 180 / math.pi))
    assert (drive.target, drive.target_velocity) == (pytest.approx(math.pi / 2), pytest.approx(math.pi))
    assert not drive.acceleration and drive.is_active


def test_p37_linear_gains_are_per_length():
    body = "float drive:linear:physics:stiffness = 10; float drive:linear:physics:targetPosition = 2;"
    drive = made("Prismatic", body, schemas="DriveAPI:linear").drive
    assert (drive.stiffness, drive.target) == (10.0, 2.0)
    body += 'float drive:linear:physics:maxForce = 300; uniform token drive:linear:physics:type = "acceleration"'
    scaled = made("Prismatic", body, schemas="DriveAPI:linear", metres=0.01, kilograms=2.0).drive
    assert (scaled.stiffness, scaled.target, scaled.max_effort) == (10.0, pytest.approx(0.02), pytest.approx(6.0))
    assert scaled.acceleration


def test_a_torque_of_a_stage_in_centimetres():
    """1 kg·cm²/s² is 1e-4 N·m."""
    body = "float drive:angular:physics:stiffness = 10000; float drive:angular:physics:maxForce = 20000"
    drive = made("Revolute", body, metres=0.01).drive
    assert (drive.stiffness, drive.max_effort) == (pytest.approx(180 / math.pi), pytest.approx(2.0))


def test_a_velocity_alone_is_a_velocity_motor():
    drive = made("Revolute", "float drive:angular:physics:targetVelocity = 90").drive
    assert (drive.target, drive.stiffness, drive.is_active) == (None, 0.0, True)
    assert drive.target_velocity == pytest.approx(math.pi / 2) and drive.damping > 0.0


def test_an_authored_velocity_of_zero_is_a_brake():
    drive = made("Revolute", "float drive:angular:physics:targetVelocity = 0").drive
    assert (drive.target, drive.target_velocity, drive.is_active) == (None, 0.0, True) and drive.damping > 0.0


def test_a_force_of_a_stage_with_another_unit_of_mass():
    """A stiffness is a mass per time squared, whatever the unit of length."""
    drive = made("Prismatic", "float drive:linear:physics:stiffness = 10", metres=0.01, kilograms=0.5).drive
    assert drive.stiffness == pytest.approx(5.0)


def test_a_damper_has_no_target_and_a_spring_has_zero():
    damper = made("Revolute", "float drive:angular:physics:damping = 1").drive
    assert (damper.target, damper.stiffness, damper.is_active) == (None, 0.0, True)
    assert made("Revolute", "float drive:angular:physics:stiffness = 1").drive.target == 0.0


@pytest.mark.parametrize(
    "body",
    [
        "float drive:angular:physics:stiffness = -1",
        "float drive:angular:physics:damping = -1",
        "float drive:angular:physics:damping = inf",
        "float drive:angular:physics:targetPosition = nan",
        "float drive:angular:physics:maxForce = -1",
        "float drive:angular:physics:maxForce = nan",
        'uniform token drive:angular:physics:type = "torque"',
    ],
)
def test_p39_drives_that_cannot_be(body):
    assert joint("Revolute", body).errors == ["drive-invalid"]


def test_a_drive_of_the_wrong_kind_is_reported():
    found = joint("Revolute", "float drive:linear:physics:stiffness = 1", schemas="DriveAPI:linear")
    assert sorted(found.codes()) == ["attribute-not-realised", "schema-not-realised"]
    assert not found.joint().drive.is_active
    spherical = joint("Fixed", "float drive:angular:physics:stiffness = 1")
    assert spherical.codes() == ["attribute-not-realised"]
