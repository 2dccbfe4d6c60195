"""Inputs with a default that also get an equation.

    block Filter              model User
      input Real u = 0.0;       Filter filter;
      …                       equation
    end Filter;                 filter.u = measured;

Taken strictly, `u` has two equations here. Many authors mean the default as the value of an input that
nobody drives, and as the start value otherwise. So the default of an input that is driven becomes its
start value; where another component leaves the same input alone, the default moves to that component.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cosim.modelica.library import ClassText, class_texts, without_comments

_INPUT = re.compile(
    r"\binput\s+[\w.]+\s+(?P<name>\w+)\s*(?:\[[^\]]*\])?(?P<modifier>\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?"
    r"(?P<binding>\s*=\s*(?P<value>[^;,]*?))\s*(?=;|\bannotation\b)"
)
_COMPONENT = re.compile(r"(?<![\w.])(?P<type>[A-Za-z_][\w.]*)\s+(?P<name>[A-Za-z_]\w*)\s*(?P<rest>[(;,])")
_EXTENDS = re.compile(r"\bextends\s+([\w.]+)")
_ASSIGNED = re.compile(r"(?:;|\bequation|\bthen|\belse|\bloop)\s*(\w+)\.(\w+)\s*=(?!=)")
_CONNECTED = re.compile(r"\bconnect\s*\(\s*([\w.]+)\s*,\s*([\w.]+)\s*\)")


@dataclass(slots=True)
class _Class:
    """A class and what stands directly in it, offsets into the program.

    Attributes:
        inputs: name → match of an input with a default.
        components: (type, name, offset behind the name, whether modifiers follow).
        bases: last names of base classes.
        driven: (component, input) with an equation.
    """

    inputs: dict[str, re.Match[str]] = field(default_factory=dict)
    components: list[tuple[str, str, int, bool]] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    driven: set[tuple[str, str]] = field(default_factory=set)


def defaults_to_starts(text: str) -> str:
    """The program with defaults of driven inputs as start values; lines stay where they are."""
    plain = without_comments(text)
    classes = _read(plain)
    uses: dict[tuple[str, str], list[tuple[_Class, tuple[str, str, int, bool]]]] = {}
    for user in classes.values():
        for component in user.components:
            for base in _ancestors(classes, component[0]):
                for name in classes[base].inputs:
                    uses.setdefault((base, name), []).append((user, component))
    edits: list[tuple[int, int, str]] = []
    for (owner, name), instances in uses.items():
        if not any((component[1], name) in user.driven for user, component in instances):
            continue
        declared = classes[owner].inputs[name]
        edits += _as_start(text, declared)
        for user, component in instances:
            if (component[1], name) not in user.driven and not _is_modified(plain, component, name):
                edits.append(_as_modifier(component, name, text[declared.start("value") : declared.end("value")]))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _read(plain: str) -> dict[str, _Class]:
    """Classes by the last part of their names."""
    spans = class_texts(plain)
    found: dict[str, _Class] = {}
    for span in spans:
        own = _own_text(plain, span, spans)
        entry = found.setdefault(span.name.rpartition(".")[2], _Class())
        entry.inputs |= {m["name"]: m for m in _INPUT.finditer(own)}
        entry.bases += [m.group(1).rpartition(".")[2] for m in _EXTENDS.finditer(own)]
        entry.components += [
            (m["type"].rpartition(".")[2], m["name"], m.end("name"), m["rest"] == "(") for m in _COMPONENT.finditer(own)
        ]
        entry.driven |= {(m.group(1), m.group(2)) for m in _ASSIGNED.finditer(own)}
        for connection in _CONNECTED.finditer(own):
            for end in connection.groups():
                component, _, port = end.partition(".")
                entry.driven.add((component, port))
    return found


def _own_text(plain: str, span: ClassText, spans: list[ClassText]) -> str:
    """The program with everything blanked that is outside a class or in a class within it."""
    text = " " * span.start + plain[span.start : span.end]
    for inner in spans:
        if span.start < inner.start and inner.end < span.end:
            text = text[: inner.start] + " " * (inner.end - inner.start) + text[inner.end :]
    return text


def _ancestors(classes: dict[str, _Class], name: str) -> Iterator[str]:
    """A class and its base classes, each once."""
    seen, queue = set[str](), [name]
    while queue:
        at = queue.pop()
        if at in classes and at not in seen:
            seen.add(at)
            yield at
            queue += classes[at].bases


def _as_start(text: str, declared: re.Match[str]) -> list[tuple[int, int, str]]:
    value = text[declared.start("value") : declared.end("value")].strip()
    binding = (declared.start("binding"), declared.end("binding"))
    if declared["modifier"] is None:
        return [(*binding, f"(start = {value})")]
    removed = (*binding, "")
    if re.search(r"\bstart\s*=", declared["modifier"]):
        return [removed]
    opening = declared.start("modifier") + declared["modifier"].index("(") + 1
    return [(opening, opening, f"start = {value}, "), removed]


def _is_modified(plain: str, component: tuple[str, str, int, bool], name: str) -> bool:
    """Whether a component's own modifiers give the input a value."""
    _, _, at, has_modifiers = component
    if not has_modifiers:
        return False
    depth = 0
    for k in range(plain.index("(", at), len(plain)):
        depth += (plain[k] == "(") - (plain[k] == ")")
        if depth == 0:
            return re.search(rf"\b{name}\s*=", plain[at:k]) is not None
    return False


def _as_modifier(component: tuple[str, str, int, bool], name: str, value: str) -> tuple[int, int, str]:
    _, _, at, has_modifiers = component
    return (at, at + 1, f"({name} = {value.strip()}, ") if has_modifiers else (at, at, f"({name} = {value.strip()})")
