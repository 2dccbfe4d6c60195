"""The step plan: the port graph compiled to flat arrays.

Nothing is looked up by name while stepping. All numbers live on one float64 bus: first
every output that is read, component by component, then every input that is written.
The plan says in which order which bus entries are gathered into which inputs, and which
component steps when. Both loops, the readable one in Python (`cosim.master`) and the
fast one in C, run this same plan and give the same bits.
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cosim.component import (
    Causality,
    Component,
    Direction,
    Experiment,
    FloatArray,
    IndexArray,
    Port,
    PortRef,
    Variability,
)
from cosim.diagnostic import DiagnosticLog
from cosim.graph import PortGraph, Wire


class MasterAlgorithm(enum.StrEnum):
    """How values of one communication point reach the components."""

    JACOBI = "jacobi"
    GAUSS_SEIDEL = "gauss-seidel"


@dataclass(frozen=True, slots=True)
class Gather:
    """`bus[target[k]] = Σ factor·bus[source] + offset` over the rows `start[k]:start[k+1]`.

    The terms of one target are added in row order, each as `factor * value + offset`, starting with
    the first term: the order is that of the sorted wires, so a sum never depends on how edges were made.

    Attributes:
        targets: bus indices of driven inputs, shape (n,), ordered so that an input that serves as
            a source comes before its readers.
        starts: row ranges, shape (n + 1,).
        sources: bus indices, shape (rows,).
        factors: shape (rows,).
        offsets: shape (rows,).
    """

    targets: IndexArray
    starts: IndexArray
    sources: IndexArray
    factors: FloatArray
    offsets: FloatArray


@dataclass(frozen=True, slots=True)
class ComponentPlan:
    """One component's place on the bus.

    Attributes:
        inputs: bound numeric inputs, in bus order.
        outputs: bound numeric outputs, in bus order.
        input_slice: their part of the bus.
        output_slice: their part of the bus.
        divider: base steps per communication step (the decimation factor).
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    input_slice: slice
    output_slice: slice
    divider: int


@dataclass(frozen=True, slots=True)
class StepGroup:
    """Components that step on the same values: all of them (Jacobi) or one (Gauss-Seidel)."""

    components: tuple[int, ...]
    gather: Gather


@dataclass(frozen=True, slots=True)
class TextWire:
    """A connection of String or Binary ports: (component, position) to (component, position)."""

    source: tuple[int, int]
    target: tuple[int, int]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Everything that a master loop needs, in arrays.

    Attributes:
        graph: what the plan was compiled from.
        algorithm: Jacobi or Gauss-Seidel.
        components: parallel to `graph.components`.
        bus_ports: the port of each bus entry.
        initial: bus contents before initialization, shape (size,); NaN marks an input without a value.
        groups: in order of execution.
        initialization: one group per component, each after what it reads, for the initial fixed point.
        recorded: bus indices to record, shape (columns,).
        guarded: bus indices that must stay finite, shape (k,).
        text_wires: connections of non-numeric ports.
        text_ports: bound non-numeric (inputs, outputs) per component.
    """

    graph: PortGraph
    algorithm: MasterAlgorithm
    components: tuple[ComponentPlan, ...]
    bus_ports: tuple[Port, ...]
    initial: FloatArray
    groups: tuple[StepGroup, ...]
    initialization: tuple[StepGroup, ...]
    recorded: IndexArray
    guarded: IndexArray
    text_wires: tuple[TextWire, ...]
    text_ports: tuple[tuple[tuple[Port, ...], tuple[Port, ...]], ...]

    @property
    def recorded_ports(self) -> tuple[Port, ...]:
        """The port of each recorded column."""
        return tuple(self.bus_ports[i] for i in self.recorded)


def compile_plan(
    graph: PortGraph,
    experiment: Experiment,
    log: DiagnosticLog,
    *,
    algorithm: MasterAlgorithm = MasterAlgorithm.JACOBI,
    record: Sequence[str] | None = None,
) -> StepPlan:
    """Compile a graph.

    Args:
        graph: the validated wiring.
        experiment: its step is the base step.
        log: gets periods that do not fit and patterns that match nothing.
        algorithm: the master algorithm.
        record: glob patterns over `PRIM.outputs:NAME`, `PRIM.inputs:NAME` or `PRIM.NAME`;
            None records every quantity that can change.
    """
    bound = [_bound_ports(graph, index, record) for index in range(len(graph.components))]
    numeric = [tuple([p for p in side if p.type.is_numeric] for side in sides) for sides in bound]
    text = tuple(
        (tuple(p for p in ins if not p.type.is_numeric), tuple(p for p in outs if not p.type.is_numeric))
        for ins, outs in bound
    )
    components: list[ComponentPlan] = []
    n_outputs = sum(len(outs) for _, outs in numeric)
    y, u = 0, n_outputs
    for component, (ins, outs) in zip(graph.components, numeric, strict=True):
        components.append(
            ComponentPlan(
                tuple(ins),
                tuple(outs),
                slice(u, u + len(ins)),
                slice(y, y + len(outs)),
                _divider(component, experiment.step, log),
            )
        )
        y, u = y + len(outs), u + len(ins)
    bus_ports = tuple(p for c in components for p in c.outputs) + tuple(p for c in components for p in c.inputs)
    slot = {port.ref: i for i, port in enumerate(bus_ports)}
    driven = _driven(graph, slot, log)
    sequential = _sequential_groups(graph, driven)
    groups = sequential
    if algorithm is MasterAlgorithm.JACOBI:
        groups = (StepGroup(tuple(range(len(components))), _gather(driven, driven)),)
    recorded = _recorded(bus_ports, record, log)
    outputs_and_driven = [*range(n_outputs), *sorted(slot[ref] for ref in driven)]
    return StepPlan(
        graph=graph,
        algorithm=algorithm,
        components=tuple(components),
        bus_ports=bus_ports,
        initial=_initial(bus_ports, n_outputs, graph),
        groups=groups,
        initialization=sequential,
        recorded=recorded,
        guarded=np.array(outputs_and_driven, dtype=np.intp),
        text_wires=_text_wires(graph, text),
        text_ports=text,
    )


# ---- which ports are bound


def _bound_ports(graph: PortGraph, index: int, record: Sequence[str] | None) -> tuple[list[Port], list[Port]]:
    """The inputs that are written and the outputs that are read, sorted."""
    inputs = {w.target.ref: w.target for w in graph.wires if w.target_component == index}
    outputs: dict[PortRef, Port] = {}
    for wire in graph.wires:
        if wire.source_component == index:
            (outputs if wire.source.ref.direction is Direction.OUTPUT else inputs)[wire.source.ref] = wire.source
    for value in graph.start_values:
        if value.component == index and value.port.causality is Causality.INPUT:
            inputs[value.port.ref] = value.port
    for port in graph.components[index].ports():
        if port.ref.direction is Direction.OUTPUT and _is_recorded(port, record):
            outputs[port.ref] = port
    return [inputs[ref] for ref in sorted(inputs)], [outputs[ref] for ref in sorted(outputs)]


def _is_recorded(port: Port, record: Sequence[str] | None) -> bool:
    if record is None:
        changes = port.variability in (Variability.DISCRETE, Variability.CONTINUOUS)
        return changes and port.causality is not Causality.LOCAL
    return any(matches(port.ref, pattern) for pattern in record)


def matches(ref: PortRef, pattern: str) -> bool:
    """Whether a glob pattern means this port, with or without `inputs:` or `outputs:`."""
    return fnmatch.fnmatchcase(str(ref), pattern) or fnmatch.fnmatchcase(f"{ref.path}.{ref.name}", pattern)


def _recorded(bus_ports: Sequence[Port], record: Sequence[str] | None, log: DiagnosticLog) -> IndexArray:
    for pattern in record or ():
        if not any(matches(port.ref, pattern) for port in bus_ports):
            log.warning(
                "record-pattern-unmatched",
                f"nothing to record matches {pattern!r}",
                hint="`cosim ports STAGE PATTERN` shows what a pattern finds",
            )
    chosen = [
        i
        for i, port in enumerate(bus_ports)
        if (record is None and (port.ref.direction is Direction.INPUT or _is_recorded(port, None)))
        or (record is not None and _is_recorded(port, record))
    ]
    chosen.sort(key=lambda i: bus_ports[i].ref)
    return np.array(chosen, dtype=np.intp)


# ---- multi-rate


def _divider(component: Component, step: Fraction, log: DiagnosticLog) -> int:
    if component.period is None:
        return 1
    ratio = component.period / step
    near = max(1, round(ratio))
    # A period authored as a double may miss its rational value in the last digits.
    if abs(ratio - near) <= Fraction(1, 10**9) * near:
        return near
    below, above = max(1, ratio.__floor__()), ratio.__ceil__()
    legal = f"{_seconds(below * step)} or {_seconds(above * step)}" if below != above else _seconds(above * step)
    log.error(
        "period-not-a-multiple",
        f"the communication period {_seconds(component.period)} of {component.name} is not a multiple of the "
        f"communication step size {_seconds(step)}",
        getattr(component, "where", None),
        hint=f"the nearest legal periods are {legal}; or change --step-size",
    )
    return near


def _seconds(value: Fraction) -> str:
    exact = f" ({value})" if value.denominator not in (1, 10, 100, 1000) else ""
    return f"{float(value):.9g} s{exact}"


# ---- gathers


_Rows = list[tuple[int, float, float]]


def _driven(graph: PortGraph, slot: dict[PortRef, int], log: DiagnosticLog) -> dict[PortRef, tuple[int, int, _Rows]]:
    """Per driven input: its component, its bus index and its terms; readers of an input come after it."""
    by_target: dict[PortRef, list[Wire]] = {}
    for wire in graph.wires:
        if wire.source.type.is_numeric:
            by_target.setdefault(wire.target.ref, []).append(wire)
    ordered: dict[PortRef, tuple[int, int, _Rows]] = {}
    open_: list[PortRef] = []

    def visit(ref: PortRef) -> None:
        if ref in ordered or ref not in by_target:
            return
        if ref in open_:
            cycle = " → ".join(str(r) for r in (*open_[open_.index(ref) :], ref))
            log.error("input-cycle", f"these inputs follow each other and none has a value: {cycle}")
            return
        open_.append(ref)
        for wire in by_target[ref]:
            if wire.source.ref.direction is Direction.INPUT:
                visit(wire.source.ref)
        open_.pop()
        wires = by_target[ref]
        rows = [(slot[w.source.ref], w.transformation.factor, w.transformation.offset) for w in wires]
        ordered[ref] = (wires[0].target_component, slot[ref], rows)

    for ref in sorted(by_target):
        visit(ref)
    return ordered


def _gather(driven: dict[PortRef, tuple[int, int, _Rows]], chosen: Iterable[PortRef]) -> Gather:
    targets: list[int] = []
    starts, rows = [0], []
    for ref in chosen:
        _, target, terms = driven[ref]
        targets.append(target)
        rows += terms
        starts.append(len(rows))
    return Gather(
        np.array(targets, dtype=np.intp),
        np.array(starts, dtype=np.intp),
        np.array([r[0] for r in rows], dtype=np.intp),
        np.array([r[1] for r in rows], dtype=np.float64),
        np.array([r[2] for r in rows], dtype=np.float64),
    )


def _sequential_groups(graph: PortGraph, driven: dict[PortRef, tuple[int, int, _Rows]]) -> tuple[StepGroup, ...]:
    """One group per component in execution order, gathering what it reads and what that follows."""
    by_slot = {target: ref for ref, (_, target, _) in driven.items()}
    position = {ref: k for k, ref in enumerate(driven)}
    own: dict[int, list[PortRef]] = {}
    for ref, (component, _, _) in driven.items():
        own.setdefault(component, []).append(ref)
    groups = []
    for index in graph.execution_order:
        wanted: set[PortRef] = set()
        queue = list(own.get(index, ()))
        while queue:
            ref = queue.pop()
            if ref not in wanted:
                wanted.add(ref)
                # An input of another component that is read here must be current, too.
                queue += [by_slot[source] for source, _, _ in driven[ref][2] if source in by_slot]
        groups.append(StepGroup((index,), _gather(driven, sorted(wanted, key=position.__getitem__))))
    return tuple(groups)


def _initial(bus_ports: Sequence[Port], n_outputs: int, graph: PortGraph) -> FloatArray:
    values = {v.port.ref: v.value for v in graph.start_values}
    bus = np.zeros(len(bus_ports))
    for i, port in enumerate(bus_ports[n_outputs:], start=n_outputs):
        value = values.get(port.ref, port.start)
        if isinstance(value, float | int):
            bus[i] = float(value)
        else:
            bus[i] = 0.0 if port.accumulate else np.nan
    return bus


def _text_wires(graph: PortGraph, text: Sequence[tuple[tuple[Port, ...], tuple[Port, ...]]]) -> tuple[TextWire, ...]:
    inputs = {p.ref: (c, k) for c, (ins, _) in enumerate(text) for k, p in enumerate(ins)}
    outputs = {p.ref: (c, k) for c, (_, outs) in enumerate(text) for k, p in enumerate(outs)}
    return tuple(
        TextWire(outputs[w.source.ref], inputs[w.target.ref])
        for w in graph.wires
        if not w.source.type.is_numeric and w.source.ref in outputs
    )
