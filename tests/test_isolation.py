"""FMUs in processes of their own, as a stage runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.modelica import build_fmu
from cosim.native.toolchain import compile_shared

HEADER = '#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n'
LAG = "model Lag input Real u = 2; output Real y; Real x(start = 0); equation 0.1*der(x) = u - x; y = x; end Lag;"


def stage(folder: Path, fmu: str) -> Path:
    path = folder / "stage.usda"
    path.write_text(
        HEADER + 'def Scope "P" (prepend apiSchemas = ["LunCoProgramAPI"])\n{\n'
        f"    uniform asset info:sourceAsset = @{fmu}@\n}}\n"
    )
    return path


@pytest.fixture(scope="module")
def lag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("isolation")
    build_fmu(None, code=LAG, output=folder / "Lag.fmu")
    return stage(folder, "Lag.fmu")


def test_fmu_files_from_outside_are_isolated_unless_trusted(lag):
    def isolated(**options):
        return cosim.load(lag, **options).programs[0].is_isolated

    assert isolated()
    assert not isolated(program_path=[lag.parent])
    assert not isolated(isolate="never")
    assert isolated(isolate="always", program_path=[lag.parent])
    with pytest.raises(cosim.CosimError, match="isolation-unknown"):
        cosim.load(lag, isolate="sometimes")


def test_modelica_programs_run_in_process(project):
    assert not any(p.is_isolated for p in cosim.load(project / "stages" / "lander.usda").programs)


def test_isolated_and_in_process_agree_to_the_bit(lag):
    one, two = (cosim.simulate(lag, stop=1, step="1/100", system_options={"isolate": i}) for i in ("always", "never"))
    assert one.names == two.names
    assert np.array_equal(one.values, two.values)


def crashing(folder: Path, statement: str) -> Path:
    """The lag with a doStep of our own that ends badly at the fifth step."""
    import zipfile

    built = build_fmu(None, code=LAG, output=folder / "Good.fmu")
    with zipfile.ZipFile(built.path) as archive:
        sources = {
            n: archive.read(n) for n in archive.namelist() if n.startswith("sources/") and n.endswith((".c", ".h"))
        }
        rest = {n: archive.read(n) for n in archive.namelist() if not n.startswith(("sources/", "binaries/"))}
        library = next(n for n in archive.namelist() if n.startswith("binaries/"))
    for name, content in sources.items():
        target = folder / Path(name).name
        text = content.decode()
        if "fmi2DoStep(void" in text:
            text = text.replace("fmi2DoStep(void", "inner_step(void", 1)
            text += (
                "\nEXPORT int fmi2DoStep(void *c, double t, double h, int n) { static int k; "
                f"if (++k == 5) {{ {statement} }} return inner_step(c, t, h, n); }}\n"
            )
        target.write_text(text)
    main = next(p for p in folder.glob("Lag.c"))
    built_library = compile_shared([main], name="Lag", include_dirs=[folder])
    with zipfile.ZipFile(folder / "Lag.fmu", "w") as archive:
        for name, content in rest.items():
            archive.writestr(name, content)
        archive.writestr(library, built_library.read_bytes())
    return stage(folder, "Lag.fmu")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("statement", ["abort();", "exit(0);", "*(volatile int *)8 = 1;"])
def test_a_crashing_fmu_ends_the_run_with_an_error_and_a_trace(tmp_path, statement):
    path = crashing(tmp_path, statement)
    trace = tmp_path / "trace.csv"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cosim",
            "run",
            path,
            *["--stop-time", "1", "--step-size", "1/100", "--no-plot"],
            "--output-file",
            trace,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "/P" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(trace.with_suffix(".json").read_text())["status"] == "failed"
    assert len(cosim.Results.from_csv(trace)) == 5
