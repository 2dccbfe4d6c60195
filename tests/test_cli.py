"""The command line: exit codes, one-screen errors with a place, files."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cosim

STAGE = '''#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Y"
)
def Xform "Box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
{
    float physics:mass = 1
    float3 physics:diagonalInertia = (1, 1, 1)
    %s
}
def PhysicsFixedJoint "Weld"
{
    rel physics:body0 = </Box>
    rel physics:body1 = </Other>
}
def Xform "Other" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
{
    float physics:mass = 1
    float3 physics:diagonalInertia = (1, 1, 1)
}
def Scope "Program" (prepend apiSchemas = ["LunCoProgramAPI"])
{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = """model Probe
        input Real length(unit="m");
        parameter Real gain = 1;
        output Real y;
      equation
        y = gain*length;
      end Probe;"""
    %s
}
'''


def cli(*arguments, cwd=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "cosim", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        **options,
    )


@pytest.fixture
def stage(tmp_path):
    def write(body="", program="", name="stage.usda"):
        path = tmp_path / name
        path.write_text(STAGE % (body, program))
        return path

    return write


def check_error(done, code, *words):
    """An error fits on one screen, names what it must, and is no traceback."""
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.splitlines()) <= 24
    for word in words:
        assert str(word) in done.stderr, f"{word!r} is not in:\n{done.stderr}"


RUN = ("--stop-time", "0.05", "--no-plot")


def test_run_writes_trace_metadata_and_plot(stage, tmp_path):
    done = cli(
        "run",
        stage(program="float inputs:length.connect = </Box.outputs:position_y>"),
        "--stop-time",
        "0.1",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "stage"
    assert sorted(p.name for p in folder.iterdir()) == ["run.json", "trace.csv", "trace.png"]
    about = json.loads((folder / "run.json").read_text())
    assert about["status"] == "completed"
    assert about["rows"] == 25
    assert {"layers", "programs", "versions", "step_size", "order", "seed"} <= about.keys()
    r = cosim.Results.from_csv(folder / "trace.csv")
    assert len(r) == 25
    assert "0.1 s simulated" in done.stdout


def test_json_summary_is_the_only_thing_on_stdout(stage, tmp_path):
    done = cli("run", stage(), *RUN, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["status"] == "completed"


def test_no_such_file(tmp_path):
    check_error(cli("run", "nowhere.usda", cwd=tmp_path), 2, "nowhere.usda")


def test_not_usd(tmp_path):
    path = tmp_path / "notes.usda"
    path.write_text("hello")
    check_error(cli("run", path, cwd=tmp_path), 1, "notes.usda")
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    check_error(cli("run", other, cwd=tmp_path), 1, "notes.txt")


def test_broken_usda_names_the_line(tmp_path):
    path = tmp_path / "broken.usda"
    path.write_text('#usda 1.0\ndef Xform "A"\n{\n    float x = = 3\n}\n')
    check_error(cli("run", path, cwd=tmp_path), 1, "broken.usda:4")


def test_missing_reference(tmp_path):
    path = tmp_path / "a.usda"
    path.write_text('#usda 1.0\ndef Xform "A" (prepend references = @gone.usda@)\n{\n}\n')
    check_error(cli("run", path, cwd=tmp_path), 1, "gone.usda", "/A")


def test_unknown_port(stage, tmp_path):
    path = stage(program="float inputs:lenght.connect = </Box.outputs:position_y>")
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "/Program", "lenght", "length", path.name)


def test_unknown_source_port(stage, tmp_path):
    path = stage(program="float inputs:length.connect = </Box.outputs:position_q>")
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "/Box", "position_q", "position_y")


def test_wire_to_a_joint_without_ports(stage, tmp_path):
    path = stage(program="float inputs:length.connect = </Weld.outputs:angle>")
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "/Weld", "angle", "a fixed joint has no ports")


def test_wrong_unit(stage, tmp_path):
    path = stage(program="float inputs:length.connect = </Box.outputs:velocity_y>")
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "m/s", "/Program.inputs:length", path.name)


def test_nan_start_value(stage, tmp_path):
    check_error(
        cli("run", stage(), "--start-value", "/Program.inputs:gain=nan", cwd=tmp_path), 2, "/Program.inputs:gain"
    )
    path = stage(program="float inputs:gain = nan")
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "/Program", "inputs:gain")


@pytest.mark.parametrize("size", ["0", "-1/240", "x", "1/0"])
def test_bad_step_size(stage, tmp_path, size):
    check_error(cli("run", stage(), f"--step-size={size}", cwd=tmp_path), 2)


def test_period_that_is_no_multiple(stage, tmp_path):
    path = stage(program="double lunco:program:communicationPeriod = 0.005")
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "/Program", "0.00416666667", "0.00833333333")


def test_unknown_asset_root(stage, tmp_path):
    path = tmp_path / "root.usda"
    path.write_text(
        '#usda 1.0\ndef Scope "P" (prepend apiSchemas = ["LunCoProgramAPI"])\n{\n'
        "    uniform asset info:sourceAsset = @lunco://models/Nothing.mo@\n}\n"
    )
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "lunco", "/P", "--asset-root")
    check_error(cli("run", path, "--asset-root", "lunco=gone", cwd=tmp_path), 2, "gone")
    check_error(cli("run", path, "--asset-root", "lunco", cwd=tmp_path), 2, "NAME=DIR")


def test_modelica_syntax_error_names_line_and_column(tmp_path):
    (tmp_path / "Bad.mo").write_text("model Bad\n  Real x;\nequation\n  x = = 1;\nend Bad;\n")
    path = tmp_path / "bad.usda"
    path.write_text(
        '#usda 1.0\ndef Scope "P" (prepend apiSchemas = ["LunCoProgramAPI"])\n{\n'
        "    uniform asset info:sourceAsset = @Bad.mo@\n}\n"
    )
    check_error(cli("run", path, *RUN, cwd=tmp_path), 1, "Bad.mo:4:")
    check_error(cli("build", tmp_path / "Bad.mo", cwd=tmp_path), 1, "Bad.mo:4:")


def test_unwritable_output(stage, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    done = cli("run", stage(), *RUN, "--output-file", blocker / "trace.csv", cwd=tmp_path)
    check_error(done, 2, "trace.csv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(stage, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    check_error(cli("run", stage(), *RUN, "--output-file", folder / "trace.csv", cwd=tmp_path), 2, "trace.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to a child is POSIX")
def test_interrupt_leaves_a_readable_trace(stage, tmp_path):
    trace = tmp_path / "trace.csv"
    # How long a busy machine takes to begin is unknown: the first wait after which there are rows decides.
    for wait in (2.5, 8.0, 30.0):
        code, err = _interrupted(stage(), trace, wait, tmp_path)
        assert code == 3, err
        assert "Traceback" not in err
        if trace.stat().st_size:
            break
    assert len(cosim.Results.from_csv(trace)) > 1
    assert json.loads(trace.with_suffix(".json").read_text())["status"] == "interrupted"


def _interrupted(stage, trace, wait, folder):
    """Exit code and stderr of an endless run that gets Ctrl-C after a while."""
    trace.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "cosim", "run", stage, "--stop-time", "100000", "--no-plot", "--output-file", trace],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # A suite that runs in the background of a shell inherits an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 60
        while not trace.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        # An endless run must not outlive its test.
        process.kill()
    return process.returncode, err


def test_failing_simulation_is_exit_3_and_keeps_its_trace(stage, tmp_path):
    path = stage(program="float inputs:length = 1\n    double inputs:gain = 1e308")
    path.write_text(path.read_text().replace("y = gain*length", "y = gain*(length + 1e10*time)"))
    trace = tmp_path / "trace.csv"
    done = cli("run", path, "--stop-time", "1", "--no-plot", "--output-file", trace, cwd=tmp_path)
    check_error(done, 3, "/Program", "t = ")
    assert json.loads(trace.with_suffix(".json").read_text())["status"] == "failed"
    assert len(cosim.Results.from_csv(trace)) >= 1


def test_check_reports_and_strict_fails(stage, tmp_path):
    path = stage(body="float physics:wobble = 3")
    done = cli("check", path, cwd=tmp_path)
    assert done.returncode == 0
    assert "physics:wobble" in done.stderr
    assert cli("check", path, "--strict", cwd=tmp_path).returncode == 1
    found = json.loads(cli("check", path, "--json", cwd=tmp_path).stdout)
    assert any(d["code"] == "attribute-not-realised" for d in found)


def test_check_of_a_broken_stage_is_exit_1(stage, tmp_path):
    path = stage(program="float inputs:length.connect = </Box.outputs:velocity_y>")
    check_error(cli("check", path, cwd=tmp_path), 1, "unit-mismatch")


def test_ports_and_graph(stage, tmp_path):
    path = stage(program="float inputs:length.connect = </Box.outputs:position_y>")
    done = cli("ports", path, "*position_y", cwd=tmp_path)
    assert "/Box.outputs:position_y" in done.stdout
    rows = json.loads(cli("ports", path, "/Program*", "--json", cwd=tmp_path).stdout)
    assert {r["port"] for r in rows} >= {"/Program.inputs:length", "/Program.inputs:gain", "/Program.outputs:y"}
    for form in ("text", "dot", "mermaid", "json"):
        done = cli("graph", path, "--format", form, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Program" in done.stdout


def test_build(tmp_path, project):
    done = cli("build", project / "fmus" / "Oscillator.mo", "--fmi", "3.0", "--output", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "Oscillator.fmu").is_file()


def test_explain(tmp_path):
    done = cli("check", "--explain", "unit-mismatch", cwd=tmp_path)
    assert done.returncode == 0
    assert "cure:" in done.stdout


def test_usage_errors_are_exit_2(tmp_path):
    assert cli("run", cwd=tmp_path).returncode == 2
    assert cli("walk", cwd=tmp_path).returncode == 2
    assert cli(cwd=tmp_path).returncode == 2


def test_import_is_light():
    """`import cosim` loads none of the heavy packages."""
    heavy = "{'pxr', 'pybullet', 'fmpy', 'networkx', 'pandas', 'numpy', 'rumoca'}"
    code = f"import sys, cosim; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_names_every_command():
    out = cli("--help").stdout
    assert all(name in out for name in ("run", "check", "ports", "graph", "build"))


def test_every_code_has_a_table_and_every_table_a_code(project: Path):
    """Each kebab-case code that the source emits is documented, and nothing else is."""
    import re

    from cosim.resource import codes

    emitted: set[str] = set()
    for path in sorted((project / "cosim").rglob("*.py")):
        for word in re.findall(r'"([a-z][a-z0-9]*(?:-[a-z0-9]+)+)"', path.read_text(encoding="utf-8")):
            emitted.add(word)
    documented = set(codes())
    assert documented <= emitted | {"attribute-inert", "schema-inert", "attribute-not-realised", "schema-not-realised"}
    pattern = re.compile(r'(?:\.error|\.warning|\.info|\.of)\(\s*"([a-z0-9-]+)"')
    used = {
        code
        for path in sorted((project / "cosim").rglob("*.py"))
        for code in pattern.findall(path.read_text(encoding="utf-8"))
    }
    assert not used - documented
