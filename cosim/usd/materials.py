"""Physics materials: friction, restitution and density of what is bound to a collider."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pxr import Usd, UsdPhysics, UsdShade, UsdUtils

from cosim.mechanism import SurfaceMaterial
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, number


@dataclass(frozen=True, slots=True)
class PhysicsMaterial:
    """What a bound material says.

    Attributes:
        surface: friction and restitution.
        density: [kg/m³], 0 where it is not authored.
    """

    surface: SurfaceMaterial
    density: float


_UNBOUND = PhysicsMaterial(SurfaceMaterial(), 0.0)


class Materials:
    """The physics materials of a stage, each read and reported once.

    Args:
        reader: the stage.
    """

    def __init__(self, reader: StageReader) -> None:
        self._reader = reader
        self._found: dict[str, PhysicsMaterial] = {}
        for prim in reader.prims():
            if prim.HasAPI(UsdPhysics.MaterialAPI):
                self._of(prim)

    def bound_to(self, prim: Usd.Prim) -> PhysicsMaterial:
        """The material bound to a prim or above it, for physics or for all purposes; else USD's fallbacks."""
        # USD says on stderr that a binding is there and MaterialBindingAPI is not applied; it counts all the same.
        delegate = UsdUtils.CoalescingDiagnosticDelegate()
        try:
            found, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
        finally:
            delegate.TakeUncoalescedDiagnostics()
            del delegate
        material = found.GetPrim() if found else None
        if not material or not material.HasAPI(UsdPhysics.MaterialAPI):
            return _UNBOUND
        return self._of(material)

    def _of(self, prim: Usd.Prim) -> PhysicsMaterial:
        path = str(prim.GetPath())
        if path not in self._found:
            self._reader.consume_schema(prim, "PhysicsMaterialAPI")
            try:
                self._found[path] = self._read(prim)
            except ValueRefused as refused:
                refused.report(self._reader, "material-invalid")
                self._found[path] = _UNBOUND
        return self._found[path]

    def _read(self, prim: Usd.Prim) -> PhysicsMaterial:
        reader = self._reader
        names = ("staticFriction", "dynamicFriction", "restitution", "density")
        values = {name: number(prim, reader, f"physics:{name}", 0.0) for name in names}
        for name, value in values.items():
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueRefused(prim, f"physics:{name}", f"is {value}; it must be finite and not negative")
        static, dynamic = values["staticFriction"], values["dynamicFriction"]
        if static != dynamic and reader.authored(prim, "physics:staticFriction"):
            reader.log.info(
                "friction-one-coefficient",
                f"{prim.GetPath()} has static friction {static:g} and dynamic friction {dynamic:g}; the core has one "
                f"coefficient and takes {dynamic:g}",
                reader.locate(prim, "physics:staticFriction"),
            )
        density = values["density"] * reader.kilograms / reader.metres**3
        return PhysicsMaterial(SurfaceMaterial(static, dynamic, values["restitution"]), density)
