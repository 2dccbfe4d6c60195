"""On which line of a TOML file a key stands: `tomllib` reads values, not places."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)


@dataclass(frozen=True, slots=True)
class LineIndex:
    """Lines of keys and table headers by their path; rows of `[[table]]` are numbered."""

    places: Mapping[tuple[Any, ...], int]

    @classmethod
    def of(cls, text: str) -> LineIndex:
        """Scan a file that `tomllib` reads."""
        places: dict[tuple[Any, ...], int] = {}
        counts: dict[tuple[Any, ...], int] = {}
        head: tuple[Any, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            header = _HEADER.match(line)
            if header and (keys := _keys(header[2])):
                head = keys
                if header[1] == "[[":
                    counts[keys] = counts.get(keys, -1) + 1
                    head = (*keys, counts[keys])
                places.setdefault(keys, number)
                places.setdefault(head, number)
            elif (key := _KEY.match(line)) and (keys := _keys(key[1])):
                places.setdefault((*head, *keys), number)
        return cls(places)

    def line(self, path: tuple[Any, ...]) -> int:
        """The line of a key, else of the table that it is missing in; 1 if that is not there either."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return 1


def _keys(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key, unquoted; () where the text is no key after all."""
    try:
        table: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    found: list[str] = []
    while isinstance(table, dict):
        name = next(iter(table))
        found.append(name)
        table = table[name]
    return tuple(found)
