"""FMUs without a binary for this platform: their C sources are compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.diagnostic import DiagnosticLog, FmuError
from cosim.fmi import open_fmu
from tests.fmi.fmi_zoo import HERE, REAL_2, REAL_3, Bench, describe, pack

BUILD = (
    '<fmiBuildDescription fmiVersion="3.0"><BuildConfiguration modelIdentifier="zoo"><SourceFileSet language="C99">'
    '<SourceFile name="inner/zoo3.c"/><PreprocessorDefinition name="ONLY_REAL" value="1"/></SourceFileSet>'
    "</BuildConfiguration></fmiBuildDescription>"
)


def _second(file: str) -> str:
    xml = describe("2.0", REAL_2)
    start = xml.index("<CoSimulation")
    end = xml.index("/>", start)
    return f'{xml[:end]}><SourceFiles><File name="{file}"/></SourceFiles></CoSimulation>{xml[end + 2 :]}'


def _fmu(folder: Path, version: str, **extra: str) -> Path:
    text = (HERE / f"zoo{version[0]}.c").read_text()
    if version == "2.0":
        content = {"modelDescription.xml": _second("zoo2.c"), "sources/zoo2.c": text}
    else:
        content = {
            "modelDescription.xml": describe("3.0", REAL_3),
            "sources/buildDescription.xml": BUILD,
            "sources/inner/zoo3.c": text,
        }
    return pack(folder / "source.fmu", {**content, **extra})


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_sources_are_compiled_and_run(tmp_path: Path, version: str) -> None:
    with Bench(_fmu(tmp_path, version), ["u"], ["y"]) as bench:
        bench.start(gain=3.0)
        bench.set(u=2.0)
        bench.step()
        assert bench.get() == {"y": 6.0}


def test_sources_that_do_not_compile(tmp_path: Path) -> None:
    with pytest.raises(FmuError) as error:
        open_fmu(_fmu(tmp_path, "2.0", **{"sources/zoo2.c": "no C at all"}), log=DiagnosticLog())
    assert [d.code for d in error.value.diagnostics] == ["fmu-platform-missing", "toolchain-failed"]


@pytest.mark.parametrize("name", ["../modelDescription.c", "absent.c"])
def test_sources_outside_their_folder(tmp_path: Path, name: str) -> None:
    content = {"modelDescription.xml": _second(name), "modelDescription.c": "int x;", "sources/zoo2.c": ""}
    with pytest.raises(FmuError) as error:
        open_fmu(pack(tmp_path / "bad.fmu", content), log=DiagnosticLog())
    assert error.value.diagnostics[-1].code == "fmu-source-invalid"


def test_a_build_description_that_is_broken(tmp_path: Path) -> None:
    with pytest.raises(FmuError, match=r"buildDescription\.xml is not well-formed"):
        open_fmu(_fmu(tmp_path, "3.0", **{"sources/buildDescription.xml": "<a>"}), log=DiagnosticLog())
