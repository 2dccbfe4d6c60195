"""Programs in stages: any FMU binds, held inputs, multi-rate, text of any kind."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cosim
from cosim.modelica import build_fmu

HEADER = '#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n'
PROGRAM = 'def Scope "{name}" (prepend apiSchemas = ["LunCoProgramAPI"])\n{{\n{body}\n}}\n'


def inline(name, code, body=""):
    return PROGRAM.format(name=name, body=f'    string info:sourceCode = """{code}"""\n{body}')


def asset(name, path, body=""):
    return PROGRAM.format(name=name, body=f"    uniform asset info:sourceAsset = @{path}@\n{body}")


def write(tmp_path, *parts):
    path = tmp_path / "stage.usda"
    path.write_text(HEADER + "".join(parts))
    return path


RAMP = "model Ramp output Real y; equation y = -time; end Ramp;"


@pytest.mark.parametrize(
    "ticks, expected", [(1, -0.899), (2, -0.806), (4, -0.641), (8, -0.388), (12, -0.224), (24, -0.034)]
)
def test_m2_filtered_derivative_of_a_held_ramp(tmp_path, project, ticks, expected):
    """A ramp of slope -1 through a hold of period h: -(h/tau) e^(-h/tau) / (1 - e^(-h/tau)), within 1 %."""
    h, tau = ticks / 240, 0.02
    closed = -(h / tau) * math.exp(-h / tau) / (1 - math.exp(-h / tau))
    assert closed == pytest.approx(expected, abs=6e-4)
    body = f"    double lunco:program:communicationPeriod = {h!r}\n    double inputs:time_constant_s = {tau}\n"
    path = write(
        tmp_path,
        inline("Ramp", RAMP),
        asset(
            "Rate", project / "fmus" / "FilteredDerivative.mo", body + "    float inputs:u.connect = </Ramp.outputs:y>"
        ),
    )
    r = cosim.simulate(path, stop=3)
    published = r["/Rate.outputs:y"][::ticks]
    assert published[-1] == pytest.approx(closed, rel=0.01)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_p84_a_made_up_fmu_with_arbitrary_names_binds(tmp_path, version):
    """No line of Python knows these names."""
    code = """model Zyx
      record Cell Real kelvin; Real mol[2]; end Cell;
      input Real wobble; input Real field[2,2]; input Integer turns; input Boolean armed;
      Cell cell;
      output Real blip; output Integer count; output Boolean hot;
      parameter Real squeeze[3] = {1, 2, 3};
    equation
      cell.kelvin = wobble + field[1,2];
      cell.mol = {squeeze[1], squeeze[3]} * wobble;
      blip = cell.kelvin + sum(cell.mol) + field[2,1];
      count = 2 * turns;
      hot = armed and wobble > 0;
    end Zyx;"""
    built = build_fmu(None, code=code, fmi_version=version, output=tmp_path / "Zyx.fmu")
    body = """    float inputs:wobble.connect = </Source.outputs:y>
    float inputs:field_1_2 = 10
    float inputs:field_2_1 = 100
    int inputs:turns = 3
    bool inputs:armed = true
    double inputs:squeeze_3 = 5
"""
    source = inline("Source", "model Source output Real y; equation y = 2 + time; end Source;")
    path = write(tmp_path, source, asset("Odd", built.path.name, body))
    r = cosim.simulate(path, stop=1, step="1/10", record=["/Odd.*", "/Source.*"])
    y = np.concatenate([[2.0], r["/Source.outputs:y"][:-1]])
    assert r["/Odd.outputs:blip"][1:] == pytest.approx((y + 10 + y * (1 + 5) + 100)[1:], rel=1e-12)
    assert set(r["/Odd.outputs:count"]) == {6.0}
    assert r["/Odd.outputs:hot"][-1] == 1.0
    assert r["/Odd.outputs:cell:kelvin"][-1] == pytest.approx(y[-1] + 10)


def test_fmu_of_another_platform_is_refused_with_what_is_inside(tmp_path):
    import zipfile

    built = build_fmu(None, code=RAMP, output=tmp_path / "Ramp.fmu")
    foreign = tmp_path / "Foreign.fmu"
    with zipfile.ZipFile(built.path) as old, zipfile.ZipFile(foreign, "w") as new:
        for info in old.infolist():
            if info.filename.startswith("binaries/"):
                new.writestr("binaries/vax-vms/Ramp.so", b"\0")
            elif not info.filename.startswith("sources/"):
                new.writestr(info.filename, old.read(info))
    path = write(tmp_path, asset("P", foreign.name))
    with pytest.raises(cosim.CosimError, match="vax-vms"):
        cosim.load(path)


def test_factors_offsets_and_sums(tmp_path):
    constant = "model C parameter Real k = 1; output Real y; equation y = k; end C;"
    adder = "model A input Real u; output Real y; equation y = u; end A;"
    body = """    prepend float inputs:u.connect = [</One.outputs:y>, </Two.outputs:y>]
    float lunco:factor:u = 3
    float lunco:offset:u = 0.5
"""
    path = write(
        tmp_path,
        inline("One", constant, "    float inputs:k = 2"),
        inline("Two", constant, "    float inputs:k = 5"),
        inline("Sum", adder, body),
    )
    r = cosim.simulate(path, stop="1/10", record=["/Sum.*"])
    # The offset counts once for the input.
    assert r["/Sum.outputs:y"][-1] == pytest.approx(3 * (2 + 5) + 0.5)


def test_single_precision_is_read_as_it_is_written(tmp_path):
    code = "model C parameter Real k = 1; output Real y; equation y = k; end C;"
    path = write(tmp_path, inline("One", code, "    float inputs:k = 0.6"))
    assert cosim.simulate(path, stop="1/10")["/One.outputs:y"][-1] == 0.6


def test_text_of_an_fmu_reaches_the_results(tmp_path):
    code = """model Loud output Real y; equation y = time;
      assert(time < 0.05, "it is too late"); end Loud;"""
    path = write(tmp_path, inline("Loud", code))
    with cosim.open(path, stop=1) as sim:
        with pytest.raises(cosim.CosimError, match="it is too late"):
            sim.run()
        results = sim.results
    assert 10 <= len(results) <= 13


def test_parameters_can_be_tuned_while_it_runs(tmp_path):
    code = "model C parameter Real k = 1; output Real y; equation y = k; end C;"
    path = write(tmp_path, inline("One", code))
    with cosim.open(path) as sim:
        sim.step(2)
        assert sim.get("/One.outputs:y") == 1.0
        sim.set("/One.inputs:k", 7.0)
        sim.step()
        assert sim.get("/One.outputs:y") == 7.0
        sim.release("/One.inputs:k")
        sim.step()
        assert sim.get("/One.outputs:y") == 1.0


def test_saved_system_continues_bit_for_bit(project):
    with cosim.open(project / "stages" / "arm_servo.usda") as sim:
        sim.step(100)
        snapshot = sim.save()
        sim.step(50)
        first = sim.results
        sim.restore(snapshot)
        sim.step(50)
        second = sim.results
    assert len(first) == len(second) == 151
    assert all(np.array_equal(first[n], second[n]) for n in first.names)
