"""What a stage says in ways that the attribute ledger cannot see: typed prims, instancers, animation."""

from __future__ import annotations

from pxr import Usd, UsdGeom, UsdPhysics

from cosim.usd.reader import SIMULATION_PREFIXES, SIMULATION_SCHEMAS, StageReader

_MOVES = ("PhysicsRigidBodyAPI", "PhysicsCollisionAPI")


def report_left_out(reader: StageReader) -> None:
    """File a finding for each prim or animation that promises behaviour and has none."""
    physical = {prim.GetPath() for prim in reader.prims() if _is_physical(prim, reader)}
    places = {at for path in physical for at in path.GetPrefixes()}
    for prim in reader.prims():
        if _is_unknown(prim):
            _report_type(prim, reader)
        elif prim.IsA(UsdGeom.PointInstancer):
            _check_instancer(prim, reader)
        if prim.GetPath() in places:
            _check_animation(prim, reader, has_physics=prim.GetPath() in physical)


def _is_physical(prim: Usd.Prim, reader: StageReader) -> bool:
    return prim.IsA(UsdPhysics.Joint) or any(n.startswith(SIMULATION_SCHEMAS) for n in reader.applied(prim))


def _is_unknown(prim: Usd.Prim) -> bool:
    known = prim.IsA(UsdPhysics.Joint) or prim.IsA(UsdPhysics.Scene) or prim.IsA(UsdPhysics.CollisionGroup)
    name = str(prim.GetTypeName())
    return name.startswith(SIMULATION_SCHEMAS) and not known and not name.endswith("Joint")


def _report_type(prim: Usd.Prim, reader: StageReader) -> None:
    reader.log.warning(
        "prim-type-not-realised",
        f"{prim.GetPath()} is a {prim.GetTypeName()}, which is not realised: it has no effect on the simulation",
        reader.locate(prim),
        hint="remove it, or take it as a note",
    )
    # Said once for the prim, not once for each of its properties.
    reader.consume(prim, *reader.authored_names(prim))


def _check_instancer(prim: Usd.Prim, reader: StageReader) -> None:
    """Bodies and colliders of prototypes would stand where the prototypes are, once."""
    for target in UsdGeom.PointInstancer(prim).GetPrototypesRel().GetForwardedTargets():
        prototype = reader.stage.GetPrimAtPath(target)
        if not prototype:
            continue
        for part in Usd.PrimRange.AllPrims(prototype):
            if set(_MOVES) & set(reader.applied(part)):
                reader.log.error(
                    "instancer-unsupported",
                    f"{prim.GetPath()} instances {target}, which holds the body or collider {part.GetPath()}: physics "
                    "of point instances is not realised",
                    reader.locate(prim, "prototypes"),
                    hint="author references (they may be instanceable) instead of a PointInstancer",
                )
                return


def _check_animation(prim: Usd.Prim, reader: StageReader, *, has_physics: bool) -> None:
    """Values are read once, at the default time."""
    for attribute in prim.GetAuthoredAttributes():
        name = attribute.GetName()
        counts = name.startswith("xformOp:") or (has_physics and name.startswith(SIMULATION_PREFIXES))
        if counts and attribute.GetNumTimeSamples() > 0:
            reader.log.warning(
                "attribute-animated",
                f"{name} of {prim.GetPath()} has time samples, which are not played: its value at the default time, "
                f"{attribute.Get()}, is taken",
                reader.locate(prim, name),
                hint="author a default value; drive kinematic bodies through their input ports",
            )
