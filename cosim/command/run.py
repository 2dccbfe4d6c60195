"""`cosim run STAGE [SCENARIO.toml]`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cosim.cli import EXIT_FAILED, EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import count_findings, print_findings, start_values, system_options
from cosim.component import PortRef
from cosim.diagnostic import CosimError, Severity, UsageError
from cosim.plan import matches
from cosim.result import Results
from cosim.scenario_file import read_scenario
from cosim.scenario_run import ScenarioRun
from cosim.session import Simulation, System, keeping_results, load

SUMMARY_ROWS = 12
DEFAULT_STOP = 10


def run(options: argparse.Namespace) -> int:
    """Simulate, write the trace and its provenance, print a summary."""
    system = load(options.stage, substeps=options.substeps, **system_options(options))
    files = _Files.prepare(options.output_file, system.name)
    simulation, scenario = _prepare(system, options)
    with keeping_results(simulation) as ended:
        if scenario is None:
            simulation.initialize()
        ticks = simulation.experiment.ticks
        print_findings(simulation.diagnostics, at_least=Severity.INFO if options.verbose else Severity.ERROR)
        with _progress(system.name, ticks) as on_tick:
            began = time.perf_counter()
            try:
                (scenario or simulation).run(on_tick=on_tick)
            finally:
                elapsed = time.perf_counter() - began
    if not simulation.is_initialized:
        raise ended[0]
    results = (scenario or simulation).results
    outcomes = scenario.judge() if scenario else ()
    summary = _summary(system, results, elapsed, ended)
    if scenario:
        summary |= {"stopped": scenario.stopped, "assertions": [o.as_dict() for o in outcomes]}
    files.write(results, summary, plot=not options.no_plot)
    _report(summary, files, results, options)
    failed = [o.diagnostic(scenario.scenario) for o in outcomes if not o.passed] if scenario else []
    print_findings(failed)
    return _exit(ended) or (EXIT_FINDINGS if failed else EXIT_OK)


def _prepare(system: System, options: argparse.Namespace) -> tuple[Simulation, ScenarioRun | None]:
    """The simulation, and the scenario that drives it where one is given."""
    given = {
        "step": options.step_size,
        "start": options.start_time,
        "stop": options.stop_time,
        "record": options.output_variable or None,
        "start_values": start_values(options.start_value),
        "order": options.order,
        "tolerance": options.tolerance,
        "seed": options.seed,
        "loop": options.loop,
    }
    if options.scenario:
        scenario = ScenarioRun(system, read_scenario(options.scenario), **given)
        return scenario.simulation, scenario
    known = {name: value for name, value in given.items() if value is not None}
    return Simulation(system, **{"stop": DEFAULT_STOP, **known}), None


def _exit(ended: list[BaseException]) -> int:
    if not ended:
        return EXIT_OK
    if isinstance(ended[0], CosimError):
        print_findings(ended[0].diagnostics)
    else:
        print("interrupted: the trace holds what was simulated", file=sys.stderr)
    return EXIT_FAILED


class _Files:
    """The files of a run, in one folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace
        self.metadata = trace.with_name("run.json")
        self.plot = trace.with_suffix(".png")
        self.plot_note = ""

    @classmethod
    def prepare(cls, output_file: str | None, name: str) -> _Files:
        """Make the folder and make sure that it can be written, before anything runs.

        Raises:
            UsageError: it cannot be.
        """
        files = cls(Path(output_file) if output_file else Path("runs") / name / "trace.csv")
        if output_file and files.trace.suffix != ".csv":
            raise UsageError.of(
                "output-format-unknown", f"--output-file {output_file}: the trace is a .csv file", hint="end it in .csv"
            )
        if output_file:
            files.metadata = files.trace.with_suffix(".json")
        try:
            files.trace.parent.mkdir(parents=True, exist_ok=True)
            with files.trace.open("a"):
                pass
        except OSError as error:
            raise UsageError.of(
                "output-not-writable",
                f"{files.trace} cannot be written: {error.strerror}",
                hint="give another place with --output-file",
            ) from None
        return files

    def write(self, results: Results, summary: dict[str, Any], *, plot: bool) -> None:
        results.to_csv(self.trace)
        self.metadata.write_text(json.dumps({**summary, **results.metadata}, indent=2) + "\n", encoding="utf-8")
        if plot:
            self._write_plot(results, summary)

    def _write_plot(self, results: Results, summary: dict[str, Any]) -> None:
        names = [name for name in summary["ports"] if name in results.names]
        try:
            results.plot(*names, path=self.plot, title=summary["name"])
        except CosimError as error:
            self.plot_note = f"no plot: {error.diagnostics[0].message} ({error.diagnostics[0].hint})"


@contextmanager
def _progress(name: str, ticks: int) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn("steps"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=ticks)
        every = max(1, ticks // 200)

        def on_tick(tick: int) -> None:
            if tick % every == 0:
                progress.update(task, completed=tick)

        yield on_tick


def _summary(system: System, results: Results, elapsed: float, ended: list[BaseException]) -> dict[str, Any]:
    simulated = float(results.time[-1] - results.time[0]) if len(results) else 0.0
    status = "completed"
    if ended:
        status = "failed" if isinstance(ended[0], CosimError) else "interrupted"
    return {
        "name": system.name,
        "status": status,
        "simulated_seconds": simulated,
        "wall_seconds": round(elapsed, 4),
        "real_time_factor": round(simulated / elapsed, 2) if elapsed > 0 else None,
        "rows": len(results),
        "columns": len(results.columns),
        "ports": {
            name: {
                "unit": results.unit(name),
                "first": float(results[name][0]),
                "last": float(results[name][-1]),
                "minimum": float(np.min(results[name])),
                "maximum": float(np.max(results[name])),
            }
            for name in _summary_ports(system, results)
        },
        "diagnostics": [d.as_dict() for d in results.diagnostics],
    }


def _summary_ports(system: System, results: Results) -> list[str]:
    """The ports that the stage names for its summary, else the first outputs of its programs."""
    if not len(results):
        return []
    patterns = system.description.summary
    if patterns:
        return [n for p in patterns for n in results.names if matches(PortRef.parse(n), p)]
    programs = {p.program.path for p in system.programs}
    outputs = [n for n in results.names if ".outputs:" in n]
    own = [n for n in outputs if n.partition(".")[0] in programs]
    return (own or outputs)[:SUMMARY_ROWS]


def _report(summary: dict[str, Any], files: _Files, results: Results, options: argparse.Namespace) -> None:
    written = [str(files.trace), str(files.metadata)]
    if not options.no_plot and not files.plot_note:
        written.append(str(files.plot))
    if options.json:
        json.dump({**summary, "files": written}, sys.stdout, indent=2)
        print()
        return
    print(
        f"{summary['name']}: {summary['status']}, {summary['simulated_seconds']:g} s simulated in "
        f"{summary['wall_seconds']:.2f} s ({summary['real_time_factor'] or 0:.0f} × real time), "
        f"{summary['rows']} communication points, {summary['columns']} ports recorded"
    )
    if summary["ports"]:
        width = max(len(name) for name in summary["ports"])
        print(f"  {'port':<{width}}  {'first':>12}  {'last':>12}  {'min':>12}  {'max':>12}  unit")
        for name, row in summary["ports"].items():
            # Adding 0.0 makes a negative zero a plain one.
            cells = "  ".join(f"{row[key] + 0.0:>12.6g}" for key in ("first", "last", "minimum", "maximum"))
            print(f"  {name:<{width}}  {cells}  {row['unit']}".rstrip())
    if summary.get("stopped"):
        print(f"  stopped by the scenario: {summary['stopped']}")
    for row in summary.get("assertions", ()):
        print(f"  {'holds ' if row['passed'] else 'FAILED'}  {row['assertion']}: {row['detail']}")
    findings = count_findings(d for d in results.diagnostics if d.severity >= Severity.WARNING)
    if findings and not options.verbose:
        print(f"  {findings} of the stage: `cosim check {options.stage}` lists them")
    print(f"  written: {', '.join(written)}")
    if files.plot_note:
        print(f"  {files.plot_note}")
