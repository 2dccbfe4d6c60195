"""`cosim compare RESULT REFERENCE`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import metadata_beside, tolerance
from cosim.diagnostic import UsageError
from cosim.result import Results
from cosim.upstream import furthest_upstream


def run(options: argparse.Namespace) -> int:
    """Print a table of the worst columns; 1 if the trace differs."""
    result, reference = Results.from_csv(options.result), Results.from_csv(options.reference)
    band = tolerance(options)
    found = result.compare(reference, level=options.level, tolerance=band, columns=options.column or None)
    if options.plot:
        from cosim.adapter.compare_plot import plot_comparison

        try:
            plot_comparison(found, result, reference, tolerance=band, path=Path(options.plot))
        except (OSError, ValueError) as error:
            raise UsageError.of("output-not-writable", f"{options.plot} cannot be written: {error}") from None
    origin = furthest_upstream(found, metadata_beside(Path(options.result)).get("connections", ()))
    if options.json:
        json.dump(
            {"result": options.result, "reference": options.reference, "origin": origin, **found.as_dict()},
            sys.stdout,
            indent=2,
        )
        print()
    else:
        print(found.table(options.rows))
        if origin:
            print(f"furthest upstream: {origin}")
    return EXIT_OK if found.passed else EXIT_FINDINGS
