"""The input values of the rigid-body core, and which of them changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cosim import frame
from cosim.component import FloatArray, Port
from cosim.diagnostic import StepError
from cosim.mechanism import Pose, RigidBodyModel, Vector
from cosim.rigid.port_table import BODY_INPUTS, LIGHT_INPUTS, MASS_INPUTS, POSE_INPUTS, Cell, PortTable

_ROWS = {
    "force": len(BODY_INPUTS),
    "actuator": 1,
    "target": 1,
    "pose": len(POSE_INPUTS),
    "mass_input": len(MASS_INPUTS),
    "light": len(LIGHT_INPUTS),
}
# Forces act anew in every step; the rest is written into the engine when it changes.
_SUMMED = ("force", "actuator")


class Inputs:
    """Input values by block; what nothing drives is 0 for a force and NaN else.

    Args:
        model: what is simulated.
        table: where ports live.
        bound: the bound inputs, in bus order.
    """

    def __init__(self, model: RigidBodyModel, table: PortTable, bound: Sequence[Port]) -> None:
        widths = {
            "force": len(model.bodies),
            "actuator": len(model.actuators),
            "target": len(model.joints),
            "pose": len(model.bodies),
            "mass_input": len(model.bodies),
            "light": len(model.lights),
        }
        self._model = model
        self.blocks = {n: np.full((_ROWS[n], w), 0.0 if n in _SUMMED else np.nan) for n, w in widths.items()}
        self._written = {n: block.copy() for n, block in self.blocks.items() if n not in _SUMMED}
        cells = [table.cell(port.ref) for port in bound]
        self._bound = {n: sorted({c.column for c in cells if c.block == n}) for n in widths}
        self._places = [
            (
                self.blocks[n].reshape(-1),
                np.array([k for k, c in enumerate(cells) if c.block == n], dtype=np.intp),
                np.array([c.row * widths[n] + c.column for c in cells if c.block == n], dtype=np.intp),
            )
            for n in widths
            if self._bound[n]
        ]
        self._held: list[tuple[Cell, float]] = []
        # Blocks that may differ from what the engine has; a released hold is one of them once.
        self._watched = [n for n in self._written if self._bound[n]]

    def driven(self, block: str) -> list[int]:
        """Columns of a block that are bound or held."""
        return sorted({*self._bound[block], *(c.column for c, _ in self._held if c.block == block)})

    def set(self, values: FloatArray) -> None:
        """Take the bound inputs, shape (bound,)."""
        for block, where, place in self._places:
            block[place] = values[where]

    def hold(self, held: Sequence[tuple[Cell, float]]) -> None:
        """Replace the held values of unbound inputs."""
        for cell, _ in self._held:
            self.blocks[cell.block][cell.row, cell.column] = 0.0 if cell.block in _SUMMED else np.nan
        touched = {cell.block for cell, _ in (*self._held, *held)} & set(self._written)
        self._held = list(held)
        for cell, value in self._held:
            self.blocks[cell.block][cell.row, cell.column] = value
        self._watched = [n for n in self._written if self._bound[n] or n in touched]

    def changes(self) -> Iterator[tuple[str, int]]:
        """Blocks and columns whose values differ from what was handed out last."""
        for name in self._watched:
            now, before = self.blocks[name], self._written[name]
            differs = (now != before) & ~(np.isnan(now) & np.isnan(before))
            if differs.any():
                before[:] = now
                for column in np.flatnonzero(differs.any(axis=0)).tolist():
                    yield name, column

    # ---- what the values mean

    def target(self, joint: int) -> float | None:
        """The commanded joint coordinate [rad or m], None where nothing commands."""
        value = float(self.blocks["target"][0, joint])
        return None if np.isnan(value) else value

    def pose(self, body: int) -> Pose:
        """The prescribed pose; what is not driven stays as authored.

        Raises:
            StepError: the orientation is no rotation.
        """
        own = self._model.bodies[body]
        authored = (*own.pose.position, *own.pose.orientation)
        x, y, z, *q = _filled(self.blocks["pose"][:, body], authored)
        try:
            return Pose((x, y, z), frame.normalised((q[0], q[1], q[2], q[3])))
        except ValueError as error:
            message = f"the prescribed orientation of {own.path}: {error}"
            raise StepError.of("pose-invalid", message, own.where) from None

    def mass(self, body: int) -> tuple[float, Vector]:
        """Mass [kg] and principal moments [kg·m²]; a mass alone rescales the tensor, as in a stage."""
        own = self._model.bodies[body].mass
        assert own is not None
        driven = self.blocks["mass_input"][:, body]
        mass = _filled(driven[:1], (own.mass,))[0]
        scale = mass / own.mass
        x, y, z = _filled(driven[1:], tuple(scale * i for i in own.diagonal_inertia))
        return mass, (x, y, z)

    def light(self, light: int) -> Vector:
        """Unit vector toward a light.

        Raises:
            StepError: it has no length.
        """
        about = self._model.lights[light]
        x, y, z = _filled(self.blocks["light"][:, light], about.toward)
        length = frame.norm((x, y, z))
        if not length > 0.0:
            raise StepError.of("direction-invalid", f"the direction of {about.path} has no length", about.where)
        return (x / length, y / length, z / length)

    # ---- state

    def save(self) -> Any:
        """A snapshot."""
        blocks = {n: b.copy() for n, b in self.blocks.items()}
        return blocks, {n: b.copy() for n, b in self._written.items()}, list(self._held), list(self._watched)

    def restore(self, state: Any) -> None:
        """Back to a snapshot."""
        blocks, written, held, watched = state
        for name, block in blocks.items():
            self.blocks[name][:] = block
        for name, block in written.items():
            self._written[name][:] = block
        self._held, self._watched = list(held), list(watched)


def _filled(driven: FloatArray, otherwise: Sequence[float]) -> list[float]:
    return [own if np.isnan(value) else value for value, own in zip(driven.tolist(), otherwise, strict=True)]
