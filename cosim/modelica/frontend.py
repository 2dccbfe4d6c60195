"""rumoca as the front end: Modelica text to a checked, flat DAE, and its errors with their places."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.diagnostic import ModelicaError, SourceLocation

_KINDS = "package|model|block|class|function|record|connector|type|operator"
_NAME = r"[A-Za-z_]\w*|'[^']+'"
# The opening or the end of a class; `end if` and the like are no names of classes.
_CLASS = re.compile(
    rf"(?P<partial>\bpartial\s+)?\b(?P<kind>{_KINDS})\s+(?P<name>{_NAME})(?P<short>\s*=)?"
    rf"|\bend\s+(?P<end>(?!(?:if|for|when|while)\b)(?:{_NAME}))\s*;"
)
_PLACE = re.compile(r"╭─\[[^\]]*?:(\d+):(\d+)\]")
_UNKNOWN = re.compile(r"unresolved (?:type|component|class|function)?\s*(?:reference|name)?:?\s*'([\w.]+)'")


@dataclass(frozen=True, slots=True)
class Flat:
    """What the front end makes of a model.

    Attributes:
        document: the DAE as JSON.
        declarations: the flat model as JSON, for what the DAE leaves out: display units, enumeration literals.
        dependencies: further files whose classes it uses.
    """

    document: Mapping[str, Any]
    declarations: Mapping[str, Any]
    dependencies: tuple[Path, ...]


def without_comments(text: str) -> str:
    """The source with comments and texts blanked, character by character, so that places stay."""
    pattern = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def class_names(text: str) -> list[str]:
    """Models that a source declares, not within another model, by full name and in order; no partial ones."""
    plain = without_comments(text)
    within = re.search(r"^\s*within\s+([\w.]+)\s*;", plain, re.MULTILINE)
    path = within.group(1).split(".") if within else []
    kinds: list[str] = []
    found: list[str] = []
    for match in _CLASS.finditer(plain):
        if match["end"]:
            if kinds and path[-1] == match["end"]:
                kinds.pop()
                path.pop()
            continue
        if match["short"]:
            continue
        is_model = match["kind"] in ("model", "block", "class") and not match["partial"]
        if is_model and all(kind == "package" for kind in kinds):
            found.append(".".join([*path, match["name"]]))
        kinds.append(match["kind"])
        path.append(match["name"])
    return found


def choose_class(text: str, wanted: str, file: str) -> str:
    """The class to compile: as wanted, by its full or last name; else the last of the file.

    Raises:
        ModelicaError: the source declares no such class.
    """
    names = class_names(text)
    if not wanted:
        if names:
            return names[-1]
        # A syntax error may hide the class: let the parser say where.
        _raise_syntax(text, file)
        raise ModelicaError.of("modelica-class-unknown", f"{file} declares no model", SourceLocation(file))
    for name in names:
        if wanted == name or wanted.rpartition(".")[2] == name.rpartition(".")[2]:
            return name
    if "." in wanted:
        return wanted
    _raise_syntax(text, file)
    raise ModelicaError.of(
        "modelica-class-unknown",
        f"{file} declares no model {wanted}",
        SourceLocation(file),
        hint=f"it has: {', '.join(names) or 'none'}",
    )


def flatten(text: str, name: str, file: str, library_path: Sequence[Path]) -> Flat:
    """Parse, instantiate, flatten and type-check a model.

    Args:
        text: Modelica source.
        name: the class.
        file: what the user calls the source.
        library_path: folders where `Other.mo` serves a class that the source uses.

    Raises:
        ModelicaError: what is wrong, with line and column.
    """
    import rumoca

    roots = [p for p in os.environ.get("MODELICAPATH", "").split(os.pathsep) if p and Path(p).is_dir()]
    used: list[Path] = []
    source = text
    while True:
        try:
            session = rumoca.Session(roots=roots) if roots else rumoca.Session()
            loaded = session.loads(source, model=name)
            document = json.loads(loaded.to_json("dae"))
            return Flat(document, json.loads(loaded.to_json("flat")), tuple(used))
        except rumoca.RumocaError as error:
            found = _served(str(error), library_path, used)
            if found is None:
                _raise_syntax(text, file)
                raise _error(str(error), text, name, file) from None
            used.append(found)
            # Appended, so that the places of the user's own source stay.
            source = f"{source}\n{_without_within(found.read_text(encoding='utf-8'))}"


def _without_within(text: str) -> str:
    return re.sub(r"^\s*within\s+[\w.]*\s*;", "", text, count=1)


def _served(message: str, folders: Sequence[Path], used: Sequence[Path]) -> Path | None:
    """A file of the library path for a name that the front end does not know."""
    for name in _UNKNOWN.findall(message):
        for folder in folders:
            for found in sorted(folder.rglob(f"{name.rpartition('.')[2]}.mo")):
                if found not in used:
                    return found
    return None


def _raise_syntax(text: str, file: str) -> None:
    """Raise the first syntax error of a source, if it has one."""
    import rumoca

    for diagnostic in rumoca.validate_source(text):
        if str(diagnostic.level).lower() != "error":
            continue
        place = _PLACE.search(diagnostic.message)
        at = (int(place.group(1)), int(place.group(2))) if place else (diagnostic.line, diagnostic.column)
        line, column = int(at[0] or 0), at[1]
        summary = re.search(r"×\s*(.+)", diagnostic.message)
        expected = re.search(r"help:\s*(expected one of:.*?)(?:\n\s*\n|\Z)", diagnostic.message, re.DOTALL)
        hint = " ".join(expected.group(1).split()) if expected else ""
        what = summary.group(1).strip() if summary else diagnostic.message.strip().splitlines()[0]
        where = SourceLocation(file, line=line or None, column=column)
        shown = text.splitlines()[line - 1].strip() if 0 < line <= len(text.splitlines()) else ""
        raise ModelicaError.of("modelica-syntax", f"{what}: {shown}" if shown else what, where, hint)


# What the front end says → what to do instead.
_HINTS = (
    ("is not a discrete coordinate", "assign the whole array in the when-clause, as x = {…}"),
    (
        "unbalanced model",
        "every variable needs one equation; an input of a sub-model needs a connection or an equation",
    ),
    ("statement without a checked", "a while loop needs a bound that is known when the model is compiled: use for"),
    ("unsupported runtime operator", "clocked operators are not supported: use when sample(start, period)"),
    ("spatialDistribution", "spatialDistribution() is not supported"),
    ("state-machine", "write the state as an Integer or enumeration that changes in a when-clause"),
    ("when-equation LHS", "solve the equation for its variable by hand"),
)


def _error(message: str, text: str, name: str, file: str) -> ModelicaError:
    """A semantic error, with its place: as the front end says, else where the name that it quotes stands."""
    lines = [line.strip(" -") for line in message.splitlines() if line.strip()]
    kept = [re.sub(r"^\S+ \[\w+\]:\s*", "", line) for line in lines if not line.startswith("Related failures")]
    summary = kept[0].removeprefix(f"{name} could not be compiled: ") if kept else message
    summary = re.sub(r"^\w+ failed: .*? failed in \w+: ", "", summary)
    where = SourceLocation(file)
    if place := re.search(r"\s*\[[^\[\]]*?:(\d+):(\d+)\]", summary):
        where = SourceLocation(file, line=int(place.group(1)), column=int(place.group(2)))
        summary = summary[: place.start()] + summary[place.end() :]
    else:
        where = _quoted(message, text, file) or where
    hint = next((hint for phrase, hint in _HINTS if phrase in message), "")
    return ModelicaError.of("modelica-invalid", f"{name}: {summary.strip()}", where, hint)


def _quoted(message: str, text: str, file: str) -> SourceLocation | None:
    """Where a name that a message quotes stands in the source."""
    plain = without_comments(text)
    for quoted in re.findall(r"['`]([A-Za-z_][\w.]*)[\['`]", message):
        match = re.search(rf"\b{re.escape(quoted)}\b", plain) or re.search(
            rf"\b{re.escape(quoted.rpartition('.')[2])}\b", plain
        )
        if match:
            line = text.count("\n", 0, match.start()) + 1
            return SourceLocation(file, line=line, column=match.start() - text.rfind("\n", 0, match.start()))
    return None
