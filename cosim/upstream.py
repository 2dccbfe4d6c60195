"""Where a difference between traces begins: the port furthest upstream that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cosim.compare import Comparison

Connections = Sequence[Mapping[str, str]]
"""What `cosim.session.connections` makes, and what the metadata of a run hold under this name."""


def furthest_upstream(comparison: Comparison, connections: Connections = ()) -> str:
    """The port at which a difference begins.

    From the column that differs first, the connections are followed upstream for as long as a
    source differs no later.

    Args:
        comparison: of a trace.
        connections: of the system; without them the column that differs first is it.

    Returns:
        The name of a column; "" if none differs.
    """
    failures = {c.name: c for c in comparison.failures}
    if not failures:
        return ""
    here = next(iter(failures))
    recorded = {c.name for c in comparison.columns}
    seen = {here}
    while True:
        time = failures[here].first_time or 0.0
        earlier = [
            name
            for name in _recorded_sources(here, connections, recorded)
            if name in failures and name not in seen and (failures[name].first_time or 0.0) <= time
        ]
        if not earlier:
            return here
        here = min(earlier, key=lambda name: (failures[name].first_time or 0.0, name))
        seen.add(here)


def _recorded_sources(name: str, connections: Connections, recorded: set[str]) -> list[str]:
    """The nearest recorded ports upstream of a port: the way goes on through what was not recorded."""
    found: list[str] = []
    seen, ahead = {name}, [name]
    while ahead:
        for source in _sources(ahead.pop(), connections):
            if source not in seen:
                seen.add(source)
                (found if source in recorded else ahead).append(source)
    return sorted(found)


def _sources(name: str, connections: Connections) -> list[str]:
    """What a port follows: an input its sources; an output the driven inputs of its component and their sources."""
    if ".inputs:" in name:
        return [c["source"] for c in connections if c["target"] == name]
    # An output that nothing reads has the component of its prim, if a connection tells it.
    prim = name.partition(".")[0]
    component = next((c["of"] for c in connections if c["source"] == name), None)
    component = component or next((c["in"] for c in connections if c["target"].partition(".")[0] == prim), None)
    component = component or next((c["of"] for c in connections if c["source"].partition(".")[0] == prim), prim)
    return [port for c in connections if c["in"] == component for port in (c["target"], c["source"])]
