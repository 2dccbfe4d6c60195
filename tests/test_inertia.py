"""Mass properties of shapes against closed forms, and against each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim import frame, inertia
from cosim.mechanism import IDENTITY, Pose, Shape, ShapeKind

sizes = st.floats(0.05, 20.0)
angles = st.floats(-math.pi, math.pi)
coordinates = st.floats(-5.0, 5.0)


@st.composite
def rotations(draw):
    q = draw(st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: sum(c * c for c in q) > 0.01))
    return frame.normalised(q)


def matrix(q):
    return np.array([frame.rotate(q, axis) for axis in np.eye(3).tolist()]).T


def tensor_of(properties):
    turn = matrix(properties.principal_axes)
    return turn @ np.diag(properties.diagonal_inertia) @ turn.T


def box_points(x, y, z):
    return tuple((sx * x, sy * y, sz * z) for sx, sy, sz in itertools.product((-1.0, 1.0), repeat=3))


def ring(radius, height, count=720):
    turn = [2 * math.pi * k / count for k in range(count)]
    return tuple((radius * math.cos(a), radius * math.sin(a), height) for a in turn)


def test_box():
    lump = inertia.of_shape(Shape(ShapeKind.BOX, half_extents=(0.5, 1.0, 1.5)), 100.0)
    assert lump.mass == pytest.approx(600.0)
    assert np.diag(lump.tensor) == pytest.approx([50 * (4 + 9), 50 * (1 + 9), 50 * (1 + 4)])


def test_sphere():
    lump = inertia.of_shape(Shape(ShapeKind.SPHERE, radius=2.0), 3.0)
    assert lump.mass == pytest.approx(32 * math.pi)
    assert np.diag(lump.tensor) == pytest.approx([0.4 * 32 * math.pi * 4] * 3)


def test_cylinder_and_cone_have_the_inertia_of_their_hulls():
    for kind, top in ((ShapeKind.CYLINDER, ring(0.7, 0.9)), (ShapeKind.CONE, ((0.0, 0.0, 0.9),))):
        exact = inertia.of_shape(Shape(kind, radius=0.7, height=1.8), 1000.0)
        hull = inertia.of_shape(Shape(ShapeKind.HULL, points=(*ring(0.7, -0.9), *top)), 1000.0)
        assert hull.mass == pytest.approx(exact.mass, rel=1e-4)
        assert hull.center == pytest.approx(exact.center, abs=1e-4)
        assert hull.tensor == pytest.approx(exact.tensor, rel=1e-4, abs=1e-3)


def test_capsule_by_integration_of_its_slices():
    """Discs of radius r(z): m = ρπr²dz, moments r²/4 + z² across and r²/2 along."""
    radius, height, n = 0.4, 1.1, 200_000
    end = height / 2 + radius
    z = np.linspace(-end, end, n, endpoint=False) + end / n
    r2 = radius**2 - np.maximum(np.abs(z) - height / 2, 0) ** 2
    dm = 1000 * math.pi * r2 * (2 * end / n)
    lump = inertia.of_shape(Shape(ShapeKind.CAPSULE, radius=radius, height=height), 1000.0)
    assert lump.mass == pytest.approx(dm.sum(), rel=1e-6)
    assert lump.tensor[0, 0] == pytest.approx((dm * (r2 / 4 + z**2)).sum(), rel=1e-6)
    assert lump.tensor[2, 2] == pytest.approx((dm * r2 / 2).sum(), rel=1e-6)


@given(sizes, sizes, sizes, coordinates, rotations())
def test_a_hull_of_a_box_anywhere_is_that_box(x, y, z, shift, q):
    exact = inertia.of_shape(Shape(ShapeKind.BOX, half_extents=(x, y, z)), 10.0).placed(Pose((shift, 1, 2), q))
    at = Pose((shift, 1.0, 2.0), q)
    points = tuple(frame.transform(at, p) for p in box_points(x, y, z))
    hull = inertia.of_shape(Shape(ShapeKind.HULL, points=points), 10.0)
    assert hull.mass == pytest.approx(exact.mass, rel=1e-6)
    assert hull.center == pytest.approx(exact.center, abs=1e-6)
    assert hull.tensor == pytest.approx(exact.tensor, rel=1e-6, abs=1e-6 * np.abs(exact.tensor).max())


def test_a_hull_ignores_inner_and_coplanar_points():
    grid = tuple(itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=3))
    hull = inertia.of_shape(Shape(ShapeKind.HULL, points=grid), 1.0)
    assert hull.mass == pytest.approx(8.0)
    assert hull.tensor == pytest.approx(np.eye(3) * 8 / 12 * 8)


@settings(max_examples=30)
@given(st.lists(st.tuples(coordinates, coordinates, coordinates), min_size=5, max_size=40, unique=True))
def test_no_point_lies_outside_its_hull(points):
    try:
        faces = inertia.hull_triangles(points)
    except ValueError:
        return  # coplanar
    p = np.array(points)
    for a, b, c in faces:
        normal = np.cross(p[b] - p[a], p[c] - p[a])
        if np.linalg.norm(normal) > 1e-9:
            assert ((p - p[a]) @ normal).max() <= 1e-6 * np.linalg.norm(normal)
    # A closed surface: every edge once in each direction.
    edges = [(f[k], f[(k + 1) % 3]) for f in faces for k in range(3)]
    assert len(edges) == len(set(edges)) and {(b, a) for a, b in edges} == set(edges)


def test_a_hull_of_many_points_on_a_sphere():
    k = np.arange(3000) + 0.5
    phi, theta = np.arccos(1 - 2 * k / 3000), math.pi * (1 + 5**0.5) * k
    points = np.stack([np.cos(theta) * np.sin(phi), np.sin(theta) * np.sin(phi), np.cos(phi)], axis=1)
    lump = inertia.of_shape(Shape(ShapeKind.HULL, points=tuple(map(tuple, points.tolist()))), 1.0)
    assert lump.mass == pytest.approx(4 / 3 * math.pi, rel=5e-3)


@pytest.mark.parametrize("points", [(), ((0.0, 0.0, 0.0),) * 4, tuple((x, y, 0.0) for x in (0.0, 1) for y in (0.0, 1))])
def test_a_flat_hull_has_no_mass_properties(points):
    with pytest.raises(ValueError, match=r"four points|plane"):
        inertia.of_shape(Shape(ShapeKind.HULL, points=points), 1.0)


def test_a_mesh_turned_inside_out_and_an_open_one():
    box = box_points(1.0, 1.0, 1.0)
    faces = inertia.hull_triangles(box)
    inside_out = tuple((a, c, b) for a, b, c in faces)
    for triangles in (faces, inside_out):
        assert inertia.of_shape(Shape(ShapeKind.MESH, points=box, triangles=triangles), 2.0).mass == pytest.approx(16)
    with pytest.raises(ValueError, match="no volume"):
        inertia.of_shape(Shape(ShapeKind.MESH, points=box[:3], triangles=((0, 1, 2),)), 1.0)


def test_two_halves_make_a_whole():
    half = inertia.of_shape(Shape(ShapeKind.BOX, half_extents=(0.5, 1.0, 1.0)), 7.0)
    both = inertia.combined([half.placed(Pose((s, 0.0, 0.0))) for s in (-0.5, 0.5)])
    whole = inertia.of_shape(Shape(ShapeKind.BOX, half_extents=(1.0, 1.0, 1.0)), 7.0)
    assert both.mass == pytest.approx(whole.mass)
    assert both.tensor == pytest.approx(whole.tensor)
    assert both.center == pytest.approx([0, 0, 0])


def test_a_diagonal_tensor_keeps_its_axes_and_their_order():
    lump = inertia.Lump(1.0, np.zeros(3), np.diag([3.0, 1.0, 2.0]))
    assert inertia.principal(lump).diagonal_inertia == (3.0, 1.0, 2.0)
    assert inertia.principal(lump).principal_axes == IDENTITY


@given(st.tuples(sizes, sizes, sizes), rotations())
def test_principal_axes_give_the_tensor_back(moments, q):
    turn = matrix(q)
    tensor = turn @ np.diag(moments) @ turn.T
    found = inertia.principal(inertia.Lump(1.0, np.zeros(3), tensor))
    assert tensor_of(found) == pytest.approx(tensor, abs=1e-9 * max(moments))
    assert sorted(found.diagonal_inertia) == pytest.approx(sorted(moments), rel=1e-9)
    assert np.linalg.norm(found.principal_axes) == pytest.approx(1.0)


@given(st.floats(-0.02, 0.02))
def test_axes_of_a_slightly_turned_tensor_stay_close(angle):
    """No permutation of axes where a diagonal tensor turns a little."""
    turn = matrix((math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0))
    found = inertia.principal(inertia.Lump(1.0, np.zeros(3), turn @ np.diag([5.0, 1.0, 3.0]) @ turn.T))
    assert found.diagonal_inertia == pytest.approx((5.0, 1.0, 3.0))
    assert frame.angle_of(found.principal_axes) == pytest.approx(abs(angle), abs=1e-7)


@given(rotations())
def test_a_rotation_matrix_gives_its_quaternion_back(q):
    back = inertia.of_matrix(matrix(q))
    assert abs(sum(a * b for a, b in zip(q, back, strict=True))) == pytest.approx(1.0)


def test_a_lump_about_another_point_gains_by_the_parallel_axis_theorem():
    lump = inertia.Lump(6.0, np.zeros(3), np.eye(3)).about(np.array([1.0, 0.0, 0.0]))
    assert np.diag(lump.tensor) == pytest.approx([1.0, 7.0, 7.0])
