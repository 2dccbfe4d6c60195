"""Experiments that come with an FMU: FMI-LS-REF manifests and Modelica Association Experiments (`.exp`).

Both are drafts (FMI-LS-REF 1.0.0-alpha.1, MA-HS-Experiments as of 2026); everything that knows them is here.
Read are: `Related` files of the roles `experiment` (all but uncertainty analyses) and `result` (the
default experiment), experiments inside the manifest as older drafts had them, transient simulations
with start, stop and step, SSV parameters, CSV stimuli and CSV references. Whatever else an
experiment asks for is refused by name.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cosim.diagnostic import SourceLocation, UsageError

MANIFEST = "extra/org.fmi-standard.fmi-ls-ref/fmi-ls-manifest.xml"
OTHER_ANALYSES = (
    "SteadyState",
    "ParameterOptimization",
    "SetPointOptimization",
    "SensitivityAnalysis",
    "TrajectoryOptimization",
    "Linearization",
)
SSV_TYPE, CSV_TYPE = "application/x-ssp-parameter-set", "text/csv"


@dataclass(frozen=True, slots=True)
class FmuExperiment:
    """One experiment.

    Attributes:
        name: of the experiment, or of the result file.
        reference: the reference trace, a CSV file.
        stimuli: the inputs, a CSV file; None if there are none.
        start_values: of parameters.
        start: start time [s]; None where the reference says it.
        stop: stop time [s]; likewise.
        step: communication step size [s]; likewise.
        tolerance: relative, of the FMU's solver.
    """

    name: str
    reference: Path
    stimuli: Path | None = None
    start_values: tuple[tuple[str, float | str], ...] = ()
    start: float | None = None
    stop: float | None = None
    step: float | None = None
    tolerance: float | None = None


def embedded_experiments(folder: Path) -> tuple[FmuExperiment, ...]:
    """The experiments that an unpacked FMU carries, in the order of its manifest; () without a manifest.

    Args:
        folder: where the FMU is unpacked.

    Raises:
        UsageError: the manifest or a file that it names is wrong, or asks for what cannot run.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return ()
    return tuple(_Reader(manifest, folder).manifest())


def read_experiments(file: Path) -> tuple[FmuExperiment, ...]:
    """The experiments of an `.exp` file; the files that it names are in its folder or below.

    Raises:
        UsageError: it is wrong, or asks for what cannot run.
    """
    return tuple(_Reader(file, file.parent).experiments())


class _Reader:
    """Reads one XML file; what it names must be inside the root folder."""

    def __init__(self, file: Path, root: Path) -> None:
        self.file = file
        self.root = root.resolve()
        self.document = self._parse(file)

    def manifest(self) -> Iterator[FmuExperiment]:
        for element in self.document.iterfind("{*}Experiment"):
            yield self._experiment(element)
        for related in self.document.iterfind("{*}Related"):
            role, _, part = related.get("role", "").partition("/")
            if role == "experiment" and part != "uncertainty-analysis":
                yield from _Reader(self._source(related, ""), self.root).experiments()
            elif role == "result" and related.get("type", CSV_TYPE) == CSV_TYPE:
                reference = self._source(related, CSV_TYPE)
                # The Reference-FMUs name the inputs of `X_out.csv` like this.
                stimuli = reference.with_name(reference.name.removesuffix("_out.csv") + "_in.csv")
                yield FmuExperiment(reference.stem, reference, stimuli if stimuli.is_file() else None)

    def experiments(self) -> Iterator[FmuExperiment]:
        found = list(self.document.iterfind("{*}Experiment"))
        if not found:
            raise self._wrong(self.document, "there is no Experiment in it")
        for element in found:
            yield self._experiment(element)

    def _experiment(self, element: Any) -> FmuExperiment:
        name = element.get("name", "")
        for analysis in OTHER_ANALYSES:
            if element.find(f"{{*}}{analysis}") is not None:
                raise self._wrong(element, f"experiment {name!r} is a {analysis}: only transient simulations run here")
        references, stimuli = element.findall("{*}References"), element.findall("{*}Stimuli")
        if len(references) != 1 or len(stimuli) > 1:
            message = f"experiment {name!r} has {len(references)} References and {len(stimuli)} Stimuli"
            raise self._wrong(element, message, "one reference and at most one stimulus can run here")
        for row in (*references, *stimuli, *element.iterfind("{*}Parameters")):
            if row.get("mapping"):
                raise self._wrong(row, f"experiment {name!r} has a mapping of names, which is not supported")
        transient = element.find("{*}TransientSimulation")
        times = element if transient is None else transient
        values = [pair for row in element.iterfind("{*}Parameters") for pair in self._parameters(row)]
        return FmuExperiment(
            name,
            self._source(references[0], CSV_TYPE),
            self._source(stimuli[0], CSV_TYPE) if stimuli else None,
            tuple(values),
            self._number(times, "startTime"),
            self._number(times, "stopTime"),
            self._number(times, "stepSize"),
            self._number(element, "tolerance"),
        )

    def _parameters(self, element: Any) -> Iterator[tuple[str, float | str]]:
        """Values of an SSV file: `Parameter name` with one typed child that has a value."""
        inner = _Reader(self._source(element, SSV_TYPE), self.root)
        for parameter in inner.document.iterfind("{*}Parameters/{*}Parameter"):
            typed = next((child for child in parameter if child.get("value") is not None), None)
            if typed is None or not parameter.get("name"):
                raise inner._wrong(parameter, f"parameter {parameter.get('name')!r} has no value")
            text, kind = typed.get("value"), typed.tag.rpartition("}")[2]
            if kind == "Boolean":
                yield parameter.get("name"), float(text in ("true", "1"))
            elif kind in ("String", "Enumeration", "Binary"):
                yield parameter.get("name"), text
            else:
                yield parameter.get("name"), inner._float(typed, "value", text)

    # ---- values and files

    def _number(self, element: Any, name: str) -> float | None:
        text = element.get(name)
        return None if text is None else self._float(element, name, text)

    def _float(self, element: Any, name: str, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self._wrong(element, f"{name} is {text!r}, not a finite number")
        return number

    def _source(self, element: Any, kind: str) -> Path:
        """The file of a `source`, inside the root, with the declared checksum."""
        source, given = element.get("source", ""), element.get("type", kind)
        if kind and given != kind:
            raise self._wrong(element, f"{source} is {given}, which cannot be read", f"use {kind}")
        parts = urlsplit(source)
        if not source or parts.scheme or parts.netloc:
            raise self._wrong(element, f"the source {source!r} is no relative path", "put the file beside it")
        path = (self.file.parent / unquote(parts.path)).resolve()
        if not path.is_relative_to(self.root):
            raise self._wrong(element, f"the source {source!r} leaves the folder that it may be in")
        if not path.is_file():
            raise self._wrong(element, f"the source {source!r} is not there")
        self._verify(element, path)
        return path

    def _verify(self, element: Any, path: Path) -> None:
        declared = element.get("checksum")
        if declared is None:
            return
        kind = element.get("checksumType", "SHA3-256")
        known = {f"SHA3-{n}": f"sha3_{n}" for n in (224, 256, 384, 512)}
        known |= {f"SHA-{n}": f"sha{n}" for n in (224, 256, 384, 512)}
        if kind not in known:
            raise self._wrong(element, f"the checksum type {kind!r} is not known", f"one of {', '.join(known)}")
        if hashlib.new(known[kind], path.read_bytes()).hexdigest() != declared.strip().lower():
            raise self._wrong(element, f"{path.name} does not have its declared {kind} checksum")

    def _parse(self, file: Path) -> Any:
        from lxml import etree

        content = file.read_bytes()
        if b"<!DOCTYPE" in content:
            raise UsageError.of(
                "experiment-invalid",
                f"{file.name} has a document type declaration, which may hide entities",
                SourceLocation(str(file)),
            )
        parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, remove_comments=True)
        try:
            return etree.fromstring(content, parser)
        except etree.XMLSyntaxError as error:
            where = SourceLocation(str(file), line=error.lineno or None)
            raise UsageError.of("experiment-invalid", f"{file.name} is not well-formed: {error.msg}", where) from None

    def _wrong(self, element: Any, message: str, hint: str = "") -> UsageError:
        where = SourceLocation(str(self.file), line=element.sourceline)
        return UsageError.of("experiment-invalid", message, where, hint)
