"""Forces and torques on bodies, summed to one wrench per body and physics step."""

from __future__ import annotations

from collections.abc import Callable

from cosim import frame
from cosim.mechanism import ActuatorKind, Pose, RigidBodyModel, Vector
from cosim.rigid.core import RigidBodyCore
from cosim.rigid.inputs import Inputs

# An actuator as a unit wrench about its body's centre of mass, in body axes: its index, force, torque, and
# the bounds of its command.
_Mounted = tuple[int, Vector, Vector, float, float]


class Wrenches:
    """What pushes which body.

    Args:
        model: what is simulated.
        inputs: where forces and commands come from.
    """

    def __init__(self, model: RigidBodyModel, inputs: Inputs) -> None:
        self._inputs = inputs
        self._centers = [b.mass.center_of_mass if b.mass else frame.ZERO for b in model.bodies]
        index = {body.path: i for i, body in enumerate(model.bodies)}
        self._mounted: dict[int, list[_Mounted]] = {}
        for i, actuator in enumerate(model.actuators):
            body = index[actuator.body]
            is_force = actuator.kind is ActuatorKind.FORCE
            arm = frame.subtract(actuator.position, self._centers[body])
            mounted = (
                i,
                actuator.direction if is_force else frame.ZERO,
                frame.cross(arm, actuator.direction) if is_force else actuator.direction,
                0.0 if is_force else -actuator.limit,
                actuator.limit,
            )
            self._mounted.setdefault(body, []).append(mounted)
        # Poses of these are sampled in any case.
        self.bodies = sorted({*inputs.driven("force"), *self._mounted})
        self.update()

    def update(self) -> None:
        """Look again at what is bound and held."""
        commanded = set(self._inputs.driven("actuator"))
        pushed = self._inputs.driven("force")
        live = {body: [m for m in found if m[0] in commanded] for body, found in self._mounted.items()}
        self._live = [
            (body, live.get(body, []), body in pushed)
            for body in sorted({*pushed, *(body for body, found in live.items() if found)})
        ]

    def apply(self, core: RigidBodyCore, sampled: Callable[[int], Pose] | None) -> None:
        """Hand one wrench per body to the engine.

        Args:
            core: the engine.
            sampled: gives the pose of a body of `bodies`; None reads it from the engine.
        """
        commands = self._inputs.blocks["actuator"][0].tolist()
        for body, actuators, is_pushed in self._live:
            fx = fy = fz = tx = ty = tz = 0.0
            force = torque = frame.ZERO
            if is_pushed:
                wx, wy, wz, fx, fy, fz, ax, ay, az = self._inputs.blocks["force"][:, body].tolist()
                force, torque = (wx, wy, wz), (ax, ay, az)
            for index, (ux, uy, uz), (vx, vy, vz), lowest, highest in actuators:
                effort = min(max(commands[index], lowest), highest)
                fx, fy, fz = fx + effort * ux, fy + effort * uy, fz + effort * uz
                tx, ty, tz = tx + effort * vx, ty + effort * vy, tz + effort * vz
            pose = sampled(body) if sampled is not None and body in self.bodies else core.pose(body)
            local, twist = (fx, fy, fz), (tx, ty, tz)
            if local != frame.ZERO:
                force = frame.add(force, frame.rotate(pose.orientation, local))
            if twist != frame.ZERO:
                torque = frame.add(torque, frame.rotate(pose.orientation, twist))
            if force != frame.ZERO or torque != frame.ZERO:
                core.apply_wrench(body, force, torque, frame.transform(pose, self._centers[body]))
