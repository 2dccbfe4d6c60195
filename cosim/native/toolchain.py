"""Compiling C99 to shared libraries with whatever compiler is there.

The order is `$CC`, cc, gcc, clang, and at last the compiler that `ziglang` brings by pip. Libraries
are cached by content in the user's cache folder, written aside and renamed, so that processes that
compile the same thing at the same time do not disturb each other.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosim.diagnostic import CosimError, UsageError

# No fused multiply-add: the same source gives the same bits on every x86-64 and ARM.
_FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-fvisibility=default", "-w")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler.

    Attributes:
        command: how it is called.
        name: "gcc", "ziglang" … for messages.
    """

    command: tuple[str, ...]
    name: str

    @property
    def identity(self) -> str:
        """Changes when the compiler does, without calling it."""
        program = shutil.which(self.command[0]) or self.command[0]
        try:
            found = Path(program).resolve().stat()
            return f"{' '.join(self.command)} {found.st_size} {found.st_mtime_ns}"
        except OSError:
            return " ".join(self.command)


def cache_folder() -> Path:
    """The user's cache folder for cosim; `$COSIM_CACHE_DIR` sets another one."""
    chosen = os.environ.get("COSIM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "usd-cosim"


def find_compiler() -> Compiler:
    """The C compiler that is used.

    Raises:
        UsageError: `$CC` names none, or there is none at all.
    """
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        command = tuple(shlex.split(chosen))
        if shutil.which(command[0]) is None:
            raise UsageError.of(
                "toolchain-missing", f"$CC is {chosen!r}, which is no program", hint="correct CC, or unset it"
            )
        return Compiler(command, Path(command[0]).name)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return Compiler((name,), name)
    if importlib.util.find_spec("ziglang") is not None:
        return _zig()
    raise UsageError.of(
        "toolchain-missing",
        "there is no C compiler: Modelica programs cannot be compiled",
        hint='pip install "usd-cosim[zig]" brings one; or install gcc or clang, or set CC',
    )


def _zig() -> Compiler:
    return Compiler((sys.executable, "-m", "ziglang", "cc"), "ziglang")


def library_suffix(target: str | None = None) -> str:
    """ ".so", ".dll" or ".dylib" of a target triple, or of this machine."""
    where = target or sys.platform
    if "win" in where and "darwin" not in where:
        return ".dll"
    return ".dylib" if "darwin" in where or "macos" in where else ".so"


def compile_shared(
    sources: Sequence[Path],
    *,
    name: str,
    include_dirs: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    target: str | None = None,
) -> Path:
    """Compile C99 sources to one shared library, or take it from the cache.

    Args:
        sources: C files.
        name: of the library, without suffix.
        include_dirs: folders with headers; their .h and .c files count as content.
        defines: preprocessor definitions.
        flags: further options.
        target: a zig target triple for cross compilation, such as "x86_64-windows-gnu".

    Returns:
        The library in the cache folder. The same content gives the same path.

    Raises:
        CosimError: there is no compiler, or it refuses the source.
    """
    compiler = _zig() if target else find_compiler()
    if target and importlib.util.find_spec("ziglang") is None:
        raise UsageError.of(
            "toolchain-missing",
            f"compiling for {target} needs ziglang",
            hint='pip install "usd-cosim[zig]"',
        )
    options = [*_FLAGS, *(f"-D{k}={v}" if v else f"-D{k}" for k, v in sorted((defines or {}).items())), *flags]
    if target:
        options += ["-target", target]
    key = _key(compiler, sources, include_dirs, [name, *options])
    library = cache_folder() / "lib" / key[:2] / key / f"{name}{library_suffix(target)}"
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        _compile(compiler, sources, include_dirs, options, library, target)
    return library


def _key(compiler: Compiler, sources: Sequence[Path], include_dirs: Sequence[Path], options: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in (compiler.identity, sys.platform, *options):
        digest.update(text.encode() + b"\0")
    headers = [p for folder in include_dirs for p in sorted(folder.iterdir()) if p.suffix in (".h", ".c")]
    for path in (*sources, *headers):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _compile(
    compiler: Compiler,
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    options: Sequence[str],
    library: Path,
    target: str | None,
) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".build-") as folder:
        # Compiled from a folder of its own by relative names, so that no path gets into the library.
        local = []
        for source in sources:
            shutil.copyfile(source, Path(folder) / source.name)
            local.append(source.name)
        output = f"out{library.suffix}"
        command = [*compiler.command, "-shared", *options, *(f"-I{d.resolve()}" for d in include_dirs)]
        if library.suffix != ".dll":
            command.append("-fPIC")
        command += [*local, "-o", output]
        if library.suffix == ".so":
            command.append("-lm")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not (Path(folder) / output).is_file():
            raise CosimError.of(
                "toolchain-failed",
                f"{compiler.name} cannot compile {library.stem}"
                + (f" for {target}" if target else "")
                + f" (exit code {done.returncode}):\n"
                + "\n".join((done.stderr or done.stdout).strip().splitlines()[:12]),
                hint="set CC to another compiler",
            )
        # Whoever comes second replaces the same bytes.
        (Path(folder) / output).replace(library)


@functools.cache
def describe_compiler() -> str:
    """One line about the compiler, for provenance."""
    compiler = find_compiler()
    done = subprocess.run([*compiler.command, "--version"], capture_output=True, text=True, check=False)
    first = done.stdout.strip().splitlines()[:1]
    return f"{compiler.name}: {first[0]}" if first else compiler.name
