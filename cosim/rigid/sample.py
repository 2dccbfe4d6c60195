"""What the core publishes at a communication point: states, contacts, rays, probes.

Only what is connected or recorded is read from the engine and computed. Everything lives in blocks
of shape (prims, quantities); the quantities are in the order of `port_table`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim import frame
from cosim.component import FloatArray, IndexArray, Port
from cosim.diagnostic import StepError
from cosim.mechanism import JointKind, Pose, RigidBodyModel, Vector
from cosim.rigid.core import BODY_STATE, RigidBodyCore, Selection
from cosim.rigid.port_table import BODY_OUTPUTS, MASS_OUTPUTS, PROBE_OUTPUTS, RAY_OUTPUTS, Cell, PortTable

_EFFORT = 2
# Distance, validity, position, normal.
_MISS = (0.0,) * 8


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
        self._sun = bool(used["sun"])
        self._flat, self._blocks = _allocated(
            {
                "body": (len(bodies), len(BODY_OUTPUTS)),
                "mass": (len(model.bodies), len(MASS_OUTPUTS)),
                "contact": (len(model.bodies) + len(model.colliders), 2),
                "joint": (len(used["joint"]), 3),
                "ray": (len(model.rays), len(RAY_OUTPUTS)),
                "probe": (len(model.probes), len(PROBE_OUTPUTS)),
                "sun": (len(model.probes), 3),
            }
        )
        _fill_masses(model, self._blocks["mass"])
        self._blocks["probe"][:] = (frame.norm(model.gravity), *model.gravity)
        self._lights = {light.path: light.toward for light in model.lights}
        joint_column = {joint: k for k, joint in enumerate(used["joint"])}
        columns = {"body": self._column, "joint": joint_column}
        self._sources = _sources(cells, self._blocks, columns)
        self._states: list[float] = []
        self._poses: dict[int, Pose] = {}
        self._has_acceleration = False
        self._wrapping = [k for joint, k in joint_column.items() if model.joints[joint].kind is JointKind.REVOLUTE]
        self._mounts = [(model.rays[i], self._index.get(model.rays[i].body, -1)) for i in self._rays]
        self._owners = [owner for _, owner in self._mounts]
        for i in self._rays:
            ray = model.rays[i]
            self._blocks["ray"][i, 9:15] = (*ray.origin, *ray.direction)

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
                joints[k, 0] = frame.wrapped(joints[k, 0])
        if self.selection.contacts:
            core.read_contacts(self._blocks["contact"])
        if self._rays:
            self._cast(core, time)
        if self._sun:
            self._look_at_sun()

    def _read_bodies(self, core: RigidBodyCore, time: float, interval: float | None) -> None:
        if not self._column:
            return
        before, states = self._states, core.read_bodies()
        if not math.isfinite(math.fsum(states)):
            self._fail(states, time)
        is_first = interval is None or not before
        values: list[float] = []
        self._poses = {}
        for k, body in enumerate(self.selection.bodies):
            at = BODY_STATE * k
            x, y, z, qw, qx, qy, qz, vx, vy, vz, wx, wy, wz = states[at : at + BODY_STATE]
            self._poses[body] = Pose((x, y, z), (qw, qx, qy, qz))
            ax = ay = az = 0.0
            if not is_first:
                # The difference of the solved velocity over the communication step.
                ux, uy, uz = before[at + 7 : at + 10]
                ax, ay, az = (vx - ux) / interval, (vy - uy) / interval, (vz - uz) / interval  # type: ignore[operator]
            speed = math.sqrt(vx * vx + vy * vy + vz * vz)
            yaw, pitch, roll = yaw_pitch_roll((qw, qx, qy, qz))
            values += (x, y, z, qw, qx, qy, qz, vx, vy, vz, wx, wy, wz, ax, ay, az, speed, yaw, pitch, roll)
            values += (0.0 if is_first else 1.0, 1.0)
        self._blocks["body"].reshape(-1)[:] = values
        self._states = states

    def _fail(self, states: list[float], time: float) -> None:
        at = next((k for k, number in enumerate(states) if not math.isfinite(number)), 0)
        body = self._model.bodies[self.selection.bodies[at // BODY_STATE]]
        first = at // BODY_STATE * BODY_STATE
        raise StepError.of(
            "physics-not-finite",
            f"the state of {body.path} is not finite at t = {time:.9g} s: position {states[first : first + 3]}, "
            f"velocity {states[first + 7 : first + 10]}",
            body.where,
            hint="make the step smaller or the drives and forces on it softer",
        )

    def _cast(self, core: RigidBodyCore, time: float) -> None:
        block = self._blocks["ray"]
        origins: list[Vector] = []
        ends: list[Vector] = []
        for ray, owner in self._mounts:
            origin, direction = ray.origin, ray.direction
            if owner >= 0:
                mount = self._poses[owner]
                origin, direction = frame.transform(mount, origin), frame.rotate(mount.orientation, direction)
            reach = ray.max_distance
            origins.append(origin)
            ends.append(
                (origin[0] + reach * direction[0], origin[1] + reach * direction[1], origin[2] + reach * direction[2])
            )
        for i, hit in zip(self._rays, core.cast(origins, ends, self._owners), strict=True):
            # A miss keeps nothing of an earlier hit.
            block[i, :9] = (*_MISS, time) if hit is None else (hit.distance, 1.0, *hit.position, *hit.normal, time)

    def _look_at_sun(self) -> None:
        for i in self._probes:
            probe = self._model.probes[i]
            if not probe.sun:
                continue
            mount = probe.mount
            if probe.body:
                mount = frame.multiply(self.orientation(self._index[probe.body]), mount)
            self._blocks["sun"][i] = frame.rotate(frame.conjugate(mount), self._lights[probe.sun])

    # ---- reading

    def read(self, values: FloatArray) -> None:
        """Fill in the bound outputs."""
        # The indices are in range: mode "clip" only skips numpy's buffering.
        self._flat.take(self._sources, out=values, mode="clip")

    def index(self, path: str) -> int:
        """The index of a body in the model."""
        return self._index[path]

    def pose(self, body: int) -> Pose:
        """Of a sampled body."""
        return self._poses[body]

    def orientation(self, body: int) -> frame.Quaternion:
        """Of a sampled body."""
        return self._poses[body].orientation

    # ---- what changes from outside

    def set_mass(self, body: int, mass: float, inertia: Vector) -> None:
        """Publish new mass properties."""
        self._blocks["mass"][body, :4] = (mass, *inertia)

    def set_light(self, light: int, toward: Vector) -> None:
        """Turn a light."""
        self._lights[self._model.lights[light].path] = toward

    def save(self) -> Any:
        """A snapshot."""
        blocks = {name: block.copy() for name, block in self._blocks.items()}
        return blocks, list(self._states), dict(self._poses), dict(self._lights)

    def restore(self, state: Any) -> None:
        """Back to a snapshot."""
        blocks, states, poses, lights = state
        for name, block in blocks.items():
            self._blocks[name][:] = block
        self._states, self._poses = list(states), dict(poses)
        self._lights = dict(lights)


def yaw_pitch_roll(q: frame.Quaternion) -> Vector:
    """YXZ Euler angles [rad]: R = Ry(yaw)·Rx(pitch)·Rz(roll); Diebel (2006), section 8."""
    w, x, y, z = q
    pitch = 2.0 * (w * x - y * z)
    return (
        math.atan2(2.0 * (x * z + w * y), w * w - x * x - y * y + z * z),
        # Rounding may leave the domain of the arc sine by an ulp.
        math.asin(min(1.0, max(-1.0, pitch))),
        math.atan2(2.0 * (x * y + w * z), w * w - x * x + y * y - z * z),
    )


_BLOCKS = ("body", "mass", "contact", "joint", "ray", "probe", "sun")


def _allocated(shapes: dict[str, tuple[int, int]]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """One array, and each block as a view into it."""
    flat = np.zeros(sum(rows * width for rows, width in shapes.values()))
    blocks, at = {}, 0
    for name, (rows, width) in shapes.items():
        blocks[name] = flat[at : at + rows * width].reshape(rows, width)
        at += rows * width
    return flat, blocks


def _sources(cells: Sequence[Cell], blocks: dict[str, FloatArray], columns: dict[str, dict[int, int]]) -> IndexArray:
    """Where in the flat array each bound output is."""
    starts, at = {}, 0
    for name, block in blocks.items():
        starts[name] = at
        at += block.size
    found = [
        starts[c.block] + columns.get(c.block, {}).get(c.column, c.column) * blocks[c.block].shape[1] + c.row
        for c in cells
    ]
    return np.array(found, dtype=np.intp)


def _fill_masses(model: RigidBodyModel, block: FloatArray) -> None:
    for i, body in enumerate(model.bodies):
        if body.mass is not None:
            block[i] = (body.mass.mass, *body.mass.diagonal_inertia, *body.mass.center_of_mass)
