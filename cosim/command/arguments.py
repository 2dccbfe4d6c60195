"""What the commands share: reading options and printing findings."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cosim.compare import Tolerance
from cosim.diagnostic import Diagnostic, Severity, SourceLocation, UsageError


def system_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `cosim.load`."""
    roots: dict[str, Path] = {}
    for text in options.asset_root:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder):
            raise UsageError.of(
                "asset-root-invalid", f"--asset-root {text!r} is not NAME=DIR", hint="such as lunco=assets"
            )
        if not Path(folder).is_dir():
            raise UsageError.of("asset-root-not-found", f"asset root {name!r} is {folder}, which is not a folder")
        roots[name] = Path(folder)
    for folder in options.program_path:
        if not Path(folder).is_dir():
            raise UsageError.of("program-path-not-found", f"--program-path {folder} is not a folder")
    return {
        "asset_roots": roots,
        "program_path": options.program_path,
        "fmi_version": options.fmi,
        "isolate": options.isolate,
    }


def start_values(texts: Iterable[str]) -> dict[str, float | str]:
    """`PORT=VALUE` options: numbers, true, false, or text for String ports."""
    values: dict[str, float | str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not (name and equals):
            raise UsageError.of(
                "start-value-invalid",
                f"--start-value {text!r} is not PORT=VALUE",
                hint="such as /Lander/Guidance.inputs:target_speed=-1",
            )
        values[name] = _value(name, value.strip())
    return values


def metadata_beside(path: Path) -> dict[str, Any]:
    """What stands beside a trace: `run.json` of its folder if it is a run's, else the .json of its name."""
    candidates = [path.with_suffix(".json")] + ([path.with_name("run.json")] if path.name == "trace.csv" else [])
    for candidate in candidates:
        if not candidate.is_file():
            continue
        try:
            found = json.loads(candidate.read_text(encoding="utf-8"))
        except ValueError as error:
            where = SourceLocation(str(candidate))
            raise UsageError.of("result-unreadable", f"{candidate.name} is no JSON: {error}", where) from None
        if isinstance(found, dict):
            return found
    return {}


def tolerance(options: argparse.Namespace) -> Tolerance:
    """The tube's tolerance: `--rtol`, `--atol`, `--samples`.

    Raises:
        UsageError: one of them is negative or not finite.
    """
    given = {"relative": options.rtol, "absolute": options.atol, "samples": options.samples}
    known = {name: value for name, value in given.items() if value is not None}
    for name, value in known.items():
        if not (math.isfinite(value) and value >= 0):
            raise UsageError.of("tolerance-invalid", f"the {name} tolerance is {value}", hint="give 0 or more")
    return Tolerance(**known)


def _value(name: str, text: str) -> float | str:
    if text in ("true", "false"):
        return float(text == "true")
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise UsageError.of("value-not-finite", f"the start value of {name} is {text}", hint="give a finite number")
    return number


def print_findings(found: Iterable[Diagnostic], *, at_least: Severity = Severity.INFO) -> None:
    """Print diagnostics to stderr, worst last."""
    for diagnostic in sorted((d for d in found if d.severity >= at_least), key=lambda d: d.severity):
        print(diagnostic, file=sys.stderr)


def count_findings(found: Iterable[Diagnostic]) -> str:
    """`1 error, 3 warnings, 12 remarks`, or "" if there are none."""
    counts = Counter(d.severity for d in found)
    words = ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "remark"))
    return ", ".join(f"{counts[s]} {word}{'s' if counts[s] != 1 else ''}" for s, word in words if counts[s])
