"""A joint drive on Bullet's position motor, implicit in its stiffness and damping.

An explicit torque K·(target − q) + D·(v − q̇) explodes when it is stiff. Bullet's motor asks for a
velocity, so the semi-implicit law I·(q̇⁺ − q̇) = h·(K·(target − q − h·q̇⁺) + D·(v − q̇⁺)) is expressed by
its two gains: with N = I + h·D + h²·K they are kp = h²·K/N and kd = (h·D + h²·K)/N.
"""

from __future__ import annotations

import math
from typing import Any

from cosim import frame
from cosim.mechanism import Joint, JointKind

_UNLIMITED = 1e30


class Motor:
    """The motor of one revolute or prismatic joint.

    Args:
        joint: with its drive.
        bullet: the pybullet module.
        kw: the physics client.
        multibody: Bullet's number of the articulation.
        link: Bullet's number of the joint.
    """

    def __init__(self, joint: Joint, bullet: Any, kw: dict[str, Any], multibody: int, link: int) -> None:
        self._joint, self._bullet, self._kw = joint, bullet, kw
        self._multibody, self._link = multibody, link
        self._command: float | None = None
        self._applied: tuple[float, ...] | None = None
        count = bullet.getNumJoints(multibody, **kw)
        infos = [bullet.getJointInfo(multibody, i, **kw) for i in range(count)]
        self._movable = [i[0] for i in infos if i[2] != bullet.JOINT_FIXED]
        self._is_floating = bullet.getDynamicsInfo(multibody, -1, **kw)[0] > 0.0
        self._inertia: float | None = None
        self._is_alone = len(self._movable) == 1 and not self._is_floating

    def command(self, target: float | None) -> None:
        """A target [rad or m] over the authored one; None gives it back."""
        self._command = target

    def save(self) -> Any:
        """What Bullet's own snapshot leaves out."""
        return self._command, self._applied

    def restore(self, state: Any) -> None:
        """Back to a snapshot; the motor is written again."""
        self._command, _ = state
        self._applied = None

    def update(self, interval: float) -> None:
        """Write the motor where something changed."""
        drive = self._joint.drive
        if self._command is None and not drive.is_active:
            if self._applied is not None:
                self._bullet.setJointMotorControl2(
                    self._multibody, self._link, self._bullet.VELOCITY_CONTROL, force=0.0, **self._kw
                )
                self._applied = None
            return
        target = self._command if self._command is not None else drive.target
        inertia = 1.0 if drive.acceleration else self._effective_inertia()
        asked = (target if target is not None else 0.0, interval, inertia)
        if asked == self._applied:
            return
        self._applied = asked
        damping = interval * drive.damping
        stiffness = interval * interval * drive.stiffness if target is not None else 0.0
        total = inertia + damping + stiffness
        velocity = drive.target_velocity * damping / (damping + stiffness) if damping + stiffness > 0.0 else 0.0
        self._bullet.setJointMotorControl2(
            self._multibody,
            self._link,
            self._bullet.POSITION_CONTROL,
            targetPosition=self._nearest(asked[0]),
            targetVelocity=velocity,
            positionGain=stiffness / total,
            velocityGain=(damping + stiffness) / total,
            force=min(drive.max_effort, _UNLIMITED),
            **self._kw,
        )

    def _nearest(self, target: float) -> float:
        """An angle without limits is reached the short way round; Bullet counts turns."""
        joint = self._joint
        if joint.kind is not JointKind.REVOLUTE or joint.lower is not None or joint.upper is not None:
            return target
        now = self._bullet.getJointState(self._multibody, self._link, **self._kw)[0]
        if abs(target - now) <= math.pi:
            return target
        return float(now + frame.wrapped(target - now))

    def _effective_inertia(self) -> float:
        """1 / (M⁻¹)ⱼⱼ: what the motor's impulse meets [kg·m² or kg]."""
        if self._inertia is None or not self._is_alone:
            self._inertia = effective_inertia(
                self._bullet, self._kw, self._multibody, self._movable, self._link, self._is_floating
            )
        return self._inertia


def effective_inertia(
    bullet: Any, kw: dict[str, Any], multibody: int, movable: list[int], link: int, is_floating: bool
) -> float:
    """1 / (M⁻¹)ⱼⱼ of a joint, with M the joint-space mass matrix of its articulation."""
    import numpy as np

    states = bullet.getJointStates(multibody, movable, **kw)
    matrix = np.array(bullet.calculateMassMatrix(multibody, [s[0] for s in states], **kw))
    row = movable.index(link) + (6 if is_floating else 0)
    unit = np.zeros(len(matrix))
    unit[row] = 1.0
    return float(1.0 / np.linalg.solve(matrix, unit)[row])
