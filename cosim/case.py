"""Regression cases on disk: a program or a stage with the files that stand beside it.

The files of a case of `X.fmu`, `X.mo` or `X.usda` have the names of the FMI cross-check and of the
Reference-FMUs:

* `X_ref.csv` (or `X_out.csv`): the reference trace;
* `X_ref.opt`: StartTime, StopTime, StepSize, RelTol; what it leaves out is taken from the reference;
* `X_in.csv`: the inputs of a program;
* `X_ref.json`: what the reference was made with, and why it was last changed; written on an update.

An FMU may also carry experiments with references inside, and `X.exp` may describe some of `X.fmu`
(`cosim.ls_ref`); each of them is a case.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosim.diagnostic import CosimError, Diagnostic, DiagnosticLog, SourceLocation, UsageError
from cosim.fmi import open_fmu
from cosim.ls_ref import MANIFEST, FmuExperiment, embedded_experiments, read_experiments

PROGRAM_SUFFIXES = (".fmu", ".mo")
STAGE_SUFFIXES = (".usda", ".usd", ".usdc", ".usdz")
REFERENCE_ENDINGS = ("_ref.csv", "_out.csv")


@dataclass(frozen=True, slots=True)
class Case:
    """A subject with its reference.

    Attributes:
        subject: a .fmu, a .mo or a stage.
        reference: the reference trace; it need not exist before an update.
        experiment: what inside the FMU, or in the `.exp` file, says how to run it; None for the files beside it.
        trouble: why the experiments of the FMU cannot be read.
    """

    subject: Path
    reference: Path
    experiment: FmuExperiment | None = None
    trouble: tuple[Diagnostic, ...] = ()

    @property
    def name(self) -> str:
        """The file name of the subject, with the name of the experiment."""
        return self.subject.name + (f"#{self.experiment.name}" if self.experiment else "")

    @property
    def is_stage(self) -> bool:
        """Whether the subject is a stage."""
        return self.subject.suffix.lower() in STAGE_SUFFIXES

    def beside(self, ending: str) -> Path:
        """A file of this case, such as `_in.csv`."""
        return self.subject.with_name(self.subject.stem + ending)


def find_cases(paths: Sequence[Path | str], *, new: bool = False) -> tuple[Case, ...]:
    """The cases of files and folders, sorted.

    Args:
        paths: subjects, or folders whose subjects with a reference are taken.
        new: take a subject that is given itself even if it has no reference yet.

    Raises:
        UsageError: a path is not there, or there is no case.
    """
    found: dict[tuple[Path, str], Case] = {}
    for path in map(Path, paths):
        cases = list(_cases_of(path)) if path.is_dir() else list(_case(path, new=new))
        if not cases:
            hint = "a case is X.fmu, X.mo or X.usda with X_ref.csv or X_out.csv beside it"
            raise UsageError.of("case-not-found", f"there is no case in {path}", hint=hint)
        found.update(((c.subject.resolve(), c.name), c) for c in cases)
    return tuple(found[key] for key in sorted(found))


def _cases_of(folder: Path) -> Iterator[Case]:
    for subject in sorted(folder.rglob("*")):
        if subject.suffix.lower() in PROGRAM_SUFFIXES + STAGE_SUFFIXES and subject.is_file():
            reference = _reference(subject)
            if reference is not None:
                yield Case(subject, reference)
            yield from cases_inside(subject)


def cases_inside(subject: Path) -> Iterator[Case]:
    """The experiments inside an FMU and those of the `.exp` file beside it; what is wrong with them fails as a case."""
    if subject.suffix.lower() != ".fmu":
        return
    try:
        found = [Case(subject, e.reference, e) for e in _embedded(subject)]
        beside = subject.with_suffix(".exp")
        found += [Case(subject, e.reference, e) for e in (read_experiments(beside) if beside.is_file() else ())]
    except CosimError as error:
        yield Case(subject, subject, trouble=error.diagnostics)
        return
    yield from found


def _embedded(subject: Path) -> tuple[FmuExperiment, ...]:
    try:
        with zipfile.ZipFile(subject) as archive:
            if MANIFEST not in archive.namelist():
                return ()
    except (OSError, zipfile.BadZipFile):
        # If there is a reference beside it, running it says what is wrong with the file.
        return ()
    return embedded_experiments(open_fmu(subject, log=DiagnosticLog()).folder)


def cases_of_reference(reference: Path) -> tuple[Case, ...]:
    """The subjects whose reference a file is, sorted."""
    ending = next((e for e in REFERENCE_ENDINGS if reference.name.endswith(e)), "")
    stem = reference.name.removesuffix(ending)
    subjects = (reference.with_name(stem + suffix) for suffix in PROGRAM_SUFFIXES + STAGE_SUFFIXES)
    return tuple(Case(s, reference) for s in subjects if s.is_file() and _reference(s) == reference)


def _case(subject: Path, *, new: bool) -> Iterator[Case]:
    if not subject.is_file():
        raise UsageError.of("case-not-found", f"{subject} does not exist")
    if subject.suffix.lower() == ".exp":
        fmu = subject.with_suffix(".fmu")
        if not fmu.is_file():
            raise UsageError.of("case-not-found", f"{subject.name} describes {fmu.name}, which is not beside it")
        yield from (Case(fmu, e.reference, e) for e in read_experiments(subject))
        return
    if subject.suffix.lower() not in PROGRAM_SUFFIXES + STAGE_SUFFIXES:
        hint = "give a .fmu, .mo, .usda or .exp"
        raise UsageError.of("case-not-found", f"{subject} is no program, stage or experiment", hint=hint)
    reference, experiments = _reference(subject), list(cases_inside(subject))
    if reference is None and not new and not experiments:
        raise UsageError.of(
            "case-reference-missing",
            f"{subject} has no reference: neither {subject.stem}_ref.csv nor {subject.stem}_out.csv is beside it",
            hint='make one: cosim test --update --reason "first reference"',
        )
    if reference is not None or not experiments:
        yield Case(subject, reference or subject.with_name(subject.stem + REFERENCE_ENDINGS[0]))
    yield from experiments


def _reference(subject: Path) -> Path | None:
    paths = (subject.with_name(subject.stem + ending) for ending in REFERENCE_ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def read_options(path: Path) -> dict[str, float]:
    """Read a `_ref.opt` file of the FMI cross-check: lines `Name, number`; {} if there is none.

    Raises:
        UsageError: a line is not of this form.
    """
    if not path.is_file():
        return {}
    options: dict[str, float] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("//")[0].strip()
        if not text:
            continue
        name, _, value = text.replace("=", ",").partition(",")
        try:
            options[name.strip()] = float(value.strip().strip('"'))
            if not math.isfinite(options[name.strip()]):
                raise ValueError
        except ValueError:
            where = SourceLocation(str(path), line=number)
            hint = "lines such as `StepSize, 0.01`"
            raise UsageError.of("case-options-invalid", f"{text!r} is not `Name, number`", where, hint) from None
    return options
