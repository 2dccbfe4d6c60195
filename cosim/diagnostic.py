"""Problems as values: what is wrong, where it was authored, and what to write instead.

A reader never stops at the first problem. It files `Diagnostic` values in a
`DiagnosticLog` and goes on; the caller decides the policy: `cosim check` prints all
of them, `cosim run` raises on the first stage that leaves errors, a notebook shows a
table. Exceptions of this package carry the diagnostics that caused them.

The codes are stable, kebab-case and documented in `cosim/codes/*.toml`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self


class Severity(enum.IntEnum):
    """How bad a finding is. An error means that the stage cannot run as authored."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    @property
    def label(self) -> str:
        """The lower-case word that the reports use."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """The strongest opinion that authored something, or a place in a source file.

    Attributes:
        layer: file or layer identifier, as the user knows it ("" if unknown).
        prim: prim path ("" if none).
        property: property name without the prim ("" if the prim itself is meant).
        line: 1-based line in `layer` where known.
        column: 1-based column where known.
    """

    layer: str = ""
    prim: str = ""
    property: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        text = self.layer
        if self.line is not None:
            text += f":{self.line}" + (f":{self.column}" if self.column is not None else "")
        if self.prim:
            name = f"{self.prim}.{self.property}" if self.property else self.prim
            text += f" <{name}>"
        return text.strip()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: severity, stable code, one sentence, location, and the cure."""

    severity: Severity
    code: str
    message: str
    where: SourceLocation | None = None
    hint: str = ""
    related: tuple[SourceLocation, ...] = ()

    def __str__(self) -> str:
        text = f"{self.severity.label}[{self.code}]: {self.message}"
        if self.where and str(self.where):
            text += f"\n  at {self.where}"
        for place in self.related:
            text += f"\n  see {place}"
        if self.hint:
            text += f"\n  help: {self.hint}"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that `cosim check --json` prints."""
        return {
            "severity": self.severity.label,
            "code": self.code,
            "message": self.message,
            "where": _location_dict(self.where),
            "hint": self.hint,
            "related": [_location_dict(place) for place in self.related],
        }


def _location_dict(place: SourceLocation | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "layer": place.layer,
        "prim": place.prim,
        "property": place.property,
        "line": place.line,
        "column": place.column,
    }


@dataclass(slots=True)
class DiagnosticLog:
    """Collects diagnostics in the order in which they were found."""

    items: list[Diagnostic] = field(default_factory=list)

    def add(
        self,
        severity: Severity,
        code: str,
        message: str,
        where: SourceLocation | None = None,
        hint: str = "",
        related: Iterable[SourceLocation] = (),
    ) -> Diagnostic:
        """File one finding and return it."""
        found = Diagnostic(severity, code, message, where, hint, tuple(related))
        self.items.append(found)
        return found

    def error(
        self,
        code: str,
        message: str,
        where: SourceLocation | None = None,
        hint: str = "",
        related: Iterable[SourceLocation] = (),
    ) -> Diagnostic:
        """File an error."""
        return self.add(Severity.ERROR, code, message, where, hint, related)

    def warning(
        self,
        code: str,
        message: str,
        where: SourceLocation | None = None,
        hint: str = "",
        related: Iterable[SourceLocation] = (),
    ) -> Diagnostic:
        """File a warning."""
        return self.add(Severity.WARNING, code, message, where, hint, related)

    def info(
        self,
        code: str,
        message: str,
        where: SourceLocation | None = None,
        hint: str = "",
        related: Iterable[SourceLocation] = (),
    ) -> Diagnostic:
        """File a remark: something that was decided for the user and is worth knowing."""
        return self.add(Severity.INFO, code, message, where, hint, related)

    def extend(self, found: Iterable[Diagnostic]) -> None:
        """File the findings of another log or error."""
        self.items.extend(found)

    def at_least(self, severity: Severity) -> tuple[Diagnostic, ...]:
        """The findings of this severity or worse."""
        return tuple(d for d in self.items if d.severity >= severity)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that stop a run."""
        return self.at_least(Severity.ERROR)

    def raise_errors(self, kind: type[CosimError] | None = None) -> None:
        """Raise `kind` (default `StageError`) with all errors, if there are any."""
        errors = self.errors
        if errors:
            raise (kind or StageError)(*errors)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class CosimError(Exception):
    """Base of every error that this package raises on purpose.

    Attributes:
        diagnostics: what went wrong, at least one.
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("an error needs at least one diagnostic")
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics
        super().__init__("\n".join(str(d) for d in diagnostics))

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        where: SourceLocation | None = None,
        hint: str = "",
        related: Iterable[SourceLocation] = (),
    ) -> Self:
        """An error from one finding."""
        return cls(Diagnostic(Severity.ERROR, code, message, where, hint, tuple(related)))


class UsageError(CosimError):
    """The caller asked for something that makes no sense (exit code 2)."""


class StageError(CosimError):
    """The stage cannot be read or realised (exit code 1)."""


class WiringError(CosimError):
    """Ports, units or connections do not fit (exit code 1)."""


class ModelicaError(CosimError):
    """A Modelica program does not compile (exit code 1)."""


class FmuError(CosimError):
    """An FMU cannot be loaded or broke the contract of FMI (exit code 3 in a run)."""


class StepError(CosimError):
    """The simulation stopped at a communication point (exit code 3)."""


class TraceMismatch(CosimError):
    """A trace differs from its reference (exit code 1)."""
