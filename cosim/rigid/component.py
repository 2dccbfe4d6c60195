"""The rigid-body core as a component of the co-simulation.

The name of the component is "/": its ports are on the prims of bodies, joints and sensors
(`port_table`). Forces are summed by the master, applied during every physics step of the tick and
then forgotten; motor targets persist. Outputs are sampled after the physics step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cosim import frame
from cosim.component import Causality, Experiment, FloatArray, Port, PortRef, StepStatus
from cosim.diagnostic import DiagnosticLog, StepError, UsageError
from cosim.mechanism import ActuatorKind, Pose, RigidBodyModel, Vector
from cosim.rigid.bullet import BulletCore
from cosim.rigid.core import RigidBodyCore
from cosim.rigid.forest import plant
from cosim.rigid.port_table import MASS_INPUTS, POSE_INPUTS, PortTable
from cosim.rigid.sample import Sample

CORES: dict[str, Callable[[DiagnosticLog], RigidBodyCore]] = {"bullet": BulletCore}


class RigidBodyComponent:
    """Bodies, joints, sensors and actuators of a stage.

    Args:
        model: what to simulate.
        core: the engine, "bullet".
        substeps: physics steps per communication step.
        log: gets approximations and what the core does not realise.
    """

    name = "/"
    period: Fraction | None = None

    def __init__(
        self, model: RigidBodyModel, *, core: str = "bullet", substeps: int = 1, log: DiagnosticLog | None = None
    ) -> None:
        if core not in CORES:
            raise UsageError.of("core-unknown", f"there is no rigid-body core {core!r}", hint=", ".join(sorted(CORES)))
        self._model = model
        self._core_name = core
        self._substeps = substeps
        self._log = log if log is not None else DiagnosticLog()
        self._trees = plant(model, self._log)
        self._table = PortTable(model)
        self._core: RigidBodyCore | None = None
        self._held: dict[PortRef, tuple[Port, float]] = {}

    # ---- description

    def ports(self) -> Iterable[Port]:
        """Every port, sorted."""
        return self._table.ports()

    def find(self, ref: PortRef) -> Port | None:
        """The port of an address."""
        return self._table.find(ref)

    def dependencies(self, output: PortRef) -> frozenset[PortRef]:
        """None: outputs are sampled after the step."""
        return frozenset()

    # ---- life cycle

    def bind(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Fix what is written and what is read."""
        self._inputs = _Inputs(self._model, self._table, inputs)
        self._outputs = list(outputs)

    def enter_initialization(self, experiment: Experiment, start_values: Sequence[tuple[Port, Any]]) -> None:
        """Build the engine."""
        self._experiment = experiment
        core = CORES[self._core_name](self._log)
        self._core = core
        core.build(self._model, self._trees)
        self._sample = Sample(self._model, self._table, self._outputs)
        core.select(self._sample.selection)
        self._is_initializing = True
        self._sample.take(core, experiment.time(0), None)

    def set_inputs(self, values: FloatArray) -> None:
        """Write the bound inputs; NaN gives a target, mass or pose back to what is authored."""
        self._inputs.set(values)
        if self._is_initializing:
            # A prescribed pose, a mass and the sun count from the first instant.
            self._write_states()
            self._sample.take(self._running(), self._experiment.time(0), None)

    def get_outputs(self, values: FloatArray) -> None:
        """The sample of this communication point."""
        self._sample.read(values)

    def exit_initialization(self) -> None:
        """The sample stays; the next call is a step."""
        self._is_initializing = False

    def step(self, tick: int, ticks: int) -> StepStatus:
        """Advance over `ticks` base steps in `substeps` physics steps each."""
        core = self._running()
        count = self._substeps * ticks
        interval = self._experiment.interval(tick, ticks)
        self._write_states()
        for _ in range(count):
            self._apply_forces(core)
            core.step(interval / count)
        self._sample.take(core, self._experiment.time(tick + ticks), interval)
        return StepStatus.OK

    def close(self) -> None:
        """Free the engine."""
        if self._core is not None:
            self._core.close()

    # ---- values from outside

    def hold(self, port: Port, value: Any) -> None:
        """Keep an unbound input at a value."""
        if port.causality is not Causality.INPUT:
            raise StepError.of("port-not-an-input", f"{port.ref} is {port.causality}", port.where)
        self._held[port.ref] = (port, float(value))
        self._inputs.hold({ref: self._table.cell(p) for ref, (p, _) in self._held.items()}, self._held_values())

    def release(self, port: Port) -> None:
        """Give an unbound input back."""
        self._held.pop(port.ref, None)
        self._inputs.hold({ref: self._table.cell(p) for ref, (p, _) in self._held.items()}, self._held_values())

    def _held_values(self) -> dict[PortRef, float]:
        return {ref: value for ref, (_, value) in self._held.items()}

    # ---- state

    def save(self) -> Any:
        """A snapshot."""
        return self._running().save(), self._sample.save(), self._inputs.save(), dict(self._held)

    def restore(self, state: Any) -> None:
        """Back to a snapshot, bit for bit."""
        core, sample, inputs, held = state
        self._running().restore(core)
        self._sample.restore(sample)
        self._inputs.restore(inputs)
        self._held = dict(held)

    # ---- writing into the engine

    def _running(self) -> RigidBodyCore:
        if self._core is None:
            raise StepError.of("component-not-initialized", "the rigid-body core is not initialized")
        return self._core

    def _write_states(self) -> None:
        """What is not a force: joint targets, prescribed poses, masses, light directions."""
        core, inputs, model = self._running(), self._inputs, self._model
        for joint in inputs.changed("target"):
            value = float(inputs.blocks["target"][0, joint])
            core.set_target(joint, None if np.isnan(value) else value)
        for body in inputs.changed("pose"):
            core.set_pose(body, inputs.pose(model, body))
        for body in inputs.changed("mass_input"):
            mass, inertia = inputs.mass(model, body)
            core.set_mass(body, mass, inertia)
            self._sample.set_mass(body, mass, inertia)
        for light in inputs.changed("light"):
            self._sample.set_light(light, inputs.light(model, light))

    def _apply_forces(self, core: RigidBodyCore) -> None:
        for body in self._inputs.pushed:
            force, local, torque = self._inputs.wrench(body)
            if local != frame.ZERO:
                force = frame.add(force, frame.rotate(core.pose(body).orientation, local))
            if force != frame.ZERO:
                core.apply_force(body, force)
            if torque != frame.ZERO:
                core.apply_torque(body, torque)
        for index in self._inputs.actuated:
            self._actuate(core, index)

    def _actuate(self, core: RigidBodyCore, index: int) -> None:
        actuator = self._model.actuators[index]
        body = self._sample.index(actuator.body)
        lowest = 0.0 if actuator.kind is ActuatorKind.FORCE else -actuator.limit
        command = min(max(float(self._inputs.blocks["actuator"][0, index]), lowest), actuator.limit)
        if command == 0.0:
            return
        pose = core.pose(body)
        x, y, z = frame.rotate(pose.orientation, actuator.direction)
        effort = (command * x, command * y, command * z)
        if actuator.kind is ActuatorKind.FORCE:
            core.apply_force(body, effort, frame.transform(pose, actuator.position))
        else:
            core.apply_torque(body, effort)


_ROWS = {"force": 9, "mass_input": len(MASS_INPUTS), "pose": len(POSE_INPUTS), "target": 1, "light": 3, "actuator": 1}
_SUMMED = ("force", "actuator")


class _Inputs:
    """Input values by block; what nothing drives is 0 for a force and NaN else."""

    def __init__(self, model: RigidBodyModel, table: PortTable, bound: Sequence[Port]) -> None:
        columns = {
            "force": len(model.bodies),
            "mass_input": len(model.bodies),
            "pose": len(model.bodies),
            "target": len(model.joints),
            "light": len(model.lights),
            "actuator": len(model.actuators),
        }
        self._model = model
        self.blocks = {
            name: np.full((_ROWS[name], n), 0.0 if name in _SUMMED else np.nan) for name, n in columns.items()
        }
        self._written = {name: block.copy() for name, block in self.blocks.items() if name not in _SUMMED}
        cells = [table.cell(port) for port in bound]
        self._places = {
            name: (
                np.array([k for k, c in enumerate(cells) if c.block == name], dtype=np.intp),
                np.array([c.row * columns[name] + c.column for c in cells if c.block == name], dtype=np.intp),
            )
            for name in columns
        }
        self._bound = {name: sorted({c.column for c in cells if c.block == name}) for name in columns}
        self._live = [name for name in columns if self._bound[name]]
        self._held: list[tuple[str, int, float]] = []
        self._used()

    def _used(self) -> None:
        held = {(name, place % max(1, self.blocks[name].shape[1])) for name, place, _ in self._held}
        pick = {name: {c for n, c in held if n == name} for name in self.blocks}
        self.pushed = sorted({*self._bound["force"], *pick["force"]})
        self.actuated = sorted({*self._bound["actuator"], *pick["actuator"]})

    def set(self, values: FloatArray) -> None:
        for name in self._live:
            where, place = self._places[name]
            self.blocks[name].flat[place] = values[where]

    def hold(self, cells: dict[PortRef, Any], values: dict[PortRef, float]) -> None:
        for name, place, _ in self._held:
            self.blocks[name].flat[place] = 0.0 if name in _SUMMED else np.nan
        self._held = [
            (cells[ref].block, cells[ref].row * self.blocks[cells[ref].block].shape[1] + cells[ref].column, value)
            for ref, value in sorted(values.items())
        ]
        for name, place, value in self._held:
            self.blocks[name].flat[place] = value
        self._used()

    def changed(self, name: str) -> list[int]:
        """Columns whose values differ from what was handed out last."""
        now, before = self.blocks[name], self._written[name]
        if not now.size or not (self._bound[name] or self._held or not np.isnan(before).all()):
            return []
        differs = ~((now == before) | (np.isnan(now) & np.isnan(before)))
        if not differs.any():
            return []
        before[:] = now
        return [int(c) for c in np.flatnonzero(differs.any(axis=0))]

    def wrench(self, body: int) -> tuple[Vector, Vector, Vector]:
        fx, fy, fz, lx, ly, lz, tx, ty, tz = self.blocks["force"][:, body].tolist()
        return (fx, fy, fz), (lx, ly, lz), (tx, ty, tz)

    def pose(self, model: RigidBodyModel, body: int) -> Pose:
        own = model.bodies[body].pose
        wanted = self.blocks["pose"][:, body].tolist()
        mixed = [o if np.isnan(v) else v for v, o in zip(wanted, (*own.position, *own.orientation), strict=True)]
        where = model.bodies[body].where
        try:
            orientation = frame.normalised((mixed[3], mixed[4], mixed[5], mixed[6]))
        except ValueError as error:
            raise StepError.of(
                "pose-invalid", f"the prescribed orientation of {model.bodies[body].path}: {error}", where
            ) from None
        return Pose((mixed[0], mixed[1], mixed[2]), orientation)

    def mass(self, model: RigidBodyModel, body: int) -> tuple[float, Vector]:
        own = model.bodies[body].mass
        assert own is not None
        mass, *inertia = self.blocks["mass_input"][:, body].tolist()
        if np.isnan(mass):
            mass = own.mass
        # A mass alone rescales the tensor, as in the stage.
        scale = mass / own.mass
        x, y, z = (o * scale if np.isnan(i) else i for i, o in zip(inertia, own.diagonal_inertia, strict=True))
        return mass, (x, y, z)

    def light(self, model: RigidBodyModel, light: int) -> Vector:
        wanted = self.blocks["light"][:, light].tolist()
        x, y, z = (o if np.isnan(v) else v for v, o in zip(wanted, model.lights[light].toward, strict=True))
        length = frame.norm((x, y, z))
        if not length > 0.0:
            about = model.lights[light]
            raise StepError.of("direction-invalid", f"the direction of {about.path} has no length", about.where)
        return (x / length, y / length, z / length)

    def save(self) -> Any:
        return (
            {n: b.copy() for n, b in self.blocks.items()},
            {n: b.copy() for n, b in self._written.items()},
            list(self._held),
        )

    def restore(self, state: Any) -> None:
        blocks, written, held = state
        for name, block in blocks.items():
            self.blocks[name][:] = block
        for name, block in written.items():
            self._written[name][:] = block
        self._held = list(held)
        self._used()
