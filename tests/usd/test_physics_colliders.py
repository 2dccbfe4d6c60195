"""Collision shapes, their scale, ownership and materials."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim import frame, inertia
from cosim.mechanism import Shape, ShapeKind, SurfaceMaterial
from tests.usd.physics_stage import RIGID, moved, prim, read

SIZES = {
    "Cube": "double size = 2",
    "Sphere": "double radius = 0.5",
    "Capsule": "double radius = 0.5; double height = 3",
    "Cylinder": "double radius = 0.5; double height = 3",
    "Cone": "double radius = 0.5; double height = 3",
}


def collider(kind, body="", schemas="CollisionAPI", **units):
    found = read(prim(kind, "C", schemas, body), **units)
    assert found.errors == [], [str(d) for d in found.log]
    return found.collider("/C")


def axis_of(c):
    """The direction of the shape's z axis in the prim's frame."""
    return frame.rotate(c.pose.orientation, (0.0, 0.0, 1.0))


# ---- primitives


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("Cube", Shape(ShapeKind.BOX, half_extents=(1.0, 1.0, 1.0))),
        ("Sphere", Shape(ShapeKind.SPHERE, radius=0.5)),
        ("Capsule", Shape(ShapeKind.CAPSULE, radius=0.5, height=3.0)),
        ("Cylinder", Shape(ShapeKind.CYLINDER, radius=0.5, height=3.0)),
        ("Cone", Shape(ShapeKind.CONE, radius=0.5, height=3.0)),
    ],
)
def test_p16_primitives_keep_their_dimensions(kind, shape):
    assert collider(kind, SIZES[kind]).shape == shape
    scaled = SIZES[kind].replace("0.5", "50").replace("= 2", "= 200").replace("= 3", "= 300")
    assert collider(kind, scaled, metres=0.01).shape == shape


@pytest.mark.parametrize("kind", ["Capsule", "Cylinder", "Cone"])
@pytest.mark.parametrize(("axis", "along"), [("X", (1, 0, 0)), ("Y", (0, 1, 0)), ("Z", (0, 0, 1))])
def test_p16_primitives_keep_their_axis(kind, axis, along):
    assert axis_of(collider(kind, f'uniform token axis = "{axis}"')) == pytest.approx(along, abs=1e-12)


def test_p16_schema_defaults():
    assert collider("Cube").shape.half_extents == (1.0, 1.0, 1.0)
    assert collider("Sphere").shape.radius == 1.0
    assert (collider("Capsule").shape.radius, collider("Capsule").shape.height) == (0.5, 1.0)
    assert (collider("Cylinder").shape.radius, collider("Cylinder").shape.height) == (1.0, 2.0)
    assert axis_of(collider("Cone")) == pytest.approx((0, 0, 1))


def test_p16_a_box_takes_any_scale_and_a_cylinder_the_scale_along_its_axis():
    assert collider("Cube", moved(scale=(1, -2, 3))).shape.half_extents == (1.0, 2.0, 3.0)
    along = collider("Cylinder", 'uniform token axis = "Y";' + moved(scale=(2, 5, 2))).shape
    assert (along.kind, along.radius, along.height) == (ShapeKind.CYLINDER, 2.0, 10.0)


def test_p16_a_mirrored_cone_points_the_other_way():
    assert axis_of(collider("Cone", moved(scale=(1, 1, -1)))) == pytest.approx((0, 0, -1), abs=1e-12)
    assert axis_of(collider("Cone", moved(scale=(-1, 1, 1)))) == pytest.approx((0, 0, 1), abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "scale", "half"),
    [
        ("Sphere", (2, 1, 1), (1.0, 0.5, 0.5)),
        ("Capsule", (1, 1, 2), (0.5, 0.5, 4.0)),
        ("Cylinder", (2, 1, 1), (1.0, 0.5, 1.5)),
        ("Cone", (2, 1, 1), (1.0, 0.5, 1.5)),
    ],
)
def test_p6_p16_an_oval_is_a_hull_and_said_so(kind, scale, half):
    found = read(prim(kind, "C", "CollisionAPI", SIZES[kind] + ";" + moved(scale=scale)))
    assert found.codes() == ["collider-oval"]
    shape = found.collider("/C").shape
    assert shape.kind is ShapeKind.HULL
    assert np.abs(np.array(shape.points)).max(axis=0) == pytest.approx(half)


@pytest.mark.parametrize("kind", ["Sphere", "Capsule"])
def test_an_ovals_hull_has_nearly_its_volume(kind):
    oval = collider(kind, SIZES[kind] + ";" + moved(scale=(1, 1, 2))).shape
    exact = inertia.of_shape(collider(kind, SIZES[kind]).shape, 1.0).mass * 2
    assert inertia.of_shape(oval, 1.0).mass == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("Cube", "double size = -2", "its size is -2"),
        ("Sphere", "double radius = 0", "its radius is 0"),
        ("Sphere", "double radius = nan", "its radius is nan"),
        ("Cylinder", "double height = inf", "its height is inf"),
        ("Cone", 'uniform token axis = "W"', "its axis is 'W'"),
        ("Xform", "", "a Xform is no collision shape"),
        ("NurbsPatch", "", "a NurbsPatch is no collision shape"),
        ("Cube", "double size = 1e308;" + moved(scale=(1e10, 1, 1)), "its size is not finite"),
    ],
)
def test_p16_p21_what_is_no_shape_is_refused(kind, body, why):
    found = read(prim(kind, "C", "CollisionAPI", body))
    assert found.errors == ["collider-unsupported"] and found.model.colliders == ()
    assert why in found.said("collider-unsupported") and "</C>" in found.said("collider-unsupported")


# ---- planes


@pytest.mark.parametrize(
    ("axis", "half", "normal"),
    [("X", (0, 2, 1), (1, 0, 0)), ("Y", (1, 0, 2), (0, 1, 0)), ("Z", (1, 2, 0), (0, 0, 1))],
)
def test_p17_p18_a_plane_has_its_axes_and_no_thickness(axis, half, normal):
    """Width 2 and length 4: X has width along z, Y width along x and length along z, Z width along x."""
    c = collider("Plane", f'double width = 2; double length = 4; uniform token axis = "{axis}"')
    points = np.array(c.shape.points)
    assert np.abs(points).max(axis=0) == pytest.approx(half)
    assert np.ptp(points @ np.array(normal)) == 0.0
    assert len(c.shape.triangles) == 2
    for a, b, d in c.shape.triangles:
        facing = np.cross(points[b] - points[a], points[d] - points[a])
        assert facing / np.linalg.norm(facing) == pytest.approx(normal)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from("XYZ"), st.floats(0.1, 3), st.floats(0.1, 3), st.floats(-4, 4), st.floats(-4, 4))
def test_p18_edges_of_a_plane(axis, width, length, w, n):
    """A point of the plane is on one of the two triangles just where |w| ≤ width/2 and |n| ≤ length/2."""
    c = collider("Plane", f'double width = {width}; double length = {length}; uniform token axis = "{axis}"')
    k, m = {"X": (2, 1), "Y": (0, 2), "Z": (0, 1)}[axis]
    flat = np.array(c.shape.points)[:, [k, m]]

    def on(triangle):
        a, b, d = (flat[i] for i in triangle)
        u, v = np.linalg.solve(np.array([b - a, d - a]).T, np.array([w, n]) - a)
        return u >= 0 and v >= 0 and u + v <= 1

    margin = min(abs(abs(w) - width / 2), abs(abs(n) - length / 2))
    if margin > 1e-6 and abs(w * length - n * width) > 1e-6:
        assert any(on(t) for t in c.shape.triangles) == (abs(w) < width / 2 and abs(n) < length / 2)


def test_p17_a_mirrored_plane_faces_the_other_way():
    c = collider("Plane", moved(scale=(1, 1, -1)))
    a, b, d = (np.array(c.shape.points[i]) for i in c.shape.triangles[0])
    facing = frame.rotate(c.pose.orientation, tuple(np.cross(b - a, d - a).tolist()))
    assert facing[2] < 0.0


def test_p17_a_plane_is_not_for_dynamic_bodies():
    assert read(prim("Plane", "C", RIGID)).errors == ["collider-unsupported"]


# ---- meshes

CORNERS = tuple(itertools.product((-1, 1), repeat=3))
FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def mesh(approximation="", body="", schemas="CollisionAPI MeshCollisionAPI"):
    points, indices = list(CORNERS), [i for f in FACES for i in f]
    text = f"point3f[] points = {points}; int[] faceVertexCounts = {[4] * 6}; int[] faceVertexIndices = {indices};"
    if approximation:
        text += f'uniform token physics:approximation = "{approximation}";'
    return prim("Mesh", "C", schemas, text + body)


@pytest.mark.parametrize("body", ["", moved(scale=(1, -1, 1)), 'uniform token orientation = "leftHanded"'])
def test_p19_a_static_mesh_faces_outward(body):
    shape = read(mesh("none", body)).collider("/C").shape
    assert shape.kind is ShapeKind.MESH and len(shape.triangles) == 12
    points = np.array(shape.points)
    volume = sum(np.dot(points[a], np.cross(points[b], points[c])) / 6 for a, b, c in shape.triangles)
    left = -1 if "leftHanded" in body else 1
    assert volume == pytest.approx(8.0 * left)


def test_p19_a_convex_hull_and_the_default():
    assert read(mesh("convexHull", schemas=RIGID)).collider("/C").shape.kind is ShapeKind.HULL
    assert read(mesh()).collider("/C").shape.kind is ShapeKind.MESH
    assert read(mesh("convexHull", schemas=RIGID)).body("/C").mass.mass == pytest.approx(8000)


def test_p19_a_concave_mesh_on_a_dynamic_body_is_refused():
    found = read(mesh("none", schemas=RIGID))
    assert found.errors == ["collider-unsupported"] and "static" in found.said("collider-unsupported")
    kinematic = read(mesh("none", "bool physics:kinematicEnabled = true", RIGID))
    assert kinematic.errors == [] and kinematic.collider("/C").shape.kind is ShapeKind.MESH


@pytest.mark.parametrize(
    "approximation", ["convexDecomposition", "boundingCube", "boundingSphere", "meshSimplification", "sdf"]
)
def test_p20_other_approximations_are_refused_and_nothing_stands_in(approximation):
    found = read(mesh(approximation))
    assert found.errors == ["collider-unsupported"] and found.model.colliders == ()
    assert approximation in found.said("collider-unsupported")
    assert found.codes() == ["collider-unsupported"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "point3f[] points = [(0,0,0)]",
        "point3f[] points = [(0,0,0),(1,0,0),(0,1,0)]",
        "point3f[] points = [(0,0,0),(1,0,0),(0,1,0)]; int[] faceVertexCounts = [3]; int[] faceVertexIndices = [0,1,7]",
        "point3f[] points = [(0,0,0),(1,0,0),(0,1,0)]; int[] faceVertexCounts = [4]; int[] faceVertexIndices = [0,1,2]",
        "point3f[] points = [(0,0,nan),(1,0,0),(0,1,0)]; int[] faceVertexCounts=[3]; int[] faceVertexIndices=[0,1,2]",
    ],
)
def test_broken_meshes_are_refused(body):
    found = read(prim("Mesh", "C", "CollisionAPI", body))
    assert found.errors == ["collider-unsupported"] and found.model.colliders == ()


def test_an_approximation_on_a_primitive_is_reported():
    found = read(prim("Cube", "C", "CollisionAPI MeshCollisionAPI", 'uniform token physics:approximation = "sdf"'))
    assert sorted(found.codes()) == ["attribute-not-realised", "schema-not-realised"]


# ---- who collides, and whose it is


def test_p23_colliders_belong_to_the_nearest_body():
    inner = prim("Cube", "Inner", "RigidBodyAPI CollisionAPI", prim("Sphere", "S", "CollisionAPI"))
    deep = prim("Xform", "X", "", prim("Cube", "Deep", "CollisionAPI"))
    guide = prim("Cube", "G", "CollisionAPI", 'uniform token purpose = "guide"')
    proxy = prim("Cube", "P", "CollisionAPI", 'uniform token purpose = "proxy"; token visibility = "invisible"')
    found = read(prim("Xform", "B", "RigidBodyAPI", inner + deep + guide + proxy) + prim("Cube", "W", "CollisionAPI"))
    assert [(c.path, c.body) for c in found.model.colliders] == [
        ("/B/Inner", "/B/Inner"),
        ("/B/Inner/S", "/B/Inner"),
        ("/B/P", "/B"),
        ("/B/X/Deep", "/B"),
        ("/W", ""),
    ]
    assert "/B/G" in found.said("collider-guide")


def test_a_guide_below_a_guide_scope_never_collides():
    found = read(prim("Xform", "X", "", 'uniform token purpose = "guide";' + prim("Cube", "C", "CollisionAPI")))
    assert found.model.colliders == () and found.codes() == ["collider-guide"]


def test_a_static_collider_is_in_the_world():
    c = read(prim("Xform", "X", "", moved(translate=(1, 2, 3)) + prim("Cube", "C", "CollisionAPI"))).collider("/X/C")
    assert (c.body, c.pose.position) == ("", (1.0, 2.0, 3.0))


def test_disabled_colliders_and_lone_switches():
    off = read(prim("Cube", "C", "CollisionAPI", "bool physics:collisionEnabled = false"))
    assert off.model.colliders == () and off.codes() == []
    lone = read(prim("Cube", "C", "", "bool physics:collisionEnabled = false"))
    assert lone.codes() == ["collision-off"]
    meant = read(prim("Cube", "C", "", "bool physics:collisionEnabled = true"))
    assert meant.codes() == ["collision-api-missing"] and meant.model.colliders == ()


# ---- materials


MATERIAL = prim(
    "Material",
    "M",
    "MaterialAPI",
    "float physics:staticFriction = 0.75; float physics:dynamicFriction = 0.75; float physics:restitution = 0.25",
)


@pytest.mark.parametrize("binding", ["material:binding:physics", "material:binding"])
def test_a_bound_material_is_inherited(binding, capfd):
    found = read(MATERIAL + prim("Xform", "X", "", f"rel {binding} = </M>;" + prim("Cube", "C", "CollisionAPI")))
    assert found.collider("/X/C").material == SurfaceMaterial(0.75, 0.75, 0.25)
    assert found.codes() == []
    assert capfd.readouterr() == ("", "")


def test_without_a_material_the_defaults_hold_and_visual_ones_do_not_count():
    assert collider("Cube").material == SurfaceMaterial(0.5, 0.5, 0.0)
    found = read('def Material "M" {}' + prim("Cube", "C", "CollisionAPI", "rel material:binding = </M>"))
    assert found.collider("/C").material == SurfaceMaterial(0.5, 0.5, 0.0)


def test_two_coefficients_of_friction_are_said_once():
    text = MATERIAL.replace("dynamicFriction = 0.75", "dynamicFriction = 0.4")
    uses = "".join(prim("Cube", n, "CollisionAPI", "rel material:binding = </M>") for n in "AB")
    assert read(text + uses).codes() == ["friction-one-coefficient"]


@pytest.mark.parametrize("name", ["staticFriction", "dynamicFriction", "restitution", "density"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_an_invalid_material_is_an_error(name, value):
    found = read(prim("Material", "M", "MaterialAPI", f"float physics:{name} = {value}"))
    assert found.errors == ["material-invalid"] and f"/M.physics:{name}" in found.said("material-invalid")


def test_density_of_a_material_is_in_units_of_the_stage():
    text = prim("Material", "M", "MaterialAPI", "float physics:density = 0.002")
    body = prim("Cube", "B", RIGID, "double size = 100; rel material:binding:physics = </M>")
    assert read(text + body, metres=0.01).body("/B").mass.mass == pytest.approx(2000, rel=1e-6)
    assert math.isclose(read(body, metres=0.01).body("/B").mass.mass, 1000.0)
