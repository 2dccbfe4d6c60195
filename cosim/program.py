"""From program prims to FMU components: find the source, compile it if it is Modelica, open it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.component import Component
from cosim.diagnostic import CosimError, DiagnosticLog
from cosim.fmi import Fmu, FmuComponent, open_fmu
from cosim.modelica import build_fmu
from cosim.resource import programs_folder
from cosim.system import Program, ProgramKind

if TYPE_CHECKING:
    from cosim.fmi import IsolatedFmuComponent


class Isolation(enum.StrEnum):
    """Which FMUs run in a process of their own, where a crash or a hang cannot take the run down.

    AUTO isolates FMU files from outside the program path; Modelica programs run in-process.
    """

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program whose FMU is at hand.

    Attributes:
        program: what the stage says.
        fmu: the opened FMU.
        source: the file that served it (a .mo, a .fmu, or "inline").
        is_isolated: whether it runs in a process of its own.
    """

    program: Program
    fmu: Fmu
    source: str
    is_isolated: bool = False

    def fmu_is_below(self, folders: Sequence[Path]) -> bool:
        """Whether it was compiled here, or comes from one of these folders."""
        if not self.source.lower().endswith(".fmu"):
            return True
        return any(Path(self.source).resolve().is_relative_to(folder.resolve()) for folder in folders)

    def component(self, log: DiagnosticLog) -> Component:
        """A fresh component, for one run."""
        make: type[FmuComponent] | type[IsolatedFmuComponent] = FmuComponent
        if self.is_isolated:
            from cosim.fmi import IsolatedFmuComponent

            make = IsolatedFmuComponent
        return make(
            self.fmu,
            self.program.path,
            variables=dict(self.program.variables),
            period=self.program.period,
            where=self.program.where,
            log=log,
        )


def resolve_programs(
    programs: Sequence[Program],
    *,
    program_path: Sequence[Path] = (),
    fmi_version: str = "2.0",
    isolation: Isolation = Isolation.AUTO,
    log: DiagnosticLog,
) -> tuple[ResolvedProgram, ...]:
    """Find, compile and open the source of every program.

    Args:
        programs: as authored.
        program_path: folders that may serve a source that is not where the stage says, before `fmus/`.
        fmi_version: the FMI version that Modelica programs are compiled to.
        isolation: which FMUs run in a process of their own.
        log: gets a finding for each program that cannot run.
    """
    found = []
    for program in programs:
        try:
            resolved = _resolve(program, (*program_path, programs_folder()), fmi_version, log)
        except CosimError as error:
            # A missing compiler is said once, not for each program.
            log.extend(d for d in error.diagnostics if d not in log.items)
            continue
        if resolved is not None:
            trusted = resolved.fmu_is_below((*program_path, programs_folder()))
            isolated = isolation is Isolation.ALWAYS or (isolation is Isolation.AUTO and not trusted)
            found.append(replace(resolved, is_isolated=isolated))
    return tuple(found)


def _resolve(program: Program, folders: Sequence[Path], fmi_version: str, log: DiagnosticLog) -> ResolvedProgram | None:
    if program.kind is ProgramKind.SSP:
        log.error("program-unsupported", f"{program.authored_source} is an SSP, which cannot run yet", program.where)
        return None
    source: Path | None = None
    if program.code is None:
        source = _find_source(program, folders, log)
        if source is None:
            return None
    if source is not None and source.suffix.lower() == ".fmu":
        return ResolvedProgram(program, open_fmu(source, log=log), str(source))
    built = build_fmu(
        source,
        code=program.code,
        class_name=program.class_name,
        fmi_version=fmi_version,
        library_path=[f for f in folders if f.is_dir()],
        log=log,
    )
    return ResolvedProgram(program, open_fmu(built.path, log=log), str(source) if source else "inline")


def _find_source(program: Program, folders: Sequence[Path], log: DiagnosticLog) -> Path | None:
    """The authored file, else a .fmu or .mo of the same class from the program path."""
    authored = Path(program.source)
    if authored.is_file():
        return authored
    name = program.class_name.rpartition(".")[2] or authored.stem
    for folder in folders:
        for suffix in (".fmu", ".mo"):
            for served in sorted(folder.rglob(f"{name}{suffix}")):
                log.info(
                    "program-served",
                    f"@{program.authored_source}@ is not there; {served} of the program path serves {name}",
                    program.where,
                )
                return served
    searched = ", ".join(str(f) for f in folders)
    unknown_root = "://" in program.source
    log.error(
        "asset-root-unknown" if unknown_root else "program-not-found",
        f"the program @{program.authored_source}@ is not there, and no {name}.fmu or {name}.mo in {searched}",
        program.where,
        hint=(
            f"give the folder of the asset root: --asset-root {program.source.partition('://')[0]}=DIR"
            if unknown_root
            else "correct info:sourceAsset, or give a folder that has it with --program-path DIR"
        ),
    )
    return None
