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
from cosim.modelica.defaults import defaults_to_starts
from cosim.modelica.library import Program, compose, model_names, serve, within, without_comments

_PLACE = re.compile(r"╭─\[[^\]]*?:(\d+):(\d+)\]")
_REMARK = "inputs that have a default and an equation take the default as their start value"
_EXCESS = re.compile(r"unbalanced model.*\(balance = [1-9]")
_UNKNOWN = re.compile(r"unresolved (?:type|component|class|function)?\s*(?:reference|name)?:?\s*'([\w.]+)'")


@dataclass(frozen=True, slots=True)
class Flat:
    """What the front end makes of a model.

    Attributes:
        document: the DAE as JSON.
        declarations: the flat model as JSON, for what the DAE leaves out: display units, enumeration literals.
        program: the text that was compiled.
        remarks: what was taken otherwise than strictly written.
    """

    document: Mapping[str, Any]
    declarations: Mapping[str, Any]
    program: Program
    remarks: tuple[str, ...] = ()


def choose_class(text: str, wanted: str, file: str) -> str:
    """The class to compile: as wanted, by its full or last name; else the last of the file.

    Raises:
        ModelicaError: the source declares no such class.
    """
    names = model_names(text)
    if not wanted:
        if names:
            return names[-1]
        # A syntax error may hide the class: let the parser say where.
        _raise_syntax(compose(text, file, None))
        raise ModelicaError.of("modelica-class-unknown", f"{file} declares no model", SourceLocation(file))
    for name in names:
        if wanted == name or wanted.rpartition(".")[2] == name.rpartition(".")[2]:
            return name
    if "." in wanted:
        return wanted
    _raise_syntax(compose(text, file, None))
    raise ModelicaError.of(
        "modelica-class-unknown",
        f"{file} declares no model {wanted}",
        SourceLocation(file),
        hint=f"it has: {', '.join(names) or 'none'}",
    )


def flatten(text: str, name: str, file: str, path: Path | None, library_path: Sequence[Path]) -> Flat:
    """Parse, instantiate, flatten and type-check a model.

    Args:
        text: Modelica source.
        name: the class.
        file: what the user calls the source.
        path: where it is; a file within a package's folder is compiled with the package.
        library_path: folders with packages, or with `Other.mo` for a class that the source uses; those of
            `$MODELICAPATH` come behind them.

    Raises:
        ModelicaError: what is wrong, with line and column.
    """
    from rumoca import RumocaError

    folders = [*library_path, *modelica_path()]
    program = compose(text, file, path)
    if not program.packages and (package := within(text)):
        # A member of a package that is not here stands alone.
        name = name.removeprefix(f"{package}.")
    has_strict_defaults = True
    while True:
        try:
            source = program.text if has_strict_defaults else defaults_to_starts(program.text)
            document, flat = _load(source, name, program.roots)
            remarks = () if has_strict_defaults else (f"{name}: {_REMARK}",)
            return Flat(document, flat, program, remarks)
        except RumocaError as error:
            message = str(error)
            if serve(program, _UNKNOWN.findall(message), folders):
                continue
            if has_strict_defaults and _EXCESS.search(message):
                has_strict_defaults = False
                continue
            _raise_syntax(program)
            raise _error(message, text, name, file, program) from None


def _load(source: str, name: str, roots: Sequence[Path]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The DAE and the flat model."""
    import rumoca

    # The front end would read all of $MODELICAPATH, and find the classes twice that are in the source.
    path = os.environ.pop("MODELICAPATH", None)
    try:
        session = rumoca.Session(roots=[str(root) for root in roots]) if roots else rumoca.Session()
        loaded = session.loads(source, model=name)
        return json.loads(loaded.to_json("dae")), json.loads(loaded.to_json("flat"))
    except BaseException as error:
        # A panic of the front end comes as a BaseException whose class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise ModelicaError.of(
            "modelica-frontend-failed",
            f"{name}: the front end gives up: {error}",
            hint="simplify the array expressions of the model, one after the other, to find which one it is",
        ) from None
    finally:
        if path is not None:
            os.environ["MODELICAPATH"] = path


def modelica_path() -> list[Path]:
    """The folders of `$MODELICAPATH`."""
    return [Path(p) for p in os.environ.get("MODELICAPATH", "").split(os.pathsep) if p and Path(p).is_dir()]


def _raise_syntax(program: Program) -> None:
    """Raise the first syntax error of a program, if it has one."""
    import rumoca

    for diagnostic in rumoca.validate_source(program.text):
        if str(diagnostic.level).lower() != "error":
            continue
        place = _PLACE.search(diagnostic.message)
        at = (int(place.group(1)), int(place.group(2))) if place else (diagnostic.line, diagnostic.column)
        line, column = int(at[0] or 0), at[1]
        summary = re.search(r"×\s*(.+)", diagnostic.message)
        expected = re.search(r"help:\s*(expected one of:.*?)(?:\n\s*\n|\Z)", diagnostic.message, re.DOTALL)
        hint = " ".join(expected.group(1).split()) if expected else ""
        what = summary.group(1).strip() if summary else diagnostic.message.strip().splitlines()[0]
        lines = program.text.splitlines()
        shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        where = program.place(max(line, 1), column)
        raise ModelicaError.of("modelica-syntax", f"{what}: {shown}" if shown else what, where, hint)


# What the front end says → what to do instead.
_HINTS = (
    ("is not a discrete coordinate", "assign the whole array in the when-clause, as x = {…}"),
    (
        "unbalanced model",
        "every variable needs one equation; an input of a sub-model needs a connection or an equation",
    ),
    ("statement without a checked", "a while loop needs a bound that is known when the model is compiled: use for"),
    ("dynamic quotient", "the divisor must be a number or a parameter; else write a - floor(a/b)*b"),
    ("unsupported runtime operator", "clocked operators are not supported: use when sample(start, period)"),
    ("spatialDistribution", "spatialDistribution() is not supported"),
    ("state-machine", "write the state as an Integer or enumeration that changes in a when-clause"),
    ("when-equation LHS", "solve the equation for its variable by hand"),
)


def _error(message: str, text: str, name: str, file: str, program: Program) -> ModelicaError:
    """A semantic error, with its place: as the front end says, else where the name that it quotes stands."""
    lines = [line.strip(" -") for line in message.splitlines() if line.strip()]
    kept = [re.sub(r"^\S+ \[\w+\]:\s*", "", line) for line in lines if not line.startswith("Related failures")]
    # A missing type explains the missing components that follow from it.
    kept.sort(key=lambda line: "unresolved type" not in line)
    summary = kept[0].removeprefix(f"{name} could not be compiled: ") if kept else message
    summary = re.sub(r"^\w+ failed: .*? failed in \w+: ", "", summary)
    where = SourceLocation(file)
    if place := re.search(r"\s*\[[^\[\]]*?:(\d+):(\d+)\]", summary):
        where = program.place(int(place.group(1)), int(place.group(2)))
        summary = summary[: place.start()] + summary[place.end() :]
    else:
        where = _quoted(summary, text, file) or _quoted(message, text, file) or where
    if re.search(r"'Modelica\.", message):
        hint = "it needs the Modelica Standard Library: set MODELICAPATH to the folder that holds it"
        return ModelicaError.of("modelica-invalid", f"{name}: {summary.strip()}", where, hint)
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
