"""From a Modelica source to an FMU, cached by content."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from cosim.diagnostic import DiagnosticLog, ModelicaError, SourceLocation, UsageError
from cosim.native.toolchain import cache_folder, compile_shared, find_compiler, library_suffix

VERSIONS = ("2.0", "3.0")
BACKENDS = ("builtin", "omc")
# zig target → FMI platform tuples.
TARGETS = {
    "x86_64-linux": ("x86_64-linux-gnu.2.17", "linux64", "x86_64-linux"),
    "aarch64-linux": ("aarch64-linux-gnu.2.17", "aarch64-linux", "aarch64-linux"),
    "x86_64-windows": ("x86_64-windows-gnu", "win64", "x86_64-windows"),
    "x86_64-darwin": ("x86_64-macos", "darwin64", "x86_64-darwin"),
    "aarch64-darwin": ("aarch64-macos", "darwin64", "aarch64-darwin"),
}
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class BuiltFmu:
    """A compiled program.

    Attributes:
        path: the FMU.
        class_name: the Modelica class.
        sha256: of the file.
        states: continuous states.
        inputs: names of inputs.
        outputs: names of outputs.
        seconds: that it took.
        cached: whether it was there already.
        warnings: what the compiler took otherwise than strictly written.
    """

    path: Path
    class_name: str
    sha256: str
    states: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    seconds: float
    cached: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be built; the arguments of `build_fmu`, with the text read."""

    text: str
    file: str
    source: Path | None
    class_name: str
    version: str
    library_path: tuple[Path, ...]
    platforms: tuple[str, ...]
    backend: str


def build_fmu(
    source: Path | None,
    *,
    code: str | None = None,
    class_name: str = "",
    fmi_version: str = "2.0",
    output: Path | None = None,
    library_path: Sequence[Path] = (),
    platforms: Sequence[str] = (),
    backend: str | None = None,
    log: DiagnosticLog | None = None,
) -> BuiltFmu:
    """Compile a model to a co-simulation FMU, or take it from the cache.

    Args:
        source: a .mo file, or None for `code`.
        code: Modelica text.
        class_name: the class; "" takes the last of the file.
        fmi_version: "2.0" or "3.0".
        output: where a copy of the FMU goes.
        library_path: folders where `Other.mo` serves classes that the source uses.
        platforms: further platforms to compile for, such as "x86_64-windows" (needs ziglang).
        backend: "builtin" or "omc"; None takes `$COSIM_MODELICA`, and builtin without it.
        log: gets remarks on what is taken otherwise than strictly written.

    Raises:
        ModelicaError: the source is wrong or not supported, with line and column.
        UsageError: an unknown version, platform or back end; no C compiler.
    """
    began = time.perf_counter()
    backend = backend or os.environ.get("COSIM_MODELICA") or BACKENDS[0]
    _check_arguments(fmi_version, platforms, backend)
    file, text = _read(source, code)
    order = _Order(text, file, source, class_name, fmi_version, tuple(library_path), tuple(platforms), backend)
    key = _key(order)
    folder = cache_folder() / "fmu" / key[:2] / key
    facts = _cached(folder)
    is_cached = facts is not None
    if facts is None:
        facts = _build(order, folder) if backend == "builtin" else _build_by_omc(order, folder)
    path = folder / facts["file"]
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, output)
        path = output
    if log is not None:
        for remark in facts["warnings"]:
            log.info("modelica-default-is-start", remark, SourceLocation(file))
    return BuiltFmu(
        path,
        facts["class"],
        facts["sha256"],
        facts["states"],
        tuple(facts["inputs"]),
        tuple(facts["outputs"]),
        time.perf_counter() - began,
        is_cached,
        tuple(facts["warnings"]),
    )


def _check_arguments(version: str, platforms: Sequence[str], backend: str) -> None:
    if version not in VERSIONS:
        raise UsageError.of("fmi-version-unknown", f"{version!r} is no FMI version here", hint=" or ".join(VERSIONS))
    for name in platforms:
        if name not in TARGETS:
            raise UsageError.of("platform-unknown", f"{name!r} is no platform", hint=", ".join(sorted(TARGETS)))
    if backend not in BACKENDS:
        known = " or ".join(BACKENDS)
        raise UsageError.of("backend-unknown", f"there is no Modelica back end {backend!r}", hint=known)


def _read(source: Path | None, code: str | None) -> tuple[str, str]:
    if source is None:
        if code is None:
            raise UsageError.of("modelica-source-missing", "neither a file nor a Modelica text is given")
        return "inline.mo", code
    try:
        return str(source), source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of("modelica-unreadable", f"{source} cannot be read: {error}") from None


def _key(order: _Order) -> str:
    """Everything that the FMU depends on, without importing the front end."""
    digest = hashlib.sha256()
    for path in sorted(files("cosim.modelica").iterdir(), key=lambda p: p.name):
        if path.name.endswith((".py", ".c")):
            digest.update(path.read_bytes() + b"\0")
    parts = [
        order.text,
        order.class_name,
        order.version,
        *sorted(order.platforms),
        importlib.metadata.version("rumoca"),
        _compiler_identity(order.backend),
        platform.machine(),
        sys.platform,
        os.environ.get("MODELICAPATH", ""),
        # A file that is part of a package is compiled with what stands beside it.
        str(order.source.resolve().parent) if order.source is not None and "within" in order.text else "",
        *(str(p.resolve()) for p in order.library_path),
    ]
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def _compiler_identity(backend: str) -> str:
    if backend == "builtin":
        return find_compiler().identity
    from cosim.modelica.openmodelica import find_omc

    return find_omc()


def _cached(folder: Path) -> dict[str, Any] | None:
    """The facts of a built FMU whose dependencies are unchanged."""
    try:
        facts: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        for name, sha256 in facts["dependencies"].items():
            if hashlib.sha256(Path(name).read_bytes()).hexdigest() != sha256:
                return None
        return facts if (folder / facts["file"]).is_file() else None
    except (OSError, ValueError, KeyError):
        return None


def _build(order: _Order, folder: Path) -> dict[str, Any]:
    from cosim.modelica.dae import read_dae
    from cosim.modelica.description import build_description, model_description
    from cosim.modelica.expression import Refused
    from cosim.modelica.frontend import choose_class, flatten
    from cosim.modelica.generate_c import generate
    from cosim.modelica.model import compile_model

    file = order.file
    name = choose_class(order.text, order.class_name, file)
    flat = flatten(order.text, name, file, order.source, order.library_path)
    try:
        dae = read_dae(flat.document, flat.declarations, flat.program.place)
        model = compile_model(dae)
    except Refused as error:
        where = error.where or SourceLocation(file)
        raise ModelicaError.of("modelica-unsupported", f"{name}: {error}", where, error.hint) from None
    short = name.rpartition(".")[2]
    identifier = re.sub(r"\W", "_", short)
    source, token = generate(model, short)
    description = model_description(
        model,
        version=order.version,
        name=short,
        identifier=identifier,
        token=token,
        text=_comment(order.text, short),
    )
    binaries = _binaries(source, identifier, order.version, order.platforms)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{identifier}.fmu"
    sources = {f"sources/{identifier}.c": source.encode()}
    if order.version == "3.0":
        sources["sources/buildDescription.xml"] = build_description(identifier).encode()
    _package(path, description, binaries, sources)
    facts = {
        "class": name,
        "states": len(model.states),
        "inputs": [v.name for v in model.inputs],
        "outputs": [v.name for v in model.outputs],
        "warnings": list(flat.remarks),
    }
    return _kept(path, facts, flat.program.files)


def _build_by_omc(order: _Order, folder: Path) -> dict[str, Any]:
    from cosim.modelica.frontend import choose_class
    from cosim.modelica.library import compose
    from cosim.modelica.openmodelica import export

    name = choose_class(order.text, order.class_name, order.file)
    program = compose(order.text, order.file, order.source)
    made = export(program, name, order.version)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.rpartition('.')[2]}.fmu"
    _write(path, made.content)
    facts = {"class": name, "states": made.states, "inputs": made.inputs, "outputs": made.outputs, "warnings": ()}
    return _kept(path, facts, program.files)


def _kept(path: Path, facts: dict[str, Any], files: Sequence[Path]) -> dict[str, Any]:
    """The facts of an FMU, beside it for the next time."""
    facts["file"] = path.name
    facts["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    facts["dependencies"] = {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    _write(path.parent / "facts.json", json.dumps(facts).encode())
    return facts


def _comment(text: str, name: str) -> str:
    """The description string of a class."""
    match = re.search(rf"\b(?:model|block|class)\s+{re.escape(name)}\s+\"((?:\\.|[^\"\\])*)\"", text)
    return " ".join(match.group(1).split()) if match else ""


def _binaries(source: str, identifier: str, version: str, platforms: Sequence[str]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="cosim-") as folder:
        path = Path(folder) / f"{identifier}.c"
        path.write_text(source, encoding="utf-8")
        own = compile_shared([path], name=identifier)
        found = {f"binaries/{own_platform(version)}/{own.name}": own.read_bytes()}
        for name in platforms:
            target, fmi2, fmi3 = TARGETS[name]
            library = compile_shared([path], name=identifier, target=target)
            place = fmi2 if version == "2.0" else fmi3
            found[f"binaries/{place}/{identifier}{library_suffix(target)}"] = library.read_bytes()
    return found


def own_platform(version: str) -> str:
    """The folder of this machine's binary in an FMU."""
    machine = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")
    if version == "3.0" or (machine != "x86_64" and system != "darwin"):
        return f"{machine}-{system}"
    return {"windows": "win64", "darwin": "darwin64", "linux": "linux64"}[system]


def _package(path: Path, description: str, binaries: Mapping[str, bytes], others: Mapping[str, bytes]) -> None:
    """A zip with fixed times and order: the same content gives the same bytes."""
    entries = {"modelDescription.xml": description.encode(), **dict(sorted(binaries.items())), **others}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    _write(path, buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    """Aside and renamed: another process sees all of it or nothing."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)
