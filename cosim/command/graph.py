"""`cosim graph STAGE`."""

from __future__ import annotations

import argparse

from cosim.adapter.graph_view import FORMATS
from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import print_findings, system_options
from cosim.diagnostic import DiagnosticLog, Severity
from cosim.session import load


def run(options: argparse.Namespace) -> int:
    """Print the port graph."""
    system = load(options.stage, **system_options(options))
    log = DiagnosticLog()
    graph = system.graph(log)
    print(FORMATS[options.format](graph))
    print_findings(log, at_least=Severity.WARNING)
    return EXIT_FINDINGS if log.errors else EXIT_OK
