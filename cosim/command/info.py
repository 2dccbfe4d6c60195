"""`cosim info RESULT`."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cosim.cli import EXIT_OK
from cosim.command.arguments import metadata_beside
from cosim.component import FloatArray
from cosim.result import Results


def run(options: argparse.Namespace) -> int:
    """Print what a result file holds and what it came from."""
    path = Path(options.result)
    results = Results.from_csv(path)
    about = metadata_beside(path)
    summary = {**_times(results), "columns": _columns(results, options.pattern, about)}
    if options.json:
        json.dump({"file": str(path), **summary, "provenance": about}, sys.stdout, indent=2, allow_nan=False)
        print()
        return EXIT_OK
    ends = ("?" if t is None else f"{t:g} s" for t in (summary["first_time"], summary["last_time"]))
    span = " to ".join(ends) if len(results) else "empty"
    print(f"{path}: {len(results)} rows, {len(results.names)} columns, {span}{_step_text(summary)}")
    for line in _provenance_lines(about):
        print(f"  {line}")
    _print_columns(summary["columns"])
    return EXIT_OK


def _times(results: Results) -> dict[str, Any]:
    steps = np.diff(results.time)
    forward = steps[steps > 0]
    return {
        "rows": len(results),
        "first_time": _known(results.time[:1]),
        "last_time": _known(results.time[-1:]),
        "step": float(np.median(forward)) if forward.size else None,
        "is_uniform": bool(forward.size and np.allclose(steps, np.median(forward), rtol=1e-6)),
        "repeated_times": int(np.count_nonzero(steps == 0)),
        "backward_times": int(np.count_nonzero(~(steps >= 0))),
    }


def _known(values: FloatArray) -> float | None:
    """A single value, None if it is not there or not finite: JSON has no NaN."""
    return float(values[0]) if len(values) and np.isfinite(values[0]) else None


def _step_text(summary: Mapping[str, Any]) -> str:
    if summary["step"] is None:
        return ""
    text = f", {'every' if summary['is_uniform'] else 'about every'} {summary['step']:.6g} s"
    text += f", {summary['repeated_times']} repeated times" if summary["repeated_times"] else ""
    return text + (f", {summary['backward_times']} times that go BACKWARDS" if summary["backward_times"] else "")


def _columns(results: Results, pattern: str, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    units = {name: row.get("unit", "") for name, row in about.get("ports", {}).items()}
    rows = []
    for name in results.names:
        if not fnmatch.fnmatchcase(name, pattern):
            continue
        values = results[name]
        finite = values[np.isfinite(values)]
        facts = (
            {"first": finite[0], "last": finite[-1], "minimum": np.min(finite), "maximum": np.max(finite)}
            if finite.size
            else {}
        )
        row = {"name": name, "unit": results.unit(name) or units.get(name, "")}
        rows.append({**row, **{k: float(v) for k, v in facts.items()}, "not_finite": int(len(values) - finite.size)})
    return rows


def _print_columns(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print("  no column matches")
        return
    width = max(6, *(len(row["name"]) for row in rows))
    keys = ("first", "last", "minimum", "maximum")
    print(f"  {'column':<{width}}  " + "  ".join(f"{key:>12}" for key in keys) + "  unit")
    for row in rows:
        cells = "  ".join(f"{row[key] + 0.0:>12.6g}" if key in row else f"{'–':>12}" for key in keys)
        bad = f"  {row['not_finite']} not finite" if row["not_finite"] else ""
        print(f"  {row['name']:<{width}}  {cells}  {row['unit']}{bad}".rstrip())


def _provenance_lines(about: Mapping[str, Any]) -> list[str]:
    if not about:
        return ["no metadata beside it"]
    words = {"status": "status", "stage": "stage", "subject": "subject", "step_size": "step size", "order": "order"}
    lines = [f"{word}: {about[key]}" for key, word in words.items() if about.get(key)]
    programs = about.get("programs") or {}
    lines += [f"program {path}: {p['class']} from {p['source']}, {p['sha256'][:12]}" for path, p in programs.items()]
    if about.get("scenario"):
        stopped = f", stopped: {about['scenario']['stopped']}" if about["scenario"].get("stopped") else ""
        lines.append(f"scenario: {about['scenario']['file']}{stopped}")
    versions = about.get("versions") or ({"cosim": about["cosim"]} if about.get("cosim") else {})
    if versions:
        lines.append("versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    if about.get("reason"):
        lines.append(f"reference because: {about['reason']}")
    return lines
