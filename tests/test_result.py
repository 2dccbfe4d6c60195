from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim.component import PortType
from cosim.diagnostic import UsageError
from cosim.result import Column, Results


@pytest.fixture
def results() -> Results:
    time = np.array([0.0, 0.1, 0.2])
    values = np.array([[1.0, 0.0, 3.0], [1 / 3, 1.0, 3.0], [-2e-17, 1.0, 3.0]])
    columns = (
        Column("/A.outputs:x", "m", description="height"),
        Column("/A.outputs:hit", type=PortType.BOOLEAN),
        Column("/B.inputs:x", "rad"),
    )
    return Results(time, values, columns, {"seed": 0})


def test_columns_by_full_and_short_names(results: Results) -> None:
    assert results["/A.outputs:x"][1] == 1 / 3
    assert results["/A.x"].tolist() == results["/A.outputs:x"].tolist()
    assert results["hit"].tolist() == [0.0, 1.0, 1.0]
    assert results.unit("/A.x") == "m"
    assert "/B.x" in results and "nope" not in results and "time" in results
    assert results["time"].tolist() == [0.0, 0.1, 0.2]


def test_unknown_and_ambiguous_names_say_what_there_is(results: Results) -> None:
    with pytest.raises(UsageError, match="column-ambiguous"):
        results["x"]
    with pytest.raises(UsageError, match=r"/A\.outputs:hit"):
        results["y"]


def test_csv_reads_back_bit_for_bit(results: Results, tmp_path: Path) -> None:
    results.to_csv(tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text()
    assert text.splitlines()[0] == '"time","/A.outputs:x","/A.outputs:hit","/B.inputs:x"'
    assert text.splitlines()[1] == "0.0,1.0,0,3.0"
    again = Results.from_csv(tmp_path / "t.csv")
    assert again.time.tobytes() == results.time.tobytes()
    assert again.values.tobytes() == results.values.tobytes()
    assert again.names == results.names


@pytest.mark.parametrize(("text", "line"), [("a,b\n1,2\n", 1), ("time,a\n1\n", 2), ("time,a\n0,1\n1,x\n", 3), ("", 1)])
def test_malformed_result_files_are_errors_with_the_line(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"t.csv:{line}"):
        Results.from_csv(path)


def test_pandas_keeps_units(results: Results) -> None:
    pytest.importorskip("pandas")
    frame = results.to_pandas()
    assert frame.index.name == "time"
    assert frame.attrs["units"]["/A.outputs:x"] == "m"
    assert frame["/B.inputs:x"].tolist() == [3.0, 3.0, 3.0]


def test_plot_shows_what_changes_in_one_panel_per_unit(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = results.plot(path=tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert [a.get_ylabel() for a in figure.axes] == ["[m]", "[–]"]
    with pytest.raises(UsageError, match="column-unknown"):
        results.plot("/C.*")


def test_html_names_every_column(results: Results) -> None:
    assert all(name in results._repr_html_() for name in results.names)
