"""Bodies, their motion and their mass properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pxr import Gf, UsdPhysics

from cosim import frame
from cosim.mechanism import IDENTITY, Motion
from tests.usd.physics_stage import RIGID, moved, prim, read

CRATE = """
def Cube "Crate" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"]
)
{
    double size = 0.5
    double3 xformOp:translate = (0, 1.2, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]

    float physics:mass = 12.0
    point3f physics:centerOfMass = (0, 0, 0)
    float3 physics:diagonalInertia = (0.5, 0.5, 0.5)
    quatf physics:principalAxes = (1, 0, 0, 0)
}
"""
MASS = RIGID + " MassAPI"


def cube(body="", schemas=MASS, name="B"):
    return prim("Cube", name, schemas, "double size = 1;" + body)


def mass_of(text, path="/B", **units):
    found = read(text, **units)
    assert found.errors == []
    return found.body(path).mass


# ---- A, B: admission and what a body is


def test_p1_only_the_standard_schema_makes_a_body():
    text = prim("Cube", "A", "LunCoRaycastAPI CollisionAPI MassAPI") + prim("Cube", "B", RIGID)
    assert [b.path for b in read(text).model.bodies] == ["/B"]


def test_p2_plain_geometry_stays_visual():
    found = read(prim("Cube", "A") + prim("Mesh", "M") + prim("Xform", "X"))
    assert found.model.bodies == found.model.colliders == ()
    assert len(found.log) == 0


def test_p3_a_nested_body_is_a_body_of_its_own():
    child = prim("Cube", "Child", RIGID, moved(translate=(0, 3, 0)))
    found = read(prim("Cube", "Parent", RIGID, child))
    assert [b.path for b in found.model.bodies] == ["/Parent", "/Parent/Child"]
    assert found.model.joints == ()
    assert {c.path: c.body for c in found.model.colliders} == {p: p for p in ("/Parent", "/Parent/Child")}
    assert found.body("/Parent/Child").pose.position == (0.0, 3.0, 0.0)


def test_p4_p90_what_is_not_realised_is_reported_and_what_is_is_not():
    found = read(
        prim(
            "Cube",
            "B",
            RIGID + " PhysxRigidBodyAPI PhysxContactReportAPI",
            "float physxRigidBody:maxLinearVelocity = 3; float physxRigidBody:linearDamping = 0.5;"
            "bool physics:startsAsleep = true; float physics:breakForce = 3",
        )
    )
    said = {(d.code, d.where.property if d.where else "") for d in found.log}
    assert said == {
        ("schema-not-realised", ""),
        ("attribute-not-realised", "physxRigidBody:maxLinearVelocity"),
        ("attribute-not-realised", "physics:breakForce"),
        ("attribute-inert", "physics:startsAsleep"),
    }


def test_p7_a_body_without_collider_is_legal():
    body = (
        "float physics:mass = 3; float3 physics:diagonalInertia = (1, 2, 2.5); point3f physics:centerOfMass = (0,1,0)"
    )
    found = read(prim("Xform", "B", "RigidBodyAPI MassAPI", body))
    assert found.codes() == []
    mass = found.body("/B").mass
    assert (mass.mass, mass.center_of_mass, mass.diagonal_inertia) == (3.0, (0.0, 1.0, 0.0), (1.0, 2.0, 2.5))


def test_p8_crate_example_loads():
    found = read(CRATE)
    assert found.codes() == []
    crate = found.body("/Crate")
    assert crate.motion is Motion.DYNAMIC
    assert crate.pose.position == (0.0, 1.2, 0.0)
    assert crate.mass.mass == 12.0
    assert crate.mass.center_of_mass == (0.0, 0.0, 0.0)
    assert crate.mass.diagonal_inertia == (0.5, 0.5, 0.5)
    assert crate.mass.principal_axes == IDENTITY


def test_motion_is_authored():
    text = (
        cube("bool physics:kinematicEnabled = true", name="K")
        + cube("bool physics:rigidBodyEnabled = false", name="S")
        + cube("bool physics:rigidBodyEnabled = false; bool physics:kinematicEnabled = true", name="SK")
    )
    found = read(text)
    assert {b.path: b.motion for b in found.model.bodies} == {
        "/K": Motion.KINEMATIC,
        "/S": Motion.STATIC,
        "/SK": Motion.STATIC,
    }
    assert found.collider("/S").body == "/S"


def test_physx_damping_and_weightlessness_are_realised_with_and_without_their_schema():
    for schemas in (RIGID, RIGID + " PhysxRigidBodyAPI"):
        body = (
            "float physxRigidBody:linearDamping = 0.25; float physxRigidBody:angularDamping = 0.5;"
            "bool physxRigidBody:disableGravity = true"
        )
        found = read(cube(body, schemas))
        b = found.body("/B")
        assert (b.linear_damping, b.angular_damping, b.gravity) == (0.25, 0.5, False)
        assert found.codes() == []


def test_a_velocity_of_a_static_body_is_reported():
    found = read(cube("bool physics:rigidBodyEnabled = false; vector3f physics:velocity = (1, 0, 0)"))
    assert "physics:velocity" in found.said("attribute-not-realised")


def test_a_body_that_cannot_move_is_refused():
    found = read('def Scope "S" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {}')
    assert found.errors == ["body-without-transform"] and found.model.bodies == ()


# ---- mass


def test_p9_centre_inertia_and_axes_are_honoured():
    found = mass_of(
        cube(
            "float physics:mass = 5; point3f physics:centerOfMass = (0.1, 0.2, 0.3);"
            "float3 physics:diagonalInertia = (1, 2, 2.5); quatf physics:principalAxes = (0.5, 0.5, 0.5, 0.5)"
        )
    )
    assert found.mass == 5.0
    assert found.center_of_mass == pytest.approx((0.1, 0.2, 0.3))
    assert found.diagonal_inertia == (1.0, 2.0, 2.5)
    assert found.principal_axes == (0.5, 0.5, 0.5, 0.5)


def test_a_centre_of_mass_is_scaled_with_the_body():
    body = "float physics:mass = 5; point3f physics:centerOfMass = (1, 1, 1);" + moved(scale=(2, 3, 4))
    assert mass_of(cube(body)).center_of_mass == (2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    ("body", "density", "expected"),
    [
        ("", "", 1000.0),
        ("", "rel material:binding:physics = </M>", 2500.0),
        ("float physics:density = 10", "rel material:binding:physics = </M>", 10.0),
        ("float physics:mass = 3; float physics:density = 10", "", 3.0),
        ("float physics:mass = 0; float physics:density = 0", "", 1000.0),
    ],
)
def test_p10_precedence_of_mass_and_density(body, density, expected):
    material = prim("Material", "M", "MaterialAPI", "float physics:density = 2500")
    found = mass_of(material + cube(body + ";" + density))
    assert found.mass == expected
    assert found.diagonal_inertia == pytest.approx([expected / 6] * 3)


def test_p10_a_density_or_mass_of_a_collider_goes_before_the_density_of_the_body():
    def child(body):
        collider = prim("Cube", "C", "CollisionAPI MassAPI", "double size = 1;" + body)
        return prim("Xform", "B", "RigidBodyAPI MassAPI", "float physics:density = 10;" + collider)

    assert mass_of(child("")).mass == pytest.approx(10)
    assert mass_of(child("float physics:density = 20")).mass == pytest.approx(20)
    assert mass_of(child("float physics:density = 20; float physics:mass = 7")).mass == pytest.approx(7)


@pytest.mark.parametrize(
    ("kind", "size", "volume"),
    [
        ("Cube", "double size = 2", 8.0),
        ("Sphere", "double radius = 2", 32 / 3 * math.pi),
        ("Capsule", "double radius = 1; double height = 3", 3 * math.pi + 4 / 3 * math.pi),
        ("Cylinder", "double radius = 1; double height = 3", 3 * math.pi),
        ("Cone", "double radius = 1; double height = 3", math.pi),
    ],
)
def test_p10_density_times_volume_of_each_shape(kind, size, volume):
    body = "float physics:density = 3;" + size
    assert mass_of(prim(kind, "B", MASS, body)).mass == pytest.approx(3 * volume)


def test_p11_a_mass_alone_rescales_the_tensor_of_the_shapes():
    light, heavy = mass_of(cube("")), mass_of(cube("float physics:mass = 5000"))
    assert heavy.diagonal_inertia == pytest.approx([5 * i for i in light.diagonal_inertia])


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e-45", "1e39"])
def test_p12_p13_an_invalid_mass_is_an_error_and_the_body_is_not_admitted(value):
    found = read(cube(f"float physics:mass = {value}") + cube(name="Good"))
    assert found.errors == ["physics-mass-invalid"]
    assert "/B.physics:mass" in found.said("physics-mass-invalid")
    assert [b.path for b in found.model.bodies] == [c.path for c in found.model.colliders] == ["/Good"]


@pytest.mark.parametrize(
    "body",
    [
        "float physics:density = -3",
        "float physics:density = inf",
        "float3 physics:diagonalInertia = (1, -1, 1)",
        "float3 physics:diagonalInertia = (1, 0, 1)",
        "float3 physics:diagonalInertia = (1, nan, 1)",
        "point3f physics:centerOfMass = (nan, 0, 0)",
        "float3 physics:diagonalInertia = (1, 1, 1); quatf physics:principalAxes = (2, 0, 0, 0)",
        "float3 physics:diagonalInertia = (1, 1, 1); quatf physics:principalAxes = (nan, 0, 0, 0)",
        "float3 physics:diagonalInertia = (1e-45, 1e-45, 1e-45)",
    ],
)
def test_p14_p15_an_invalid_tensor_is_an_error_and_the_body_is_not_admitted(body):
    found = read(cube(body))
    assert found.errors == ["physics-mass-invalid"] and found.model.bodies == ()


def test_p14_an_impossible_inertia_is_a_warning():
    found = read(cube("float physics:mass = 1; float3 physics:diagonalInertia = (1, 1, 3)"))
    assert found.codes() == ["inertia-not-physical"]
    assert found.body("/B").mass.diagonal_inertia == (1.0, 1.0, 3.0)


def test_sentinels_mean_not_authored():
    body = (
        "float physics:mass = 0; float physics:density = 0; point3f physics:centerOfMass = (-inf, -inf, -inf);"
        "float3 physics:diagonalInertia = (0, 0, 0); quatf physics:principalAxes = (0, 0, 0, 0)"
    )
    assert mass_of(cube(body)) == mass_of(cube())


def test_principal_axes_without_inertia_are_reported():
    found = read(cube("quatf physics:principalAxes = (0.5, 0.5, 0.5, 0.5)"))
    assert found.codes() == ["principal-axes-unused"]


def test_a_mass_counts_without_its_schema():
    found = read(cube("float physics:mass = 3", RIGID))
    assert found.codes() == ["mass-api-not-applied"] and found.body("/B").mass.mass == 3.0


def test_mass_is_in_units_of_the_stage():
    """A 1 m cube of water in centimetres and grams."""
    water = prim("Cube", "B", MASS, "double size = 100")
    assert mass_of(water, metres=0.01, kilograms=0.001).mass == pytest.approx(1000.0)
    dense = prim("Cube", "B", MASS, "double size = 100; float physics:density = 2")
    assert mass_of(dense, metres=0.01, kilograms=0.001).mass == pytest.approx(2000.0)
    authored = prim(
        "Cube",
        "B",
        MASS,
        "double size = 100; float physics:mass = 500; float3 physics:diagonalInertia = (1e7, 1e7, 1e7)",
    )
    found = mass_of(authored, metres=0.01, kilograms=0.001)
    assert (found.mass, found.diagonal_inertia) == (pytest.approx(0.5), pytest.approx([1.0] * 3))


def test_a_body_without_collider_has_the_inertia_of_its_own_geometry():
    found = read(prim("Cube", "B", "RigidBodyAPI MassAPI", "double size = 2; float physics:mass = 6"))
    assert found.codes() == ["inertia-from-geometry"]
    assert found.body("/B").mass.diagonal_inertia == pytest.approx([4.0] * 3)


def test_a_body_with_nothing_is_a_ball_with_a_warning():
    found = read(prim("Xform", "B", "RigidBodyAPI", "float physics:mass = 5"))
    assert found.codes()[-1] == "inertia-assumed"
    assert found.body("/B").mass.diagonal_inertia == pytest.approx([0.4 * 5 * 0.01] * 3)
    bare = read(prim("Xform", "B", "RigidBodyAPI"))
    assert bare.body("/B").mass.mass == 1.0
    assert "1 kg" in bare.said("inertia-assumed")


def test_bodies_that_physics_does_not_move_need_no_mass():
    for switch in ("physics:kinematicEnabled = true", "physics:rigidBodyEnabled = false"):
        found = read(prim("Xform", "B", "RigidBodyAPI", f"bool {switch}"))
        assert found.codes() == [] and found.body("/B").mass is None


OPEN = (
    'def Mesh "M" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]) {'
    "point3f[] points = [(0,0,0), (1,0,0), (0,0,1)]; int[] faceVertexCounts = [3]; int[] faceVertexIndices = [0,1,2];"
    "uniform token physics:approximation = %s }"
)


def test_an_open_surface_is_a_fine_static_collider_and_gives_a_moving_body_no_mass():
    static = prim("Xform", "B", "RigidBodyAPI", "bool physics:rigidBodyEnabled = false;" + OPEN % '"none"')
    assert read(static).codes() == []
    moving = read(prim("Xform", "B", "RigidBodyAPI MassAPI", "float physics:mass = 2;" + OPEN % '"convexHull"'))
    assert moving.errors == ["physics-mass-invalid"] and "/B/M" in moving.said("physics-mass-invalid")
    told = "float physics:mass = 2; float3 physics:diagonalInertia = (1, 1, 1);"
    assert read(prim("Xform", "B", "RigidBodyAPI MassAPI", told + OPEN % '"convexHull"')).errors == []


# ---- usd-core as an oracle


def usd_mass(stage, path):
    """ComputeMassProperties of usd-core for boxes of size 1 in scaled frames."""

    def box(p):
        info = UsdPhysics.RigidBodyAPI.MassInformation()
        size = p.GetAttribute("size").Get()
        info.volume = size**3
        info.inertia = Gf.Matrix3f(size**5 / 6)
        info.centerOfMass = Gf.Vec3f(0)
        relative = Gf.Transform()
        if str(p.GetPath()) != path:
            world = p.GetAttribute("xformOp:translate").Get()
            relative.SetTranslation(Gf.Vec3d(world))
        info.localPos = Gf.Vec3f(relative.GetTranslation())
        info.localRot = Gf.Quatf(1)
        return info

    return UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath(path)).ComputeMassProperties(box)


maybe = st.one_of(st.just(0.0), st.sampled_from((0.5, 2.0, 40.0)))


@settings(max_examples=60, deadline=None)
@given(maybe, maybe, st.booleans(), st.lists(st.tuples(maybe, maybe, st.integers(1, 3)), min_size=1, max_size=3))
def test_mass_properties_are_those_of_usd_core(mass, density, has_center, children):
    parts = "".join(
        prim(
            "Cube",
            f"C{i}",
            "CollisionAPI MassAPI",
            f"double size = {size}; float physics:mass = {m}; float physics:density = {d};"
            + moved(translate=(2 * i, i * i, 0)),
        )
        for i, (m, d, size) in enumerate(children)
    )
    center = "point3f physics:centerOfMass = (0.5, 0, 0.25);" if has_center else ""
    found = read(
        prim(
            "Xform",
            "B",
            "RigidBodyAPI MassAPI",
            f"float physics:mass = {mass}; float physics:density = {density};" + center + parts,
        )
    )
    ours = found.body("/B").mass
    usd, inertia, com, axes = usd_mass(found.reader.stage, "/B")
    assert ours.mass == pytest.approx(usd, rel=1e-5)
    assert ours.center_of_mass == pytest.approx(tuple(com), rel=1e-4, abs=1e-5)
    w, v = axes.GetReal(), axes.GetImaginary()
    theirs = (float(w), *(float(c) for c in v))
    scale = max(inertia)
    assert tensor(ours.principal_axes, ours.diagonal_inertia) == pytest.approx(
        tensor(frame.normalised(theirs), tuple(inertia)), abs=2e-4 * scale
    )


def tensor(q, moments):
    rows = [frame.rotate(frame.conjugate(q), axis) for axis in ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0))]
    return [sum(m * a[k] * b[k] for k, m in enumerate(moments)) for a in rows for b in rows]
