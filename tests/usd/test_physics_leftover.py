"""What would be lost in silence: typed prims, point instancers, animation, sizes beyond floats."""

from __future__ import annotations

import pytest

from tests.usd.physics_stage import RIGID, moved, prim, read


@pytest.mark.parametrize("kind", ["MjcActuator", "NewtonThing", "LunCoWheel", "PhysxVehicle"])
def test_p4_a_prim_of_an_unknown_simulation_type_is_reported_once(kind):
    found = read(f'def {kind} "X" {{float mjc:gear = 3; float physxThing:a = 1}}')
    assert found.codes() == ["prim-type-not-realised"] and kind in found.said("prim-type-not-realised")


def test_p86_physics_of_point_instances_fails_visibly():
    def instancer(schemas):
        proto = prim("Xform", "Proto", "", prim("Cube", "C", schemas))
        return f'def PointInstancer "I" {{rel prototypes = </I/Proto>; int[] protoIndices = [0]; {proto}}}'

    found = read(instancer(RIGID))
    assert found.errors == ["instancer-unsupported"]
    assert "/I.prototypes" in found.said("instancer-unsupported") and "/I/Proto/C" in found.said(
        "instancer-unsupported"
    )
    assert read(instancer("")).codes() == []


def test_animation_is_reported_and_the_default_taken():
    ops = "double3 xformOp:translate = (1, 2, 3); double3 xformOp:translate.timeSamples = {0: (9, 9, 9)}; "
    ops += 'uniform token[] xformOpOrder = ["xformOp:translate"];'
    found = read(prim("Cube", "B", RIGID, ops))
    assert found.codes() == ["attribute-animated"]
    assert "/B.xformOp:translate" in found.said("attribute-animated")
    assert found.body("/B").pose.position == (1.0, 2.0, 3.0)
    above = read(prim("Xform", "X", "", ops + prim("Cube", "B", RIGID)))
    assert "/X.xformOp:translate" in above.said("attribute-animated")
    assert read(prim("Xform", "X", "", ops)).codes() == []
    mass = read(prim("Cube", "B", RIGID + " MassAPI", "float physics:mass.timeSamples = {0: 5}"))
    assert "physics:mass of /B" in mass.said("attribute-animated")
    assert mass.body("/B").mass.mass == 8000.0


@pytest.mark.parametrize("size", ["1e60", "1e200", "1e300"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [("Cube", "size"), ("Sphere", "radius"), ("Capsule", "height"), ("Cylinder", "radius"), ("Cone", "height")],
)
def test_sizes_beyond_floats_are_refused(kind, name, size):
    assert read(prim(kind, "B", RIGID, f"double {name} = {size}")).errors == ["physics-mass-invalid"]


def test_transforms_beyond_floats():
    for ops in (moved(scale=("1e200",) * 3), moved(translate=("1e300", 0, 0))):
        found = read(prim("Cube", "B", RIGID, ops.replace("'", "")))
        assert set(found.errors) <= {"transform-invalid", "physics-mass-invalid"}
    oval = read(prim("Sphere", "B", RIGID, moved(scale=("1e150", 1, 1)).replace("'", "")))
    assert oval.errors == ["physics-mass-invalid"]
