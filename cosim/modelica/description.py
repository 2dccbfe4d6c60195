"""modelDescription.xml of a compiled model, FMI 2.0 and 3.0."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np

from cosim.modelica.dae import Variable
from cosim.modelica.generate_c import is_tunable
from cosim.modelica.model import CompiledModel
from cosim.unit import Unit, parse_unit

_TYPES_2 = {
    "real": "Real",
    "integer": "Integer",
    "enumeration": "Enumeration",
    "boolean": "Boolean",
    "string": "String",
}
_TYPES_3 = {**_TYPES_2, "real": "Float64", "integer": "Int32"}
_BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
_CATEGORIES = ("logStatusError", "logStatusWarning", "logEvents")
# An FMI 3 event indicator is a variable.
INDICATORS = "event_indicators"


@dataclass(frozen=True, slots=True)
class Entry:
    """A variable with its FMI attributes.

    Attributes:
        variable: of the flat model.
        causality: FMI spelling.
        variability: FMI spelling.
        initial: FMI spelling, "" where the causality says it.
        starts: one per scalar, () where the value is calculated.
    """

    variable: Variable
    causality: str
    variability: str
    initial: str
    starts: tuple[float, ...]

    @property
    def is_initial_unknown(self) -> bool:
        """Whether the initialization computes it."""
        asked = self.causality in ("output", "calculatedParameter") or self.variable.role in ("derivative", "state")
        return self.initial == "calculated" and asked


def model_description(model: CompiledModel, *, version: str, name: str, identifier: str, token: str, text: str) -> str:
    """The XML.

    Args:
        model: compiled.
        version: "2.0" or "3.0".
        name: of the model.
        identifier: of the library.
        token: GUID or instantiation token.
        text: description of the model.
    """
    entries = [_entry(model, v) for v in (*model.dae.variables, *model.dae.derivatives.values())]
    make = _Fmi2 if version == "2.0" else _Fmi3
    return make(model, entries).document(name, identifier, token, text)


def build_description(identifier: str) -> str:
    """sources/buildDescription.xml, with which FMI 3 tools compile the source."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<fmiBuildDescription fmiVersion="3.0">\n'
        f'  <BuildConfiguration modelIdentifier="{identifier}">\n'
        '    <SourceFileSet language="C99" compilerOptions="-ffp-contract=off">\n'
        f'      <SourceFile name="{identifier}.c"/>\n'
        "    </SourceFileSet>\n"
        "  </BuildConfiguration>\n"
        "</fmiBuildDescription>\n"
    )


def _entry(model: CompiledModel, variable: Variable) -> Entry:
    starts = tuple(model.starts.get(slot, 0.0) for slot in variable.slots)
    if variable.role == "derivative":
        return Entry(variable, "local", "continuous", "calculated", ())
    if variable.role == "input":
        return Entry(variable, "input", "continuous" if variable.scalar == "real" else "discrete", "", starts)
    if variable.is_parameter:
        if variable.role == "constant":
            return Entry(variable, "local", "constant", "exact", starts)
        if variable.index in model.baked:
            return Entry(variable, "parameter", "fixed", "exact", starts)
        if any(a.slot == variable.slot for a in model.calculated):
            return Entry(variable, "calculatedParameter", "tunable", "calculated", ())
        variability = "tunable" if is_tunable(model, variable.index) else "fixed"
        return Entry(variable, "parameter", variability, "exact", starts)
    causality = "output" if variable.attributes.get("causality") == "output" else "local"
    if variable.role == "state":
        kept = all(slot in model.from_start for slot in variable.slots)
        dependent = any(a.slot in variable.slots for a in model.start_equations)
        if kept and not dependent:
            return Entry(variable, causality, "continuous", "exact", starts)
        return Entry(variable, causality, "continuous", "calculated", ())
    discrete = variable.is_discrete or variable.scalar != "real"
    return Entry(variable, causality, "discrete" if discrete else "continuous", "calculated", ())


def _attributes(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in pairs if value)


def _generator() -> str:
    try:
        return f"cosim {importlib.metadata.version('usd-cosim')}"
    except importlib.metadata.PackageNotFoundError:
        return "cosim"


class _Document:
    """What both versions share."""

    version = ""
    token_name = ""

    def __init__(self, model: CompiledModel, entries: list[Entry]) -> None:
        self.model, self.entries = model, entries
        self.types = _enumerations(entries)

    def document(self, name: str, identifier: str, token: str, text: str) -> str:
        """The XML."""
        head = [("modelName", name), (self.token_name, token), ("description", text), ("generationTool", _generator())]
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<fmiModelDescription fmiVersion="{self.version}"{_attributes(head)} '
            f'variableNamingConvention="structured"{self.counts()}>',
            *self.interfaces(identifier),
            *self._units(),
            *self._type_definitions(),
            "  <LogCategories>" + "".join(f'<Category name="{c}"/>' for c in _CATEGORIES) + "</LogCategories>",
            "  <ModelVariables>",
            *self.variables(),
            "  </ModelVariables>",
            "  <ModelStructure>",
            *self.structure(),
            "  </ModelStructure>",
            "</fmiModelDescription>",
        ]
        return "\n".join(lines) + "\n"

    def counts(self) -> str:
        """Further attributes of the root."""
        return ""

    def interfaces(self, identifier: str) -> Iterator[str]:
        """The elements ModelExchange and CoSimulation."""
        raise NotImplementedError

    def type_definition(self, name: str, items: str) -> str:
        """The element of one enumeration."""
        raise NotImplementedError

    def variables(self) -> Iterator[str]:
        """The elements of ModelVariables."""
        raise NotImplementedError

    def structure(self) -> Iterator[str]:
        """The elements of ModelStructure."""
        raise NotImplementedError

    def _units(self) -> list[str]:
        """Unit definitions of every unit that is used and known."""
        shown: dict[str, set[str]] = {"s": set(), "1": set()}
        for entry in self.entries:
            if name := unit_name(self.model, entry.variable):
                shown.setdefault(name, set()).add(self.display_unit(entry.variable))
        lines = [
            _unit(name, unit, sorted(shown[name] - {""}))
            for name in sorted(shown)
            if (unit := parse_unit(name)) is not None
        ]
        return ["  <UnitDefinitions>", *lines, "  </UnitDefinitions>"] if lines else []

    def display_unit(self, variable: Variable) -> str:
        """The declared display unit, if it measures the same quantity as the unit."""
        name = variable.declared.display_unit
        shown, unit = parse_unit(name) if name else None, parse_unit(unit_name(self.model, variable) or "?")
        return name if shown is not None and unit is not None and shown.exponents == unit.exponents else ""

    def _type_definitions(self) -> list[str]:
        lines = []
        for name, literals in sorted(self.types.items()):
            items = "".join(f"<Item name={quoteattr(x)} value={quoteattr(str(k))}/>" for k, x in enumerate(literals, 1))
            lines.append(f"    {self.type_definition(name, items)}")
        return ["  <TypeDefinitions>", *lines, "  </TypeDefinitions>"] if lines else []

    def common(self, entry: Entry) -> list[tuple[str, str]]:
        """Unit, display unit and limits."""
        variable = entry.variable
        found: list[tuple[str, str]] = []
        if variable.scalar == "enumeration":
            found.append(("declaredType", _type_name(variable)))
        if variable.declared.quantity and variable.scalar == "real":
            found.append(("quantity", variable.declared.quantity))
        if variable.scalar == "real":
            found += [("unit", unit_name(self.model, variable)), ("displayUnit", self.display_unit(variable))]
        return found + self._limits(entry)

    def _limits(self, entry: Entry) -> list[tuple[str, str]]:
        """min, max and nominal; a Boolean has none."""
        scalar = entry.variable.scalar
        if scalar in ("boolean", "string") or entry.variable.role == "derivative":
            return []
        found = zip(("min", "max", "nominal"), self.model.limits.get(entry.variable.index, (None,) * 3), strict=True)
        names = ("min", "max") if scalar != "real" else ("min", "max", "nominal")
        return [(n, self.value(x, scalar)) for n, x in found if x is not None and n in names and abs(x) < 1e300]

    def value(self, x: float, scalar: str) -> str:
        """A value as XML text."""
        if scalar == "boolean":
            return "true" if x else "false"
        if scalar == "string":
            return self.model.texts[int(x)]
        return str(int(x)) if scalar in ("integer", "enumeration") else repr(float(x))


class _Fmi2(_Document):
    version, token_name = "2.0", "guid"

    def counts(self) -> str:
        return f' numberOfEventIndicators="{len(self.model.discrete.relations)}"'

    def interfaces(self, identifier: str) -> Iterator[str]:
        shared = 'canNotUseMemoryManagementFunctions="true" canGetAndSetFMUstate="true" canSerializeFMUstate="true"'
        if self.model.tangent is not None:
            shared += ' providesDirectionalDerivative="true"'
        sources = f'<SourceFiles><File name="{identifier}.c"/></SourceFiles>'
        idle = "" if self.model.discrete.assertions else ' completedIntegratorStepNotNeeded="true"'
        yield f'  <ModelExchange modelIdentifier="{identifier}"{idle} {shared}>{sources}</ModelExchange>'
        varied = 'canHandleVariableCommunicationStepSize="true"'
        yield f'  <CoSimulation modelIdentifier="{identifier}" {varied} {shared}>{sources}</CoSimulation>'

    def type_definition(self, name: str, items: str) -> str:
        return f"<SimpleType name={quoteattr(name)}><Enumeration>{items}</Enumeration></SimpleType>"

    def _index(self) -> dict[int, int]:
        """Slot → position among the variables, from 1."""
        return {slot: k for k, slot in enumerate((s for e in self.entries for s in e.variable.slots), start=1)}

    def variables(self) -> Iterator[str]:
        index = self._index()
        for entry in self.entries:
            variable, slots = entry.variable, entry.variable.slots
            for k, slot in enumerate(slots):
                head = [
                    ("name", element_name(variable, k)),
                    ("valueReference", str(slot)),
                    ("description", variable.attributes.get("description") or ""),
                    ("causality", entry.causality),
                    ("variability", entry.variability),
                    ("initial", entry.initial),
                ]
                inner = self.common(entry)
                start = f" start={quoteattr(self.value(entry.starts[k], variable.scalar))}" if entry.starts else ""
                if variable.role == "derivative":
                    state = self.model.dae.by_index[variable.index]
                    inner.append(("derivative", str(index[state.slot + k])))
                tag = f"{_TYPES_2[variable.scalar]}{_attributes(inner)}{start}"
                yield f"    <ScalarVariable{_attributes(head)}><{tag}/></ScalarVariable>"

    def structure(self) -> Iterator[str]:
        index = self._index()
        outputs = [s for e in self.entries if e.causality == "output" for s in e.variable.slots]
        for tag, slots in (("Outputs", outputs), ("Derivatives", self.model.derivatives)):
            if not slots:
                continue
            yield f"    <{tag}>"
            for slot in sorted(slots, key=index.__getitem__):
                needed = " ".join(str(index[s]) for s in sorted(self.model.feedthrough(slot)))
                yield f'      <Unknown index="{index[slot]}" dependencies="{needed}"/>'
            yield f"    </{tag}>"
        initial = sorted(index[s] for e in self.entries if e.is_initial_unknown for s in e.variable.slots)
        if initial:
            unknowns = "".join(f'<Unknown index="{i}"/>' for i in initial)
            yield f"    <InitialUnknowns>{unknowns}</InitialUnknowns>"


class _Fmi3(_Document):
    version, token_name = "3.0", "instantiationToken"

    def interfaces(self, identifier: str) -> Iterator[str]:
        shared = 'canGetAndSetFMUState="true" canSerializeFMUState="true"'
        if self.model.tangent is not None:
            shared += ' providesDirectionalDerivatives="true" providesAdjointDerivatives="true"'
        asserted = ' needsCompletedIntegratorStep="true"' if self.model.discrete.assertions else ""
        yield f'  <ModelExchange modelIdentifier="{identifier}"{asserted} {shared}/>'
        varied = 'canHandleVariableCommunicationStepSize="true" hasEventMode="true"'
        yield f'  <CoSimulation modelIdentifier="{identifier}" {varied} {shared}/>'

    def type_definition(self, name: str, items: str) -> str:
        return f"<EnumerationType name={quoteattr(name)}>{items}</EnumerationType>"

    def _reference(self) -> dict[tuple[str, int], int]:
        """(role is derivative, index) → value reference."""
        return {(_kind(e.variable), e.variable.index): k for k, e in enumerate(self.entries, start=1)}

    def variables(self) -> Iterator[str]:
        reference = self._reference()
        yield (
            '    <Float64 name="time" valueReference="0" causality="independent" variability="continuous" '
            'description="Simulation time" unit="s"/>'
        )
        for entry in self.entries:
            variable = entry.variable
            pairs = [
                ("name", variable.name),
                ("valueReference", str(reference[(_kind(variable), variable.index)])),
                ("description", variable.attributes.get("description") or ""),
                ("causality", entry.causality),
                ("variability", entry.variability),
                ("initial", entry.initial),
                *self.common(entry),
            ]
            inner = "".join(f'<Dimension start="{n}"/>' for n in variable.shape)
            values = [self.value(x, variable.scalar) for x in entry.starts]
            if variable.scalar == "string":
                inner += "".join(f"<Start value={quoteattr(v)}/>" for v in values)
            else:
                pairs.append(("start", " ".join(values)))
            if variable.role == "derivative":
                pairs.append(("derivative", str(reference[("", variable.index)])))
            yield _element(_TYPES_3[variable.scalar], pairs, inner)
        if count := len(self.model.discrete.relations):
            pairs = [
                ("name", INDICATORS),
                ("valueReference", str(len(self.entries) + 1)),
                ("description", "Event indicators: one of them passes zero at a state event"),
                ("causality", "local"),
                ("variability", "continuous"),
                ("initial", "calculated"),
                ("unit", "1"),
            ]
            yield _element("Float64", pairs, f'<Dimension start="{count}"/>')

    def structure(self) -> Iterator[str]:
        reference = self._reference()
        owner = {s: reference[(_kind(e.variable), e.variable.index)] for e in self.entries for s in e.variable.slots}

        def line(tag: str, variable: Variable) -> str:
            needed = sorted({owner[s] for slot in variable.slots for s in self.model.feedthrough(slot)})
            text = " ".join(map(str, needed))
            return f'    <{tag} valueReference="{owner[variable.slot]}" dependencies="{text}"/>'

        for entry in (e for e in self.entries if e.causality == "output"):
            yield line("Output", entry.variable)
        for variable in self.model.dae.derivatives.values():
            yield line("ContinuousStateDerivative", variable)
        for entry in self.entries:
            if entry.is_initial_unknown:
                yield f'    <InitialUnknown valueReference="{owner[entry.variable.slot]}"/>'
        if self.model.discrete.relations:
            yield f'    <EventIndicator valueReference="{len(self.entries) + 1}"/>'


def _element(tag: str, pairs: list[tuple[str, str]], inner: str) -> str:
    return f"    <{tag}{_attributes(pairs)}" + (f">{inner}</{tag}>" if inner else "/>")


def _unit(name: str, unit: Unit, shown: list[str]) -> str:
    powers = [(k, str(e)) for k, e in zip(_BASE_UNITS, unit.exponents, strict=True) if e]
    factor = [("factor", repr(unit.factor))] if unit.factor != 1.0 else []
    offset = [("offset", repr(unit.offset))] if unit.offset != 0.0 else []
    inner = f"<BaseUnit{_attributes([*powers, *factor, *offset])}/>"
    for other in shown:
        display = parse_unit(other)
        assert display is not None
        # shown = factor · value + offset, both ways over the base unit.
        pairs = [("name", other), ("factor", repr(unit.factor / display.factor))]
        shift = (unit.offset - display.offset) / display.factor
        inner += f"<DisplayUnit{_attributes([*pairs, ('offset', repr(shift) if shift else '')])}/>"
    return f"    <Unit name={quoteattr(name)}>{inner}</Unit>"


def _enumerations(entries: Iterable[Entry]) -> dict[str, tuple[str, ...]]:
    """Type name → literals, of every enumeration that is used."""
    return {_type_name(e.variable): e.variable.declared.literals for e in entries if e.variable.scalar == "enumeration"}


def _type_name(variable: Variable) -> str:
    return variable.declared.type_name


def unit_name(model: CompiledModel, variable: Variable) -> str:
    """The declared unit, as far as it is known; that of a derivative is per second."""
    if variable.role == "derivative":
        of = unit_name(model, model.dae.by_index[variable.index])
        name = f"{of}2" if of.endswith("/s") else "1/s" if of == "1" else f"{of}/s" if of else ""
    else:
        name = str(variable.attributes.get("unit") or "")
    return name if name and parse_unit(name) is not None else ""


def _kind(variable: Variable) -> str:
    return "derivative" if variable.role == "derivative" else ""


def element_name(variable: Variable, k: int) -> str:
    """`q[2]`, `der(M[1,2])`: the FMI 2 name of one element."""
    if not variable.shape:
        return variable.name
    place = ",".join(str(int(i) + 1) for i in np.unravel_index(k, variable.shape))
    if variable.role == "derivative":
        return f"{variable.name[:-1]}[{place}])"
    return f"{variable.name}[{place}]"
