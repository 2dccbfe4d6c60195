"""`cosim compare RESULT REFERENCE`."""

from __future__ import annotations

import argparse
import json
import sys

from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import tolerance
from cosim.result import Results


def run(options: argparse.Namespace) -> int:
    """Print a table of the worst columns; 1 if the trace differs."""
    found = Results.from_csv(options.result).compare(
        options.reference, level=options.level, tolerance=tolerance(options), columns=options.column or None
    )
    if options.json:
        json.dump({"result": options.result, "reference": options.reference, **found.as_dict()}, sys.stdout, indent=2)
        print()
    else:
        print(found.table(options.rows))
    return EXIT_OK if found.passed else EXIT_FINDINGS
