"""Results: what was recorded, with names, units and provenance.

`Recorder` takes one row per communication point into chunks of memory; `Results` offers
them as numpy columns and writes them in the layout of the Reference FMUs' result files.
"""

from __future__ import annotations

import csv
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cosim.component import FloatArray, IndexArray, PortType
from cosim.diagnostic import Diagnostic, SourceLocation, UsageError

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from cosim.compare import Comparison, Tolerance

CHUNK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Column:
    """A recorded quantity.

    Attributes:
        name: port address, such as `/World/Elbow.outputs:angle`.
        unit: unit name, "" if undeclared.
        type: Real, Integer, Boolean or Enumeration: how values are written.
        frame: coordinate frame, "" where it has no meaning.
        description: one line.
    """

    name: str
    unit: str = ""
    type: PortType = PortType.REAL
    frame: str = ""
    description: str = ""


class Recorder:
    """Rows of a run in chunks; complete to the last row whatever ends the run."""

    def __init__(self, columns: Sequence[Column], indices: IndexArray) -> None:
        self.columns = tuple(columns)
        self._indices = indices
        self._chunks: list[FloatArray] = []
        self._times: list[FloatArray] = []
        self._rows = 0
        self._grow()

    def _grow(self) -> None:
        self._chunk = np.empty((CHUNK_ROWS, len(self._indices)))
        self._time = np.empty(CHUNK_ROWS)
        self._chunks.append(self._chunk)
        self._times.append(self._time)
        self._rows = 0
        self._addresses: tuple[int, int] | None = None

    def append(self, time: float, bus: FloatArray) -> None:
        """Record one row: the time [s] and the recorded entries of the bus."""
        if self._rows == CHUNK_ROWS:
            self._grow()
        row = self._rows
        self._time[row] = time
        # The indices come from the plan and are in range: mode "clip" only skips numpy's buffering.
        bus.take(self._indices, out=self._chunk[row], mode="clip")
        self._rows = row + 1

    def __len__(self) -> int:
        return (len(self._chunks) - 1) * CHUNK_ROWS + self._rows

    def free(self) -> tuple[int, int, int]:
        """Where the native loop may write: addresses of the next time and row, and how many rows fit."""
        if self._rows == CHUNK_ROWS:
            self._grow()
        if self._addresses is None:
            self._addresses = (self._time.ctypes.data, self._chunk.ctypes.data)
        time, rows = self._addresses
        at = self._rows
        return time + at * self._time.itemsize, rows + at * self._chunk.strides[0], CHUNK_ROWS - at

    def written(self, rows: int) -> None:
        """Count rows that were written there."""
        self._rows += rows

    def rewind(self, rows: int) -> None:
        """Forget all but the first rows (after restoring an earlier state)."""
        full, rest = divmod(rows, CHUNK_ROWS)
        if rest == 0 and full > 0:
            full, rest = full - 1, CHUNK_ROWS
        del self._chunks[full + 1 :], self._times[full + 1 :]
        self._chunk, self._time, self._rows = self._chunks[full], self._times[full], rest
        self._addresses = None

    def values(self) -> tuple[FloatArray, FloatArray]:
        """Times, shape (rows,), and values, shape (rows, columns)."""
        last = len(self._chunks) - 1
        cut = [c if i < last else c[: self._rows] for i, c in enumerate(self._chunks)]
        times = [t if i < last else t[: self._rows] for i, t in enumerate(self._times)]
        return np.concatenate(times), np.concatenate(cut)


@dataclass(frozen=True, eq=False)
class Results:
    """The trace of a run.

    Attributes:
        time: communication points [s], shape (rows,).
        values: shape (rows, columns), in the units of the columns.
        columns: what each column is.
        metadata: provenance: stage and FMU hashes, versions, step, order, seed.
        diagnostics: what was found on the way.
    """

    time: FloatArray
    values: FloatArray
    columns: tuple[Column, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in recorded order."""
        return tuple(c.name for c in self.columns)

    def column(self, name: str) -> int:
        """The index of a column, by its full name or by any unique `PRIM.NAME` or `NAME`.

        Raises:
            UsageError: no column or several columns have this name.
        """
        names = self.names
        if name in names:
            return names.index(name)
        found = [i for i, full in enumerate(names) if name in _short_names(full)]
        if len(found) == 1:
            return found[0]
        if found:
            hint = f"one of {', '.join(names[i] for i in found[:6])}"
            raise UsageError.of("column-ambiguous", f"{name!r} means {len(found)} recorded ports", hint=hint)
        raise UsageError.of(
            "column-unknown", f"{name!r} was not recorded", hint=f"recorded: {', '.join(names[:12]) or 'nothing'}"
        )

    def __getitem__(self, name: str) -> FloatArray:
        if name == "time":
            return self.time
        return np.asarray(self.values[:, self.column(name)])

    def __contains__(self, name: object) -> bool:
        return name == "time" or (isinstance(name, str) and any(name in (c, *_short_names(c)) for c in self.names))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.time)

    def unit(self, name: str) -> str:
        """The unit of a column, "" if undeclared."""
        return self.columns[self.column(name)].unit

    # ---- out

    def to_csv(self, path: Path | str) -> None:
        """Write `time` and all columns in the layout of the Reference FMUs' result files.

        Numbers have the fewest digits that read back to the same bits.
        """
        integral = [c.type in (PortType.INTEGER, PortType.ENUMERATION, PortType.BOOLEAN) for c in self.columns]
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
            writer.writerow(["time", *self.names])
            for time, row in zip(self.time.tolist(), self.values.tolist(), strict=True):
                cells = [
                    int(value) if whole and value == value // 1 else value
                    for value, whole in zip(row, integral, strict=True)
                ]
                writer.writerow([time, *cells])

    @classmethod
    def from_csv(cls, path: Path | str) -> Self:
        """Read a result file: `time` first, then one numeric column per quantity.

        Raises:
            UsageError: the file is not such a table.
        """
        file = Path(path)
        try:
            with file.open(newline="", encoding="utf-8") as stream:
                rows = list(csv.reader(stream))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError.of("result-unreadable", f"{file} cannot be read: {error}") from None
        if not rows or rows[0][:1] != ["time"]:
            raise UsageError.of(
                "result-unreadable", f"{file} has no column `time` first", SourceLocation(str(file), line=1)
            )
        header, table = rows[0], []
        for number, row in enumerate(rows[1:], start=2):
            if len(row) != len(header):
                message = f"{file} has {len(row)} cells in a row of {len(header)} columns"
                raise UsageError.of("result-unreadable", message, SourceLocation(str(file), line=number))
            try:
                table.append([_number(cell) for cell in row])
            except ValueError as error:
                raise UsageError.of("result-unreadable", str(error), SourceLocation(str(file), line=number)) from None
        data = np.array(table, dtype=np.float64).reshape(len(table), len(header))
        return cls(data[:, 0], data[:, 1:], tuple(Column(name) for name in header[1:]))

    def compare(
        self,
        reference: Results | Path | str,
        *,
        level: str = "tube",
        tolerance: Tolerance | None = None,
        columns: Sequence[str] | None = None,
    ) -> Comparison:
        """Compare with a reference trace; `.raise_failed()` of what comes back makes a test of it.

        Args:
            reference: results, or a result file.
            level: "exact" (same binary and step) or "tube" (another tool or step).
            tolerance: of the tube.
            columns: reference columns to compare; None compares all of them.

        Raises:
            UsageError: the file is no result file, or the level is unknown.
        """
        from cosim.compare import compare

        expected = reference if isinstance(reference, Results) else Results.from_csv(reference)
        return compare(self, expected, level=level, tolerance=tolerance, columns=columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame indexed by time [s]; `attrs["units"]` maps column → unit.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise _missing("pandas", "table") from None
        frame = pandas.DataFrame(self.values, index=pandas.Index(self.time, name="time"), columns=list(self.names))
        frame.attrs["units"] = {c.name: c.unit for c in self.columns}
        return frame

    def plot(self, *names: str, path: Path | str | None = None, title: str = "") -> Figure:
        """Plot columns over time, one panel per unit.

        Args:
            names: columns or glob patterns; none plots the columns that change.
            path: write a PNG there.
            title: heading.

        Raises:
            UsageError: matplotlib is not installed, or a name is unknown.
        """
        from cosim.adapter.plot import plot_results

        return plot_results(self, names, path=Path(path) if path else None, title=title)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{html.escape(c.name)}</code></td><td>{html.escape(c.unit)}</td>"
            f"<td>{v[0]:.6g}</td><td>{v[-1]:.6g}</td><td>{v.min():.6g}</td><td>{v.max():.6g}</td></tr>"
            for c, v in zip(self.columns, self.values.T, strict=True)
            if len(v)
        )
        span = f"{self.time[0]:g} s to {self.time[-1]:g} s" if len(self.time) else "empty"
        return (
            f"<p><b>Results</b>: {len(self.time)} communication points, {span}</p><table><thead><tr><th>port</th>"
            "<th>unit</th><th>first</th><th>last</th><th>min</th><th>max</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )

    def __repr__(self) -> str:
        return f"<Results: {len(self.time)} rows, {len(self.columns)} columns>"


def _short_names(full: str) -> tuple[str, str]:
    """`PRIM.NAME` and `NAME` of `PRIM.outputs:NAME`."""
    path, _, rest = full.partition(".")
    name = rest.partition(":")[2] or rest
    return f"{path}.{name}", name


def _number(cell: str) -> float:
    text = cell.strip()
    if text in ("true", "false"):
        return float(text == "true")
    return float(text)


def _missing(package: str, extra: str) -> UsageError:
    return UsageError.of(
        "package-missing",
        f"{package} is not installed",
        hint=f"pip install 'usd-cosim[{extra}]' or pip install {package}",
    )
