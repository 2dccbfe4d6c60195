"""The port graph as text, Graphviz DOT, Mermaid, JSON and HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cosim.graph import PortGraph, Wire

if TYPE_CHECKING:
    from cosim.session import System


def as_dict(graph: PortGraph) -> dict[str, Any]:
    """Components, connections, loops and order, ready for JSON."""
    return {
        "components": [
            {"name": c.name, "period": None if c.period is None else str(c.period)} for c in graph.components
        ],
        "connections": [
            {
                "source": str(w.source.ref),
                "target": str(w.target.ref),
                "source_unit": w.source.unit_name,
                "target_unit": w.target.unit_name,
                "factor": w.transformation.factor,
                "offset": w.transformation.offset,
                "where": str(w.where) if w.where else "",
            }
            for w in graph.wires
        ],
        "start_values": {str(v.port.ref): v.value for v in graph.start_values},
        "loops": [[str(ref) for ref in loop] for loop in graph.loops],
        "execution_order": [graph.components[i].name for i in graph.execution_order],
        "cuts": [{"source": str(w.source.ref), "target": str(w.target.ref)} for w in graph.cuts],
    }


def as_json(graph: PortGraph) -> str:
    """JSON text."""
    return json.dumps(as_dict(graph), indent=2)


def as_text(graph: PortGraph) -> str:
    """One line per connection, grouped by consumer; then order, cuts and loops."""
    lines: list[str] = []
    for index, component in enumerate(graph.components):
        period = f"  (every {component.period} s)" if component.period is not None else ""
        lines.append(f"{_title(component.name)}{period}")
        for wire in graph.wires:
            if wire.target_component == index:
                lines.append(f"  {wire.target.ref} {_unit(wire.target.unit_name)}<- {wire.source.ref}{_affine(wire)}")
        lines += [f"  {v.port.ref} = {v.value}" for v in graph.start_values if v.component == index]
    lines.append(
        "order under gauss-seidel: " + " → ".join(_title(graph.components[i].name) for i in graph.execution_order)
    )
    lines += [f"cut (previous communication point): {w.source.ref} → {w.target.ref}" for w in graph.cuts]
    lines += ["algebraic loop: " + " → ".join(map(str, (*loop, loop[0]))) for loop in graph.loops]
    return "\n".join(lines)


def as_dot(graph: PortGraph) -> str:
    """Graphviz DOT; wires that a cycle cuts are dashed."""
    lines = ["digraph cosim {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    lines += [f"  c{i} [label={_quoted(_title(c.name))}];" for i, c in enumerate(graph.components)]
    for (source, target), wires in _bundles(graph).items():
        label = "\\n".join(f"{w.source.ref.name} → {w.target.ref.name}" for w in wires)
        style = ", style=dashed" if any(w in graph.cuts for w in wires) else ""
        lines.append(f'  c{source} -> c{target} [label="{label}", fontsize=9{style}];')
    return "\n".join([*lines, "}"])


def as_mermaid(graph: PortGraph) -> str:
    """A Mermaid flowchart; wires that a cycle cuts are dotted."""
    lines = ["flowchart LR"]
    lines += [f'  c{i}["{_title(c.name)}"]' for i, c in enumerate(graph.components)]
    for (source, target), wires in _bundles(graph).items():
        label = "<br/>".join(f"{w.source.ref.name} → {w.target.ref.name}" for w in wires)
        arrow = "-.->" if any(w in graph.cuts for w in wires) else "-->"
        lines.append(f'  c{source} {arrow}|"{label}"| c{target}')
    return "\n".join(lines)


FORMATS: dict[str, Callable[[PortGraph], str]] = {
    "text": as_text,
    "dot": as_dot,
    "mermaid": as_mermaid,
    "json": as_json,
}


def as_html(system: System) -> str:
    """A table of the wiring for notebooks."""
    from cosim.diagnostic import DiagnosticLog

    graph = system.graph(DiagnosticLog())
    rows = "".join(
        f"<tr><td><code>{html.escape(str(w.source.ref))}</code></td><td>{html.escape(w.source.unit_name)}</td>"
        f"<td>→</td><td><code>{html.escape(str(w.target.ref))}</code></td><td>{html.escape(w.target.unit_name)}</td>"
        f"<td>{html.escape(_affine(w))}</td></tr>"
        for w in graph.wires
    )
    programs = ", ".join(html.escape(p.program.path) for p in system.programs) or "none"
    return (
        f"<p><b>{html.escape(system.name)}</b>: {len(system.programs)} programs ({programs}), "
        f"{len(graph.wires)} connections</p><table><tbody>{rows}</tbody></table>"
    )


def _bundles(graph: PortGraph) -> dict[tuple[int, int], list[Wire]]:
    bundles: dict[tuple[int, int], list[Wire]] = {}
    for wire in graph.wires:
        bundles.setdefault((wire.source_component, wire.target_component), []).append(wire)
    return bundles


def _title(name: str) -> str:
    return "rigid bodies" if name == "/" else name


def _unit(name: str) -> str:
    return f"[{name}] " if name else ""


def _affine(wire: Wire) -> str:
    text = f"  ({wire.unit_conversion})" if wire.unit_conversion else ""
    factor, offset = wire.transformation.factor, wire.transformation.offset
    if factor != 1.0 or offset != 0.0:
        text += f"  × {factor:g}" + (f" + {offset:g}" if offset else "")
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
