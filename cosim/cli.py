"""The command line: `cosim COMMAND …`.

Exit codes: 0 ok · 1 findings, or a comparison failed · 2 usage · 3 the simulation failed or was
interrupted. Results go to files, the summary to stdout, diagnostics to stderr.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

EXIT_OK, EXIT_FINDINGS, EXIT_USAGE, EXIT_FAILED = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return EXIT_USAGE
    command: Callable[[argparse.Namespace], int] = importlib.import_module(f"cosim.command.{options.module}").run
    from cosim.diagnostic import CosimError, FmuError, StepError, UsageError

    try:
        return command(options)
    except CosimError as error:
        for diagnostic in error.diagnostics:
            print(diagnostic, file=sys.stderr)
        if isinstance(error, UsageError):
            return EXIT_USAGE
        return EXIT_FAILED if isinstance(error, StepError | FmuError) else EXIT_FINDINGS
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:
        # The reader of our stdout went away (`cosim ports … | head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    from cosim import __version__

    parser = argparse.ArgumentParser(
        prog="cosim",
        description="Couple USD rigid-body physics with FMUs, run it, and record traces.",
        epilog="exit codes: 0 ok, 1 findings or comparison failed, 2 usage, 3 simulation failed or interrupted",
    )
    parser.add_argument("--version", action="version", version=f"cosim {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_run(commands)
    _add_check(commands)
    _add_ports(commands)
    _add_graph(commands)
    _add_build(commands)
    _add_fmu(commands)
    _add_compare(commands)
    _add_test(commands)
    _add_info(commands)
    return parser


if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _command(commands: _Commands, name: str, help_text: str, module: str | None = None) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(module=module or name.replace("-", "_"))
    return parser


def _stage_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stage", metavar="STAGE", help="a .usda, .usd, .usdc or .usdz file, or a shipped stage")
    parser.add_argument(
        "--asset-root",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="the folder that asset paths @NAME://…@ mean; may be given more than once",
    )
    parser.add_argument(
        "--program-path",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder with .mo and .fmu files for programs that are not where the stage says",
    )
    parser.add_argument("--fmi", choices=("2.0", "3.0"), default="2.0", help="FMI version of compiled programs")
    parser.add_argument(
        "--isolate",
        choices=("auto", "always", "never"),
        default="auto",
        help="FMUs in processes of their own (auto: files from outside the program path)",
    )


def _step_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--step-size", default="1/240", metavar="S", help="communication step size [s], such as 1/240")


def _add_run(commands: _Commands) -> None:
    parser = _command(commands, "run", "simulate a stage and record a trace; exit code 1 if an assertion fails")
    _stage_arguments(parser)
    parser.add_argument(
        "scenario", metavar="SCENARIO.toml", nargs="?", help="stimuli, events, faults and assertions of the run"
    )
    # What is not given here may stand in the scenario.
    parser.add_argument("--step-size", metavar="S", help="communication step size [s] (default 1/240)")
    parser.add_argument("--start-time", metavar="S", help="start time [s] (default 0)")
    parser.add_argument("--stop-time", metavar="S", help="stop time [s] (default 10)")
    parser.add_argument("--substeps", type=int, default=1, metavar="N", help="physics steps per communication step")
    parser.add_argument(
        "--start-value",
        action="append",
        default=[],
        metavar="PORT=VALUE",
        help="a parameter or constant input, such as /Lander/Guidance.inputs:target_speed=-1",
    )
    parser.add_argument(
        "--output-variable",
        action="append",
        default=[],
        metavar="GLOB",
        help="record only ports that match, such as '/Lander/*' or '*.outputs:angle'",
    )
    parser.add_argument("--output-file", metavar="F", help="the trace (default runs/NAME/trace.csv)")
    parser.add_argument("--order", choices=("jacobi", "gauss-seidel"), help="master algorithm (default jacobi)")
    parser.add_argument(
        "--loop", choices=("auto", "python"), default="auto", help="exchange loop: in C where it can, or all in Python"
    )
    parser.add_argument("--tolerance", type=float, metavar="R", help="relative tolerance of solvers inside FMUs")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of random generators (default 0)")
    parser.add_argument("--no-plot", action="store_true", help="write no trace.png")
    parser.add_argument("--verbose", action="store_true", help="print every finding of the stage, not only errors")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def _add_check(commands: _Commands) -> None:
    parser = _command(commands, "check", "report everything that can be said of a stage without running it")
    _stage_arguments(parser)
    _step_argument(parser)
    parser.add_argument("--strict", action="store_true", help="warnings fail, too")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--explain", action=_Explain, metavar="CODE", help="what a diagnostic code means, and its cure")


class _Explain(argparse.Action):
    """Print what a code means and leave, with or without a stage."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option: object = None
    ) -> None:
        from cosim.resource import explain

        text = explain(str(values))
        if text is None:
            parser.error(f"there is no diagnostic code {values!r}")
        print(text)
        parser.exit()


def _add_ports(commands: _Commands) -> None:
    parser = _command(commands, "ports", "list the ports of a stage")
    _stage_arguments(parser)
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default="*", help="glob, such as '*angle*'")
    parser.add_argument("--json", action="store_true", help="print the ports as JSON")


def _add_graph(commands: _Commands) -> None:
    parser = _command(commands, "graph", "show what is connected to what")
    _stage_arguments(parser)
    parser.add_argument("--format", choices=("text", "dot", "mermaid", "json"), default="text")


def _add_build(commands: _Commands) -> None:
    parser = _command(commands, "build", "compile Modelica programs to FMUs")
    parser.add_argument("sources", nargs="+", metavar="PROGRAM.mo|DIR", help="a file, or a folder with .mo files")
    parser.add_argument("--fmi", choices=("2.0", "3.0"), default="2.0", help="FMI version (default 2.0)")
    parser.add_argument("--output", metavar="DIR", default=".", help="where the FMUs go (default: here)")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def _tolerance_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rtol", type=float, metavar="R", help="of the tube, relative to a column's range")
    parser.add_argument("--atol", type=float, metavar="A", help="of the tube, in the column's unit")
    parser.add_argument("--samples", type=float, metavar="N", help="half width of the tube in reference samples")


def _add_compare(commands: _Commands) -> None:
    parser = _command(commands, "compare", "compare a trace with a reference trace; exit code 1 if it differs")
    parser.add_argument("result", metavar="RESULT", help="the trace, a .csv file")
    parser.add_argument("reference", metavar="REFERENCE", help="what it should be, a .csv file")
    parser.add_argument(
        "--level",
        choices=("exact", "tube"),
        default="tube",
        help="exact: same binary and step, 1e-9; tube (default): another tool or step",
    )
    _tolerance_arguments(parser)
    parser.add_argument(
        "--column", action="append", default=[], metavar="NAME", help="compare only this column; may be repeated"
    )
    parser.add_argument("--rows", type=int, default=12, metavar="N", help="columns to show, the worst first")
    parser.add_argument("--plot", metavar="FILE.png", help="plot the worst columns with the tube")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _add_fmu(commands: _Commands) -> None:
    parser = _command(commands, "fmu", "look at one FMU, check it, or run it alone")
    parser.add_argument("action", choices=("info", "validate", "simulate"))
    parser.add_argument("file", metavar="FILE", help="a .fmu file")
    parser.add_argument("--all", action="store_true", help="info: local variables, too")
    parser.add_argument("--input", metavar="CSV", help="simulate: a table of inputs over time")
    parser.add_argument("--start-time", default="0", metavar="S", help="simulate: start time [s] (default 0)")
    parser.add_argument("--stop-time", metavar="S", help="simulate: stop time [s] (default: the FMU's experiment)")
    parser.add_argument("--step-size", metavar="S", help="simulate: communication step size [s]")
    parser.add_argument(
        "--start-value", action="append", default=[], metavar="NAME=VALUE", help="simulate: a start value"
    )
    parser.add_argument("--output-file", metavar="F", help="simulate: the trace (default FILE.csv here)")
    parser.add_argument("--json", action="store_true", help="info, validate: as JSON")


def _add_info(commands: _Commands) -> None:
    parser = _command(commands, "info", "say what a result file holds and what it came from")
    parser.add_argument("result", metavar="RESULT", help="a trace, a .csv file")
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default="*", help="glob, such as '*angle*'")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _add_test(commands: _Commands) -> None:
    parser = _command(commands, "test", "run regression cases against their reference traces; exit code 1 if one fails")
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="X.fmu, X.mo or X.usda with X_ref.csv beside it, or a folder of them"
    )
    parser.add_argument("--level", choices=("exact", "tube"), help="default: exact where the reference allows it")
    _tolerance_arguments(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="processes at a time (default: one per CPU)")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    parser.add_argument("--html", metavar="FILE", help="write a summary as an HTML page")
    parser.add_argument("--rows", type=int, default=6, metavar="N", help="columns to show of a case that fails")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--update", action="store_true", help="make the traces that differ the references")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why the new references are right")
    parser.add_argument("--stop-time", default="10", metavar="S", help="of a new reference without a _ref.opt [s]")
    parser.add_argument("--step-size", default="1/240", metavar="S", help="of a new reference without a _ref.opt [s]")
    parser.add_argument(
        "--output-variable", action="append", default=[], metavar="GLOB", help="ports of a new reference of a stage"
    )
    parser.add_argument("--program-path", action="append", default=[], metavar="DIR", help="for the programs of stages")


if __name__ == "__main__":
    sys.exit(main())
