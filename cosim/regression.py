"""Running regression cases and keeping their references.

A reference that was made by the same FMUs, experiment and version is compared exactly, any other
one in a tube (`cosim.compare`); `X_ref.json` says what it was made with.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from cosim.case import Case, read_options
from cosim.compare import Comparison, Level, Tolerance
from cosim.diagnostic import CosimError, Diagnostic, DiagnosticLog, Severity, SourceLocation, UsageError
from cosim.fmi import InputTable, open_fmu, simulate_fmu
from cosim.ls_ref import FmuExperiment
from cosim.modelica import build_fmu
from cosim.result import Column, Results
from cosim.session import Seconds, connections, load, provenance, seconds, versions
from cosim.session import open as open_stage
from cosim.upstream import Connections, furthest_upstream

PHYSICS = ("pybullet", "pybullet-arm64")
DEFAULT_STOP, DEFAULT_STEP = "10", "1/240"


@dataclass(frozen=True, slots=True)
class CaseExperiment:
    """How a case is run.

    Attributes:
        start: [s].
        stop: [s].
        step: communication step size [s], as authored.
        tolerance: relative, of solvers inside FMUs; None leaves it to them.
    """

    start: Seconds
    stop: Seconds
    step: Seconds
    tolerance: float | None = None

    def as_dict(self) -> dict[str, str]:
        """Exact fractions, for the reference's metadata."""
        exact = {"start_time": self.start, "stop_time": self.stop, "step_size": self.step}
        return {name: str(seconds(value)) for name, value in exact.items()}


@dataclass(frozen=True, slots=True)
class Settings:
    """How cases are run and judged; what a case's own files say goes first.

    Attributes:
        level: "exact", "tube", or None: exact where the reference's metadata allows it.
        tolerance: of the tube.
        stop: of a case that has neither a reference nor a `_ref.opt` [s].
        step: likewise [s].
        record: ports of a new reference of a stage; none records what the stage's summary names.
        program_path: folders for the programs of stages.
    """

    level: str | None = None
    tolerance: Tolerance | None = None
    stop: Seconds = DEFAULT_STOP
    step: Seconds = DEFAULT_STEP
    record: tuple[str, ...] = ()
    program_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        case: which.
        comparison: with the reference; None where there is none.
        results: the trace; None if it did not run.
        errors: what stopped it.
        notes: why the comparison was not exact, where it was made by others.
        origin: the differing port that is furthest upstream; "" if none differs.
        metadata: what a reference of this run would carry.
        is_stale: the reference was recorded with something else than what ran now.
        seconds: of wall-clock time.
    """

    case: Case
    comparison: Comparison | None = None
    results: Results | None = None
    errors: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str = ""
    metadata: Mapping[str, Any] | None = None
    is_stale: bool = False
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether it ran and agrees with its reference."""
        return not self.errors and self.comparison is not None and self.comparison.passed

    @property
    def status(self) -> str:
        """passed, failed, new where there is no reference yet, or error where it did not run."""
        if self.passed:
            return "passed"
        if self.results is not None and self.comparison is None:
            return "new"
        return "failed" if self.comparison is not None and not self.errors else "error"

    def explain(self, rows: int = 6) -> str:
        """What is wrong, as text; "" if nothing is."""
        if self.passed:
            return ""
        lines = [str(d) for d in self.errors]
        if self.comparison is not None and not self.comparison.passed:
            lines.append(self.comparison.table(rows))
            if self.origin:
                lines.append(f"furthest upstream: {self.origin}")
        return "\n".join([*lines, *self.notes])

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that `cosim test --json` prints."""
        return {
            "case": str(self.case.subject),
            "reference": str(self.case.reference),
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "origin": self.origin,
            "notes": list(self.notes),
            "errors": [d.as_dict() for d in self.errors],
            "comparison": self.comparison.as_dict() if self.comparison else None,
        }


# ---- running one


def run_case(case: Case, settings: Settings | None = None) -> Outcome:
    """Run a case in this process and compare; errors are part of what comes back."""
    settings = settings or Settings()
    began = time.perf_counter()
    try:
        outcome = _run(case, settings)
    except CosimError as error:
        outcome = Outcome(case, errors=error.diagnostics)
    return replace(outcome, seconds=time.perf_counter() - began)


def _run(case: Case, settings: Settings) -> Outcome:
    if case.trouble:
        return Outcome(case, errors=case.trouble)
    reference = Results.from_csv(case.reference) if case.reference.is_file() else None
    experiment = _experiment(case, reference, settings)
    run = _run_stage if case.is_stage else _run_program
    results, about, wiring = run(case, experiment, reference, settings)
    machine = f"{sys.platform} {platform.machine()}"
    metadata = {**about, **experiment.as_dict(), "machine": machine, "cosim": versions().get("usd-cosim", "")}
    if reference is None:
        missing = Diagnostic(Severity.ERROR, "case-reference-missing", f"{case.reference} does not exist")
        return Outcome(case, results=results, errors=(missing,), metadata=metadata)
    differing = _differences(case, metadata)
    level = settings.level or (Level.EXACT if differing == () else Level.TUBE)
    comparison = results.compare(reference, level=level, tolerance=settings.tolerance)
    notes = tuple(f"the reference was made with {d}" for d in differing or ())
    return Outcome(
        case,
        comparison,
        results,
        notes=notes,
        origin=furthest_upstream(comparison, wiring),
        metadata=metadata,
        is_stale=bool(differing),
    )


def _run_program(
    case: Case, experiment: CaseExperiment, reference: Results | None, settings: Settings
) -> tuple[Results, dict[str, Any], Connections]:
    log = DiagnosticLog()
    path = case.subject
    about: dict[str, Any] = {"subject": case.name}
    if path.suffix.lower() == ".mo":
        about["source_sha256"] = _sha256(path)
        path = build_fmu(path, library_path=[path.parent], log=log).path
    about["fmu_sha256"] = open_fmu(path, log=log).sha256
    driven = case.experiment.stimuli if case.experiment else case.beside("_in.csv")
    table = Results.from_csv(driven) if driven is not None and driven.is_file() else None
    traces = simulate_fmu(
        path,
        inputs=InputTable(table.time, {name: table[name] for name in table.names}) if table else None,
        start_values=dict(case.experiment.start_values) if case.experiment else None,
        outputs=list(reference.names) if reference is not None else None,
        start=seconds(experiment.start),
        stop=seconds(experiment.stop),
        step=seconds(experiment.step),
        tolerance=experiment.tolerance,
        log=log,
    )
    names = [name for name in traces if name != "time"]
    values = np.stack([traces[name] for name in names], 1) if names else np.zeros((len(traces["time"]), 0))
    return Results(traces["time"], values, tuple(map(Column, names)), diagnostics=tuple(log)), about, ()


def _run_stage(
    case: Case, experiment: CaseExperiment, reference: Results | None, settings: Settings
) -> tuple[Results, dict[str, Any], Connections]:
    system = load(case.subject, program_path=settings.program_path)
    record = list(reference.names) if reference is not None else list(settings.record or system.description.summary)
    with open_stage(
        system,
        start=experiment.start,
        stop=experiment.stop,
        step=experiment.step,
        tolerance=experiment.tolerance,
        record=record or None,
    ) as simulation:
        results = simulation.run()
        wiring = connections(simulation.graph)
    made = provenance(system)
    about = {
        "subject": case.name,
        "physics": {name: made["versions"][name] for name in PHYSICS if name in made["versions"]},
        "layers": {Path(name).name: digest for name, digest in sorted(made["layers"].items())},
        "fmu_sha256": {path: program["sha256"] for path, program in sorted(made["programs"].items())},
    }
    return results, about, wiring


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- the experiment


def _experiment(case: Case, reference: Results | None, settings: Settings) -> CaseExperiment:
    options = _authored(case.experiment) if case.experiment else read_options(case.beside("_ref.opt"))
    start: Seconds = 0
    stop, step = settings.stop, settings.step
    if reference is not None and len(reference) > 1:
        start, stop = float(reference.time[0]), float(reference.time[-1])
        step = _step(reference) or step
    return CaseExperiment(
        options.get("StartTime", start),
        options.get("StopTime", stop),
        options.get("StepSize") or step,
        options.get("RelTol"),
    )


def _authored(experiment: FmuExperiment) -> dict[str, float]:
    """What an experiment of an FMU says, in the words of a `_ref.opt` file."""
    said = {
        "StartTime": experiment.start,
        "StopTime": experiment.stop,
        "StepSize": experiment.step,
        "RelTol": experiment.tolerance,
    }
    return {name: value for name, value in said.items() if value is not None}


def _step(reference: Results) -> Fraction | None:
    """The communication step size of a trace: the exact fraction that its times are rounded from."""
    steps = np.diff(reference.time)
    if not np.any(steps > 0):
        return None
    size = float(np.median(steps[steps > 0]))
    return Fraction(size).limit_denominator(100_000) or Fraction(size)


# ---- what a reference was made with


def _differences(case: Case, now: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What differs between now and when the reference was recorded; None if that is not known."""
    path = case.beside("_ref.json")
    if case.experiment is not None or not path.is_file():
        return None
    try:
        then = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(then, dict):
            raise ValueError("it is no JSON object")
    except ValueError as error:
        where = SourceLocation(str(path))
        raise UsageError.of("case-metadata-invalid", f"{path.name} cannot be read: {error}", where) from None
    words = {
        "fmu_sha256": "another FMU",
        "source_sha256": "another Modelica source",
        "layers": "other layers",
        "physics": "another physics engine",
        "machine": "machine",
        "start_time": "start time",
        "stop_time": "stop time",
        "step_size": "step size",
        "cosim": "cosim",
    }
    return tuple(
        f"{words[key]} {then.get(key)} (now {now[key]})"
        if isinstance(now[key], str) and "sha" not in key
        else words[key]
        for key in words
        if key in now and then.get(key) != now[key]
    )


def update_case(outcome: Outcome, reason: str) -> tuple[Path, ...]:
    """Make the trace of a case its reference, where it differs, is stale, or has none; the files written.

    A reference that agrees and was not recorded from this subject is left alone: it may be an independent one.

    Raises:
        UsageError: there is no reason.
        CosimError: the case did not run.
    """
    if not reason.strip():
        raise UsageError.of(
            "update-reason-missing",
            "a reference changes only with a reason: nothing was written",
            hint='--update --reason "why the new trace is right"',
        )
    case, results = outcome.case, outcome.results
    if case.experiment is not None and not outcome.passed:
        message = f"the reference of {case.name} belongs to the FMU: nothing was written"
        raise UsageError.of("case-reference-embedded", message, hint="build the FMU again with a new reference")
    if results is None or outcome.metadata is None:
        raise CosimError(*outcome.errors)
    if outcome.passed and not outcome.is_stale:
        return ()
    results.to_csv(case.reference)
    about = case.beside("_ref.json")
    about.write_text(json.dumps({**outcome.metadata, "reason": reason.strip()}, indent=2) + "\n", encoding="utf-8")
    written = [case.reference, about]
    options = case.beside("_ref.opt")
    if not options.is_file():
        keys = {"StartTime": "start_time", "StopTime": "stop_time", "StepSize": "step_size"}
        lines = [f"{name}, {float(seconds(outcome.metadata[key]))!r}" for name, key in keys.items()]
        options.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.append(options)
    return tuple(written)


# ---- running many


def run_cases(
    cases: Sequence[Case],
    settings: Settings | None = None,
    *,
    jobs: int = 1,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> tuple[Outcome, ...]:
    """Run cases in processes of their own; a subject that takes its process down fails alone.

    Args:
        cases: which.
        settings: of all.
        jobs: processes at a time.
        on_outcome: called with each outcome, in the order of the cases.

    Raises:
        UsageError: jobs is less than one.
    """
    if jobs < 1:
        raise UsageError.of("jobs-invalid", f"{jobs} processes make no sense", hint="give --jobs 1 or more")
    settings = settings or Settings()
    report = on_outcome or (lambda outcome: None)
    outcomes: list[Outcome] = []
    rest = list(cases)
    with ProcessPoolExecutor(min(jobs, len(cases) or 1), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_case, case, settings) for case in rest]
        try:
            for future in futures:
                outcomes.append(future.result())
                report(outcomes[-1])
        except BrokenProcessPool:
            rest = rest[len(outcomes) :]
        else:
            rest = []
    # Which one took the pool down is not known: each of the rest gets a process for itself.
    for case in rest:
        outcomes.append(_run_alone(case, settings))
        report(outcomes[-1])
    return tuple(outcomes)


def _run_alone(case: Case, settings: Settings) -> Outcome:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(run_case, case, settings).result()
        except BrokenProcessPool:
            message = f"the process that ran {case.name} died: a crash or an exit inside an FMU"
            hint = "run it isolated to see where; look at the FMU's binary"
            where = SourceLocation(str(case.subject))
            return Outcome(case, errors=(Diagnostic(Severity.ERROR, "case-process-died", message, where, hint),))
