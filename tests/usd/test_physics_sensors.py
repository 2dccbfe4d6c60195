"""Gravity, sensors, actuators, filtered pairs, and values that a reader must survive."""

from __future__ import annotations

import math

import pytest

from cosim import frame
from cosim.mechanism import EARTH_GRAVITY, ActuatorKind
from tests.usd.physics_stage import RIGID, moved, prim, read


def scene(body="", name="S"):
    return f'def PhysicsScene "{name}" {{{body}}}\n'


def gravity(body="", **units):
    found = read(scene(body), **units)
    assert found.errors == []
    return found.model.gravity


# ---- gravity


def test_p52_the_scene_owns_gravity():
    found = gravity("vector3f physics:gravityDirection = (0, 0, -2); float physics:gravityMagnitude = 1.5")
    assert found == pytest.approx((0, 0, -1.5))


@pytest.mark.parametrize(
    ("metres", "up", "direction", "magnitude"),
    [(0.01, "Y", (0, -1, 0), 162), (1.0, "Z", (0, 0, -1), 1.62), (0.01, "Z", (0, 0, -1), 162)],
)
def test_p53_units_and_axes_are_converted(metres, up, direction, magnitude):
    body = f"vector3f physics:gravityDirection = {direction}; float physics:gravityMagnitude = {magnitude}"
    assert gravity(body, metres=metres, up=up) == pytest.approx((0, -1.62, 0), rel=1e-6)


def test_p53_a_sideways_gravity_of_a_z_up_stage():
    body = "vector3f physics:gravityDirection = (0, 1, 0); float physics:gravityMagnitude = 2"
    assert gravity(body, up="Z") == pytest.approx((0, 0, -2))


@pytest.mark.parametrize("body", ["", "float physics:gravityMagnitude = -inf", "float physics:gravityMagnitude = -1"])
@pytest.mark.parametrize("units", [{}, {"metres": 0.01}, {"up": "Z"}])
def test_p54_no_or_a_negative_magnitude_is_that_of_the_earth(body, units):
    assert gravity(body, **units) == pytest.approx((0, -EARTH_GRAVITY, 0))


def test_p55_no_direction_is_down():
    for direction in ("", "vector3f physics:gravityDirection = (0, 0, 0);"):
        for up in "YZ":
            assert gravity(direction + "float physics:gravityMagnitude = 3", up=up) == pytest.approx((0, -3, 0))


def test_no_scene_is_the_earth_and_zero_is_zero():
    assert read("", up="Z").model.gravity == pytest.approx((0, -EARTH_GRAVITY, 0))
    assert gravity("float physics:gravityMagnitude = 0") == pytest.approx((0, 0, 0))


def test_the_length_of_the_direction_does_not_matter():
    for size in ("1e-30", "1e30"):
        body = f"vector3f physics:gravityDirection = ({size}, 0, 0); float physics:gravityMagnitude = 2"
        assert gravity(body) == pytest.approx((2, 0, 0))


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("gravityMagnitude", "float", "nan"),
        ("gravityMagnitude", "float", "inf"),
        ("gravityMagnitude", "float", "1e30"),
        ("gravityMagnitude", "string", '"much"'),
        ("gravityDirection", "vector3f", "(nan, 0, 0)"),
        ("gravityDirection", "vector3f", "(0, inf, 0)"),
    ],
)
def test_p56_malformed_gravity_names_prim_property_and_value(name, kind, value):
    found = read(scene(f"{kind} physics:{name} = {value}"))
    assert found.errors == ["usd-physics-gravity-invalid"]
    text = found.said("usd-physics-gravity-invalid")
    assert "/S" in text and f"physics:{name}" in text and value.strip('(")').split(",")[0].replace("1e30", "1") in text
    assert found.model.gravity == pytest.approx((0, -EARTH_GRAVITY, 0))


def test_p57_scenes_must_agree():
    moon = "float physics:gravityMagnitude = 1.62"
    assert read(scene(moon, "S") + scene(moon, "T")).errors == []
    found = read(scene(moon, "S") + scene("", "T"))
    assert found.errors == ["usd-physics-gravity-invalid"]
    text = found.said("usd-physics-gravity-invalid")
    assert "/S" in text and "/T.physics:gravityMagnitude" in text and "9.80665" in text


def test_the_owner_of_a_simulation_is_read_where_there_is_one_scene():
    body = prim("Cube", "B", RIGID, "rel physics:simulationOwner = </S>")
    assert read(scene() + body).codes() == []
    two = read(scene(name="S") + scene(name="T") + body)
    assert "physics:simulationOwner" in two.said("attribute-not-realised")


# ---- rays


def ray(body="", above="", **units):
    eye = prim("Xform", "Eye", "LunCoRaycastAPI", body)
    found = read(prim("Xform", "B", "RigidBodyAPI", "float physics:mass = 1;" + above + eye), **units)
    return found


def test_p78_p79_a_ray_through_turned_mounts():
    arm = prim(
        "Xform",
        "Arm",
        "",
        moved(translate=(1, 0, 0), rotateXYZ=(0, 0, 90))
        + prim(
            "Xform",
            "Eye",
            "LunCoRaycastAPI",
            'uniform token lunco:raycast:axis = "X"; double lunco:raycast:maxDistance = 7;'
            "double3 lunco:raycast:offset = (0.5, 0, 0);" + moved(translate=(2, 0, 0), rotateXYZ=(0, 90, 0)),
        ),
    )
    place = moved(translate=(9, 9, 9), rotateXYZ=(10, 20, 30))
    found = read(prim("Xform", "B", "RigidBodyAPI MassAPI", "float physics:mass = 1;" + place + arm))
    (sensor,) = found.model.rays
    assert (sensor.path, sensor.body, sensor.max_distance) == ("/B/Arm/Eye", "/B", 7.0)
    assert sensor.direction == pytest.approx((0, 0, -1), abs=1e-12)
    assert sensor.origin == pytest.approx((1, 2, -0.5))


@pytest.mark.parametrize(
    ("axis", "direction"),
    [("X", (1, 0, 0)), ("-X", (-1, 0, 0)), ("+Y", (0, 1, 0)), ("-Y", (0, -1, 0)), ("Z", (0, 0, 1)), ("-Z", (0, 0, -1))],
)
def test_p78_axes_of_a_ray(axis, direction):
    (sensor,) = ray(f'string lunco:raycast:axis = "{axis}"').model.rays
    assert sensor.direction == direction


def test_a_ray_in_centimetres_and_in_a_mirrored_mount():
    (sensor,) = ray("double lunco:raycast:maxDistance = 500;" + moved(translate=(0, 40, 0)), metres=0.01).model.rays
    assert (sensor.max_distance, sensor.origin) == (pytest.approx(5.0), pytest.approx((0, 0.4, 0)))
    (sensor,) = ray('uniform token lunco:raycast:axis = "X";' + moved(scale=(-1, 1, 1))).model.rays
    assert sensor.direction == pytest.approx((-1, 0, 0), abs=1e-12)
    (default,) = ray(metres=0.01).model.rays
    assert default.max_distance == pytest.approx(100.0)


def test_a_ray_without_body_is_in_the_world():
    (sensor,) = read(prim("Xform", "Eye", "LunCoRaycastAPI", moved(translate=(1, 2, 3))), up="Z").model.rays
    assert (sensor.body, sensor.origin) == ("", pytest.approx((1, 3, -2)))
    assert sensor.direction == pytest.approx((0, 0, 1), abs=1e-12)


@pytest.mark.parametrize(
    "body",
    [
        'token lunco:raycast:axis = "down"',
        'token lunco:raycast:axis = "--Y"',
        "double lunco:raycast:axis = 3",
        "double lunco:raycast:maxDistance = 0",
        "double lunco:raycast:maxDistance = -1",
        "double lunco:raycast:maxDistance = inf",
        "double3 lunco:raycast:offset = (nan, 0, 0)",
        'string lunco:raycast:offset = "abc"',
    ],
)
def test_p78_rays_that_cannot_be(body):
    found = ray(body)
    assert found.errors == ["sensor-invalid"] and found.model.rays == ()
    assert "/B/Eye.lunco:raycast:" in found.said("sensor-invalid")


# ---- probes and lights


def test_p83_a_probe_has_its_mount_and_the_sun():
    probe = prim("Xform", "Probe", "LunCoEnvironmentProbeAPI", moved(rotateXYZ=(0, 90, 0)))
    lights = 'def DistantLight "Fill" {}\ndef DistantLight "Sun" {' + moved(rotateXYZ=(-90, 0, 0)) + "}\n"
    found = read(prim("Xform", "B", "RigidBodyAPI", "float physics:mass = 1;" + probe) + lights)
    (sensor,) = found.model.probes
    assert (sensor.body, sensor.sun) == ("/B", "/Sun")
    assert frame.rotate(sensor.mount, (1.0, 0.0, 0.0)) == pytest.approx((0, 0, -1), abs=1e-12)
    toward = {light.path: light.toward for light in found.model.lights}
    assert toward["/Fill"] == (0.0, 0.0, 1.0)
    assert toward["/Sun"] == pytest.approx((0, 1, 0), abs=1e-12)


def test_p83_a_probe_without_light_or_with_any():
    probe = prim("Xform", "Probe", "LunCoEnvironmentProbeAPI")
    assert read(probe).model.probes[0].sun == ""
    assert read(probe + 'def DistantLight "B" {}\ndef DistantLight "A" {}\n').model.probes[0].sun == "/A"


def test_a_light_of_a_z_up_stage():
    found = read('def DistantLight "Sun" {}\n', up="Z")
    assert found.model.lights[0].toward == pytest.approx((0, 1, 0), abs=1e-12)


# ---- actuators


def actuator(schema, body, above="RigidBodyAPI"):
    jet = prim("Xform", "Jet", schema, body + ";" + moved(translate=(0, -1, 0), rotateXYZ=(0, 0, 90)))
    return read(prim("Xform", "B", above, "float physics:mass = 1;" + jet))


@pytest.mark.parametrize("space", ["lunco:actuator:", "lunco:"])
def test_a_force_actuator(space):
    body = f"double3 {space}direction = (0, 2, 0); double {space}maxForce = 300"
    found = actuator("LunCoForceActuatorAPI", body)
    (jet,) = found.model.actuators
    assert (jet.path, jet.kind, jet.body, jet.limit) == ("/B/Jet", ActuatorKind.FORCE, "/B", 300.0)
    assert jet.position == (0.0, -1.0, 0.0)
    assert jet.direction == pytest.approx((-1, 0, 0), abs=1e-12)
    assert "attribute-not-realised" not in found.codes()


def test_a_torque_actuator_without_limit():
    (jet,) = actuator("LunCoTorqueActuatorAPI", "").model.actuators
    assert (jet.kind, jet.limit) == (ActuatorKind.TORQUE, math.inf)


@pytest.mark.parametrize(
    "body",
    [
        "double3 lunco:actuator:direction = (0, 0, 0)",
        "double3 lunco:actuator:direction = (nan, 0, 0)",
        "double lunco:actuator:maxForce = 0",
        "double lunco:actuator:maxForce = nan",
        'string lunco:actuator:maxForce = "much"',
    ],
)
def test_actuators_that_cannot_be(body):
    found = actuator("LunCoForceActuatorAPI", body)
    assert found.errors == ["sensor-invalid"] and found.model.actuators == ()


def test_an_actuator_needs_a_body_that_is_admitted():
    assert actuator("LunCoForceActuatorAPI", "", "").errors == ["actuator-without-body"]
    jet = prim("Xform", "Jet", "LunCoForceActuatorAPI LunCoRaycastAPI LunCoEnvironmentProbeAPI")
    found = read(prim("Xform", "B", "RigidBodyAPI MassAPI", "float physics:mass = -1;" + jet))
    assert found.errors == ["physics-mass-invalid", *["sensor-invalid"] * 3]


# ---- filtered pairs


def test_p61_one_opinion_on_either_side_is_the_pair():
    def pair(a, b):
        return "".join(
            prim(
                "Cube", n, RIGID + (" FilteredPairsAPI" if t else ""), f"rel physics:filteredPairs = <{t}>" if t else ""
            )
            for n, t in (("A", a), ("B", b))
        )

    for text in (pair("/B", ""), pair("", "/A"), pair("/B", "/A")):
        found = read(text)
        assert found.model.filtered_pairs == (("/A", "/B"),) and found.codes() == []


def test_p62_a_pair_may_name_a_body_or_one_of_its_colliders():
    body = prim("Xform", "H", "RigidBodyAPI", prim("Cube", "C", "CollisionAPI") + prim("Cube", "D", "CollisionAPI"))
    pad = prim("Cube", "P", "CollisionAPI FilteredPairsAPI", "rel physics:filteredPairs = [</H/C>, </H>]")
    assert read(body + pad).model.filtered_pairs == (("/H", "/P"), ("/H/C", "/P"))


@pytest.mark.parametrize("target", ["/Nowhere", "/X", "/P"])
def test_a_pair_that_has_no_effect_is_reported(target):
    pad = prim("Cube", "P", "CollisionAPI FilteredPairsAPI", f"rel physics:filteredPairs = <{target}>")
    found = read(pad + prim("Xform", "X"))
    assert found.codes() == ["filtered-pair-unusable"] and found.model.filtered_pairs == ()


# ---- collision groups


def groups(*authored):
    """Bodies A to D below a scope, the ground G, and collision groups (name, members, filtered, more)."""
    text = prim("Cube", "G", "CollisionAPI")
    text += prim("Scope", "W", "", "".join(prim("Cube", n, RIGID) for n in "ABCD"))
    for name, members, filtered, more in authored:
        includes = ", ".join(f"</W/{m}>" if len(m) == 1 else f"<{m}>" for m in members)
        targets = ", ".join(f"<{t}>" if t.startswith("/") else f"</{t}>" for t in filtered)
        body = f"rel collection:colliders:includes = [{includes}]; rel physics:filteredGroups = [{targets}];" + more
        text += prim("PhysicsCollisionGroup", name, "", body)
    return read(text)


def shown(found):
    """AB for the pair of /W/A and /W/B."""
    return ["".join(sorted(path[-1] for path in pair)) for pair in found.model.filtered_pairs]


def test_p64_p65_groups_are_symmetric_and_expand_prims():
    for one, other in ((["Y"], []), ([], ["X"]), (["Y"], ["X"])):
        found = groups(("X", "AB", one, ""), ("Y", "C", other, ""))
        assert shown(found) == ["AC", "BC"] and found.codes() == []
    everything = groups(("X", ["/W"], ["X"], "rel collection:colliders:excludes = </W/D>"))
    assert shown(everything) == ["AB", "AC", "BC"]


def test_p65_merged_groups_are_one():
    merge = 'string physics:mergeGroup = "m"'
    assert shown(groups(("X", "A", ["Z"], merge), ("Y", "B", [], merge), ("Z", "C", [], ""))) == ["AC", "BC"]


def test_p66_an_inverted_group_collides_with_those_that_it_lists_only():
    found = groups(
        ("X", "A", ["Y"], "bool physics:invertFilteredGroups = true"), ("Y", "B", [], ""), ("Z", "C", [], "")
    )
    assert shown(found) == ["AG", "AC", "AD"]


def test_p67_p68_what_has_no_group_collides_and_nothing_is_inferred():
    assert shown(groups(("X", "AB", [], ""), ("Y", "C", [], ""))) == []
    assert shown(groups(("X", "A", ["Y"], ""), ("Y", "B", [], ""))) == ["AB"]


def test_parts_of_one_body_and_static_surfaces_make_no_pairs():
    body = prim("Xform", "B", "RigidBodyAPI", prim("Cube", "C", "CollisionAPI") + prim("Cube", "D", "CollisionAPI"))
    ground = prim("Cube", "G", "CollisionAPI") + prim("Cube", "H", "CollisionAPI")
    group = "rel collection:colliders:includes = [</B>, </G>, </H>]; rel physics:filteredGroups = </X>"
    found = read(body + ground + prim("PhysicsCollisionGroup", "X", "", group))
    assert found.model.filtered_pairs == (("/B/C", "/G"), ("/B/C", "/H"), ("/B/D", "/G"), ("/B/D", "/H"))


def test_a_group_that_filters_no_group_is_reported():
    found = groups(("X", "A", ["Nowhere", "/W/A"], ""))
    assert found.codes() == ["filtered-group-unusable"] * 2


# ---- inert schemas


def test_p85_articulation_roots_are_inert_and_said_so():
    plain = read(prim("Cube", "B", RIGID))
    found = read(prim("Cube", "B", RIGID + " ArticulationRootAPI"))
    assert found.codes() == ["schema-inert"]
    assert found.body("/B").mass == plain.body("/B").mass


def test_metadata_of_the_editor_is_inert():
    found = read(prim("Xform", "X", "LunCoCatalogAPI LunCoTerrainAPI", "bool lunco:spawnable = true"))
    assert sorted(found.codes()) == ["attribute-inert", "schema-inert", "schema-inert"]


# ---- values of the wrong type

ODD = {
    "string": '"abc"',
    "token": '"abc"',
    "bool": "true",
    "int": "3",
    "double": "nan",
    "double3": "(nan, 0, inf)",
    "quatd": "(nan, 0, 0, 0)",
    "double[]": "[1, 2]",
    "asset": "@a.png@",
    "matrix4d": "((1,0,0,0),(0,1,0,0),(0,0,1,0),(0,0,0,1))",
}
READ = {
    "Cube": ("size", "physics:mass", "physics:density", "physics:centerOfMass", "physics:diagonalInertia",
             "physics:principalAxes", "physics:velocity", "physics:angularVelocity", "physics:kinematicEnabled",
             "physics:rigidBodyEnabled", "physics:collisionEnabled", "physxRigidBody:linearDamping",
             "physxRigidBody:disableGravity", "lunco:raycast:axis", "lunco:raycast:maxDistance",
             "lunco:raycast:offset", "lunco:actuator:direction", "lunco:actuator:maxForce", "physics:approximation",
             "xformOp:translate", "xformOp:scale", "xformOp:rotateXYZ", "xformOp:orient"),
    "Mesh": ("points", "faceVertexCounts", "faceVertexIndices", "orientation", "physics:approximation", "purpose"),
    "Cylinder": ("radius", "height", "axis"),
    "Plane": ("width", "length", "axis"),
    "PhysicsRevoluteJoint": ("physics:localPos0", "physics:localRot0", "physics:axis", "physics:lowerLimit",
                             "physics:jointEnabled", "physics:collisionEnabled", "drive:angular:physics:stiffness",
                             "drive:angular:physics:type", "drive:angular:physics:targetPosition",
                             "drive:angular:physics:maxForce"),
    "PhysicsScene": ("physics:gravityDirection", "physics:gravityMagnitude"),
    "Material": ("physics:density", "physics:staticFriction"),
}  # fmt: skip
SCHEMAS = {
    "Cube": RIGID + " MassAPI LunCoRaycastAPI LunCoForceActuatorAPI",
    "Mesh": "CollisionAPI",
    "Cylinder": RIGID,
    "Plane": "CollisionAPI",
    "Material": "MaterialAPI",
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in READ.items() for name in names])
def test_no_value_of_any_type_crashes_the_reader(kind, name):
    order = f'; uniform token[] xformOpOrder = ["{name}"]' if name.startswith("xformOp") else ""
    for odd, value in ODD.items():
        text = f"{odd} {name} = {value}{order}"
        found = read(prim(kind, "P", SCHEMAS.get(kind, ""), text) + prim("Cube", "Z", RIGID))
        assert "/Z" in [body.path for body in found.model.bodies]
        for body in found.model.bodies:
            numbers = (*body.pose.position, *body.linear_velocity, *(body.mass.diagonal_inertia if body.mass else ()))
            assert all(math.isfinite(x) for x in numbers)
