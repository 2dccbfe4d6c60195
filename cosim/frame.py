"""Rigid transformations: quaternions (w, x, y, z) and poses, as pure functions.

Formulas: J. Diebel, "Representing Attitude: Euler Angles, Unit Quaternions, and Rotation
Vectors" (2006), sections 6 and 8. A pose maps local to parent coordinates,
x_parent = R(q)·x_local + p.
"""

from __future__ import annotations

import math

from cosim.mechanism import IDENTITY, ZERO, Pose, Quaternion, Vector

__all__ = ["IDENTITY", "ZERO", "Pose", "Quaternion", "Vector"]


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The rotation b followed by a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def conjugate(q: Quaternion) -> Quaternion:
    """The inverse rotation."""
    return (q[0], -q[1], -q[2], -q[3])


def normalised(q: Quaternion) -> Quaternion:
    """Unit length.

    Raises:
        ValueError: a zero or non-finite quaternion.
    """
    length = math.sqrt(sum(c * c for c in q))
    if not (math.isfinite(length) and length > 0.0):
        raise ValueError(f"{q} is no rotation")
    return (q[0] / length, q[1] / length, q[2] / length, q[3] / length)


def rotate(q: Quaternion, v: Vector) -> Vector:
    """R(q)·v."""
    w, x, y, z = q
    tx, ty, tz = 2.0 * (y * v[2] - z * v[1]), 2.0 * (z * v[0] - x * v[2]), 2.0 * (x * v[1] - y * v[0])
    return (
        v[0] + w * tx + (y * tz - z * ty),
        v[1] + w * ty + (z * tx - x * tz),
        v[2] + w * tz + (x * ty - y * tx),
    )


def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Vector, b: Vector) -> Vector:
    """a − b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def dot(a: Vector, b: Vector) -> float:
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def norm(v: Vector) -> float:
    """|v|."""
    return math.sqrt(dot(v, v))


def compose(outer: Pose, inner: Pose) -> Pose:
    """`outer` after `inner`: from the frame of `inner`'s local to that of `outer`'s parent."""
    return Pose(
        add(outer.position, rotate(outer.orientation, inner.position)),
        multiply(outer.orientation, inner.orientation),
    )


def inverse(pose: Pose) -> Pose:
    """Parent to local."""
    back = conjugate(pose.orientation)
    x, y, z = rotate(back, pose.position)
    return Pose((-x, -y, -z), back)


def transform(pose: Pose, point: Vector) -> Vector:
    """A point of the local frame in the parent frame."""
    return add(pose.position, rotate(pose.orientation, point))


def about_x(angle: float) -> Quaternion:
    """Rotation by an angle [rad] about x."""
    return (math.cos(angle / 2.0), math.sin(angle / 2.0), 0.0, 0.0)


def twist_about_x(q: Quaternion) -> float:
    """The angle in (−π, π] of the twist about x in the swing-twist decomposition of q [rad]."""
    angle = 2.0 * math.atan2(q[1], q[0])
    return wrapped(angle)


def angle_of(q: Quaternion) -> float:
    """The angle of a rotation, in [0, π] [rad]."""
    return 2.0 * math.atan2(math.sqrt(q[1] ** 2 + q[2] ** 2 + q[3] ** 2), abs(q[0]))


def wrapped(angle: float) -> float:
    """The same angle in (−π, π] [rad]."""
    turned = math.remainder(angle, 2.0 * math.pi)
    return math.pi if turned == -math.pi else turned
