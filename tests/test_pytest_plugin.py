"""The pytest plugin in suites of its own, each in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile

import numpy as np
import pytest

from cosim.case import cases_of_reference, find_cases
from cosim.ls_ref import MANIFEST
from cosim.modelica import build_fmu
from cosim.result import Results

STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Y"
)
def Scope "Ramp" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = "model Ramp parameter Real k = 2; output Real y; equation y = k*time; end Ramp;"
}
"""

SUITE = """
import numpy as np, pytest
from cosim import Results
from cosim.compare import Tolerance

def test_good(cosim_run, assert_trace):
    r = cosim_run("ramp.usda", stop=1, step="1/10")
    np.testing.assert_allclose(r["/Ramp.y"], 2 * r.time)
    assert assert_trace(r, "ramp_ref.csv", level="exact").passed

def test_option(cosim_run, assert_trace):
    r = cosim_run("ramp.usda", stop=1, step="1/10", start_values={"/Ramp.inputs:k": 2.01})
    assert_trace(r, "ramp_ref.csv", tolerance=Tolerance(relative=0.1))

def test_bad(cosim_run, assert_trace):
    r = cosim_run("ramp.usda", stop=1, step="1/10", start_values={"/Ramp.inputs:k": 3})
    assert_trace(r, "ramp_ref.csv")

def test_gone(cosim_run, assert_trace):
    cosim_run("gone.usda")
"""


def run_pytest(folder, *arguments):
    """Run pytest as a user would; the plugin is named, since an installation may be older than its entry point."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "cosim.pytest_plugin", "-p", "no:cacheprovider", "-v", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "ramp.usda").write_text(STAGE)
    time = np.arange(11) / 10
    table = "\n".join(f"{t!r},{2 * t!r}" for t in time.tolist())
    (folder / "ramp_ref.csv").write_text(f"time,/Ramp.outputs:y\n{table}\n")
    return tmp_path


def test_fixtures_run_stages_and_compare_traces(suite):
    (suite / "suite" / "test_ramp.py").write_text(SUITE)
    done = run_pytest(suite)
    out = done.stdout
    assert done.returncode == 1, out + done.stderr
    assert "2 failed, 2 passed" in out
    assert "test_good PASSED" in out and "test_option PASSED" in out
    assert "test_bad FAILED" in out and "DIFFERS (tube): 0 of 1 columns agree" in out
    assert "test_gone FAILED" in out and "gone.usda" in out


def test_cases_are_collected_only_where_that_is_asked_for(suite, project):
    for path in (project / "fmus").glob("Oscillator[._]*"):
        shutil.copy(path, suite / "suite")
    assert run_pytest(suite).returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    done = run_pytest(suite, "--cosim")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Oscillator.mo PASSED" in done.stdout and "ramp.usda PASSED" in done.stdout and "2 passed" in done.stdout
    reference = suite / "suite" / "ramp_ref.csv"
    reference.write_text(reference.read_text().replace("1.0,2.0", "1.0,2.001"))
    assert "2 passed" in run_pytest(suite, "--cosim").stdout
    assert "1 failed, 1 passed" in run_pytest(suite, "--cosim", "--cosim-level", "exact").stdout
    (suite / "pytest.ini").write_text("[pytest]\ncosim_cases = true\n")
    reference.write_text(reference.read_text().replace("1.0,2.001", "1.0,2.5"))
    done = run_pytest(suite)
    assert done.returncode == 1
    assert "ramp.usda FAILED" in done.stdout and "1 failed, 1 passed" in done.stdout
    assert "DIFFERS (tube)" in done.stdout and "Traceback" not in done.stdout


def test_experiments_inside_an_fmu_are_collected(suite):
    path = suite / "suite" / "Ramp.fmu"
    build_fmu(None, code="model Ramp output Real y; equation y = 2*time; end Ramp;", output=path)
    shutil.move(suite / "suite" / "ramp_ref.csv", suite / "ramp.csv")
    table = (suite / "ramp.csv").read_text().replace("/Ramp.outputs:y", "y")
    with zipfile.ZipFile(path, "a") as archive:
        related = '<fmiReferences><Related type="text/csv" source="{}" role="result"/></fmiReferences>'
        archive.writestr(MANIFEST, related.format("Ramp_out.csv"))
        archive.writestr(MANIFEST.replace("fmi-ls-manifest.xml", "Ramp_out.csv"), table)
    done = run_pytest(suite, "--cosim")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ramp.fmu#Ramp_out PASSED" in done.stdout and "1 passed" in done.stdout


def test_a_case_that_cannot_run_fails(suite):
    (suite / "suite" / "ramp.usda").write_text(STAGE.replace("k*time", "k*tim"))
    done = run_pytest(suite, "--cosim")
    assert done.returncode == 1
    assert "tim" in done.stdout and "error[" in done.stdout


def test_cases_of_references_are_those_of_folders(project, suite):
    folder = project / "fmus"
    by_reference = [c for path in sorted(folder.glob("*_ref.csv")) for c in cases_of_reference(path)]
    assert sorted(by_reference, key=lambda c: c.name) == sorted(find_cases([folder]), key=lambda c: c.name)
    # `X_out.csv` is the reference only where there is no `X_ref.csv`.
    other = suite / "suite" / "ramp_out.csv"
    shutil.copy(suite / "suite" / "ramp_ref.csv", other)
    assert cases_of_reference(other) == ()
    (suite / "suite" / "ramp_ref.csv").unlink()
    assert [c.name for c in cases_of_reference(other)] == ["ramp.usda"]
    assert len(Results.from_csv(other)) == 11


def test_entry_point_is_declared_and_loading_it_is_light(project):
    about = tomllib.loads((project / "pyproject.toml").read_text())
    assert about["project"]["entry-points"]["pytest11"] == {"cosim": "cosim.pytest_plugin"}
    heavy = "{'pxr', 'pybullet', 'fmpy', 'networkx', 'pandas', 'numpy', 'rumoca'}"
    code = f"import sys, cosim.pytest_plugin; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
