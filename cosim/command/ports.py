"""`cosim ports STAGE [PATTERN]`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from cosim.cli import EXIT_OK
from cosim.command.arguments import system_options
from cosim.component import Port
from cosim.session import load


def run(options: argparse.Namespace) -> int:
    """Print the ports that match."""
    system = load(options.stage, **system_options(options))
    ports = system.ports(options.pattern)
    if options.json:
        json.dump([_row(p) for p in ports], sys.stdout, indent=2)
        print()
        return EXIT_OK
    if not ports:
        print(f"no port matches {options.pattern!r}")
        return EXIT_OK
    width = max(len(str(p.ref)) for p in ports)
    unit = max(len(p.unit_name) for p in ports)
    for port in ports:
        name = f"  = {port.variable}" if port.variable and port.variable != port.ref.name else ""
        kind = f"({port.causality}) " if port.causality not in ("input", "output") else ""
        print(f"{port.ref!s:<{width}}  {port.unit_name:<{unit}}  {kind}{port.description}{name}".rstrip())
    return EXIT_OK


def _row(port: Port) -> dict[str, Any]:
    return {
        "port": str(port.ref),
        "causality": port.causality.value,
        "variability": port.variability.value,
        "type": port.type.value,
        "unit": port.unit_name,
        "frame": port.frame,
        "start": port.start if isinstance(port.start, float | int | str | None) else str(port.start),
        "minimum": port.minimum,
        "maximum": port.maximum,
        "variable": port.variable,
        "description": port.description,
    }
