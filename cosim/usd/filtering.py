"""Pairs that never collide, as authored; what joints add is the core's business."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from pxr import Usd, UsdPhysics

from cosim.mechanism import Collider
from cosim.usd.reader import StageReader
from cosim.usd.values import ValueRefused, flag, token

Pairs = set[tuple[str, str]]


def read_filtering(reader: StageReader, bodies: set[str], colliders: Sequence[Collider]) -> tuple[tuple[str, str], ...]:
    """Pairs of bodies or colliders that never collide, each pair sorted.

    Args:
        reader: the stage.
        bodies: paths of admitted bodies.
        colliders: every admitted collider.
    """
    known = bodies | {collider.path for collider in colliders}
    return tuple(sorted(_filtered_pairs(reader, known) | _filtered_groups(reader, colliders)))


def _filtered_pairs(reader: StageReader, known: set[str]) -> Pairs:
    """PhysicsFilteredPairsAPI: one opinion on either side is the whole pair."""
    found: Pairs = set()
    for prim in reader.prims():
        if not reader.has_schema(prim, "PhysicsFilteredPairsAPI"):
            continue
        path = str(prim.GetPath())
        for target in sorted(str(t) for t in reader.targets(prim, "physics:filteredPairs")):
            strangers = [end for end in (path, target) if end not in known]
            if strangers or path == target:
                what = f"{strangers[0]} is neither a body nor a collider" if strangers else "both are the same"
                reader.log.warning(
                    "filtered-pair-unusable",
                    f"{path} is not to collide with {target}, which has no effect: {what}",
                    reader.locate(prim, "physics:filteredPairs"),
                    hint="name rigid bodies, or prims with PhysicsCollisionAPI",
                )
                continue
            found.add(_pair(path, target))
    return found


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


# ---- groups


def _filtered_groups(reader: StageReader, colliders: Sequence[Collider]) -> Pairs:
    """PhysicsCollisionGroup, resolved to pairs of colliders."""
    groups = [prim for prim in reader.prims() if prim.IsA(UsdPhysics.CollisionGroup)]
    if not groups:
        return set()
    inverted = {str(prim.GetPath()) for prim in groups if _read_group(prim, reader)}
    # usd-core resolves symmetry, merged groups and inversion between groups.
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(reader.stage)
    members: dict[str, list[str]] = {}
    for prim in groups:
        query = UsdPhysics.CollisionGroup(prim).GetCollidersCollectionAPI().ComputeMembershipQuery()
        for collider in colliders:
            if query.IsPathIncluded(collider.path):
                members.setdefault(collider.path, []).append(str(prim.GetPath()))
    found: Pairs = set()
    for one, other in combinations(colliders, 2):
        # What never touches anyway: parts of one body, and static surfaces.
        if one.body == other.body:
            continue
        ours, theirs = members.get(one.path, []), members.get(other.path, [])
        is_off = any(not table.IsCollisionEnabled(a, b) for a in ours for b in theirs)
        # An inverted group collides with the groups that it lists only, so not with what has no group.
        is_off |= not theirs and any(a in inverted for a in ours)
        is_off |= not ours and any(b in inverted for b in theirs)
        if is_off:
            found.add(_pair(one.path, other.path))
    return found


def _read_group(prim: Usd.Prim, reader: StageReader) -> bool:
    """Account for a group's properties, and say whether it is inverted."""
    name = "physics:filteredGroups"
    for target in reader.targets(prim, name):
        at = reader.stage.GetPrimAtPath(target)
        if not at or not at.IsA(UsdPhysics.CollisionGroup):
            reader.log.warning(
                "filtered-group-unusable",
                f"{prim.GetPath()} filters {target}, which is no collision group",
                reader.locate(prim, name),
                hint="name prims of type PhysicsCollisionGroup",
            )
    try:
        token(prim, reader, "physics:mergeGroup", "")
        return flag(prim, reader, "physics:invertFilteredGroups", False)
    except ValueRefused as refused:
        refused.report(reader)
        return False
