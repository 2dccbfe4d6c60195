"""Building: the cache, equal bytes, classes, libraries, platforms, and what users do wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import fmpy
import pytest
from modelica_harness import VERSIONS, Fmu, build, refusal

from cosim.diagnostic import CosimError, DiagnosticLog, ModelicaError
from cosim.modelica import build_fmu

GAIN = """
model Gain "a gain"
  parameter Real k = 2;
  input Real u;
  output Real y;
  Real x(start=0, fixed=true);
equation
  y = k*u;
  der(x) = u;
end Gain;
"""


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_facts_about_the_fmu(cold: Path) -> None:
    source = cold / "Gain.mo"
    source.write_text(GAIN)
    built = build_fmu(source, log=DiagnosticLog())
    assert (built.class_name, built.states, built.inputs, built.outputs) == ("Gain", 1, ("u",), ("y",))
    assert not built.cached
    assert built.warnings == ()
    again = build_fmu(source, output=cold / "out" / "copy.fmu", log=DiagnosticLog())
    assert again.cached
    assert again.sha256 == built.sha256
    assert again.path == cold / "out" / "copy.fmu"
    assert again.path.read_bytes() == built.path.read_bytes()


def test_the_same_source_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name in ("one", "other"):
        monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / name))
        found.append(build(GAIN, "3.0").path.read_bytes())
    assert found[0] == found[1]
    with zipfile.ZipFile(tmp_path / "one" / next(p for p in (tmp_path / "one").rglob("*.fmu"))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_hash_seeds_do_not_matter(tmp_path: Path) -> None:
    code = (
        "import sys; from cosim.modelica import build_fmu;"
        "print(build_fmu(None, code=sys.argv[1], fmi_version='2.0').sha256)"
    )
    found = set()
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "COSIM_CACHE_DIR": str(tmp_path / seed), "PATH": "/usr/bin:/bin"}
        run = subprocess.run(
            [sys.executable, "-c", code, GAIN], env=environment, capture_output=True, text=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


def test_a_warm_build_does_not_import_the_front_end() -> None:
    build(GAIN)
    code = (
        "import sys; from cosim.modelica import build_fmu; found = build_fmu(None, code=sys.argv[1]);"
        "assert found.cached; assert not {'rumoca', 'numpy', 'fmpy'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code, GAIN], check=True)


def test_the_only_or_last_or_named_class() -> None:
    code = (
        GAIN.replace("Gain", "First").replace("k = 2", "k = 5")
        + GAIN
        + """
package Lib
  partial block Base
    output Real y;
  end Base;
  function half
    input Real u;
    output Real y;
  algorithm
    y := u/2;
  end half;
  block Last "in a package"
    extends Base;
    model Inner
      Real z = 1;
    end Inner;
  equation
    y = half(1);
  end Last;
end Lib;
"""
    )
    assert build(code).class_name == "Lib.Last"
    assert build(code, class_name="Gain").class_name == "Gain"
    assert build(code, class_name="Last").class_name == "Lib.Last"
    with pytest.raises(ModelicaError) as error:
        build(code, class_name="Other")
    (found,) = error.value.diagnostics
    assert found.code == "modelica-class-unknown"
    assert "First, Gain, Lib.Last" in found.hint


def test_classes_of_the_library_path(cold: Path) -> None:
    (cold / "lib" / "deep").mkdir(parents=True)
    library = cold / "lib" / "deep" / "Gain.mo"
    library.write_text(GAIN)
    code = (
        "model User\n  Gain g(k=3);\n  input Real v;\n  output Real w;\nequation\n  g.u = v;\n  w = g.y;\nend User;\n"
    )
    with pytest.raises(ModelicaError):
        build(code)
    with zipfile.ZipFile(build(code, library_path=[cold / "lib"]).path) as archive:
        assert any(name.endswith("User.c") for name in archive.namelist())
    assert build(code, library_path=[cold / "lib"]).cached
    library.write_text(GAIN.replace("k*u", "k*u + 1"))
    assert not build(code, library_path=[cold / "lib"]).cached, "a changed library is compiled anew"


@pytest.mark.parametrize(
    ("code", "error", "line", "text"),
    [
        ("model M\n  Real x\nequation\n  x = 1;\nend M;\n", "modelica-syntax", 2, "unexpected"),
        ("model M\n  Real x;\nequation\n  x = 2*yy;\nend M;\n", "modelica-invalid", 4, "yy"),
        ("model M\n  Foo x;\nequation\n  x = 2;\nend M;\n", "modelica-invalid", 2, "Foo"),
        ("model M\n  Boolean b;\nequation\n  b = 1.5;\nend M;\n", "modelica-invalid", 4, "Boolean"),
        ("model M\n  Real x, y;\nequation\n  x = 1;\nend M;\n", "modelica-invalid", None, "1 equations, 2 unknowns"),
        ("partial model M\n  Real x;\nend M;\n", "modelica-class-unknown", None, "declares no model"),
    ],
)
def test_mistakes_are_named_with_their_line(code: str, error: str, line: int | None, text: str) -> None:
    (found,) = refusal(code).diagnostics
    assert found.code == error
    assert found.where is not None
    assert (found.where.layer, found.where.line) == ("inline.mo", line)
    assert text in found.message


def test_mistakes_in_files_name_the_file(cold: Path) -> None:
    source = cold / "Broken.mo"
    source.write_text("model Broken\n  Real x;\nequation\n  x = ;\nend Broken;\n")
    with pytest.raises(ModelicaError) as error:
        build_fmu(source, log=DiagnosticLog())
    (found,) = error.value.diagnostics
    assert found.where is not None
    assert (found.where.layer, found.where.line) == (str(source), 4)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"fmi_version": "1.0"}, "fmi-version-unknown"),
        ({"platforms": ["amiga"]}, "platform-unknown"),
        ({"backend": "magic"}, "backend-unknown"),
    ],
)
def test_wrong_options(options: dict[str, object], code: str) -> None:
    with pytest.raises(CosimError) as error:
        build_fmu(None, code=GAIN, log=DiagnosticLog(), **options)  # type: ignore[arg-type]
    assert error.value.diagnostics[0].code == code


def test_sources_that_cannot_be_read(cold: Path) -> None:
    for source, code in ((cold / "absent.mo", "modelica-unreadable"), (None, "modelica-source-missing")):
        with pytest.raises(CosimError) as error:
            build_fmu(source, log=DiagnosticLog())
        assert error.value.diagnostics[0].code == code
    latin = cold / "latin.mo"
    latin.write_bytes(GAIN.replace("a gain", "\xfc").encode("latin-1"))
    with pytest.raises(CosimError) as error:
        build_fmu(latin, log=DiagnosticLog())
    assert error.value.diagnostics[0].code == "modelica-unreadable"


FAKE_OMC = """#!{python}
import pathlib, shutil, sys
script = pathlib.Path(sys.argv[1]).read_text()
assert 'buildModelFMU(Gain, version="2.0", fmuType="me_cs")' in script
source = pathlib.Path("source.mo").read_text()
if "broken" in source:
    line = source[: source.index("broken")].count("\\n") + 1
    print(f"[/somewhere/source.mo:{{line}}:3-{{line}}:9:writable] Error: Class broken not found.")
elif "mute" not in source:
    shutil.copy({fmu!r}, "Gain.fmu")
"""


@pytest.fixture
def omc(cold: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in omc's place, which answers as omc does."""
    if sys.platform == "win32":
        pytest.skip("a script is no program here")
    made = build(GAIN).path
    program = cold / "bin" / "omc"
    program.parent.mkdir()
    program.write_text(FAKE_OMC.format(python=sys.executable, fmu=str(made)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return made


def test_openmodelica_compiles_where_it_is_asked_to(omc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(GAIN, backend="omc")
    assert built.path != omc
    assert built.path.read_bytes() == omc.read_bytes()
    assert (built.class_name, built.states, built.inputs, built.outputs) == ("Gain", 1, ("u",), ("y",))
    monkeypatch.setenv("COSIM_MODELICA", "omc")
    assert build(GAIN).path == built.path
    assert build(GAIN, backend="builtin").path == omc


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [("Real x(start", "broken x(start", 6, "Class broken not found"), ("a gain", "mute", 1, "made no FMU")],
)
def test_what_openmodelica_refuses_is_placed(omc: Path, old: str, new: str, line: int, text: str) -> None:
    with pytest.raises(ModelicaError) as error:
        build(GAIN.replace(old, new), backend="omc")
    (found,) = error.value.diagnostics
    assert found.code == "modelica-backend-failed"
    assert text in found.message
    assert found.where is not None
    assert found.where.line == line


def test_openmodelica_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("COSIM_MODELICA", "omc")
    with pytest.raises(CosimError) as error:
        build(GAIN)
    assert error.value.diagnostics[0].code == "backend-missing"


@pytest.mark.slow
def test_ziglang_builds_fmus_that_run_and_for_other_platforms(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    with Fmu(GAIN, u=4.0) as fmu:
        fmu.step(0.5)
        assert (fmu["y"], fmu["x"]) == (8.0, pytest.approx(2.0))
    built = build(GAIN, "3.0", platforms=["aarch64-linux", "x86_64-linux"])
    with zipfile.ZipFile(built.path) as archive:
        names = set(archive.namelist())
    assert {"binaries/aarch64-linux/Gain.so", "binaries/x86_64-linux/Gain.so"} <= names


@pytest.mark.parametrize("version", VERSIONS)
def test_fmpy_simulates_it(version: str) -> None:
    found = fmpy.simulate_fmu(str(build(GAIN, version).path), stop_time=1.0, start_values={"u": 3.0}, output=["x", "y"])
    assert found["x"][-1] == pytest.approx(3.0, rel=1e-6)
    assert set(found["y"]) == {6.0}
