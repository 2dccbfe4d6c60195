"""What the core publishes at a communication point: states, contacts, rays, probes.

Only what is connected or recorded is read from the engine and computed. Everything lives in blocks
of shape (rows, prims); the rows are in the order of `port_table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim import frame
from cosim.component import FloatArray, IndexArray, Port
from cosim.diagnostic import StepError
from cosim.mechanism import JointKind, Pose, RigidBodyModel, Vector
from cosim.rigid.core import ANGULAR_VELOCITY, BODY_ROWS, ORIENTATION, POSITION, VELOCITY, RigidBodyCore, Selection
from cosim.rigid.port_table import BODY_OUTPUTS, MASS_OUTPUTS, PROBE_OUTPUTS, RAY_OUTPUTS, PortTable

_ACCELERATION = slice(BODY_ROWS, BODY_ROWS + 3)
_SPEED, _YAW, _PITCH, _ROLL, _ACCELERATION_VALID, _STATE_VALID = range(BODY_ROWS + 3, BODY_ROWS + 9)
_EULER = {_YAW, _PITCH, _ROLL}
_EFFORT = 2


def _yxz() -> FloatArray:
    """Rows over the products of w, x, y, z: R = Ry(yaw)·Rx(pitch)·Rz(roll); Diebel (2006), section 8."""
    rows = np.zeros((5, 4, 4))
    w, x, y, z = range(4)
    rows[0, x, z] = rows[0, w, y] = 2.0  # sin(yaw)·cos(pitch)
    rows[1, x, y] = rows[1, w, z] = 2.0  # sin(roll)·cos(pitch)
    rows[2, [w, x, y, z], [w, x, y, z]] = (1.0, -1.0, -1.0, 1.0)  # cos(yaw)·cos(pitch)
    rows[3, [w, x, y, z], [w, x, y, z]] = (1.0, -1.0, 1.0, -1.0)  # cos(roll)·cos(pitch)
    rows[4, w, x], rows[4, y, z] = 2.0, -2.0  # sin(pitch)
    return rows.reshape(5, 16)


_YXZ = _yxz()


class Sample:
    """The published values of one run.

    Args:
        model: what is simulated.
        table: where ports live.
        outputs: the bound outputs, in bus order.
        pushed: bodies whose pose is needed to apply forces.
    """

    def __init__(self, model: RigidBodyModel, table: PortTable, outputs: Sequence[Port], pushed: Sequence[int]) -> None:
        self._model = model
        self._index = {body.path: i for i, body in enumerate(model.bodies)}
        cells = [table.cell(port.ref) for port in outputs]
        used = {block: sorted({c.column for c in cells if c.block == block}) for block in _BLOCKS}
        self._rays = used["ray"]
        self._probes = sorted({*used["probe"], *used["sun"]})
        mounts = [model.rays[i].body for i in self._rays] + [model.probes[i].body for i in self._probes if used["sun"]]
        bodies = sorted({*used["body"], *pushed, *(self._index[path] for path in mounts if path)})
        self._column = {body: k for k, body in enumerate(bodies)}
        efforts = {c.column for c in cells if c.block == "joint" and c.row == _EFFORT}
        self.selection = Selection(tuple(bodies), tuple(used["joint"]), frozenset(efforts), bool(used["contact"]))
        self._rows = {c.row for c in cells if c.block == "body"}
        self._sun = bool(used["sun"])
        self._blocks: dict[str, FloatArray] = {
            "body": np.zeros((len(BODY_OUTPUTS), len(bodies))),
            "mass": _masses(model),
            "contact": np.zeros((2, len(model.bodies) + len(model.colliders))),
            "joint": np.zeros((3, len(used["joint"]))),
            "ray": np.zeros((len(RAY_OUTPUTS), len(model.rays))),
            "probe": _gravity(model),
            "sun": np.zeros((3, len(model.probes))),
        }
        self._lights = {light.path: light.toward for light in model.lights}
        joint_column = {joint: k for k, joint in enumerate(used["joint"])}
        columns = {"body": self._column, "joint": joint_column}
        self._gathers = _gathers(cells, self._blocks, columns)
        self._blocks["body"][_STATE_VALID] = 1.0
        self._previous = np.zeros((3, len(bodies)))
        self._has_previous = False
        self._wrapping = np.array(
            [k for joint, k in joint_column.items() if model.joints[joint].kind is JointKind.REVOLUTE], dtype=np.intp
        )
        self._zeros = np.zeros(BODY_ROWS * len(bodies))
        for i in self._rays:
            ray = model.rays[i]
            self._blocks["ray"][9:15, i] = (*ray.origin, *ray.direction)

    # ---- taking

    def take(self, core: RigidBodyCore, time: float, interval: float | None) -> None:
        """Sample the engine.

        Args:
            core: the engine.
            time: of the communication point [s].
            interval: since the last sample [s]; None where there is none.
        """
        self._read_bodies(core, time, interval)
        if self.selection.joints:
            joints = self._blocks["joint"]
            core.read_joints(joints)
            for k in self._wrapping:
                joints[0, k] = frame.wrapped(joints[0, k])
        if self.selection.contacts:
            core.read_contacts(self._blocks["contact"])
        if self._rays:
            self._cast(core, time)
        if self._sun:
            self._look_at_sun()

    def _read_bodies(self, core: RigidBodyCore, time: float, interval: float | None) -> None:
        if not self._column:
            return
        block = self._blocks["body"]
        state = block[:BODY_ROWS]
        core.read_bodies(state)
        if np.dot(state.ravel(), self._zeros) != 0.0:
            self._fail(state, time)
        velocity, previous = state[VELOCITY], self._previous
        if interval is not None and self._has_previous:
            # The difference of the solved velocity over the communication step.
            acceleration = block[_ACCELERATION]
            np.subtract(velocity, previous, out=acceleration)
            acceleration /= interval
            block[_ACCELERATION_VALID] = 1.0
        previous[:] = velocity
        self._has_previous = True
        if _SPEED in self._rows:
            np.sqrt(np.einsum("ij,ij->j", velocity, velocity), out=block[_SPEED])
        if self._rows & _EULER:
            q = state[ORIENTATION]
            products = (q[:, None] * q[None]).reshape(16, -1)
            angles = _YXZ @ products
            np.arctan2(angles[0:2], angles[2:4], out=angles[0:2])
            block[_YAW], block[_ROLL] = angles[0:2]
            # Rounding may leave the domain of the arc sine by an ulp.
            np.arcsin(np.minimum(np.maximum(angles[4], -1.0), 1.0), out=block[_PITCH])

    def _fail(self, state: FloatArray, time: float) -> None:
        column = int(np.flatnonzero(~np.isfinite(state).all(axis=0))[0])
        body = self._model.bodies[self.selection.bodies[column]]
        raise StepError.of(
            "physics-not-finite",
            f"the state of {body.path} is not finite at t = {time:.9g} s: position {state[POSITION, column]}, "
            f"angular velocity {state[ANGULAR_VELOCITY, column]}",
            body.where,
            hint="make the step smaller or the drives and forces on it softer",
        )

    def _cast(self, core: RigidBodyCore, time: float) -> None:
        block = self._blocks["ray"]
        origins: list[Vector] = []
        ends: list[Vector] = []
        owners: list[int] = []
        for i in self._rays:
            ray = self._model.rays[i]
            owner = self._index[ray.body] if ray.body else -1
            mount = self.pose(owner) if owner >= 0 else Pose()
            origin = frame.transform(mount, ray.origin)
            x, y, z = frame.rotate(mount.orientation, ray.direction)
            reach = ray.max_distance
            origins.append(origin)
            ends.append((origin[0] + reach * x, origin[1] + reach * y, origin[2] + reach * z))
            owners.append(owner)
        for i, hit in zip(self._rays, core.cast(origins, ends, owners), strict=True):
            # A miss keeps nothing of an earlier hit.
            block[:9, i] = (
                (0.0, 0.0, *frame.ZERO, *frame.ZERO, time)
                if hit is None
                else (hit.distance, 1.0, *hit.position, *hit.normal, time)
            )

    def _look_at_sun(self) -> None:
        for i in self._probes:
            probe = self._model.probes[i]
            if not probe.sun:
                continue
            mount = probe.mount
            if probe.body:
                mount = frame.multiply(self.orientation(self._index[probe.body]), mount)
            self._blocks["sun"][:, i] = frame.rotate(frame.conjugate(mount), self._lights[probe.sun])

    # ---- reading

    def read(self, values: FloatArray) -> None:
        """Fill in the bound outputs."""
        for block, source, target in self._gathers:
            values[target] = block.take(source)

    def index(self, path: str) -> int:
        """The index of a body in the model."""
        return self._index[path]

    def pose(self, body: int) -> Pose:
        """Of a sampled body."""
        x, y, z, w, i, j, k = self._blocks["body"][:7, self._column[body]].tolist()
        return Pose((x, y, z), (w, i, j, k))

    def orientation(self, body: int) -> frame.Quaternion:
        """Of a sampled body."""
        w, i, j, k = self._blocks["body"][ORIENTATION, self._column[body]].tolist()
        return (w, i, j, k)

    # ---- what changes from outside

    def set_mass(self, body: int, mass: float, inertia: Vector) -> None:
        """Publish new mass properties."""
        self._blocks["mass"][:4, body] = (mass, *inertia)

    def set_light(self, light: int, toward: Vector) -> None:
        """Turn a light."""
        self._lights[self._model.lights[light].path] = toward

    def save(self) -> Any:
        """A snapshot."""
        blocks = {name: block.copy() for name, block in self._blocks.items()}
        return blocks, self._previous.copy(), self._has_previous, dict(self._lights)

    def restore(self, state: Any) -> None:
        """Back to a snapshot."""
        blocks, previous, self._has_previous, lights = state
        for name, block in blocks.items():
            self._blocks[name][:] = block
        self._previous[:] = previous
        self._lights = dict(lights)


_BLOCKS = ("body", "mass", "contact", "joint", "ray", "probe", "sun")


def _gathers(
    cells: Sequence[Any], blocks: dict[str, FloatArray], columns: dict[str, dict[int, int]]
) -> list[tuple[FloatArray, IndexArray, IndexArray]]:
    """Per block: which of its values go to which bound outputs."""
    found = []
    for name in _BLOCKS:
        width = blocks[name].shape[1]
        picked = [
            (k, c.row * width + columns.get(name, {}).get(c.column, c.column))
            for k, c in enumerate(cells)
            if c.block == name
        ]
        if picked:
            found.append(
                (
                    blocks[name],
                    np.array([source for _, source in picked], dtype=np.intp),
                    np.array([target for target, _ in picked], dtype=np.intp),
                )
            )
    return found


def _masses(model: RigidBodyModel) -> FloatArray:
    block = np.zeros((len(MASS_OUTPUTS), len(model.bodies)))
    for i, body in enumerate(model.bodies):
        if body.mass is not None:
            block[:, i] = (body.mass.mass, *body.mass.diagonal_inertia, *body.mass.center_of_mass)
    return block


def _gravity(model: RigidBodyModel) -> FloatArray:
    block = np.zeros((len(PROBE_OUTPUTS), len(model.probes)))
    block[:, :] = np.array([frame.norm(model.gravity), *model.gravity])[:, None]
    return block
