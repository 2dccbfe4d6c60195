"""The rigid-body model in SI: bodies, colliders, joints, sensors and actuators.

What `cosim.usd` reads and `cosim.rigid` builds; neither knows the other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RigidBodyModel:
    """Everything that the rigid-body core simulates."""
