"""The rigid-body core as a component of the co-simulation.

The name of the component is "/": its ports are on the prims of bodies, joints and sensors
(`port_table`). Forces are summed by the master, applied during every physics step of the tick and
then forgotten; motor targets persist. Outputs are sampled after the physics step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from cosim.component import Causality, Experiment, FloatArray, Port, PortRef, StepStatus
from cosim.diagnostic import DiagnosticLog, StepError, UsageError
from cosim.mechanism import RigidBodyModel
from cosim.rigid.bullet import BulletCore
from cosim.rigid.core import RigidBodyCore
from cosim.rigid.forest import plant
from cosim.rigid.inputs import Inputs
from cosim.rigid.port_table import PortTable
from cosim.rigid.sample import Sample
from cosim.rigid.wrench import Wrenches

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
        self._held: dict[PortRef, float] = {}

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
        self._inputs = Inputs(self._model, self._table, inputs)
        self._outputs = list(outputs)
        self._wrenches = Wrenches(self._model, self._inputs)

    def enter_initialization(self, experiment: Experiment, start_values: Sequence[tuple[Port, Any]]) -> None:
        """Build the engine."""
        self._experiment = experiment
        core = CORES[self._core_name](self._log)
        self._core = core
        core.build(self._model, self._trees)
        self._sample = Sample(self._model, self._table, self._outputs, self._wrenches.bodies)
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
        for k in range(count):
            # The sample holds the poses of the first physics step.
            self._wrenches.apply(core, self._sample.pose if k == 0 else None)
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
        self._held[port.ref] = float(value)
        self._update_held()

    def release(self, port: Port) -> None:
        """Give an unbound input back."""
        self._held.pop(port.ref, None)
        self._update_held()

    def _update_held(self) -> None:
        self._inputs.hold([(self._table.cell(ref), value) for ref, value in sorted(self._held.items())])
        self._wrenches.update()

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
        self._wrenches.update()

    # ---- writing into the engine

    def _running(self) -> RigidBodyCore:
        if self._core is None:
            raise StepError.of("component-not-initialized", "the rigid-body core is not initialized")
        return self._core

    def _write_states(self) -> None:
        """What is not a force: joint targets, prescribed poses, masses, light directions."""
        core, inputs = self._running(), self._inputs
        for block, column in inputs.changes():
            if block == "target":
                core.set_target(column, inputs.target(column))
            elif block == "pose":
                core.set_pose(column, inputs.pose(column))
            elif block == "mass_input":
                mass, inertia = inputs.mass(column)
                core.set_mass(column, mass, inertia)
                self._sample.set_mass(column, mass, inertia)
            else:
                self._sample.set_light(column, inputs.light(column))
