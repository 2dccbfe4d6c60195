"""Pairs that never collide, as authored; what joints add is the core's business."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.mechanism import Collider
from cosim.usd.reader import StageReader


def read_filtered_pairs(
    reader: StageReader, bodies: set[str], colliders: Sequence[Collider]
) -> tuple[tuple[str, str], ...]:
    """Pairs of bodies or colliders, each pair sorted; one opinion on either side is the whole pair.

    Args:
        reader: the stage.
        bodies: paths of admitted bodies.
        colliders: every admitted collider.
    """
    known = bodies | {collider.path for collider in colliders}
    found = set()
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
            found.add((path, target) if path < target else (target, path))
    return tuple(sorted(found))
