"""The notebooks run, and hold nothing of the machine that they were written on."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def code_cells(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    """Every cell in order, in one namespace; the value of a cell's last line is shown as a notebook would."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "notebook"}
    for number, source in enumerate(code_cells(path)):
        tree = ast.parse(source, f"{path.name}[{number}]")
        last = tree.body[-1] if isinstance(tree.body[-1], ast.Expr) else None
        before = ast.Module(tree.body[:-1] if last else tree.body, [])
        exec(compile(before, f"{path.name}[{number}]", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{path.name}[{number}]", "eval"), namespace)
            for form in ("_repr_png_", "_repr_html_"):
                show = getattr(value, form, None)
                if show is not None:
                    shown = show()
                    assert shown is None or len(shown) > 100


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_holds_no_outputs_and_no_paths_of_a_machine(path):
    text = path.read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    assert all(not c.get("outputs") and c.get("execution_count") is None for c in cells if c["cell_type"] == "code")
    assert not any(part in text for part in ("/home/", "/root/", "/work/", "C:\\\\Users"))
