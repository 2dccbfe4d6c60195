"""FMUs that bring C sources: compile them where this platform has no binary."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

from cosim.diagnostic import FmuError, SourceLocation
from cosim.fmi.description import Capabilities, Description
from cosim.native.toolchain import compile_shared

_C_SUFFIXES = (".c",)


@dataclass(slots=True)
class _Build:
    files: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    defines: dict[str, str] = field(default_factory=dict)


def compile_sources(folder: Path, description: Description, interface: Capabilities) -> Path | None:
    """The library made from the sources of an FMU, from the cache where it was made before.

    Args:
        folder: of the extracted FMU.
        description: of the FMU.
        interface: whose sources to compile.

    Returns:
        None if the FMU has no C sources for this interface.

    Raises:
        CosimError: they do not compile, or leave their folder.
    """
    sources = folder / "sources"
    if not sources.is_dir():
        return None
    build = _third(sources, interface) if description.major == 3 else _second(interface)
    if build is None or not build.files:
        return None
    files = [_inside(sources, name) for name in build.files]
    includes = dict.fromkeys(
        [sources, *(_inside(sources, name) for name in build.includes), *(f.parent for f in files), *_headers()]
    )
    return compile_shared(
        files, name=interface.model_identifier, include_dirs=list(includes), defines=build.defines, flags=["-O2"]
    )


def _second(interface: Capabilities) -> _Build:
    # Sources may be written with a prefix for static linking (FMI 2.0.4, section 2.1.1); this turns it off.
    files = [name for name in interface.source_files if name.endswith(_C_SUFFIXES)]
    return _Build(files, defines={"FMI2_OVERRIDE_FUNCTION_PREFIX": "", "DISABLE_PREFIX": ""})


def _third(sources: Path, interface: Capabilities) -> _Build | None:
    """The first C build configuration of this interface (FMI 3.0, section 2.5.1.4.1)."""
    from lxml import etree

    file = sources / "buildDescription.xml"
    if not file.is_file():
        return None
    try:
        root = etree.parse(file, etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True)).getroot()
    except etree.XMLSyntaxError as error:
        raise FmuError.of(
            "fmu-description-invalid",
            f"buildDescription.xml is not well-formed: {error.msg}",
            SourceLocation(layer=str(file), line=error.lineno or None),
        ) from None
    for configuration in root.iterfind("BuildConfiguration"):
        if configuration.get("modelIdentifier") != interface.model_identifier:
            continue
        build = _Build(defines={"FMI3_OVERRIDE_FUNCTION_PREFIX": ""})
        build.files = [
            f.get("name", "")
            for f in configuration.iterfind("SourceFileSet/SourceFile")
            if f.get("name", "").endswith(_C_SUFFIXES)
        ]
        build.includes = [i.get("name", "") for i in configuration.iterfind("SourceFileSet/IncludeDirectory")]
        for definition in configuration.iterfind("SourceFileSet/PreprocessorDefinition"):
            build.defines[definition.get("name", "")] = definition.get("value", "")
        return build
    return None


def _inside(sources: Path, name: str) -> Path:
    path = (sources / name).resolve()
    if not path.is_relative_to(sources.resolve()) or not path.exists():
        raise FmuError.of(
            "fmu-source-invalid",
            f"the FMU names a source {name[:200]!r}, which is not in its sources folder",
            SourceLocation(layer=str(sources)),
        )
    return path


def _headers() -> list[Path]:
    """The standard's C headers, which few FMUs bring along."""
    package = importlib.util.find_spec("fmpy")  # does not import it
    if package is None or package.origin is None:
        return []
    folder = Path(package.origin).parent / "c-code"
    return [folder] if folder.is_dir() else []
