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

_TYPES_2 = {"real": "Real", "integer": "Integer", "enumeration": "Integer", "boolean": "Boolean"}
_TYPES_3 = {"real": "Float64", "integer": "Int32", "enumeration": "Int32", "boolean": "Boolean"}
_BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")


@dataclass(frozen=True, slots=True)
class _Entry:
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


def _entry(model: CompiledModel, variable: Variable) -> _Entry:
    starts = tuple(model.starts.get(slot, 0.0) for slot in variable.slots)
    if variable.role == "derivative":
        return _Entry(variable, "local", "continuous", "calculated", ())
    if variable.role == "input":
        return _Entry(variable, "input", "continuous" if variable.scalar == "real" else "discrete", "", starts)
    if variable.is_parameter:
        if variable.role == "constant" or variable.index in model.baked:
            return _Entry(variable, "local", "constant", "exact", starts)
        if any(a.slot == variable.slot for a in model.calculated):
            return _Entry(variable, "calculatedParameter", "tunable", "calculated", ())
        return _Entry(
            variable, "parameter", "tunable" if is_tunable(model, variable.index) else "fixed", "exact", starts
        )
    causality = "output" if variable.attributes.get("causality") == "output" else "local"
    if variable.role == "state":
        kept = all(slot in model.from_start for slot in variable.slots)
        dependent = any(a.slot in variable.slots for a in model.start_equations)
        if kept and not dependent:
            return _Entry(variable, causality, "continuous", "exact", starts)
        return _Entry(variable, causality, "continuous", "calculated", ())
    discrete = variable.is_discrete or variable.scalar != "real"
    return _Entry(variable, causality, "discrete" if discrete else "continuous", "calculated", ())


def _value(x: float, scalar: str) -> str:
    if scalar == "boolean":
        return "true" if x else "false"
    return str(int(x)) if scalar in ("integer", "enumeration") else repr(float(x))


def _attributes(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in pairs if value)


def _generator() -> str:
    try:
        return f"cosim {importlib.metadata.version('usd-cosim')}"
    except importlib.metadata.PackageNotFoundError:
        return "cosim"


class _Document:
    """What both versions share."""

    def __init__(self, model: CompiledModel, entries: list[_Entry]) -> None:
        self.model, self.entries = model, entries

    def units(self) -> list[str]:
        """Unit definitions of every unit that is used and known."""
        names = sorted({"s", *(self.unit_name(e) for e in self.entries)} - {""})
        lines = [self._unit(name, unit) for name in names if (unit := parse_unit(name)) is not None]
        return ["  <UnitDefinitions>", *lines, "  </UnitDefinitions>"] if lines else []

    def _unit(self, name: str, unit: Unit) -> str:
        powers = [(k, str(e)) for k, e in zip(_BASE_UNITS, unit.exponents, strict=True) if e]
        factor = [("factor", repr(unit.factor))] if unit.factor != 1.0 else []
        offset = [("offset", repr(unit.offset))] if unit.offset != 0.0 else []
        return f"    <Unit name={quoteattr(name)}><BaseUnit{_attributes([*powers, *factor, *offset])}/></Unit>"

    def unit_name(self, entry: _Entry) -> str:
        """The declared unit, as far as it has a definition."""
        return unit_name(self.model, entry.variable)

    def limits(self, entry: _Entry) -> list[tuple[str, str]]:
        """min, max and nominal; a Boolean has none."""
        scalar = entry.variable.scalar
        if scalar == "boolean" or entry.variable.role == "derivative":
            return []
        found = zip(("min", "max", "nominal"), self.model.limits.get(entry.variable.index, (None,) * 3), strict=True)
        names = ("min", "max") if scalar != "real" else ("min", "max", "nominal")
        return [(n, _value(x, scalar)) for n, x in found if x is not None and n in names and abs(x) < 1e300]


class _Fmi2(_Document):
    def document(self, name: str, identifier: str, token: str, text: str) -> str:
        """The XML."""
        head = [("modelName", name), ("guid", token), ("description", text), ("generationTool", _generator())]
        flags = 'canHandleVariableCommunicationStepSize="true" canGetAndSetFMUstate="true" canSerializeFMUstate="true"'
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<fmiModelDescription fmiVersion="2.0"{_attributes(head)} variableNamingConvention="structured" '
            'numberOfEventIndicators="0">',
            f'  <CoSimulation modelIdentifier="{identifier}" {flags}/>',
            *self.units(),
            '  <LogCategories><Category name="logStatusError"/><Category name="logEvents"/></LogCategories>',
            "  <ModelVariables>",
            *self._variables(),
            "  </ModelVariables>",
            *self._structure(),
            "</fmiModelDescription>",
        ]
        return "\n".join(lines) + "\n"

    def _index(self) -> dict[int, int]:
        """Slot → position among the variables, from 1."""
        return {slot: k for k, slot in enumerate((s for e in self.entries for s in e.variable.slots), start=1)}

    def _variables(self) -> Iterator[str]:
        index = self._index()
        for entry in self.entries:
            variable, slots = entry.variable, entry.variable.slots
            for k, slot in enumerate(slots):
                head = [
                    ("name", element_name(variable, k)),
                    ("valueReference", str(slot)),
                    ("causality", entry.causality),
                    ("variability", entry.variability),
                    ("initial", entry.initial),
                    ("description", variable.attributes.get("description") or ""),
                ]
                inner = [("unit", self.unit_name(entry)) if variable.scalar == "real" else ("", "")]
                inner += self.limits(entry)
                if entry.starts:
                    inner.append(("start", _value(entry.starts[k], variable.scalar)))
                if variable.role == "derivative":
                    state = self.model.dae.by_index[variable.index]
                    inner.append(("derivative", str(index[state.slot + k])))
                tag = f"{_TYPES_2[variable.scalar]}{_attributes(inner)}"
                yield f"    <ScalarVariable{_attributes(head)}><{tag}/></ScalarVariable>"

    def _structure(self) -> Iterator[str]:
        index = self._index()
        yield "  <ModelStructure>"
        outputs = [s for e in self.entries if e.causality == "output" for s in e.variable.slots]
        if outputs:
            yield "    <Outputs>"
            for slot in outputs:
                needed = " ".join(str(index[s]) for s in sorted(self.model.feedthrough(slot)))
                yield f'      <Unknown index="{index[slot]}" dependencies="{needed}"/>'
            yield "    </Outputs>"
        rates = [index[s] for s in self.model.derivatives]
        initial = [
            index[s]
            for e in self.entries
            if e.initial == "calculated"
            and (e.causality in ("output", "calculatedParameter") or e.variable.role in ("derivative", "state"))
            for s in e.variable.slots
        ]
        for tag, found in (("Derivatives", rates), ("InitialUnknowns", initial)):
            if found:
                unknowns = "".join(f'<Unknown index="{i}"/>' for i in sorted(found))
                yield f"    <{tag}>{unknowns}</{tag}>"
        yield "  </ModelStructure>"


class _Fmi3(_Document):
    def document(self, name: str, identifier: str, token: str, text: str) -> str:
        """The XML."""
        head = [
            ("modelName", name),
            ("instantiationToken", token),
            ("description", text),
            ("generationTool", _generator()),
        ]
        flags = 'canHandleVariableCommunicationStepSize="true" canGetAndSetFMUState="true" canSerializeFMUState="true"'
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<fmiModelDescription fmiVersion="3.0"{_attributes(head)} variableNamingConvention="structured">',
            f'  <CoSimulation modelIdentifier="{identifier}" {flags}/>',
            *self.units(),
            '  <LogCategories><Category name="logStatusError"/><Category name="logEvents"/></LogCategories>',
            "  <ModelVariables>",
            '    <Float64 name="time" valueReference="0" causality="independent" variability="continuous" '
            'description="Simulation time" unit="s"/>',
            *self._variables(),
            "  </ModelVariables>",
            *self._structure(),
            "</fmiModelDescription>",
        ]
        return "\n".join(lines) + "\n"

    def _reference(self) -> dict[tuple[str, int], int]:
        """(role is derivative, index) → value reference."""
        return {(_kind(e.variable), e.variable.index): k for k, e in enumerate(self.entries, start=1)}

    def _variables(self) -> Iterator[str]:
        reference = self._reference()
        for entry in self.entries:
            variable = entry.variable
            pairs = [
                ("name", variable.name),
                ("valueReference", str(reference[(_kind(variable), variable.index)])),
                ("causality", entry.causality),
                ("variability", entry.variability),
                ("initial", entry.initial),
                ("description", variable.attributes.get("description") or ""),
                ("unit", self.unit_name(entry) if variable.scalar == "real" else ""),
                *self.limits(entry),
                ("start", " ".join(_value(x, variable.scalar) for x in entry.starts)),
            ]
            if variable.role == "derivative":
                pairs.append(("derivative", str(reference[("", variable.index)])))
            tag = _TYPES_3[variable.scalar]
            sizes = "".join(f'<Dimension start="{n}"/>' for n in variable.shape)
            close = f">{sizes}</{tag}>" if sizes else "/>"
            yield f"    <{tag}{_attributes(pairs)}{close}"

    def _structure(self) -> Iterator[str]:
        reference = self._reference()
        owner = {s: reference[(_kind(e.variable), e.variable.index)] for e in self.entries for s in e.variable.slots}
        yield "  <ModelStructure>"
        for entry in (e for e in self.entries if e.causality == "output"):
            needed = sorted({owner[s] for slot in entry.variable.slots for s in self.model.feedthrough(slot)})
            vr, text = owner[entry.variable.slot], " ".join(map(str, needed))
            yield f'    <Output valueReference="{vr}" dependencies="{text}"/>'
        for variable in self.model.dae.derivatives.values():
            yield f'    <ContinuousStateDerivative valueReference="{owner[variable.slot]}"/>'
        for entry in self.entries:
            is_unknown = entry.causality in ("output", "calculatedParameter") or entry.variable.role in (
                "derivative",
                "state",
            )
            if entry.initial == "calculated" and is_unknown:
                yield f'    <InitialUnknown valueReference="{owner[entry.variable.slot]}"/>'
        yield "  </ModelStructure>"


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
