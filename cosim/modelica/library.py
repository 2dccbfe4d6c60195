"""The text that the front end gets: the user's source, with its package and the classes that it uses.

Every file keeps its lines, and a program knows for each of its lines from which file it is.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cosim.diagnostic import SourceLocation

_WITHIN = re.compile(r"^\s*within\b\s*([\w.]*)\s*;", re.MULTILINE)
_KINDS = "package|model|block|class|function|record|connector|type|operator"
_NAME = r"[A-Za-z_]\w*|'[^']+'"
# The opening or the end of a class; `end if` and the like are no names of classes.
_CLASS = re.compile(
    rf"(?P<partial>\bpartial\s+)?\b(?P<kind>{_KINDS})\s+(?P<name>{_NAME})(?P<short>\s*=)?"
    rf"|\bend\s+(?P<end>(?!(?:if|for|when|while)\b)(?:{_NAME}))\s*;"
)
# Too large to be copied into every program: the front end reads these from their folders.
_STANDARD = ("Modelica", "ModelicaServices", "Complex")


@dataclass(frozen=True, slots=True)
class ClassText:
    """A class in a source.

    Attributes:
        name: full name.
        kind: model, block, package …
        is_partial: whether it cannot be used alone.
        start: offset of its first keyword.
        end: offset behind its last semicolon.
        parents: kinds of the classes around it.
    """

    name: str
    kind: str
    is_partial: bool
    start: int
    end: int
    parents: tuple[str, ...]


def without_comments(text: str) -> str:
    """The source with comments and texts blanked, character by character, so that places stay."""
    pattern = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def within(text: str) -> str:
    """The package that a file says it is in, "" for none."""
    found = _WITHIN.search(without_comments(text))
    return found.group(1) if found else ""


def class_texts(plain: str) -> list[ClassText]:
    """Every class with a body, outer before inner.

    Args:
        plain: source without comments.
    """
    found = _WITHIN.search(plain)
    path = found.group(1).split(".") if found and found.group(1) else []
    opened: list[tuple[int, re.Match[str]]] = []
    classes: list[ClassText | None] = []
    for match in _CLASS.finditer(plain):
        if match["end"]:
            if opened and path[-1] == match["end"]:
                place, opening = opened.pop()
                kinds = tuple(m["kind"] for _, m in opened)
                classes[place] = ClassText(
                    ".".join(path), opening["kind"], bool(opening["partial"]), opening.start(), match.end(), kinds
                )
                path.pop()
        elif not match["short"]:
            opened.append((len(classes), match))
            classes.append(None)
            path.append(match["name"])
    return [c for c in classes if c is not None]


def model_names(text: str) -> list[str]:
    """Models that a source declares, not within another model, by full name and in order; no partial ones."""
    return [
        c.name
        for c in class_texts(without_comments(text))
        if c.kind in ("model", "block", "class") and not c.is_partial and all(k == "package" for k in c.parents)
    ]


@dataclass(slots=True)
class Program:
    """What is given to the front end.

    Attributes:
        text: Modelica source.
        files: that it was read from, beside the user's own.
        roots: folders of packages that the front end reads itself.
        packages: names of the packages that are complete in the text.
    """

    text: str = ""
    files: list[Path] = field(default_factory=list)
    roots: list[Path] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    _lines: int = 0
    _starts: list[int] = field(default_factory=list)
    _origins: list[tuple[str, int]] = field(default_factory=list)

    def add(self, text: str, file: str, first_line: int = 1) -> None:
        """Append lines of a file."""
        text = _WITHIN.sub(lambda m: " " * len(m.group()), text, count=1) if first_line == 1 else text
        text = text if text.endswith("\n") else text + "\n"
        self._starts.append(self._lines + 1)
        self._origins.append((file, first_line))
        self._lines += text.count("\n")
        self.text += text

    def place(self, line: int, column: int | None = None) -> SourceLocation:
        """Where a line of the program stands in its file."""
        k = bisect.bisect_right(self._starts, line) - 1
        if k < 0:
            return SourceLocation("", line=line, column=column)
        file, first = self._origins[k]
        return SourceLocation(file, line=line - self._starts[k] + first, column=column)


def compose(text: str, file: str, path: Path | None) -> Program:
    """The program of a source; with its whole package where it stands in one's folder.

    Args:
        text: the source.
        file: what the user calls it.
        path: where it is, None for a text.
    """
    program = Program()
    package = within(text)
    names = package.split(".") if package else []
    folders = list(path.resolve().parents[: len(names)]) if path is not None else []
    is_member = bool(names) and [f.name for f in reversed(folders)] == names
    if is_member and path is not None and (folders[-1] / "package.mo").is_file():
        _add_package(program, folders[-1], (path.resolve(), text, file))
        program.packages.append(names[0])
    else:
        program.add(text, file)
    return program


def _add_package(program: Program, folder: Path, own: tuple[Path, str, str] | None = None) -> None:
    """A folder with a package.mo: its classes come right behind the package's name and description."""
    source = folder / "package.mo"
    text = source.read_text(encoding="utf-8")
    program.files.append(source)
    header = re.compile(rf'\bpackage\s+{re.escape(folder.name)}\b\s*("(?:\\.|[^"\\])*")?')
    plain_header = re.search(rf"\bpackage\s+{re.escape(folder.name)}\b", without_comments(text))
    opening = header.search(text, plain_header.start()) if plain_header else None
    if opening is None:
        program.add(text, str(source))
        return
    program.add(text[: opening.end()], str(source))
    for child in sorted(folder.iterdir()):
        if child.is_dir() and (child / "package.mo").is_file():
            _add_package(program, child, own)
        elif child.suffix == ".mo" and child.name != "package.mo":
            if own is not None and child.resolve() == own[0]:
                program.add(own[1], own[2])
            else:
                program.add(child.read_text(encoding="utf-8"), str(child))
                program.files.append(child)
    program.add(text[opening.end() :], str(source), text.count("\n", 0, opening.end()) + 1)


def serve(program: Program, names: Sequence[str], folders: Sequence[Path]) -> bool:
    """Add what serves one of the unknown names; False where nothing does.

    Args:
        program: gets the text.
        names: with dots.
        folders: with packages as folders, and `Other.mo` for single classes.
    """
    for name in names:
        first, last = name.partition(".")[0], name.rpartition(".")[2]
        for package in _packages(first, folders):
            if first in _STANDARD and package not in program.roots:
                program.roots.append(package)
                return True
            if first not in (*_STANDARD, *program.packages):
                program.packages.append(first)
                _add_package(program, package)
                return True
        for folder in folders:
            for found in sorted(folder.rglob(f"{last}.mo")):
                if found not in program.files and not within(found.read_text(encoding="utf-8")):
                    program.files.append(found)
                    program.add(found.read_text(encoding="utf-8"), str(found))
                    return True
    return False


def _packages(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Folders of a package, also such as "Modelica 4.0.0"."""
    for folder in folders:
        for found in sorted(folder.glob(f"{name}*")):
            if found.name.partition(" ")[0] == name and (found / "package.mo").is_file():
                yield found
