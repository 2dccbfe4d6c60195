"""Where prims end up: units, up axis, signed scale, and what is no rigid transform."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from cosim import frame
from cosim.mechanism import ShapeKind
from tests.usd.physics_stage import RIGID, moved, prim, read

coordinates = st.floats(-100.0, 100.0).map(lambda x: round(x, 3))
scales = st.tuples(*[st.floats(0.1, 10.0).map(lambda x: round(x, 3))] * 3, st.sampled_from((1.0, -1.0))).map(
    lambda s: (s[0] * s[3], s[1], s[2])
)


@st.composite
def rotations(draw):
    q = draw(st.tuples(*[st.integers(-5, 5)] * 4).filter(any))
    return frame.normalised(tuple(float(c) for c in q))


def same_rotation(a, b):
    return abs(sum(x * y for x, y in zip(a, b, strict=True))) == pytest.approx(1.0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.tuples(coordinates, coordinates, coordinates), rotations(), scales)
def test_s1_19_a_pose_gives_the_world_transform_back(position, q, scale):
    """x_world = R·(s∘x) + p, with quaternions wxyz, for any rotation and signed scale."""
    found = read(prim("Cube", "B", RIGID, moved(translate=position, orient=q, scale=scale)))
    assert found.errors == []
    pose = found.body("/B").pose
    world = UsdGeom.Xformable(found.reader.stage.GetPrimAtPath("/B")).ComputeLocalToWorldTransform(
        Usd.TimeCode.Default()
    )
    sign = math.copysign(1.0, scale[0] * scale[1] * scale[2])
    signed = [sign * abs(s) for s in scale]
    for corner in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 2.0, 3.0)):
        ours = frame.transform(pose, tuple(c * s for c, s in zip(corner, signed, strict=True)))
        assert ours == pytest.approx(tuple(world.Transform(Gf.Vec3d(corner))), abs=1e-6)
    half = found.collider("/B").shape.half_extents
    assert half == pytest.approx([abs(s) for s in scale])


@pytest.mark.filterwarnings("ignore:LoadUsdPhysicsFromRange")
@settings(max_examples=40, deadline=None)
@given(rotations(), scales)
def test_signed_scale_is_that_of_usds_own_parser(q, scale):
    found = read(
        prim("Xform", "B", "RigidBodyAPI", moved(orient=q, scale=scale))
        + 'def PhysicsFixedJoint "J" {rel physics:body1 = </B>; point3f physics:localPos1 = (1, 1, 1)}'
    )
    (descriptor,) = UsdPhysics.LoadUsdPhysicsFromRange(found.reader.stage, ["/"])[UsdPhysics.ObjectType.FixedJoint][1]
    assert found.joint().frame1.position == pytest.approx(tuple(descriptor.localPose1Position), rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(rotations(), rotations(), scales, st.floats(0.2, 5.0), st.sampled_from("YZ"), st.sampled_from((1.0, 0.01)))
def test_p91_what_is_below_a_body_stands_where_the_stage_puts_it(q, inner, scale, size, up, metres):
    """World point of a collider, a ray and a joint anchor against usd-core's own transforms."""
    child = prim("Cube", "C", "CollisionAPI LunCoRaycastAPI", moved(translate=(1, 2, 3), orient=inner, scale=scale))
    body = prim("Xform", "B", "RigidBodyAPI", moved(translate=(4, 5, 6), orient=q, scale=(size, size, -size)) + child)
    anchor = 'def PhysicsFixedJoint "J" {rel physics:body1 = </B/C>; point3f physics:localPos1 = (1, 0.5, 2)}'
    found = read(body + anchor, up=up, metres=metres)
    assert found.errors == []
    world = UsdGeom.Xformable(found.reader.stage.GetPrimAtPath("/B/C")).ComputeLocalToWorldTransform(
        Usd.TimeCode.Default()
    )

    def there(x, y, z):
        x, y, z = (metres * c for c in world.Transform(Gf.Vec3d(x, y, z)))
        return (x, y, z) if up == "Y" else (x, z, -y)

    pose = found.body("/B").pose
    (ray,) = found.model.rays
    for ours in (found.collider("/B/C").pose.position, ray.origin):
        assert frame.transform(pose, ours) == pytest.approx(there(0, 0, 0), abs=1e-6)
    assert frame.transform(pose, found.joint().frame1.position) == pytest.approx(there(1, 0.5, 2), abs=1e-5)
    down = np.subtract(there(0, -1, 0), there(0, 0, 0))
    assert frame.rotate(pose.orientation, ray.direction) == pytest.approx(down / np.linalg.norm(down), abs=1e-6)


def test_the_reflection_of_the_parser_notes():
    """rotZ 45°, scale (−2, 3, 4) → rotation wxyz (0, 0.92388, 0.38268, 0), scale (−2, −3, −4)."""
    found = read(prim("Cube", "B", RIGID, moved(rotateXYZ=(0, 0, 45), scale=(-2, 3, 4))))
    assert same_rotation(found.body("/B").pose.orientation, (0.0, 0.9238795325, 0.3826834324, 0.0))


SCENE = """
def Xform "World" {{
    def Xform "Chassis" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
        {place}; float physics:mass = 7; vector3f physics:velocity = {v}; vector3f physics:angularVelocity = {w}
        def Cylinder "Hull" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
            double radius = {r}; double height = {h}; uniform token axis = "{up}"
        }}
        def Xform "Eye" (prepend apiSchemas = ["LunCoRaycastAPI"]) {{
            string lunco:raycast:axis = "-{up}"; double lunco:raycast:maxDistance = {reach}; {eye}
        }}
    }}
    def PhysicsPrismaticJoint "J" {{
        rel physics:body1 = </World/Chassis>; uniform token physics:axis = "{up}"
        point3f physics:localPos0 = {p0}; float physics:lowerLimit = {low}; float physics:upperLimit = {high}
        float drive:linear:physics:targetPosition = {high}; float drive:linear:physics:stiffness = 40
    }}
}}
"""


def scene(metres: float, up: str):
    """One scene in any units and up axis; lengths are given in metres, Y-up."""

    def at(x, y, z):
        x, y, z = (c / metres for c in (x, y, z))
        return (x, y, z) if up == "Y" else (x, -z, y)

    def turned(x, y, z):
        return (x, y, z) if up == "Y" else (x, -z, y)

    text = SCENE.format(
        place=moved(translate=at(1, 2, 3), rotateXYZ=turned(0, 30, 0)),
        v=at(0.5, -1, 0.25),
        w=turned(10, 20, 30),
        r=0.3 / metres,
        h=1.2 / metres,
        up=up,
        reach=50 / metres,
        eye=moved(translate=at(0, -0.6, 0.1)),
        p0=at(1, 0, 3),
        low=-0.5 / metres,
        high=1.5 / metres,
    )
    return read(text, metres=metres, up=up)


@pytest.mark.parametrize(("metres", "up"), [(0.01, "Y"), (1.0, "Z"), (0.01, "Z"), (0.0254, "Z")])
def test_the_same_scene_in_other_units_and_axes_has_the_same_values(metres, up):
    base, other = scene(1.0, "Y"), scene(metres, up)
    assert base.errors == other.errors == []
    # Prim frames are not turned: the local frame of the Z-up scene is the Y-up one turned by +90° about x.
    local = frame.IDENTITY if up == "Y" else (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    a, b = base.body("/World/Chassis"), other.body("/World/Chassis")
    assert b.pose.position == pytest.approx(a.pose.position)
    assert same_rotation(frame.multiply(b.pose.orientation, local), a.pose.orientation)
    assert b.linear_velocity == pytest.approx(a.linear_velocity)
    assert b.angular_velocity == pytest.approx(a.angular_velocity)
    assert sorted(b.mass.diagonal_inertia) == pytest.approx(sorted(a.mass.diagonal_inertia), rel=1e-6)
    assert other.model.gravity == pytest.approx(base.model.gravity)
    ja, jb = base.joint("/World/J"), other.joint("/World/J")
    assert (jb.lower, jb.upper, jb.drive.target) == pytest.approx((ja.lower, ja.upper, ja.drive.target), rel=1e-6)
    assert jb.drive.stiffness == pytest.approx(ja.drive.stiffness)
    assert jb.frame0.position == pytest.approx(ja.frame0.position)
    axes = [frame.rotate(j.frame0.orientation, (1.0, 0.0, 0.0)) for j in (ja, jb)]
    assert axes[0] == pytest.approx((0, 1, 0)) and axes[1] == pytest.approx((0, 1, 0), abs=1e-12)
    ra, rb = base.model.rays[0], other.model.rays[0]
    assert rb.max_distance == pytest.approx(ra.max_distance)
    assert frame.transform(b.pose, rb.origin) == pytest.approx(frame.transform(a.pose, ra.origin))
    towards = [frame.rotate(body.pose.orientation, ray.direction) for body, ray in ((a, ra), (b, rb))]
    assert towards[0] == pytest.approx((0, -1, 0)) and towards[1] == pytest.approx((0, -1, 0), abs=1e-12)


def test_velocities_are_in_the_space_of_the_transform_of_the_prim():
    """UsdPhysicsRigidBodyAPI: "in the same space as the node's xform", so that of its parent."""
    body = prim(
        "Cube",
        "B",
        RIGID,
        "vector3f physics:velocity = (1, 0, 0); vector3f physics:angularVelocity = (180, 0, 0);"
        + moved(rotateXYZ=(0, 0, 45)),
    )
    found = read(prim("Xform", "P", "", moved(rotateXYZ=(0, 90, 0), scale=(2, 2, 2)) + body)).body("/P/B")
    assert found.linear_velocity == pytest.approx((0, 0, -2), abs=1e-12)
    assert found.angular_velocity == pytest.approx((0, 0, -math.pi), abs=1e-12)
    reset = prim("Xform", "P", "", moved(rotateXYZ=(0, 90, 0)) + body.replace('["xf', '["!resetXformStack!", "xf'))
    assert read(reset).body("/P/B").linear_velocity == pytest.approx((1, 0, 0))


@pytest.mark.parametrize(
    ("ops", "why"),
    [
        (moved(scale=(0, 1, 1)), "scale of zero"),
        (moved(translate="(nan, 0, 0)"), "not finite"),
        (moved(translate="(inf, 0, 0)"), "not finite"),
        (moved(scale=(1, 2, 1), rotateXYZ=(0, 0, 45)), "shear"),
        (moved(transform="((1,0,0,0),(1,1,0,0),(0,0,1,0),(0,0,0,1))"), "shear"),
    ],
)
def test_p41_what_is_no_rigid_transform_is_no_body(ops, why):
    found = read(prim("Cube", "B", RIGID, ops) + prim("Cube", "Good", RIGID))
    assert [b.path for b in found.model.bodies] == ["/Good"]
    assert [c.path for c in found.model.colliders] == ["/Good"]
    assert "/B" in found.said("transform-invalid") and why in found.said("transform-invalid")
    assert found.errors == ["transform-invalid"]


def test_what_stands_below_an_invalid_transform_is_lost_and_said_once():
    inner = prim("Cube", "B", RIGID) + prim("Cube", "C", "CollisionAPI")
    for ops in (
        moved(translate="(nan, 0, 0)"),
        'string xformOp:scale = "x"; uniform token[] xformOpOrder = ["xformOp:scale"];',
    ):
        found = read(prim("Xform", "X", "", ops + inner))
        assert found.errors == ["transform-invalid"] and "/X" in found.said("transform-invalid")
        assert found.model.bodies == found.model.colliders == ()


def test_a_collider_below_a_scaled_body_keeps_its_place_and_size():
    child = prim("Sphere", "S", "CollisionAPI", "double radius = 0.5;" + moved(translate=(1, 0, 0), scale=(3, 3, 3)))
    found = read(prim("Xform", "B", "RigidBodyAPI", moved(translate=(5, 0, 0), scale=(2, 2, 2)) + child))
    collider = found.collider("/B/S")
    assert collider.pose.position == (2.0, 0.0, 0.0)
    assert (collider.shape.kind, collider.shape.radius) == (ShapeKind.SPHERE, pytest.approx(3.0))


def test_p91_a_turned_assembly_has_the_same_local_frames():
    """Joint frames, colliders and rays are local: a transform above the assembly changes none of them."""
    parts = (
        prim("Cube", "A", RIGID, moved(translate=(0, 3, 0), rotateXYZ=(10, 20, 30)))
        + prim("Cube", "B", RIGID + " LunCoRaycastAPI", moved(translate=(0, 6, 0)))
        + 'def PhysicsRevoluteJoint "J" {rel physics:body0 = </W/A>; rel physics:body1 = </W/B>; uniform token '
        'physics:axis = "Z"; point3f physics:localPos0 = (0, 1, 0); quatf physics:localRot0 = (0.5, 0.5, 0.5, 0.5)}'
    )
    plain = read(prim("Xform", "W", "", parts))
    turned = read(prim("Xform", "W", "", moved(translate=(100, -7, 3), rotateXYZ=(40, 50, 60)) + parts))
    for a, b in zip(plain.model.joints + plain.model.rays, turned.model.joints + turned.model.rays, strict=True):
        for name in ("frame0", "frame1", "origin", "direction"):
            if hasattr(a, name):
                assert np.allclose(flat(getattr(a, name)), flat(getattr(b, name)), atol=1e-9)


def flat(value):
    return (*value.position, *value.orientation) if hasattr(value, "position") else value


def test_p87_instances_are_read_like_copies():
    proto = prim("Xform", "Proto", "", prim("Cube", "B", RIGID, "double size = 1"))
    uses = "".join(
        f'def Xform "{n}" (references = </Proto>; instanceable = {flag}) {{{moved(translate=(x, 0, 0))}}}\n'
        for n, flag, x in (("I", "true", 1), ("C", "false", 2))
    )
    found = read(proto.replace("def Xform", "over", 1) + uses)
    assert [b.path for b in found.model.bodies] == ["/C/B", "/I/B"]
    assert found.body("/I/B").mass == found.body("/C/B").mass
    assert found.collider("/I/B").body == "/I/B"
