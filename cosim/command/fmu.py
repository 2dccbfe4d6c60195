"""`cosim fmu info|validate|simulate FILE`: one FMU by itself."""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import count_findings, print_findings, start_values
from cosim.component import Causality
from cosim.diagnostic import CosimError, DiagnosticLog, FmuError, Severity, UsageError
from cosim.fmi import Fmu, InputTable, open_fmu, simulate_fmu
from cosim.result import Column, Results


def run(options: argparse.Namespace) -> int:
    """What was asked for."""
    path = Path(options.file)
    if not path.is_file():
        raise UsageError.of("fmu-not-found", f"there is no file {path}")
    return {"info": _info, "validate": _validate, "simulate": _simulate}[options.action](path, options)


# ---- info


def _info(path: Path, options: argparse.Namespace) -> int:
    log = DiagnosticLog()
    fmu = open_fmu(path, log=log)
    about = _about(fmu, path)
    if options.json:
        json.dump(about, sys.stdout, indent=2)
        print()
        return EXIT_OK
    for key in ("model", "description", "fmi_version", "interfaces", "platforms", "tool", "token", "sha256"):
        print(f"{key:<12} {_text(about[key])}")
    for key, value in about["capabilities"].items():
        print(f"{'can' if value is True else key:<12} {key if value is True else value}")
    print(f"{'variables':<12} {len(about['variables'])}")
    shown = [v for v in about["variables"] if v["causality"] != "local" or options.all]
    width = max((len(v["name"]) for v in shown), default=0)
    for variable in shown:
        start = "" if variable["start"] is None else f" = {variable['start']}"
        kind = f"{variable['causality']}, {variable['variability']}, {variable['type']}"
        unit = f" [{variable['unit']}]" if variable["unit"] else ""
        print(f"  {variable['name']:<{width}}  {kind}{unit}{start}  {variable['description']}".rstrip())
    hidden = len(about["variables"]) - len(shown)
    if hidden:
        print(f"  and {hidden} local variables (--all)")
    print_findings(log)
    return EXIT_OK


def _about(fmu: Fmu, path: Path) -> dict[str, Any]:
    d = fmu.description
    interfaces = {"co-simulation": d.co_simulation, "model exchange": d.model_exchange}
    capabilities = d.co_simulation or d.model_exchange
    with zipfile.ZipFile(path) as archive:
        parts = {n.split("/")[1] for n in archive.namelist() if n.startswith("binaries/") and n.count("/") > 1}
        if any(n.startswith("sources/") for n in archive.namelist()):
            parts.add("sources")
    return {
        "model": d.model_name,
        "description": d.description,
        "fmi_version": d.fmi_version,
        "interfaces": [name for name, found in interfaces.items() if found is not None],
        "platforms": sorted(parts),
        "tool": d.generation_tool,
        "token": d.token,
        "sha256": fmu.sha256,
        "capabilities": {
            "variable communication step size": capabilities.variable_step,
            "save and restore its state": capabilities.save_state,
            "serialize its state": capabilities.serialize_state,
            "once per process": capabilities.once_per_process,
            "needs an execution tool": capabilities.needs_execution_tool,
        }
        if capabilities is not None
        else {},
        "experiment": {
            "start": d.experiment.start_time,
            "stop": d.experiment.stop_time,
            "step": d.experiment.step_size,
            "tolerance": d.experiment.tolerance,
        },
        "variables": [_variable(v) for v in d.variables],
    }


def _variable(v: Any) -> dict[str, Any]:
    start = [s if isinstance(s, float | int | str) else s.hex() for s in v.start]
    return {
        "name": v.name,
        "causality": v.causality.value,
        "variability": v.variability.value,
        "type": v.port_type.value,
        "unit": v.unit.name if v.unit else "",
        "dimensions": list(v.dimensions),
        "start": None if not start else start[0] if len(start) == 1 else start,
        "minimum": v.minimum,
        "maximum": v.maximum,
        "description": v.description,
    }


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# ---- validate


def _validate(path: Path, options: argparse.Namespace) -> int:
    """Everything that can be said of it: reading, one instance, one step."""
    log = DiagnosticLog()
    try:
        fmu = open_fmu(path, log=log)
        first = fmu.description.experiment.step_size or 1e-3
        simulate_fmu(path, stop=first, step=first, log=DiagnosticLog())
    except CosimError as error:
        log.extend(d for d in error.diagnostics if d not in log.items)
    if options.json:
        json.dump([d.as_dict() for d in log], sys.stdout, indent=2)
        print()
    else:
        print_findings(log)
        print(f"{path}: {count_findings(log) or 'nothing found'}")
    return EXIT_FINDINGS if any(d.severity >= Severity.ERROR for d in log) else EXIT_OK


# ---- simulate


def _simulate(path: Path, options: argparse.Namespace) -> int:
    log = DiagnosticLog()
    columns = simulate_fmu(
        path,
        inputs=_inputs(options.input),
        start_values=start_values(options.start_value),
        start=options.start_time,
        stop=options.stop_time,
        step=options.step_size,
        log=log,
    )
    print_findings(log, at_least=Severity.WARNING)
    results = _results(path, columns)
    output = Path(options.output_file or path.with_suffix(".csv").name)
    try:
        results.to_csv(output)
    except OSError as error:
        raise UsageError.of("output-not-writable", f"{output} cannot be written: {error.strerror}") from None
    print(f"{path.name}: {len(results)} communication points, {len(results.columns)} outputs, written: {output}")
    return EXIT_OK


def _inputs(file: str | None) -> InputTable | None:
    if file is None:
        return None
    table = Results.from_csv(file)
    return InputTable(table.time, {name: table[name] for name in table.names})


def _results(path: Path, columns: dict[str, Any]) -> Results:
    fmu = open_fmu(path, log=DiagnosticLog())
    by_name = {v.name: v for v in fmu.description.variables if v.causality is Causality.OUTPUT}
    names = [n for n in columns if n != "time"]
    if not names:
        raise FmuError.of("fmu-without-outputs", f"{path.name} has no numeric outputs to record")
    kinds = [by_name.get(n) for n in names]
    described = [
        Column(n, v.unit.name if v and v.unit else "", v.port_type) if v else Column(n)
        for n, v in zip(names, kinds, strict=True)
    ]
    return Results(columns["time"], np.stack([columns[n] for n in names], axis=1), tuple(described))
