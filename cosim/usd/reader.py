"""Reading a composed stage with an account of what was read.

Every reader in `cosim.usd` goes through a `StageReader`. It knows the units, finds the
layer that authored an opinion, and keeps a ledger of the attributes and applied API
schemas that were consumed. What is authored in a simulation namespace and was never
consumed is reported at the end: an attribute that does nothing is a defect, not
harmless metadata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdShade

from cosim.diagnostic import DiagnosticLog, SourceLocation

# Property namespaces that promise behaviour: physics and its vendors' extensions, LunCoSim's
# sensors and programs, and our own. An opinion here is either realised or reported.
SIMULATION_PREFIXES = (
    "physics:",
    "drive:",
    "limit:",
    "state:",
    "lunco:",
    "physx",
    "newton:",
    "mjc:",
    "cosim:",
    "info:",
)
SIMULATION_SCHEMAS = ("Physics", "Physx", "LunCo", "Newton", "Mjc", "Cosim")


def as_written(attribute: Usd.Attribute) -> Any:
    """The value of an attribute; a single-precision number as the decimal that was written.

    A `float` of 0.6 is 0.6000000238… in double precision, and 0.6 is what its author meant.
    """
    value = attribute.Get()
    if isinstance(value, float) and attribute.GetTypeName() in (Sdf.ValueTypeNames.Float, Sdf.ValueTypeNames.Half):
        return float(str(np.float32(value)))
    return value


class StageReader:
    """A composed stage, its units, and the ledger of what was read from it.

    Args:
        stage: the composed stage.
        log: where findings are filed.
        layer_names: layer identifier → the name that the user knows, for layers that were
            mapped in memory because of named asset roots.
    """

    def __init__(self, stage: Usd.Stage, log: DiagnosticLog, layer_names: Mapping[str, str] | None = None) -> None:
        self.stage = stage
        self.log = log
        self._layer_names = dict(layer_names or {})
        self.metres = self._per_unit("metersPerUnit", UsdGeom.GetStageMetersPerUnit)
        self.kilograms = self._per_unit("kilogramsPerUnit", UsdPhysics.GetStageKilogramsPerUnit)
        self.up_axis = self._up_axis()
        self._consumed: set[tuple[str, str]] = set()
        self._consumed_schemas: set[tuple[str, str]] = set()
        self._inert: dict[tuple[str, str], str] = {}
        self._prims: tuple[Usd.Prim, ...] | None = None

    # ---- the stage's own metadata

    def _per_unit(self, name: str, read: Callable[[Usd.Stage], float]) -> float:
        """A positive finite number; 1, with a finding, where it is something else."""
        try:
            value = float(read(self.stage))
        except Tf.ErrorException:
            value = math.nan
        if math.isfinite(value) and value > 0.0 and 1e-9 < value < 1e9:
            return value
        self._metadata_invalid(name, "a positive number, such as 1 or 0.01")
        return 1.0

    def _up_axis(self) -> str:
        try:
            axis = str(UsdGeom.GetStageUpAxis(self.stage))
        except Tf.ErrorException:
            axis = ""
        if axis in ("Y", "Z"):
            return axis
        self._metadata_invalid("upAxis", '"Y" or "Z"')
        return "Y"

    def _metadata_invalid(self, name: str, cure: str) -> None:
        root = self.stage.GetRootLayer()
        written = root.pseudoRoot.GetInfo(name) if root.pseudoRoot.HasInfo(name) else "not usable"
        self.log.error(
            "stage-metadata-invalid",
            f"{name} of the stage is {written}",
            SourceLocation(self.layer_name(root)),
            hint=f"author {cure}",
        )

    # ---- what is there

    def prims(self) -> tuple[Usd.Prim, ...]:
        """Active, loaded, defined, non-abstract prims in stage order, instance proxies included."""
        if self._prims is None:
            predicate = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
            self._prims = tuple(self.stage.Traverse(predicate))
        return self._prims

    def applied(self, prim: Usd.Prim) -> tuple[str, ...]:
        """Applied API schemas, also those that usd-core does not know (`HasAPI` drops them)."""
        return tuple(str(name) for name in prim.GetPrimTypeInfo().GetAppliedAPISchemas())

    def has_schema(self, prim: Usd.Prim, *names: str) -> bool:
        """Whether one of these API schemas is applied; marks it as read."""
        found = [name for name in self.applied(prim) if name in names or name.partition(":")[0] in names]
        self.consume_schema(prim, *found)
        return bool(found)

    # ---- where it was authored

    def locate(self, prim: Usd.Prim, property_name: str = "") -> SourceLocation:
        """The strongest layer that authored this prim or property."""
        layer = ""
        if property_name:
            stack = prim.GetProperty(property_name).GetPropertyStack(Usd.TimeCode.Default())
            layer = self.layer_name(stack[0].layer) if stack else ""
        if not layer:
            stack = prim.GetPrimStack()
            layer = self.layer_name(stack[0].layer) if stack else self.layer_name(self.stage.GetRootLayer())
        return SourceLocation(layer, str(prim.GetPath()), property_name)

    def layer_name(self, layer: Sdf.Layer) -> str:
        """The layer as the user knows it."""
        known = self._layer_names.get(layer.identifier)
        return known or layer.realPath or layer.identifier

    # ---- reading, with the ledger

    def get(self, prim: Usd.Prim, name: str, default: Any = None) -> Any:
        """The value of an attribute (authored or schema fallback), else `default`; marks it as read."""
        self.consume(prim, name)
        attribute = prim.GetAttribute(name)
        if not attribute:
            return default
        value = as_written(attribute)
        return default if value is None else value

    def authored(self, prim: Usd.Prim, name: str) -> bool:
        """Whether an attribute has an authored value; marks it as read."""
        self.consume(prim, name)
        attribute = prim.GetAttribute(name)
        return bool(attribute) and attribute.HasAuthoredValue()

    def get_authored(self, prim: Usd.Prim, name: str) -> Any:
        """The authored value, or None when only a fallback exists; marks it as read."""
        return as_written(prim.GetAttribute(name)) if self.authored(prim, name) else None

    def targets(self, prim: Usd.Prim, name: str) -> tuple[Sdf.Path, ...]:
        """The targets of a relationship (forwarded); marks it as read."""
        self.consume(prim, name)
        relationship = prim.GetRelationship(name)
        return tuple(relationship.GetForwardedTargets()) if relationship else ()

    def consume(self, prim: Usd.Prim, *names: str) -> None:
        """Mark properties as read."""
        path = str(prim.GetPath())
        for name in names:
            self._consumed.add((path, name))

    def consume_schema(self, prim: Usd.Prim, *names: str) -> None:
        """Mark applied API schemas (or a typed schema, by its type name) as read."""
        path = str(prim.GetPath())
        for name in names:
            self._consumed_schemas.add((path, name))

    def declare_inert(self, prim: Usd.Prim, reason: str, *names: str) -> None:
        """Record that properties or schemas are known and deliberately without effect."""
        path = str(prim.GetPath())
        for name in names:
            self._inert[(path, name)] = reason

    # ---- the account

    def consumed(self, prim: Usd.Prim) -> tuple[str, ...]:
        """Names of properties of this prim that were read, sorted."""
        path = str(prim.GetPath())
        return tuple(sorted(name for at, name in self._consumed if at == path))

    def authored_names(self, prim: Usd.Prim) -> Iterator[str]:
        """Authored properties of this prim in the simulation namespaces."""
        is_shading = bool(prim.IsA(UsdShade.NodeGraph) or prim.IsA(UsdShade.Shader))
        for item in prim.GetAuthoredProperties():
            name = item.GetName()
            if name.startswith(SIMULATION_PREFIXES) and not (is_shading and name.startswith("info:")):
                yield name

    def unread_schemas(self, prim: Usd.Prim) -> Iterator[str]:
        """Applied schemas in the simulation namespaces that nobody read."""
        path = str(prim.GetPath())
        for name in self.applied(prim):
            if name.startswith(SIMULATION_SCHEMAS) and (path, name) not in self._consumed_schemas:
                yield name

    def report_unrealised(self, only: Iterable[Usd.Prim] | None = None) -> None:
        """File a finding for each authored property and schema that had no effect."""
        for prim in self.prims() if only is None else only:
            path = str(prim.GetPath())
            for name in self.unread_schemas(prim):
                self._report(prim, path, name, is_schema=True)
            for name in self.authored_names(prim):
                if (path, name) not in self._consumed:
                    self._report(prim, path, name, is_schema=False)

    def _report(self, prim: Usd.Prim, path: str, name: str, *, is_schema: bool) -> None:
        kind = "schema" if is_schema else "attribute"
        where = self.locate(prim, "" if is_schema else name)
        reason = self._inert.get((path, name))
        if reason is not None:
            self.log.info(f"{kind}-inert", f"{name} has no effect here: {reason}", where)
            return
        self.log.warning(
            f"{kind}-not-realised",
            f"{name} is authored and not realised: it has no effect on the simulation",
            where,
            hint="remove it, or take it as a note; the README lists what is realised",
        )
