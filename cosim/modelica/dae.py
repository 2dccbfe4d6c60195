"""The front end's checked DAE, read into plain data with source places.

The JSON keeps expressions in an arena: a node carries only counts of its operands and subscripts,
which follow one another in two lists. Reading it once here keeps the passes free of that.
"""

from __future__ import annotations

import bisect
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cosim.diagnostic import SourceLocation
from cosim.modelica.expression import Refused

SCHEMAS = (38, 43)
# How the front end calls a text that it did not read from a file.
_GIVEN = ("input.mo", "<inline>")
# A runtime quotient (mod, rem, div) in a model is followed by hidden nodes for its event.
_HIDDEN_QUOTIENT_NODES = 6
_REFUSED = {
    "structured_roots": "relations inside array constructors or loops",
    "terminals": "clocked partitions",
    "initial_parameter_values": "parameters that initial equations compute (fixed = false)",
}


@dataclass(frozen=True, slots=True)
class Declared:
    """What a declaration says beyond the numbers.

    Attributes:
        type_name: as written.
        display_unit: for people.
        quantity: such as "Length".
        literals: of an enumeration, in order.
    """

    type_name: str = ""
    display_unit: str = ""
    quantity: str = ""
    literals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the flat model.

    Attributes:
        index: in the front end's list.
        name: with dots.
        role: parameter, constant, input, state, algebraic, discrete_real, discrete_value, or derivative.
        scalar: real, integer, boolean, enumeration, string.
        declared: its type, display unit and quantity as declared, and the literals of an enumeration.
        shape: () for a scalar.
        slot: of its first element.
        attributes: as the front end gives them: expression indices of start, binding, min, max …
        where: its declaration.
    """

    index: int
    name: str
    role: str
    scalar: str
    shape: tuple[int, ...]
    slot: int
    attributes: Mapping[str, Any]
    where: SourceLocation | None = None
    declared: Declared = Declared()

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)

    @property
    def slots(self) -> range:
        """Of its elements, in row-major order."""
        return range(self.slot, self.slot + self.size)

    @property
    def is_parameter(self) -> bool:
        """Whether it is set before the run."""
        return self.role in ("parameter", "constant")

    @property
    def is_discrete(self) -> bool:
        """Whether it changes at events only."""
        return self.role in ("discrete_real", "discrete_value")


@dataclass(slots=True)
class Dae:
    """A flat model.

    Attributes:
        storage: the raw tables.
        nodes: expression nodes as (kind, fields); fields hold `ops` and `subs` where a node has them.
        variables: parameters first, then inputs, then the rest.
        derivatives: state index → its derivative, a variable of its own.
        by_index: front end's index → variable.
        size: number of slots.
        parameters_end: slots below are parameters.
    """

    storage: Mapping[str, Any]
    nodes: list[tuple[str, dict[str, Any]]]
    variables: list[Variable]
    derivatives: dict[int, Variable]
    by_index: dict[int, Variable]
    size: int
    parameters_end: int
    sources: dict[int, tuple[str, str, list[int]]] = field(default_factory=dict)
    locate: Callable[[int, int], SourceLocation] | None = None

    def place(self, item: Any) -> SourceLocation | None:
        """Where something stands in the source: its `provenance` or `declaration` with a span."""
        if not isinstance(item, Mapping):
            return None
        span = (item.get("provenance") or item.get("declaration") or item).get("span")
        if not span or span.get("source") not in self.sources:
            return None
        name, _, starts = self.sources[span["source"]]
        line = bisect.bisect_right(starts, span["start"])
        column = span["start"] - starts[line - 1] + 1
        if name in _GIVEN and self.locate is not None:
            return self.locate(line, column)
        return SourceLocation(name, line=line, column=column)

    @contextlib.contextmanager
    def at(self, item: Any) -> Iterator[None]:
        """A refusal in here is about this item, where it does not know better."""
        try:
            yield
        except Refused as error:
            if error.where is None:
                error.where = item if isinstance(item, SourceLocation) else self.place(item)
            raise

    def text(self, item: Any) -> str:
        """The source text of something."""
        span = (item.get("provenance") or item.get("declaration") or item).get("span")
        if not span or span.get("source") not in self.sources:
            return ""
        raw = self.sources[span["source"]][1].encode()
        return raw[span["start"] : span["end"]].decode(errors="replace")

    def domain(self, index: int) -> list[range]:
        """Index ranges of a loop."""
        binders = self.storage["domains"][index]["domain"]["binders"]
        return [range(b["lower"], b["upper"] + (1 if b["step"] > 0 else -1), b["step"]) for b in binders]


def read_dae(
    document: Mapping[str, Any],
    flat: Mapping[str, Any] | None = None,
    place: Callable[[int, int], SourceLocation] | None = None,
) -> Dae:
    """Read the front end's JSON.

    Args:
        document: with `schema_version`, `source_map` and `storage`.
        flat: the flat model, for what the DAE leaves out.
        place: line and column of the front end's source → where that stands in the user's files.

    Raises:
        Refused: an unknown schema, or something that no pass handles.
    """
    if document["schema_version"] not in SCHEMAS:
        raise Refused(f"the front end's DAE schema {document['schema_version']} is not one of {SCHEMAS}")
    storage = document["storage"]
    types = storage["value_types"]
    dae = Dae(storage, _nodes(storage["expressions"]), [], {}, {}, 0, 0, locate=place)
    for number, name, text in document["source_map"]["files"]:
        starts = [0]
        for line in text.encode().split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        dae.sources[number] = (name, text, starts[:-1])
    _place_variables(dae, types, _declarations(flat or {}))
    for table, what in _REFUSED.items():
        if storage.get(table):
            with dae.at(next(iter(storage[table]))):
                raise Refused(f"{what} cannot be compiled")
    return dae


def _declarations(flat: Mapping[str, Any]) -> Callable[[str], Declared]:
    """A look-up of what the flat model declares for a variable."""
    literals: dict[str, dict[int, str]] = {}
    for name, number in flat.get("enum_literal_ordinals", {}).items():
        type_name, _, literal = name.rpartition(".")
        if not literal.startswith("'"):
            literals.setdefault(type_name, {})[number] = literal
    types = flat.get("variable_type_names", {})
    variables = flat.get("variables", {})
    variables = dict(variables) if isinstance(variables, list) else variables

    def declared(name: str) -> Declared:
        type_name = types.get(name, "")
        known = sorted((t for t in literals if t == type_name or t.endswith(f".{type_name}")), key=len)
        found = literals[known[0]] if type_name and known else {}
        raw = variables.get(name) or {}
        names = tuple(found[k] for k in sorted(found))
        return Declared(type_name, raw.get("display_unit") or "", raw.get("quantity") or "", names)

    return declared


def _place_variables(dae: Dae, types: Sequence[Mapping[str, Any]], declared: Callable[[str], Declared]) -> None:
    order = {"parameter": 0, "constant": 0, "input": 1}
    raw = dae.storage["variables"]
    slot = 0
    for i in sorted(range(len(raw)), key=lambda i: (order.get(raw[i]["role"], 2), i)):
        kind = types[raw[i]["value_type"]]
        variable = Variable(
            i,
            raw[i]["name"],
            raw[i]["role"],
            kind["scalar"],
            tuple(kind["dimensions"]),
            slot,
            raw[i]["attributes"],
            dae.place(raw[i]),
            declared(raw[i]["name"]),
        )
        dae.variables.append(variable)
        dae.by_index[i] = variable
        slot += variable.size
        if variable.is_parameter:
            dae.parameters_end = slot
    for state in [v for v in dae.variables if v.role == "state"]:
        name = f"der({state.name})"
        dae.derivatives[state.index] = Variable(state.index, name, "derivative", "real", state.shape, slot, {})
        slot += state.size
    dae.size = slot


def _nodes(expressions: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    operands, subscripts = iter(expressions["operands"]), iter(expressions["subscripts"])
    found: list[tuple[str, dict[str, Any]]] = []
    for raw in expressions["nodes"]:
        entry = (
            {k: v for k, v in raw.items() if k not in ("span", "provenance")} if isinstance(raw, dict) else {raw: {}}
        )
        kind, value = next(iter(entry.items()))
        fields = dict(value) if isinstance(value, dict) else {"": value}
        if "operand_count" in fields:
            fields["ops"] = [next(operands) for _ in range(fields["operand_count"])]
        if "subscript_count" in fields:
            fields["subs"] = [next(subscripts) for _ in range(fields["subscript_count"])]
        found.append((kind, fields))
        if kind == "runtime_quotient_owner" and "model" in fields.get("kind", {}):
            found += [("generated", {})] * _HIDDEN_QUOTIENT_NODES
    return found


def variant(item: Any) -> tuple[str, Any]:
    """A tagged value `{"kind": …}` or `"kind"`, beside its span and provenance."""
    if isinstance(item, str):
        return item, None
    return next((k, v) for k, v in item.items() if k not in ("span", "provenance"))
