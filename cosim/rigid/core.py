"""What a rigid-body engine must offer to be the core; pybullet is the first that does.

Bodies, joints and colliders are named by their index in the `RigidBodyModel`. Poses and
velocities are those of the prim's origin, in the world, whatever frame the engine thinks in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cosim.component import FloatArray
from cosim.mechanism import Pose, RigidBodyModel, Vector
from cosim.rigid.forest import Tree

# Numbers of a body's state: position, orientation wxyz, velocity, angular velocity.
BODY_STATE = 13


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do.

    Attributes:
        name: of the engine.
        version: of the engine.
        integrator: time integration scheme.
        has_exact_restore: whether `restore` continues bit for bit.
    """

    name: str
    version: str
    integrator: str
    has_exact_restore: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """What is read after each step; nothing else costs time.

    Attributes:
        bodies: indices of bodies whose state is read, in the order of the columns.
        joints: indices of joints whose coordinate is read, in the order of the columns.
        efforts: indices of joints whose reaction is read; each is in `joints`, too.
        contacts: whether contacts are read.
    """

    bodies: tuple[int, ...] = ()
    joints: tuple[int, ...] = ()
    efforts: frozenset[int] = frozenset()
    contacts: bool = False


@dataclass(frozen=True, slots=True)
class RayHit:
    """Where a ray ends.

    Attributes:
        distance: from the origin [m].
        position: world [m].
        normal: of the surface, world, unit length.
    """

    distance: float
    position: Vector
    normal: Vector


class RigidBodyCore(Protocol):
    """An engine.

    Legal call sequence::

        build                                       once
        select                                      once
        ( apply_wrench set_target set_pose set_mass )* step read_*    per physics step
        save restore                                between steps
        close                                       once, in every case
    """

    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    def build(self, model: RigidBodyModel, trees: Sequence[Tree]) -> None:
        """Create every body, collider and joint.

        Raises:
            StageError: the engine refuses something.
        """
        ...

    def select(self, selection: Selection) -> None:
        """Fix what is read."""
        ...

    def step(self, interval: float) -> None:
        """Advance by an interval [s]. Forces are cleared after it, motor targets persist."""
        ...

    def read_bodies(self) -> list[float]:
        """States of the selected bodies, 13 numbers each.

        They are position [m], orientation wxyz, velocity [m/s], angular velocity [rad/s].
        """
        ...

    def read_joints(self, state: FloatArray) -> None:
        """Coordinate, rate, and effort of body0 on body1 along the axis (0 where not selected).

        Args:
            state: shape (joints, 3).
        """
        ...

    def read_contacts(self, state: FloatArray) -> None:
        """Touching (0/1) and sum of normal forces [N]: bodies first, then colliders.

        Args:
            state: shape (bodies + colliders of the model, 2).
        """
        ...

    def cast(self, origins: Sequence[Vector], ends: Sequence[Vector], owners: Sequence[int]) -> list[RayHit | None]:
        """Rays in the world; a ray does not see its owner, a body index or −1."""
        ...

    def pose(self, body: int) -> Pose:
        """Of one body's prim now, whether or not it is selected."""
        ...

    def apply_wrench(self, body: int, force: Vector, torque: Vector, center: Vector) -> None:
        """A force [N] and a torque [N·m] in the world for the next step.

        Args:
            body: which.
            force: at the centre of mass.
            torque: free.
            center: where the centre of mass is, world [m].
        """
        ...

    def set_target(self, joint: int, target: float | None) -> None:
        """The motor's position target [rad or m], until changed; None goes back to the authored drive."""
        ...

    def set_pose(self, body: int, pose: Pose) -> None:
        """Place a kinematic body."""
        ...

    def set_mass(self, body: int, mass: float, inertia: Vector) -> None:
        """Change mass [kg] and principal moments of inertia [kg·m²]."""
        ...

    def save(self) -> Any:
        """A snapshot."""
        ...

    def restore(self, state: Any) -> None:
        """Back to a snapshot."""
        ...

    def close(self) -> None:
        """Free the engine. Idempotent."""
        ...
