"""`cosim fmu`: what one FMU is, whether it can run here, and a run of it alone."""

from __future__ import annotations

import json
import math
import zipfile

import numpy as np
import pytest

import cosim
from cosim.cli import main
from cosim.modelica import build_fmu

LAG = """model Lag "A first-order lag"
  parameter Real tau(unit="s") = 0.5 "Time constant"; input Real u(unit="m"); output Real y(unit="m") "Lagged";
  output Integer n; Real x(start = 0, fixed = true);
equation tau*der(x) = u - x; y = x; n = 3; end Lag;"""


@pytest.fixture(scope="module")
def fmu(tmp_path_factory):
    return build_fmu(None, code=LAG, output=tmp_path_factory.mktemp("fmu") / "Lag.fmu").path


def test_info_shows_variables_units_and_platforms(fmu, capsys):
    assert main(["fmu", "info", str(fmu)]) == 0
    out = capsys.readouterr().out
    assert "A first-order lag" in out
    assert "tau" in out
    assert "[s] = 0.5  Time constant" in out
    assert "local variables (--all)" in out
    assert main(["fmu", "info", str(fmu), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert {v["name"]: v["causality"] for v in about["variables"]}["u"] == "input"
    assert about["platforms"]


def test_simulate_follows_its_input_table(fmu, tmp_path, capsys):
    table = tmp_path / "in.csv"
    table.write_text("time,u\n0,1\n2,1\n")
    trace = tmp_path / "out.csv"
    arguments = ["fmu", "simulate", str(fmu), "--input", str(table), "--stop-time", "2", "--step-size", "0.01"]
    assert main([*arguments, "--start-value", "tau=0.25", "--output-file", str(trace)]) == 0
    r = cosim.Results.from_csv(trace)
    assert r["y"][-1] == pytest.approx(1 - math.exp(-2 / 0.25), rel=1e-5)
    assert np.all(r["n"] == 3)
    assert "201 communication points" in capsys.readouterr().out


def test_validate_tells_what_stops_it(fmu, tmp_path, capsys):
    assert main(["fmu", "validate", str(fmu)]) == 0
    foreign = tmp_path / "Foreign.fmu"
    with zipfile.ZipFile(fmu) as old, zipfile.ZipFile(foreign, "w") as new:
        new.writestr("modelDescription.xml", old.read("modelDescription.xml"))
        new.writestr("binaries/vax-vms/Lag.so", b"")
    assert main(["fmu", "validate", str(foreign)]) == 1
    assert "vax-vms" in capsys.readouterr().err
    assert main(["fmu", "validate", str(tmp_path / "none.fmu")]) == 2
    broken = tmp_path / "broken.fmu"
    broken.write_bytes(b"no zip")
    assert main(["fmu", "validate", str(broken), "--json"]) == 1


def test_bad_input_is_one_line(fmu, tmp_path, capsys):
    arguments = ["fmu", "simulate", str(fmu), "--output-file", str(tmp_path / "o.csv")]
    assert main([*arguments, "--start-value", "tua=1"]) != 0
    assert "tau" in capsys.readouterr().err
    assert main([*arguments, "--input", str(tmp_path / "none.csv")]) == 2
