from __future__ import annotations

import random
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.component import Connection, Direction, LinearTransformation, PortRef
from cosim.diagnostic import DiagnosticLog, Severity
from cosim.graph import build_graph, execution_order
from cosim.system import DeclaredPort
from tests.fakes import Fake, description, gain, integrator, source, value, wire


def build(components: list[Fake], *connections: Connection, **more: object):
    log = DiagnosticLog()
    overrides = more.pop("start_values", ())
    graph = build_graph(components, description(connections, **more), log, start_values=overrides)
    return graph, log


def codes(log: DiagnosticLog) -> list[str]:
    return [d.code for d in log]


def test_wires_are_sorted_whatever_order_they_were_made_in() -> None:
    parts = [source("/A", abs), source("/B", abs), gain("/C"), gain("/D")]
    wires = [
        wire("/A.outputs:y", "/C.inputs:u"),
        wire("/B.outputs:y", "/C.inputs:u"),
        wire("/C.outputs:y", "/D.inputs:u"),
    ]
    expected = build(parts, *wires)[0].wires
    for seed in range(5):
        shuffled, mixed = wires[:], parts[:]
        random.Random(seed).shuffle(shuffled)
        random.Random(seed + 1).shuffle(mixed)
        assert [str(w.source.ref) for w in build(mixed, *shuffled)[0].wires] == [str(w.source.ref) for w in expected]


def test_unknown_source_port_names_both_ends_and_near_names() -> None:
    _, log = build([source("/A", abs, "angle"), gain("/C")], wire("/A.outputs:angel", "/C.inputs:u"))
    (finding,) = log.errors
    assert finding.code == "port-unknown"
    assert "/C.inputs:u" in finding.message and "/A.outputs:angel" in finding.message
    assert "angle" in finding.hint


def test_unknown_target_port_is_never_created_silently() -> None:
    graph, log = build([source("/A", abs), gain("/C")], wire("/A.outputs:y", "/C.inputs:v"))
    assert codes(log) == ["port-unknown"]
    assert graph.wires == ()


def test_a_wire_to_a_prim_without_ports_says_so() -> None:
    _, log = build([source("/A", abs)], wire("/A.outputs:y", "/Joint.inputs:angle"))
    assert codes(log) == ["port-unknown"]
    assert "has no inputs" in log.errors[0].message


def test_different_dimensions_are_an_error_with_both_units() -> None:
    a = source("/A", abs, unit="m")
    c = Fake("/C", inputs={"u": 0.0}, units={"u": "rad"})
    _, log = build([a, c], wire("/A.outputs:y", "/C.inputs:u"))
    (finding,) = log.errors
    assert finding.code == "unit-mismatch"
    assert "in m " in finding.message and "in rad" in finding.message


def test_same_dimension_other_unit_is_converted_before_the_authored_factor_and_listed() -> None:
    a = source("/A", abs, unit="deg")
    c = Fake("/C", inputs={"u": 0.0}, units={"u": "rad"})
    graph, log = build([a, c], wire("/A.outputs:y", "/C.inputs:u", factor=-1.0, offset=0.5))
    (found,) = graph.wires
    assert found.transformation.factor == pytest.approx(-0.017453292519943295)
    assert found.transformation.offset == 0.5
    assert found.unit_conversion == "deg → rad"
    assert codes(log) == ["unit-converted"]


def test_an_undeclared_unit_is_taken_as_it_is_and_listed() -> None:
    graph, log = build([source("/A", abs, unit="deg"), gain("/C")], wire("/A.outputs:y", "/C.inputs:u"))
    assert graph.wires[0].transformation == LinearTransformation()
    assert codes(log) == ["unit-undeclared"]
    assert log.items[0].severity is Severity.INFO


def test_forwards_are_followed_and_their_transformations_compose() -> None:
    forward = Connection(
        PortRef.parse("/A.outputs:y"), PortRef("/Hub", Direction.OUTPUT, "x"), LinearTransformation(2.0, 1.0)
    )
    graph, log = build(
        [source("/A", abs), gain("/C")], wire("/Hub.outputs:x", "/C.inputs:u", factor=3.0), forwards=(forward,)
    )
    (found,) = graph.wires
    assert found.source.ref == PortRef.parse("/A.outputs:y")
    assert found.transformation == LinearTransformation(6.0, 3.0)
    assert not log.errors


def test_forwards_in_a_circle_are_an_error() -> None:
    x, y = PortRef("/H", Direction.OUTPUT, "x"), PortRef("/H", Direction.OUTPUT, "y")
    _, log = build([gain("/C")], wire("/H.outputs:x", "/C.inputs:u"), forwards=(Connection(x, y), Connection(y, x)))
    assert "forward-cycle" in codes(log)


def test_a_source_in_an_unsupported_program_drops_the_wire_with_a_warning() -> None:
    graph, log = build([gain("/C")], wire("/Script.outputs:x", "/C.inputs:u"), unsupported=("/Script",))
    assert codes(log) == ["connection-to-unsupported-program"]
    assert graph.wires == () and not log.errors


def test_values_of_unknown_names_and_wrong_types_are_errors() -> None:
    _, log = build([gain("/C")], values=(value("/C.inputs:gian", 2.0), value("/C.inputs:u", "two")))
    assert codes(log) == ["port-unknown", "type-mismatch"]


def test_overrides_win_over_authored_values() -> None:
    graph, _ = build([gain("/C")], values=(value("/C.inputs:u", 1.0),), start_values=(value("/C.inputs:u", 7.0),))
    assert [v.value for v in graph.start_values] == [7.0]


def test_a_declared_port_that_the_program_does_not_have_is_reported() -> None:
    stale = DeclaredPort(PortRef("/C", Direction.OUTPUT, "old"))
    _, log = build([gain("/C")], declared=(stale,))
    assert codes(log) == ["port-unknown"]
    assert log.items[0].severity is Severity.WARNING


def test_program_names_win_over_physics_except_mass_and_forces() -> None:
    core = Fake("/", outputs={})
    for name in ("mass", "speed"):
        port = source("/Ship", abs, name)._ports[PortRef("/Ship", Direction.OUTPUT, name)]
        core._ports[port.ref] = port
    program = Fake("/Ship", outputs={"mass": lambda s, u: 1.0, "speed": lambda s, u: 1.0})
    graph, _ = build([core, program])
    assert graph.components[graph.resolve(PortRef.parse("/Ship.outputs:mass"))[0]] is core
    assert graph.components[graph.resolve(PortRef.parse("/Ship.outputs:speed"))[0]] is program


# ---- loops and order


def test_an_algebraic_loop_is_reported_as_its_full_cycle_of_ports() -> None:
    graph, log = build(
        [gain("/A"), gain("/B")], wire("/A.outputs:y", "/B.inputs:u"), wire("/B.outputs:y", "/A.inputs:u")
    )
    assert [[str(r) for r in loop] for loop in graph.loops] == [
        ["/A.inputs:u", "/A.outputs:y", "/B.inputs:u", "/B.outputs:y"]
    ]
    assert "loop-algebraic" in codes(log)


def test_a_feedback_without_direct_feedthrough_is_no_algebraic_loop() -> None:
    graph, _ = build(
        [gain("/A"), integrator("/I")], wire("/A.outputs:y", "/I.inputs:u"), wire("/I.outputs:y", "/A.inputs:u")
    )
    assert graph.loops == ()


def test_unknown_dependencies_count_as_all_inputs() -> None:
    unknown = Fake("/U", inputs={"u": 0.0}, outputs={"y": lambda s, u: 0.0}, feedthrough=None)
    graph, _ = build([gain("/A"), unknown], wire("/A.outputs:y", "/U.inputs:u"), wire("/U.outputs:y", "/A.inputs:u"))
    assert len(graph.loops) == 1


def test_a_cycle_is_cut_at_the_rigid_body_core_first() -> None:
    core = Fake("/", inputs={"f": 0.0}, outputs={"x": lambda s, u: s}, feedthrough={})
    graph, _ = build(
        [gain("/Ctl"), gain("/Act"), core],
        wire("/.outputs:x", "/Ctl.inputs:u"),
        wire("/Ctl.outputs:y", "/Act.inputs:u"),
        wire("/Act.outputs:y", "/.inputs:f"),
    )
    assert [graph.components[i].name for i in graph.execution_order] == ["/", "/Ctl", "/Act"]
    assert [str(w.target.ref) for w in graph.cuts] == ["/.inputs:f"]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=24))
def test_execution_order_respects_every_wire_outside_cycles(n: int, pairs: list[tuple[int, int]]) -> None:
    parts = [gain(f"/C{i}") for i in range(n)]
    edges = sorted({(a % n, b % n) for a, b in pairs if a % n != b % n})
    graph, _ = build(parts, *(wire(f"/C{a}.outputs:y", f"/C{b}.inputs:u") for a, b in edges))
    order = execution_order(graph.components, graph.wires)
    assert sorted(order) == list(range(n))
    position = {c: k for k, c in enumerate(order)}
    components = list(nx.strongly_connected_components(nx.DiGraph(edges))) if edges else []
    for a, b in edges:
        if not any(a in group and b in group for group in components):
            assert position[a] < position[b]
    assert len(graph.cuts) == sum(position[a] > position[b] for a, b in edges)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_every_reported_loop_is_a_cycle_and_every_cyclic_set_is_reported(pairs: list[tuple[int, int]]) -> None:
    parts = [gain(f"/C{i}") for i in range(7)]
    edges = sorted(set(pairs))
    graph, _ = build(parts, *(wire(f"/C{a}.outputs:y", f"/C{b}.inputs:u") for a, b in edges))
    directed = nx.DiGraph(edges)
    cyclic = [c for c in nx.strongly_connected_components(directed) if len(c) > 1 or any((i, i) in edges for i in c)]
    assert len(graph.loops) == len(cyclic)
    for loop in graph.loops:
        outputs = [int(r.path[2:]) for r in loop if r.direction is Direction.OUTPUT]
        rotated = [*outputs[1:], outputs[0]]
        assert all((a, b) in edges for a, b in zip(outputs, rotated, strict=True)) or all(
            (a, b) in edges for a, b in pairwise([*outputs, outputs[0]])
        )
