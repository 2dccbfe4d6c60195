"""Where a difference between traces begins: the port furthest upstream that differs."""

from __future__ import annotations

from cosim.compare import Comparison
from cosim.component import Direction, PortRef
from cosim.graph import PortGraph


def furthest_upstream(comparison: Comparison, graph: PortGraph | None = None) -> str:
    """The port at which a difference begins.

    From the column that differs first, the connections are followed upstream for as long as a
    source differs no later.

    Args:
        comparison: of a trace.
        graph: of the system; without it the column that differs first is it.

    Returns:
        The name of a column; "" if none differs.
    """
    failures = {c.name: c for c in comparison.failures}
    if not failures:
        return ""
    here = next(iter(failures))
    if graph is None:
        return here
    recorded = {c.name for c in comparison.columns}
    seen = {here}
    while True:
        time = failures[here].first_time or 0.0
        earlier = [
            name
            for name in _recorded_sources(here, graph, recorded)
            if name in failures and name not in seen and (failures[name].first_time or 0.0) <= time
        ]
        if not earlier:
            return here
        here = min(earlier, key=lambda name: (failures[name].first_time or 0.0, name))
        seen.add(here)


def _recorded_sources(name: str, graph: PortGraph, recorded: set[str]) -> list[str]:
    """The nearest recorded ports upstream of a port: the way goes on through what was not recorded."""
    found: list[str] = []
    seen, ahead = {name}, [name]
    while ahead:
        for source in _sources(ahead.pop(), graph):
            if source not in seen:
                seen.add(source)
                (found if source in recorded else ahead).append(source)
    return sorted(found)


def _sources(name: str, graph: PortGraph) -> list[str]:
    """What a port follows: an input its sources; an output the driven inputs of its component and their sources."""
    ref = PortRef.parse(name)
    if ref.direction is Direction.INPUT:
        return [str(w.source.ref) for w in graph.wires if w.target.ref == ref]
    found = graph.resolve(ref)
    wires = [w for w in graph.wires if found is not None and w.target_component == found[0]]
    return [str(port.ref) for w in wires for port in (w.target, w.source)]
