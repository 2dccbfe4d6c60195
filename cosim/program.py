"""From program prims to FMU components: find the source, compile it if it is Modelica, open it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cosim.diagnostic import CosimError, DiagnosticLog
from cosim.fmi import Fmu, FmuComponent, open_fmu
from cosim.modelica import build_fmu
from cosim.resource import programs_folder
from cosim.system import Program, ProgramKind


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program whose FMU is at hand.

    Attributes:
        program: what the stage says.
        fmu: the opened FMU.
        source: the file that served it (a .mo, a .fmu, or "inline").
    """

    program: Program
    fmu: Fmu
    source: str

    def component(self, log: DiagnosticLog) -> FmuComponent:
        """A fresh component, for one run."""
        return FmuComponent(
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
    log: DiagnosticLog,
) -> tuple[ResolvedProgram, ...]:
    """Find, compile and open the source of every program.

    Args:
        programs: as authored.
        program_path: folders that may serve a source that is not where the stage says, before `fmus/`.
        fmi_version: the FMI version that Modelica programs are compiled to.
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
            found.append(resolved)
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
