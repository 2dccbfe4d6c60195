"""The port graph: ports resolved, units checked, loops known.

From components and authored connections to a validated, immutable `PortGraph`.
Everything that can be wrong with the wiring is found here, before anything runs, and
each finding names both ends, both units, and the cure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from cosim.component import (
    Causality,
    Component,
    Connection,
    Direction,
    LinearTransformation,
    Port,
    PortRef,
)
from cosim.diagnostic import DiagnosticLog, SourceLocation
from cosim.system import AuthoredValue, SystemDescription
from cosim.unit import conversion, dimension_text

RIGID_BODY_CORE = "/"
# On a prim that is both body and program these names belong to physics (ports.md section 1).
_PHYSICS_NAMES = ("mass", "force", "torque", "inertia", "com")


@dataclass(frozen=True, slots=True)
class Wire:
    """A resolved connection.

    Attributes:
        source: the port that publishes.
        target: the input that consumes.
        source_component: index into `PortGraph.components`.
        target_component: index into `PortGraph.components`.
        transformation: unit conversion followed by the authored factor and offset.
        unit_conversion: "deg → rad" where one takes place, else "".
        where: what authored the connection.
    """

    source: Port
    target: Port
    source_component: int
    target_component: int
    transformation: LinearTransformation
    unit_conversion: str = ""
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class StartValue:
    """A value for a parameter or an input, in the port's own unit."""

    port: Port
    component: int
    value: float | str
    where: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class PortGraph:
    """The validated wiring.

    Attributes:
        components: sorted by name.
        wires: sorted by (target, source): the order in which sources are summed.
        start_values: sorted by port.
        loops: algebraic loops, each as the full cycle of ports, starting at its smallest.
        execution_order: component indices so that each comes after what it reads, as far as cycles allow.
        cuts: wires that point backwards in `execution_order`: they carry the previous communication point
            under Gauss-Seidel.
    """

    components: tuple[Component, ...]
    wires: tuple[Wire, ...]
    start_values: tuple[StartValue, ...]
    loops: tuple[tuple[PortRef, ...], ...]
    execution_order: tuple[int, ...]
    cuts: tuple[Wire, ...]

    def resolve(self, ref: PortRef) -> tuple[int, Port] | None:
        """The component and port of an address."""
        return _resolve(ref, self.components, {c.name: i for i, c in enumerate(self.components)})


def build_graph(
    components: Sequence[Component],
    description: SystemDescription,
    log: DiagnosticLog,
    *,
    start_values: Sequence[AuthoredValue] = (),
) -> PortGraph:
    """Resolve and check the wiring of a system.

    Args:
        components: one per program, and the rigid-body core.
        description: the authored connections, forwards, values and declarations.
        log: gets every finding.
        start_values: values that override authored ones (command line, scenario).
    """
    return _GraphBuilder(components, description, log).build(start_values)


class _GraphBuilder:
    def __init__(self, components: Sequence[Component], description: SystemDescription, log: DiagnosticLog) -> None:
        self.components = tuple(sorted(components, key=lambda c: c.name))
        self.description = description
        self.log = log
        self.index = {c.name: i for i, c in enumerate(self.components)}
        self.portless = dict(description.mechanism.portless)
        self.forwards: dict[PortRef, list[Connection]] = {}
        for forward in description.forwards:
            self.forwards.setdefault(forward.target, []).append(forward)

    def build(self, start_values: Sequence[AuthoredValue]) -> PortGraph:
        wires = tuple(w for c in self.description.connections for w in self._wires(c))
        values = self._start_values(start_values, {w.target.ref for w in wires})
        self._check_declared()
        order = execution_order(self.components, wires)
        position = {component: k for k, component in enumerate(order)}
        cuts = tuple(
            w
            for w in wires
            if w.source.ref.direction is Direction.OUTPUT
            and position[w.source_component] >= position[w.target_component]
        )
        loops = algebraic_loops(self.components, wires)
        for loop in loops:
            self._report_loop(loop)
        return PortGraph(self.components, wires, values, loops, order, cuts)

    # ---- connections

    def _wires(self, connection: Connection) -> Iterable[Wire]:
        target = self._find(connection.target)
        if target is None:
            self._report_unknown(connection.target, connection.where, "connection into")
            return
        if target[1].causality not in (Causality.INPUT, Causality.PARAMETER):
            self.log.error(
                "port-not-an-input",
                f"{connection.target} is {target[1].causality} and cannot be driven",
                connection.where,
            )
            return
        if target[1].causality is Causality.PARAMETER:
            self.log.error(
                "parameter-connected",
                f"{connection.target} is a parameter: it is set once, before the run, and cannot follow "
                f"{connection.source}",
                connection.where,
                hint="author a value, or make it an input of the program",
            )
            return
        for source_ref, before in self._sources(connection.source, (), connection):
            source = self._find(source_ref)
            if source is not None:
                yield from self._wire(source, target, before, connection)

    def _sources(
        self, ref: PortRef, seen: tuple[PortRef, ...], connection: Connection
    ) -> Iterable[tuple[PortRef, LinearTransformation]]:
        """The real ports behind an address: itself, or what `outputs:X.connect` forwards."""
        if self._find(ref) is not None:
            yield ref, LinearTransformation()
        elif ref in seen:
            cycle = " → ".join(str(r) for r in (*seen[seen.index(ref) :], ref))
            self.log.error("forward-cycle", f"these outputs forward each other: {cycle}", connection.where)
        elif ref in self.forwards:
            for forward in self.forwards[ref]:
                for source, inner in self._sources(forward.source, (*seen, ref), forward):
                    yield source, inner.then(forward.transformation)
        elif any(ref.path == path for path in self.description.unsupported):
            self.log.warning(
                "connection-to-unsupported-program",
                f"{connection.target} is connected to {ref}, an unsupported program: the wire is dropped",
                connection.where,
            )
        else:
            self._report_unknown(ref, connection.where, f"{connection.target} is connected to")

    def _wire(
        self,
        source: tuple[int, Port],
        target: tuple[int, Port],
        before: LinearTransformation,
        connection: Connection,
    ) -> Iterable[Wire]:
        (source_component, source_port), (target_component, target_port) = source, target
        if source_port.type.is_numeric != target_port.type.is_numeric:
            self.log.error(
                "type-mismatch",
                f"{source_port.ref} is {source_port.type} and {target_port.ref} is {target_port.type}",
                connection.where,
                related=_places(source_port, target_port),
            )
            return
        text, units = "", LinearTransformation()
        if source_port.unit and target_port.unit and source_port.unit != target_port.unit:
            if not source_port.unit.same_dimension(target_port.unit):
                self.log.error(
                    "unit-mismatch",
                    f"{source_port.ref} is in {source_port.unit_name} ({dimension_text(source_port.unit)}) and "
                    f"{target_port.ref} in {target_port.unit_name} ({dimension_text(target_port.unit)})",
                    connection.where,
                    hint="connect a source of the same dimension, or put a program between them that converts",
                    related=_places(source_port, target_port),
                )
                return
            relative = source_port.relative or target_port.relative
            factor, offset = conversion(source_port.unit, target_port.unit, relative=relative)
            units = LinearTransformation(factor, offset)
            if units != LinearTransformation():
                text = f"{source_port.unit_name} → {target_port.unit_name}"
                self.log.info(
                    "unit-converted",
                    f"{source_port.ref} → {target_port.ref}: {text}, factor {factor:.9g}"
                    + (f", offset {offset:.9g}" if offset else ""),
                    connection.where,
                )
        elif (source_port.unit is None) != (target_port.unit is None):
            missing, declared = (source_port, target_port) if source_port.unit is None else (target_port, source_port)
            self.log.info(
                "unit-undeclared",
                f"{missing.ref} declares no unit and meets {declared.ref} [{declared.unit_name}]: taken as it is",
                connection.where,
            )
        total = before.then(units).then(connection.transformation)
        yield Wire(source_port, target_port, source_component, target_component, total, text, connection.where)

    # ---- values and declarations

    def _start_values(self, overrides: Sequence[AuthoredValue], driven: set[PortRef]) -> tuple[StartValue, ...]:
        chosen: dict[PortRef, StartValue] = {}
        for value in (*self.description.values, *overrides):
            if any(value.ref.path == path for path in self.description.unsupported):
                continue
            found = self._find(value.ref)
            if found is None:
                self._report_unknown(value.ref, value.where, "a value is given for")
                continue
            component, port = found
            if port.causality not in (Causality.INPUT, Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER):
                self.log.error(
                    "port-not-an-input", f"{value.ref} is {port.causality}: no value can be given", value.where
                )
                continue
            if isinstance(value.value, str) == port.type.is_numeric:
                self.log.error(
                    "type-mismatch", f"{value.ref} is {port.type}; the value is {value.value!r}", value.where
                )
                continue
            if isinstance(value.value, float):
                self._check_range(port, value.value, value.where)
            chosen[port.ref] = StartValue(port, component, value.value, value.where)
        return tuple(chosen[ref] for ref in sorted(chosen))

    def _check_range(self, port: Port, value: float, where: SourceLocation | None) -> None:
        below = port.minimum is not None and value < port.minimum
        above = port.maximum is not None and value > port.maximum
        if below or above:
            bound = port.minimum if below else port.maximum
            self.log.warning(
                "value-out-of-range",
                f"the value {value:g} of {port.ref} is {'below its minimum' if below else 'above its maximum'} "
                f"{bound:g}",
                where,
            )

    def _check_declared(self) -> None:
        """A declared port of a program that its source does not know is wrong or stale."""
        connected = {c.target for c in self.description.connections} | {v.ref for v in self.description.values}
        for declared in self.description.declared:
            ref = declared.ref
            if ref in connected or ref in self.forwards or ref.path not in self.index:
                continue
            if self._find(ref) is None:
                self._report_unknown(ref, declared.where, "the stage declares", error=False)

    # ---- lookup

    def _find(self, ref: PortRef) -> tuple[int, Port] | None:
        return _resolve(ref, self.components, self.index)

    def _report_unknown(self, ref: PortRef, where: SourceLocation | None, what: str, *, error: bool = True) -> None:
        names = sorted({p.ref.name for p in self._ports_at(ref.path) if p.ref.direction is ref.direction})
        near = difflib.get_close_matches(ref.name, names, n=4, cutoff=0.5) or names[:12]
        if names:
            message = f"{what} {ref}, and {ref.path} has no such {ref.direction.value[:-1]}"
            hint = f"{ref.direction.value} there: {', '.join(near)}" + (" …" if len(near) < len(names) else "")
        else:
            reason = self.portless.get(ref.path)
            message = f"{what} {ref}, and {ref.path} has no {ref.direction.value}" + (f": {reason}" if reason else "")
            hint = "`cosim ports STAGE` lists every port"
        (self.log.error if error else self.log.warning)("port-unknown", message, where, hint)

    def _ports_at(self, path: str) -> Iterable[Port]:
        for name in (path, RIGID_BODY_CORE):
            component = self.index.get(name)
            if component is not None:
                yield from (p for p in self.components[component].ports() if p.ref.path == path)

    def _report_loop(self, loop: tuple[PortRef, ...]) -> None:
        cycle = " → ".join(str(ref) for ref in (*loop, loop[0]))
        self.log.warning(
            "loop-algebraic",
            f"algebraic loop over {len(loop)} ports: {cycle}",
            hint="it is delayed by one communication step; if that matters, break it with a state or a sampled program",
        )


def _resolve(ref: PortRef, components: Sequence[Component], index: Mapping[str, int]) -> tuple[int, Port] | None:
    """Order on one prim: the program's declaration, then physics; mass, forces and inertia are physics' own."""
    order = [index.get(ref.path), index.get(RIGID_BODY_CORE)]
    if ref.name.startswith(_PHYSICS_NAMES):
        order.reverse()
    for component in order:
        if component is not None:
            port = components[component].find(ref)
            if port is not None:
                return component, port
    return None


def _places(*ports: Port) -> tuple[SourceLocation, ...]:
    return tuple(p.where for p in ports if p.where is not None)


# ---- order and loops


def execution_order(components: Sequence[Component], wires: Sequence[Wire]) -> tuple[int, ...]:
    """Component indices in topological order of the condensed graph.

    A cycle of components is cut at the rigid-body core first: the core steps first, on the
    inputs of the previous communication point. Other cycles are cut at the component with the
    most outgoing minus incoming wires inside the cycle, by name where equal.
    """
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(components)))
    graph.add_edges_from(
        sorted({(w.source_component, w.target_component) for w in wires if w.source_component != w.target_component})
    )
    return tuple(_ordered(graph, components))


def _ordered(graph: nx.DiGraph[int], components: Sequence[Component]) -> list[int]:
    condensed = nx.condensation(graph)
    order: list[int] = []
    members = condensed.nodes.data("members")
    smallest = {scc: min(group) for scc, group in members}
    for scc in nx.lexicographical_topological_sort(condensed, key=smallest.__getitem__):
        group = sorted(condensed.nodes[scc]["members"])
        if len(group) == 1:
            order += group
            continue
        inside = graph.subgraph(group)
        first = min(
            group,
            key=lambda c: (
                components[c].name != RIGID_BODY_CORE,
                inside.in_degree(c) - inside.out_degree(c),
                c,
            ),
        )
        rest = nx.DiGraph(inside)
        rest.remove_node(first)
        order += [first, *_ordered(rest, components)]
    return order


def algebraic_loops(components: Sequence[Component], wires: Sequence[Wire]) -> tuple[tuple[PortRef, ...], ...]:
    """Cycles of direct feedthrough, one per strongly connected set of ports.

    Direct feedthrough is the FMI `ModelStructure` dependency of an output on inputs at the
    same instant; unknown dependencies count as all inputs.
    """
    graph: nx.DiGraph[PortRef] = nx.DiGraph()
    inputs: dict[int, list[PortRef]] = {}
    outputs: dict[int, list[PortRef]] = {}
    for wire in wires:
        graph.add_edge(wire.source.ref, wire.target.ref)
        inputs.setdefault(wire.target_component, []).append(wire.target.ref)
        if wire.source.ref.direction is Direction.OUTPUT:
            outputs.setdefault(wire.source_component, []).append(wire.source.ref)
    for component, published in sorted(outputs.items()):
        consumed = sorted(set(inputs.get(component, ())))
        for output in sorted(set(published)):
            depends = components[component].dependencies(output)
            for ref in consumed if depends is None else sorted(depends.intersection(consumed)):
                graph.add_edge(ref, output)
    loops = []
    for group in nx.strongly_connected_components(graph):
        if len(group) > 1:
            cycle = [edge[0] for edge in nx.find_cycle(graph.subgraph(sorted(group)), source=min(group))]
            first = cycle.index(min(cycle))
            loops.append((*cycle[first:], *cycle[:first]))
    return tuple(sorted(loops))
