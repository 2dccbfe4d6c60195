"""Open an FMU, and load its shared library: one extraction, one dlopen and one symbol table per content."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.diagnostic import CosimError, Diagnostic, DiagnosticLog, FmuError, SourceLocation
from cosim.fmi.archive import ArchiveLimits, content_hash, extract
from cosim.fmi.description import Capabilities, Description
from cosim.fmi.model_description import read_description
from cosim.fmi.source import compile_sources
from cosim.native.toolchain import library_suffix


@dataclass(frozen=True, slots=True)
class Fmu:
    """An FMU that was read: what it says, and where its files are.

    Attributes:
        path: the `.fmu` file.
        sha256: hash of its content.
        folder: where it is extracted; shared by all FMUs of the same content.
        description: the model description.
    """

    path: Path
    sha256: str
    folder: Path
    description: Description

    @property
    def where(self) -> SourceLocation:
        """The FMU as a location."""
        return SourceLocation(layer=str(self.path))

    @property
    def resources(self) -> Path:
        """Its resources folder; made if the archive has none, since FMUs expect one."""
        folder = self.folder / "resources"
        folder.mkdir(exist_ok=True)
        return folder


_read: dict[str, tuple[Path, Description, tuple[Diagnostic, ...]]] = {}


def open_fmu(path: Path, *, log: DiagnosticLog, limits: ArchiveLimits | None = None) -> Fmu:
    """Unpack and read an FMU; nothing of it runs yet.

    Args:
        path: the `.fmu` file.
        log: gets what is odd about it.
        limits: caps on what the archive may unpack to.

    Raises:
        FmuError: it cannot be read, or cannot run here.
    """
    path = Path(path).absolute()
    sha256 = content_hash(path)
    known = _read.get(sha256)
    if known is None or not known[0].is_dir():
        folder = extract(path, sha256, limits=limits)
        found = DiagnosticLog()
        description = read_description(folder / "modelDescription.xml", str(path), found)
        known = _read[sha256] = (folder, description, tuple(found))
    folder, description, findings = known
    log.extend(findings)
    fmu = Fmu(path, sha256, folder, description)
    _check_can_run(fmu)
    return fmu


def _check_can_run(fmu: Fmu) -> None:
    description = fmu.description
    interface = description.co_simulation or description.model_exchange
    if description.major == 1:
        raise FmuError.of("fmu-version-unsupported", "this is an FMI 1.0 FMU", fmu.where, "FMI 2.0 and 3.0 run here")
    if interface is None:
        raise FmuError.of(
            "fmu-interface-missing",
            f"{description.model_name} has neither a co-simulation nor a model exchange interface",
            fmu.where,
            hint="export the model for co-simulation",
        )
    if interface.needs_execution_tool:
        raise FmuError.of(
            "fmu-needs-tool",
            f"{description.model_name} needs the tool that made it ({description.generation_tool or 'not named'}) to "
            "run: it declares needsExecutionTool",
            fmu.where,
            hint="export it as a stand-alone FMU",
        )
    library_path(fmu, interface)


# ---- the library of this platform


def platform_folders(major: int) -> tuple[str, ...]:
    """Names of the binaries folder for this machine, best first (FMI 2.0.4 section 2.3, FMI 3.0 section 2.5.1.3)."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64", "i386": "x86", "i686": "x86"}.get(machine, machine)
    if sys.maxsize < 2**32 and architecture == "x86_64":
        architecture = "x86"
    third = f"{architecture}-{system}"
    if major == 3:
        return (third,)
    bits = {"x86_64": "64", "x86": "32", "aarch64": "64"}.get(architecture, architecture)
    second = {"linux": "linux", "darwin": "darwin", "windows": "win"}.get(system, system) + bits
    # FMI 2 has no names for ARM; exporters use the FMI 3 name, and universal binaries darwin64.
    return (second, third) if architecture in ("x86_64", "x86") else (third, second)


def library_path(fmu: Fmu, interface: Capabilities) -> Path:
    """The shared library for this platform, compiled from the FMU's sources where it has none.

    Raises:
        FmuError: it has neither.
    """
    binaries = fmu.folder / "binaries"
    folders = platform_folders(fmu.description.major)
    for folder in folders:
        file = binaries / folder / (interface.model_identifier + library_suffix())
        if file.is_file():
            return file
    try:
        compiled = compile_sources(fmu.folder, fmu.description, interface)
    except CosimError as error:
        raise FmuError(*_missing(fmu, folders, interface).diagnostics, *error.diagnostics) from None
    if compiled is None:
        raise _missing(fmu, folders, interface)
    return compiled


def _missing(fmu: Fmu, folders: Sequence[str], interface: Capabilities) -> FmuError:
    binaries = fmu.folder / "binaries"
    inside = sorted(
        f"{folder.name} ({', '.join(sorted(f.name for f in folder.iterdir())[:4])})"
        for folder in (binaries.iterdir() if binaries.is_dir() else ())
        if folder.is_dir()
    )
    return FmuError.of(
        "fmu-platform-missing",
        f"{fmu.path.name} has no binary {folders[0]}/{interface.model_identifier}{library_suffix()} for this platform; "
        f"inside: {', '.join(inside) or 'no binaries'}, and no sources that compile here",
        fmu.where,
        hint="export it for this platform, or with its sources",
    )


class Library:
    """A loaded shared library. Functions are looked up once, when they are first needed."""

    def __init__(self, fmu: Fmu, file: Path, identifier: str) -> None:
        self.fmu = fmu
        self.file = file
        self.identifier = identifier
        self.prefix = f"fmi{fmu.description.major}"
        self.live = 0
        self.resources = fmu.resources
        self._functions: dict[str, Any] = {}
        try:
            if sys.platform == "win32":
                with os.add_dll_directory(str(file.parent)):
                    self._library = ctypes.CDLL(str(file), winmode=0)
            else:
                self._library = ctypes.CDLL(str(file))
        except OSError as error:
            raise FmuError.of(
                "fmu-library-unloadable",
                f"the library {file.name} of {fmu.path.name} cannot be loaded: {error}",
                fmu.where,
                hint="install the shared library that the message names, or export the FMU with its libraries inside",
            ) from None

    def find(self, name: str) -> Any | None:
        """The function `fmi2<name>` or `fmi3<name>`, None if the library does not have it."""
        if name not in self._functions:
            function = getattr(self._library, self.prefix + name, None)
            if function is None:
                # A library made from the sources of FMI 2 may carry the prefix that they are written with.
                function = getattr(self._library, f"{self.identifier}_{self.prefix}{name}", None)
            if function is not None:
                function.restype = ctypes.c_int
            self._functions[name] = function
        return self._functions[name]

    def function(self, name: str) -> Any:
        """The function, which must be there.

        Raises:
            FmuError: the library does not have it.
        """
        found = self.find(name)
        if found is None:
            raise FmuError.of(
                "fmu-symbol-missing",
                f"the library {self.file.name} of {self.fmu.path.name} has no function {self.prefix}{name}",
                self.fmu.where,
                hint="the FMU is incomplete: export it again",
            )
        return found


_libraries: dict[tuple[str, str], Library] = {}


def load_library(fmu: Fmu, interface: Capabilities) -> Library:
    """The library of an FMU, loaded once per content; a second instance of a once-per-process FMU gets a copy."""
    key = (fmu.sha256, interface.model_identifier)
    library = _libraries.get(key)
    if library is None:
        library = _libraries[key] = Library(fmu, library_path(fmu, interface), interface.model_identifier)
    if interface.once_per_process and library.live:
        return _private_copy(library)
    return library


def _private_copy(library: Library) -> Library:
    """The same library under another name: the loader gives it globals of its own."""
    with tempfile.TemporaryDirectory(prefix="cosim-fmu-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / f"own-{library.file.name}"
        shutil.copy2(library.file, file)
        return Library(library.fmu, file, library.identifier)
