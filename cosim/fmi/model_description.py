"""Read modelDescription.xml, without trusting it.

No document type is accepted, so there are no entities to expand or to fetch. What is
merely odd becomes a finding and is repaired or left out; only what cannot run is an
error (FMI 2.0.4 chapter 2, FMI 3.0 chapter 2).
"""

from __future__ import annotations

import math
import re
import xml.parsers.expat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosim.component import Causality, PortType, Variability
from cosim.diagnostic import DiagnosticLog, FmuError, SourceLocation
from cosim.fmi.description import CallType, Capabilities, DefaultExperiment, Description, Variable
from cosim.unit import BASE_UNITS, Unit, parse_unit

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAXIMUM_NAME = 4096
_FMI2_TYPES = {
    "Real": (CallType.REAL, PortType.REAL),
    "Integer": (CallType.INTEGER, PortType.INTEGER),
    "Enumeration": (CallType.INTEGER, PortType.ENUMERATION),
    "Boolean": (CallType.BOOLEAN, PortType.BOOLEAN),
    "String": (CallType.STRING, PortType.STRING),
}
_FMI3_TYPES = {
    **{t.value: (t, PortType.REAL) for t in (CallType.FLOAT32, CallType.FLOAT64)},
    **{
        t.value: (t, PortType.INTEGER)
        for t in CallType
        if t.value.startswith(("Int", "UInt")) and t is not CallType.INTEGER
    },
    "Enumeration": (CallType.INT64, PortType.ENUMERATION),
    "Boolean": (CallType.BOOLEAN, PortType.BOOLEAN),
    "String": (CallType.STRING, PortType.STRING),
    "Binary": (CallType.BINARY, PortType.BINARY),
    "Clock": (CallType.CLOCK, PortType.BOOLEAN),
}


def read_description(file: Path, fmu: str, log: DiagnosticLog) -> Description:
    """Read a model description.

    Args:
        file: the extracted modelDescription.xml.
        fmu: the FMU as the user knows it, for locations.
        log: gets every finding.

    Raises:
        FmuError: the file cannot be read or describes nothing that can run.
    """
    return _Reader(file, fmu, log).read()


class _Reader:
    def __init__(self, file: Path, fmu: str, log: DiagnosticLog) -> None:
        self.fmu = fmu
        self.log = log
        self.root = self._parse(file)
        self.version = self.root.get("fmiVersion", "")
        self.major = self.version.partition(".")[0]
        self.units: dict[str, Unit] = {}
        self.types: dict[str, Any] = {}
        self.reported: dict[str, int] = {}

    def read(self) -> Description:
        root = self.root
        if root.tag != "fmiModelDescription" or self.major not in ("1", "2", "3"):
            raise FmuError.of(
                "fmu-version-unsupported",
                f"the FMU declares fmiVersion {self.version[:40]!r}",
                self._at(root),
                hint="FMI 2.0 and 3.0 run here",
            )
        self.units = self._units()
        self.types = self._type_definitions()
        variables = tuple(self._variables())
        experiment = root.find("DefaultExperiment")
        dependencies, derivatives = self._structure(variables)
        return Description(
            fmi_version=f"{self.major}.0",
            model_name=root.get("modelName", ""),
            token=root.get("instantiationToken" if self.major == "3" else "guid", ""),
            description=root.get("description", ""),
            generation_tool=root.get("generationTool", ""),
            variables=variables,
            units=self.units,
            co_simulation=self._capabilities("CoSimulation"),
            model_exchange=self._capabilities("ModelExchange"),
            experiment=self._experiment(experiment),
            dependencies=dependencies,
            derivatives=derivatives,
            event_indicators=self._count_indicators(),
            log_categories=tuple(c.get("name", "") for c in root.iterfind("LogCategories/Category")),
        )

    # ---- the document

    def _parse(self, file: Path) -> Any:
        from lxml import etree

        content = file.read_bytes()
        self._refuse_document_type(content)
        parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, remove_comments=True)
        try:
            return etree.fromstring(content, parser)
        except etree.XMLSyntaxError as error:
            raise FmuError.of(
                "fmu-description-invalid",
                f"modelDescription.xml is not well-formed: {error.msg}",
                SourceLocation(layer=f"{self.fmu}/modelDescription.xml", line=error.lineno or None),
            ) from None

    def _refuse_document_type(self, content: bytes) -> None:
        """Stop at a document type before anything in it is looked at."""

        class _Seen(Exception):
            pass

        def on_document_type(*_: object) -> None:
            raise FmuError.of(
                "fmu-description-invalid",
                "modelDescription.xml has a document type declaration (DOCTYPE), which may hide entities",
                SourceLocation(layer=f"{self.fmu}/modelDescription.xml"),
                hint="remove the DOCTYPE; FMI needs none",
            )

        def on_element(*_: object) -> None:
            raise _Seen

        parser = xml.parsers.expat.ParserCreate()
        parser.StartDoctypeDeclHandler = on_document_type
        parser.StartElementHandler = on_element
        try:
            for start in range(0, len(content), 4096):
                parser.Parse(content[start : start + 4096], False)
        except _Seen:
            return
        except xml.parsers.expat.ExpatError:
            return  # the real parser says it better

    def _at(self, element: Any) -> SourceLocation:
        return SourceLocation(layer=f"{self.fmu}/modelDescription.xml", line=element.sourceline)

    def _finding(self, code: str, message: str, element: Any, hint: str = "") -> None:
        """File a warning; the same kind is not filed more than ten times per FMU."""
        self.reported[code] = count = self.reported.get(code, 0) + 1
        if count <= 10:
            more = " (further findings of this kind are left out)" if count == 10 else ""
            self.log.warning(code, message + more, self._at(element), hint)

    # ---- numbers

    def _number(self, element: Any, name: str) -> float | None:
        text = element.get(name)
        if text is None:
            return None
        value = _float(text)
        if value is None:
            self._finding("fmu-value-invalid", f"{name}={text[:80]!r} is not a number; it is ignored", element)
        return value

    def _flag(self, element: Any, *names: str) -> bool:
        return any(element.get(name) in ("true", "1") for name in names)

    # ---- interfaces

    def _capabilities(self, tag: str) -> Capabilities | None:
        element = self.root.find(tag)
        if element is None:
            return None
        identifier = element.get("modelIdentifier", "")
        if not _IDENTIFIER.fullmatch(identifier):
            raise FmuError.of(
                "fmu-identifier-invalid",
                f"modelIdentifier {identifier[:120]!r} is not a C identifier, and it names the library to load",
                self._at(element),
            )
        return Capabilities(
            model_identifier=identifier,
            needs_execution_tool=self._flag(element, "needsExecutionTool"),
            once_per_process=self._flag(element, "canBeInstantiatedOnlyOncePerProcess"),
            variable_step=self._flag(element, "canHandleVariableCommunicationStepSize"),
            save_state=self._flag(element, "canGetAndSetFMUstate", "canGetAndSetFMUState"),
            serialize_state=self._flag(element, "canSerializeFMUstate", "canSerializeFMUState"),
            has_event_mode=self._flag(element, "hasEventMode"),
            may_return_early=self._flag(element, "mightReturnEarlyFromDoStep"),
            fixed_step=self._number(element, "fixedInternalStepSize"),
            completed_step_not_needed=(
                self._flag(element, "completedIntegratorStepNotNeeded")
                or (self.major == "3" and not self._flag(element, "needsCompletedIntegratorStep"))
            ),
            source_files=tuple(f.get("name", "") for f in element.iterfind("SourceFiles/File")),
        )

    def _experiment(self, element: Any) -> DefaultExperiment:
        if element is None:
            return DefaultExperiment()
        number = self._number
        return DefaultExperiment(
            number(element, "startTime"),
            number(element, "stopTime"),
            number(element, "stepSize"),
            number(element, "tolerance"),
        )

    def _count_indicators(self) -> int:
        if self.major == "3":
            return len(self.root.findall("ModelStructure/EventIndicator"))
        return int(self._number(self.root, "numberOfEventIndicators") or 0)

    # ---- units and types

    def _units(self) -> dict[str, Unit]:
        found: dict[str, Unit] = {}
        for element in self.root.iterfind("UnitDefinitions/Unit"):
            name = element.get("name", "")
            base = element.find("BaseUnit")
            if base is None:
                known = parse_unit(name)
                if known is not None:
                    found[name] = known
                continue
            exponents = tuple(int(self._number(base, symbol) or 0) for symbol in BASE_UNITS)
            factor, offset = self._number(base, "factor"), self._number(base, "offset")
            found[name] = Unit(name, exponents, 1.0 if factor is None else factor, offset or 0.0)
        return found

    def _unit(self, name: str, element: Any) -> Unit | None:
        if not name:
            return None
        unit = self.units.get(name) or parse_unit(name)
        if unit is None:
            self._finding(
                "fmu-unit-unknown",
                f"the unit {name[:80]!r} has no BaseUnit and is not understood: taken as undeclared",
                element,
            )
        return unit

    def _type_definitions(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for element in self.root.iterfind("TypeDefinitions/*"):
            if not isinstance(element.tag, str):
                continue
            inner = element if self.major == "3" else next(iter(element), None)
            if inner is not None:
                found[element.get("name", "")] = inner
        return found

    # ---- variables

    def _variables(self) -> list[Variable]:
        found: list[Variable] = []
        names: dict[str, Variable] = {}
        for element in self.root.iterfind("ModelVariables/*"):
            if not isinstance(element.tag, str):
                continue
            variable = self._variable(element)
            if variable is None:
                continue
            if len(variable.name) > _MAXIMUM_NAME:
                self._finding(
                    "fmu-name-too-long",
                    f"a variable name has {len(variable.name)} characters ({variable.name[:40]!r} …)",
                    element,
                )
            if variable.name in names:
                self._finding(
                    "fmu-name-duplicate",
                    f"two variables are named {variable.name[:120]!r}; the first is used",
                    element,
                )
            names.setdefault(variable.name, variable)
            found.append(variable)
            if self.major == "3":
                found += self._aliases(element, variable)
        return self._resolve_dimensions(found)

    def _aliases(self, element: Any, variable: Variable) -> list[Variable]:
        return [
            replace(variable, name=a.get("name", ""), description=a.get("description", ""), line=a.sourceline)
            for a in element.iterfind("Alias")
        ]

    def _variable(self, element: Any) -> Variable | None:
        name = element.get("name", "")
        inner = element if self.major == "3" else next((c for c in element if c.tag in _FMI2_TYPES), None)
        kind = (_FMI3_TYPES if self.major == "3" else _FMI2_TYPES).get("" if inner is None else inner.tag)
        reference = _reference(element.get("valueReference"))
        if kind is None or reference is None or inner is None:
            self._finding(
                "fmu-variable-invalid",
                f"the variable {name[:120]!r} has no type or value reference that is understood; it is left out",
                element,
            )
            return None
        declared = self.types.get(inner.get("declaredType") or "")

        def attribute(key: str) -> Any:
            value = inner.get(key)
            return value if value is not None or declared is None else declared.get(key)

        def number(key: str) -> float | None:
            text = attribute(key)
            return None if text is None else _float(text)

        is_number = kind[1] in (PortType.REAL, PortType.INTEGER, PortType.ENUMERATION)
        is_real = kind[1] is PortType.REAL
        dimensions, references = self._dimensions(element) if self.major == "3" else ((), ())
        return Variable(
            name=name,
            reference=reference,
            call_type=kind[0],
            port_type=kind[1],
            causality=self._choice(Causality, element, "causality", Causality.LOCAL),
            variability=self._choice(
                Variability, element, "variability", Variability.CONTINUOUS if is_real else Variability.DISCRETE
            ),
            initial=element.get("initial", ""),
            unit=self._unit(attribute("unit") or "", element) if is_real else None,
            relative=is_real and attribute("relativeQuantity") in ("true", "1"),
            minimum=number("min") if is_number else None,
            maximum=number("max") if is_number else None,
            nominal=number("nominal") if is_real else None,
            start=self._start(inner, kind[1], name),
            description=element.get("description", ""),
            dimensions=dimensions,
            dimension_references=references,
            clocks=tuple(int(c) for c in (element.get("clocks") or "").split() if c.isdigit()),
            derivative_of=_reference(inner.get("derivative")),
            line=element.sourceline,
        )

    def _choice(self, kind: Callable[[str], Any], element: Any, name: str, default: Any) -> Any:
        text = element.get(name)
        if text is None:
            return default
        try:
            return kind(text)
        except ValueError:
            self._finding("fmu-value-invalid", f"{name}={text[:80]!r} is unknown; {default} is taken", element)
            return default

    def _start(self, inner: Any, kind: PortType, name: str) -> tuple[float | str | bytes, ...]:
        if kind in (PortType.STRING, PortType.BINARY):
            texts = [s.get("value", "") for s in inner.iterfind("Start")]
            if not texts and inner.get("start") is not None:
                texts = [inner.get("start")]
            if kind is PortType.STRING:
                return tuple(texts)
            try:
                return tuple(bytes.fromhex(t) for t in texts)
            except ValueError:
                self._finding("fmu-value-invalid", f"the start value of {name[:120]!r} is not hexadecimal", inner)
                return ()
        text = inner.get("start")
        if text is None:
            return ()
        values = [_float(part) for part in (text.split() if self.major == "3" else [text])]
        if any(v is None for v in values):
            self._finding("fmu-value-invalid", f"the start value {text[:80]!r} of {name[:120]!r} is no number", inner)
            return ()
        return tuple(v for v in values if v is not None)

    def _dimensions(self, element: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes, and the value reference of the structural parameter of each (-1 for a fixed size)."""
        sizes, references = [], []
        for dimension in element.iterfind("Dimension"):
            reference = _reference(dimension.get("valueReference"))
            size = _reference(dimension.get("start"))
            sizes.append(1 if size is None else size)
            references.append(-1 if reference is None else reference)
        return tuple(sizes), tuple(references)

    def _resolve_dimensions(self, variables: list[Variable]) -> list[Variable]:
        """Fill in sizes that are the start values of structural parameters; check starts against sizes."""
        structural = {
            v.reference: v.start[0]
            for v in variables
            if v.causality is Causality.STRUCTURAL_PARAMETER or v.variability is Variability.CONSTANT
            if v.start
        }
        found = []
        for variable in variables:
            if any(r >= 0 for r in variable.dimension_references):
                sizes = tuple(
                    size if reference < 0 else int(structural.get(reference, 1))
                    for size, reference in zip(variable.dimensions, variable.dimension_references, strict=True)
                )
                variable = replace(variable, dimensions=sizes)
            if variable.start and len(variable.start) != variable.size:
                # One start value may serve a whole array (FMI 3.0, section 2.4.7).
                start = variable.start * variable.size if len(variable.start) == 1 else ()
                variable = replace(variable, start=start)
            self._check_start(variable)
            found.append(variable)
        return found

    def _check_start(self, variable: Variable) -> None:
        for value in variable.start:
            if not isinstance(value, float):
                continue
            below = variable.minimum is not None and value < variable.minimum
            if below or (variable.maximum is not None and value > variable.maximum) or math.isnan(value):
                self.log.warning(
                    "fmu-start-out-of-range",
                    f"the start value {value:g} of {variable.name[:120]!r} is outside "
                    f"[{variable.minimum}, {variable.maximum}]",
                    SourceLocation(layer=f"{self.fmu}/modelDescription.xml", line=variable.line),
                )
                return

    # ---- model structure

    def _structure(self, variables: tuple[Variable, ...]) -> tuple[dict[str, tuple[str, ...] | None], tuple[str, ...]]:
        if self.major == "3":
            outputs, states = "ModelStructure/Output", "ModelStructure/ContinuousStateDerivative"
            by_key = {v.reference: v for v in reversed(variables)}
            key = "valueReference"
        else:
            outputs, states = "ModelStructure/Outputs/Unknown", "ModelStructure/Derivatives/Unknown"
            by_key = dict(enumerate(variables, start=1))
            key = "index"
        if self.root.find("ModelStructure") is None:
            self._finding(
                "fmu-structure-missing", "there is no ModelStructure: outputs depend on all inputs", self.root
            )
        dependencies: dict[str, tuple[str, ...] | None] = {}
        for element in self.root.iterfind(outputs):
            variable = self._known(element, element.get(key), by_key)
            if variable is not None:
                dependencies[variable.name] = self._depends(element, by_key)
        derivatives = [self._known(e, e.get(key), by_key) for e in self.root.iterfind(states)]
        return dependencies, tuple(d.name for d in derivatives if d is not None)

    def _depends(self, element: Any, by_key: dict[int, Variable]) -> tuple[str, ...] | None:
        text = element.get("dependencies")
        if text is None:
            return None
        found = [self._known(element, part, by_key) for part in text.split()]
        # A dependency that does not exist says nothing about the others: take all.
        return None if any(v is None for v in found) else tuple(v.name for v in found if v is not None)

    def _known(self, element: Any, text: str | None, by_key: dict[int, Variable]) -> Variable | None:
        reference = _reference(text)
        variable = None if reference is None else by_key.get(reference)
        if variable is None:
            self._finding("fmu-structure-invalid", f"ModelStructure refers to {text!r}, which does not exist", element)
        return variable


def _float(text: str) -> float | None:
    text = text.strip()
    if text in ("true", "false"):
        return float(text == "true")
    try:
        return float(text)
    except ValueError:
        return None


def _reference(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text) < 2**32 else None
