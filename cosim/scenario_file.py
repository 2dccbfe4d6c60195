"""Reading scenario files: everything is checked, and every finding names its line."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cosim.component import FloatArray
from cosim.diagnostic import CosimError, DiagnosticLog, SourceLocation, UsageError
from cosim.fmi import InputTable
from cosim.result import Results
from cosim.scenario import (
    FAULT_KEYS,
    Assertion,
    AssertionKind,
    Condition,
    Event,
    Fault,
    FaultKind,
    Scenario,
    Stimulus,
    Stop,
)
from cosim.session import seconds
from cosim.toml_lines import LineIndex


def read_scenario(path: Path | str) -> Scenario:
    """Read and check a scenario file; ports are checked when it meets a stage.

    Raises:
        UsageError: with every finding and its line.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of("scenario-unreadable", f"{file} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(found[1]), int(found[2])) if found else (max(1, len(text.splitlines())), None)
        message = re.sub(r" \(at .*\)$", "", str(error))
        where = SourceLocation(str(file), line=line, column=column)
        raise UsageError.of("scenario-unreadable", f"{file.name} is no TOML: {message}", where) from None
    reader = _Reader(file, LineIndex.of(text))
    scenario = reader.scenario(table)
    reader.log.raise_errors(UsageError)
    return scenario


_RUN_KEYS = ("start_time", "stop_time", "step_size", "order", "seed", "tolerance", "record")
_TABLES = ("run", "start_values", "inputs", "event", "fault", "stop", "assert")
_HINT_CONDITION = 'such as "/Lander.outputs:position_y < 10"'


class _Reader:
    """Reads tables; a finding names the line and does not end the reading."""

    def __init__(self, file: Path, lines: LineIndex) -> None:
        self.file = file
        self.lines = lines
        self.log = DiagnosticLog()

    def scenario(self, table: Mapping[str, Any]) -> Scenario:
        self.known(table, _TABLES, ())
        return Scenario(
            self.file,
            self.run(self.table(table, "run")),
            self.start_values(self.table(table, "start_values")),
            self.stimuli(self.table(table, "inputs")),
            tuple(e for k, row in self.rows(table, "event") if (e := self.event(row, ("event", k)))),
            tuple(f for k, row in self.rows(table, "fault") if (f := self.fault(row, ("fault", k)))),
            tuple(s for k, row in self.rows(table, "stop") if (s := self.stop(row, ("stop", k)))),
            tuple(a for k, row in self.rows(table, "assert") if (a := self.assertion(row, ("assert", k)))),
        )

    # ---- findings

    def wrong(self, message: str, path: tuple[Any, ...], hint: str = "") -> None:
        self.log.error("scenario-invalid", message, SourceLocation(str(self.file), line=self.lines.line(path)), hint)

    def known(self, table: Mapping[str, Any], names: Sequence[str], path: tuple[Any, ...]) -> None:
        for name in table:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                hint = f"{near[0]}?" if near else f"known here: {', '.join(names)}"
                self.wrong(f"{name!r} means nothing here", (*path, name), hint)

    def table(self, table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        found = table.get(name, {})
        if isinstance(found, dict):
            return found
        self.wrong(f"{name} is not a table", (name,), f"write [{name}]")
        return {}

    def rows(self, table: Mapping[str, Any], name: str) -> list[tuple[int, Mapping[str, Any]]]:
        found = table.get(name, [])
        if isinstance(found, list) and all(isinstance(row, dict) for row in found):
            return list(enumerate(found))
        self.wrong(f"{name} is not a list of tables", (name,), f"write [[{name}]]")
        return []

    def number(self, value: Any, path: tuple[Any, ...]) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.wrong(f"{path[-1]} is {value!r}, not a finite number", path)
            return None
        return float(value)

    def value(self, value: Any, path: tuple[Any, ...]) -> float | None:
        return float(value) if isinstance(value, bool) else self.number(value, path)

    def time(self, row: Mapping[str, Any], key: str, path: tuple[Any, ...]) -> Fraction | None:
        if key not in row:
            return None
        try:
            if isinstance(row[key], bool):
                raise UsageError.of("time-invalid", "a time is no truth value")
            return seconds(row[key])
        except CosimError:
            self.wrong(f"{key} is {row[key]!r}, not a time in seconds", (*path, key), 'write 0.5 or "1/240"')
            return None

    def text(self, row: Mapping[str, Any], key: str, path: tuple[Any, ...]) -> str:
        value = row.get(key, "")
        if isinstance(value, str):
            return value
        self.wrong(f"{key} is {value!r}, not text", (*path, key))
        return ""

    def port(self, value: Any, path: tuple[Any, ...]) -> str | None:
        if isinstance(value, str) and value.startswith("/") and "." in value:
            return value
        self.wrong(f"{value!r} is not a port", path, "such as /Lander.outputs:position_y")
        return None

    def condition(self, value: Any, path: tuple[Any, ...]) -> Condition | None:
        try:
            found = Condition.parse(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if found is None:
            self.wrong(f"{value!r} is not a condition", path, _HINT_CONDITION)
            return None
        return found if self.port(found.port, path) else None

    # ---- tables

    def run(self, table: Mapping[str, Any]) -> dict[str, Any]:
        self.known(table, _RUN_KEYS, ("run",))
        for key in ("start_time", "stop_time", "step_size"):
            self.time(table, key, ("run",))
        record = table.get("record", [])
        if not isinstance(record, list) or not all(isinstance(p, str) for p in record):
            self.wrong("record is not a list of patterns", ("run", "record"), 'record = ["/Lander/*"]')
        if not isinstance(table.get("seed", 0), int):
            self.wrong(f"seed is {table['seed']!r}, not a whole number", ("run", "seed"))
        if "tolerance" in table:
            self.number(table["tolerance"], ("run", "tolerance"))
        return {key: table[key] for key in _RUN_KEYS if key in table}

    def start_values(self, table: Mapping[str, Any]) -> dict[str, float | str]:
        found: dict[str, float | str] = {}
        for name, value in table.items():
            path = ("start_values", name)
            read = value if isinstance(value, str) else self.value(value, path)
            if self.port(name, path) and read is not None:
                found[name] = read
        return found

    def stimuli(self, table: Mapping[str, Any]) -> tuple[Stimulus, ...]:
        found = (self.stimulus(name, value) for name, value in table.items())
        return tuple(s for s in found if s is not None)

    def stimulus(self, name: str, value: Any) -> Stimulus | None:
        path = ("inputs", name)
        if self.port(name, path) is None:
            return None
        line = self.lines.line(path)
        if not isinstance(value, dict):
            number = self.value(value, path)
            return (
                None
                if number is None
                else Stimulus(name, InputTable(np.zeros(1), {name: np.array([number])}), False, line)
            )
        self.known(value, ("points", "file", "column", "interpolation"), path)
        how = value.get("interpolation", "linear")
        if how not in ("linear", "hold"):
            self.wrong(f"interpolation is {how!r}", (*path, "interpolation"), 'use "linear" or "hold"')
        if ("points" in value) == ("file" in value):
            self.wrong(f"{name} needs either points or a file", path, "points = [[0, 1], [2, 3]]")
            return None
        table = self.points(value["points"], path) if "points" in value else self.file_table(value, path)
        if table is None:
            return None
        time, values = table
        if not len(time) or not np.isfinite(time).all() or not np.isfinite(values).all() or np.any(np.diff(time) < 0):
            self.wrong(f"the table of {name} must be finite, with times that do not decrease", path)
            return None
        return Stimulus(name, InputTable(time, {name: values}), how == "linear", line)

    def points(self, points: Any, path: tuple[Any, ...]) -> tuple[FloatArray, FloatArray] | None:
        try:
            table = np.array(points, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2 or table.shape[1] != 2:
            self.wrong("points is not a list of [time, value]", path, "points = [[0, 1], [2, 3]]")
            return None
        return table[:, 0], table[:, 1]

    def file_table(self, value: Mapping[str, Any], path: tuple[Any, ...]) -> tuple[FloatArray, FloatArray] | None:
        try:
            table = Results.from_csv(self.file.parent / self.text(value, "file", path))
            names = table.names
            column = self.text(value, "column", path) or (names[0] if len(names) == 1 else "")
            if not column:
                self.wrong(f"{value['file']} has {len(names)} columns", path, f"column = one of {', '.join(names)}")
                return None
            return table.time, table[column]
        except CosimError as error:
            self.wrong(error.diagnostics[0].message, path, error.diagnostics[0].hint)
            return None

    def event(self, row: Mapping[str, Any], path: tuple[Any, ...]) -> Event | None:
        self.known(row, ("at", "when", "set", "hold", "release"), path)
        at = self.time(row, "at", path)
        when = self.condition(row["when"], (*path, "when")) if "when" in row else None
        if ("at" in row) == ("when" in row):
            self.wrong("an event needs either `at` or `when`", path)
            return None
        hold: dict[str, float] = {}
        for key in ("set", "hold"):
            values = row.get(key, {})
            if not isinstance(values, dict):
                self.wrong(f"{key} is not a table of ports and values", (*path, key), 'hold = { "/A.inputs:x" = 1 }')
                continue
            for name, value in values.items():
                number = self.value(value, (*path, key, name))
                if self.port(name, (*path, key, name)) and number is not None:
                    hold[name] = number
        release = row.get("release", [])
        if not isinstance(release, list):
            self.wrong("release is not a list of ports", (*path, "release"), 'release = ["/A.inputs:x"]')
            release = []
        names = tuple(name for name in release if self.port(name, (*path, "release")))
        if not hold and not names and not (row.get("set") or row.get("hold") or release):
            self.wrong("an event that does nothing", path, "give it set, hold or release")
        return Event(at, when, hold, names, self.lines.line(path))

    def fault(self, row: Mapping[str, Any], path: tuple[Any, ...]) -> Fault | None:
        port = self.port(row.get("port"), (*path, "port"))
        try:
            kind = FaultKind(row.get("kind", ""))
        except ValueError:
            self.wrong(f"{row.get('kind')!r} is no fault", (*path, "kind"), f"one of {', '.join(FaultKind)}")
            return None
        needed, optional = FAULT_KEYS[kind]
        self.known(row, ("port", "kind", "from", "to", *needed, *optional), path)
        for key in needed:
            if key not in row:
                self.wrong(f"a fault of kind {kind} needs {key}", path)
        begin, end = self.time(row, "from", path), self.time(row, "to", path)
        if begin is not None and end is not None and end <= begin:
            self.wrong(f"the fault ends at {row['to']} s, not after it begins", (*path, "to"))
        read = {key: self.value(row[key], (*path, key)) for key in (*needed, *optional) if key in row}
        parameters = {key: value for key, value in read.items() if value is not None}
        self.fault_ranges(parameters, path)
        return None if port is None else Fault(port, kind, begin, end, parameters, self.lines.line(path))

    def fault_ranges(self, parameters: Mapping[str, float], path: tuple[Any, ...]) -> None:
        for key in ("standard_deviation", "seconds", "step"):
            if key in parameters and parameters[key] <= 0:
                self.wrong(f"{key} is {parameters[key]:g}; it must be positive", (*path, key))
        if not 0 < parameters.get("probability", 1.0) <= 1:
            self.wrong(
                f"probability is {parameters['probability']:g}; it is above 0 and at most 1", (*path, "probability")
            )
        if not (parameters.get("seed", 0.0) >= 0 and parameters.get("seed", 0.0).is_integer()):
            self.wrong(f"seed is {parameters['seed']:g}; it must be a whole number", (*path, "seed"))

    def stop(self, row: Mapping[str, Any], path: tuple[Any, ...]) -> Stop | None:
        self.known(row, ("when", "reason"), path)
        when = self.condition(row.get("when"), (*path, "when"))
        reason = self.text(row, "reason", path)
        return None if when is None else Stop(when, reason or str(when), self.lines.line(path))

    def assertion(self, row: Mapping[str, Any], path: tuple[Any, ...]) -> Assertion | None:
        kinds = [kind for kind in AssertionKind if kind.value in row]
        if len(kinds) != 1:
            self.wrong("an assertion has one of at, always, eventually, settles", path)
            return None
        kind, line, name = kinds[0], self.lines.line(path), self.text(row, "name", path)
        if kind is AssertionKind.SETTLES:
            return self.settles(row, path, name)
        keys = ("at", "that") if kind is AssertionKind.AT else (kind.value, "from", "to")
        self.known(row, (*keys, "name"), path)
        key = "that" if kind is AssertionKind.AT else kind.value
        condition = self.condition(row.get(key), (*path, key))
        begin = self.time(row, "at" if kind is AssertionKind.AT else "from", path)
        end = self.time(row, "to", path) if kind is not AssertionKind.AT else None
        if condition is None:
            return None
        first, last = (None if t is None else float(t) for t in (begin, end))
        return Assertion(kind, condition, condition.port, first, last, None, 0.0, name, line)

    def settles(self, row: Mapping[str, Any], path: tuple[Any, ...], name: str) -> Assertion | None:
        self.known(row, ("settles", "value", "within", "by", "name"), path)
        port = self.port(row["settles"], (*path, "settles"))
        if "within" not in row:
            self.wrong("settles needs `within`, the half width of the band", path)
            return None
        within = self.number(row["within"], (*path, "within"))
        value = self.number(row["value"], (*path, "value")) if "value" in row else None
        by = self.time(row, "by", path)
        if within is not None and within <= 0:
            self.wrong(f"within is {within:g}; it must be positive", (*path, "within"))
        if port is None or within is None:
            return None
        end = None if by is None else float(by)
        return Assertion(AssertionKind.SETTLES, None, port, None, end, value, within, name, self.lines.line(path))
