"""`cosim build PROGRAM.mo|DIR …`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import print_findings
from cosim.diagnostic import CosimError, DiagnosticLog, UsageError
from cosim.modelica import build_fmu


def run(options: argparse.Namespace) -> int:
    """Compile every program and print a table; 1 if one does not compile."""
    sources = _sources(options.sources)
    folder = Path(options.output)
    if not folder.is_dir():
        raise UsageError.of("output-folder-missing", f"the output folder {folder} does not exist")
    rows: list[dict[str, Any]] = []
    failed = False
    for source in sources:
        log = DiagnosticLog()
        try:
            output = folder / f"{source.stem}.fmu"
            # Classes that it uses may lie beside it.
            built = build_fmu(source, fmi_version=options.fmi, output=output, library_path=[source.parent], log=log)
        except CosimError as error:
            failed = True
            print_findings(error.diagnostics)
            rows.append({"program": str(source), "error": error.diagnostics[0].message})
            continue
        print_findings(log)
        rows.append(
            {
                "program": built.class_name,
                "file": str(built.path),
                "states": built.states,
                "inputs": built.inputs,
                "outputs": built.outputs,
                "bytes": built.path.stat().st_size,
                "seconds": round(built.seconds, 3),
                "cached": built.cached,
                "warnings": len(log.items),
            }
        )
    if options.json:
        json.dump(rows, sys.stdout, indent=2)
        print()
    else:
        _print_table(rows)
    return EXIT_FINDINGS if failed else EXIT_OK


def _sources(names: list[str]) -> list[Path]:
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            found += sorted(path.rglob("*.mo"))
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError.of("program-not-found", f"{path} does not exist", hint="give a .mo file or a folder")
    if not found:
        raise UsageError.of("program-not-found", f"no .mo file in {', '.join(names)}")
    return found


def _print_table(rows: list[dict[str, Any]]) -> None:
    header = ("program", "states", "inputs", "outputs", "size", "time", "")
    table = [header]
    for row in rows:
        if "error" in row:
            table.append((row["program"], "", "", "", "", "", "failed"))
            continue
        note = "cached" if row["cached"] else ""
        note += f" {row['warnings']} warnings" if row["warnings"] else ""
        counts = (str(row["states"]), str(len(row["inputs"])), str(len(row["outputs"])))
        table.append(
            (row["program"], *counts, f"{row['bytes'] / 1024:.0f} kB", f"{row['seconds']:.2f} s", note.strip())
        )
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
