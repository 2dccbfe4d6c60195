"""`cosim check STAGE`."""

from __future__ import annotations

import argparse
import json
import sys

from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import count_findings, print_findings, system_options
from cosim.diagnostic import Severity
from cosim.session import check


def run(options: argparse.Namespace) -> int:
    """Print every finding; 1 if there are errors (with --strict also warnings)."""
    found = check(options.stage, step=options.step_size, **system_options(options))
    if options.json:
        json.dump([d.as_dict() for d in found], sys.stdout, indent=2)
        print()
    else:
        print_findings(found)
        print(f"{options.stage}: {count_findings(found) or 'nothing found'}")
    bar = Severity.WARNING if options.strict else Severity.ERROR
    return EXIT_FINDINGS if any(d.severity >= bar for d in found) else EXIT_OK
