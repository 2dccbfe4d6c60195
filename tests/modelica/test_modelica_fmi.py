"""What the FMU offers beside stepping: description, types, states, derivatives, model exchange, event mode."""

from __future__ import annotations

import ctypes
import subprocess
import zipfile
from ctypes import byref, c_bool, c_double
from pathlib import Path

import fmpy
import fmpy.validation
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from modelica_harness import VERSIONS, Fmu, build, simulate

from cosim.native.toolchain import find_compiler

EVERYTHING = """
model Everything "one of each kind"
  type Mode = enumeration(Off "not running", On, Turbo);
  parameter Real mass(unit="kg", min=0.5, max=20, nominal=3) = 2 "inert";
  parameter Real angle(unit="rad", displayUnit="deg", quantity="Angle") = 0.5 "shown in degrees";
  parameter Integer n(min=1, max=9) = 4 "count";
  parameter Boolean flag = true "switch";
  parameter Mode mode = Mode.On "setting";
  parameter String label = "hällo \\"x\\" %" "a text";
  constant Real c = 3.5 "fixed for good";
  parameter Real twice = 2*mass "follows";
  input Real u(unit="N", start=1) "force";
  input Boolean b "switch";
  input Integer k(start=2) "number";
  input Mode m(start=Mode.Off) "mode";
  output Real x(unit="m", start=0.25, fixed=true, nominal=0.01) "position";
  output Real y(unit="N") "feeds through";
  output Real z[2](each unit="1") "array";
  output Boolean q "and";
  output Integer i "sum";
  output Mode mo "chosen";
  output String s "which";
  Real v(start=0, fixed=true, unit="m/s");
  output Real f "state only";
equation
  der(x) = v;
  mass*der(v) = u - x;
  y = 3*u;
  z = {x, u*v};
  q = b and flag;
  i = n + k;
  mo = if b then m else mode;
  s = if b then label else "low";
  f = x + v;
end Everything;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_description_says_everything(version: str) -> None:
    path = build(EVERYTHING, version).path
    assert fmpy.validation.validate_fmu(str(path)) == []
    model = fmpy.read_model_description(str(path))
    assert model.description == "one of each kind"
    known = {v.name: v for v in model.modelVariables}
    mass = known["mass"]
    assert (mass.unit, mass.min, mass.max, mass.nominal, mass.start) == ("kg", "0.5", "20.0", "3.0", "2.0")
    assert (mass.causality, mass.variability, mass.description) == ("parameter", "tunable", "inert")
    assert (known["angle"].displayUnit, known["angle"].quantity) == ("deg", "Angle")
    (radian,) = [u for u in model.unitDefinitions if u.name == "rad"]
    assert float(radian.displayUnits[0].factor) == pytest.approx(180 / np.pi)
    assert known["n"].variability == "fixed"
    assert (known["c"].variability, known["twice"].causality) == ("constant", "calculatedParameter")
    assert [known[n].variability for n in ("q", "i", "mo", "s", "b", "u")] == ["discrete"] * 5 + ["continuous"]
    (mode,) = [t for t in model.typeDefinitions if t.name == "Mode"]
    assert [(item.name, item.value) for item in mode.items] == [("Off", "1"), ("On", "2"), ("Turbo", "3")]
    assert known["mode"].declaredType is mode
    assert known["label"].start == 'hällo "x" %'
    assert known["m"].start == "1"


def test_dependencies_are_direct_feedthrough_only() -> None:
    model = fmpy.read_model_description(str(build(EVERYTHING, "2.0").path))
    found = {u.variable.name: {d.name for d in u.dependencies} for u in model.outputs}
    assert found == {
        "x": {"x"},
        "y": {"u"},
        "z[1]": {"x"},
        "z[2]": {"u", "v"},
        "q": {"b"},
        "i": {"k"},
        "mo": {"b", "m"},
        "s": {"b"},
        "f": {"x", "v"},
    }
    rates = {u.variable.name: {d.name for d in u.dependencies} for u in model.derivatives}
    assert rates == {"der(x)": {"v"}, "der(v)": {"u", "x"}}
    third = fmpy.read_model_description(str(build(EVERYTHING, "3.0").path))
    assert {u.variable.name: {d.name for d in u.dependencies} for u in third.outputs}["z"] == {"x", "u", "v"}


def test_samples_pass_nothing_through_and_whens_do() -> None:
    code = """
model M
  input Real u, w;
  output Real sampled(start=0, fixed=true), caught(start=0, fixed=true);
equation
  when sample(0, 0.1) then
    sampled = u;
  end when;
  when w > 1 then
    caught = u;
  end when;
end M;
"""
    model = fmpy.read_model_description(str(build(code).path))
    found = {u.variable.name: {d.name for d in u.dependencies} for u in model.outputs}
    assert found == {"sampled": set(), "caught": {"u", "w"}}
    with Fmu(code) as fmu:
        fmu["u"], fmu["w"] = 5.0, 2.0
        assert (fmu["sampled"], fmu["caught"]) == (0.0, 5.0)
        fmu["w"] = 0.0
        assert fmu["caught"] == 0.0, "reading an output commits nothing"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_is_read_and_written(version: str) -> None:
    with Fmu(EVERYTHING, version, label="other", mode=3, n=5) as fmu:
        assert (fmu["s"], fmu["mo"], fmu["i"], bool(fmu["q"])) == ("low", 3, 7, False)
        fmu["b"], fmu["k"], fmu["m"] = True, -4, 2
        assert (fmu["s"], fmu["mo"], fmu["i"], bool(fmu["q"])) == ("other", 2, 1, True)
        assert fmu["twice"] == 4.0
        fmu["mass"] = 7.0
        assert fmu["twice"] == 14.0
    with Fmu(EVERYTHING, version) as fmu:
        fmu["b"] = True
        assert fmu["s"] == 'hällo "x" %'


def test_what_may_not_be_set_is_refused() -> None:
    with Fmu(EVERYTHING) as fmu:
        for name in ("y", "twice", "c"):
            with pytest.raises(FMICallException):
                fmu[name] = 1.0
        with pytest.raises(FMICallException):
            fmu["n"] = 2
        assert "any more" in fmu.messages[-1]


OSCILLATOR = """
model Oscillator
  input Real u;
  output Real x(start=1, fixed=true), v(start=0, fixed=true);
  output Integer zeros(start=0, fixed=true);
  output Real held(start=0, fixed=true);
equation
  der(x) = v;
  der(v) = u - 4*x;
  when x < 0 then
    zeros = pre(zeros) + 1;
  end when;
  when sample(0.1, 0.3) then
    held = x;
  end when;
end Oscillator;
"""


def _trace(fmu: Fmu, steps: int) -> list[tuple[float, ...]]:
    found = []
    for k in range(steps):
        fmu["u"] = float(k % 3)
        fmu.step(0.17)
        found.append((fmu["x"], fmu["v"], fmu["zeros"], fmu["held"]))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_restored_states_replay_bit_by_bit(version: str) -> None:
    with Fmu(OSCILLATOR, version) as fmu, Fmu(OSCILLATOR, version) as other:
        _trace(fmu, 7)
        get, put = ("getFMUstate", "setFMUstate") if version == "2.0" else ("getFMUState", "setFMUState")
        state, at = getattr(fmu.raw, get)(), fmu.time
        first = _trace(fmu, 20)
        getattr(fmu.raw, put)(state)
        fmu.time = at
        assert _trace(fmu, 20) == first
        write, read = (
            ("serializeFMUstate", "deSerializeFMUstate")
            if version == "2.0"
            else ("serializeFMUState", "deserializeFMUState")
        )
        content = getattr(fmu.raw, write)(state)
        again = getattr(other.raw, read)(content)
        getattr(other.raw, put)(again)
        other.time = at
        assert _trace(other, 20) == first
        assert getattr(other.raw, write)(again) == content


def test_two_instances_do_not_know_each_other() -> None:
    with Fmu(OSCILLATOR) as one, Fmu(OSCILLATOR) as other:
        alone = _trace(one, 10)
        assert _trace(other, 10) == alone


def test_versions_agree_bit_by_bit() -> None:
    with Fmu(OSCILLATOR, "2.0") as one, Fmu(OSCILLATOR, "3.0") as other:
        assert _trace(one, 30) == _trace(other, 30)


NONLINEAR = """
model Nonlinear
  parameter Real k = 3;
  input Real u(start=0.7), w[2](start={0.2, 1.1});
  output Real y, z, p[2];
  output Real x(start=0.4, fixed=true);
  Real a(start=0.1), b(start=0.8);
equation
  der(x) = -x^3 + sin(u)*exp(-x) + atan2(w[1], w[2]);
  y = sqrt(u^2 + 1)*tanh(x) + max(u, x)/k + log(w[2]);
  a + b^3 = u;
  a*b + exp(a) = w[1] + 1;
  z = a - b;
  p = [2.0, 1.0; u, 3.0]*w;
end Nonlinear;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_directional_derivatives_agree_with_differences(version: str) -> None:
    knowns = ["u", "w", "x"]
    unknowns = ["y", "z", "p", "der(x)"]
    with Fmu(NONLINEAR, version, exchange=True) as fmu:
        base = {"u": 0.7, "w": np.array([0.2, 1.1]), "x": 0.4}

        def values(point: dict[str, np.ndarray | float]) -> np.ndarray:
            fmu["u"], fmu["w"] = point["u"], point["w"]
            x = (c_double * 1)(point["x"])
            (fmu.raw.setContinuousStates)(x, 1)
            return np.concatenate([np.atleast_1d(fmu[n]) for n in unknowns])

        columns, h = [], 1e-6
        for name in knowns:
            for e in np.eye(np.size(base[name])):
                step = h * (e if np.size(base[name]) > 1 else e[0])
                up, down = ({**base, name: base[name] + s * step} for s in (1, -1))
                columns.append((values(up) - values(down)) / (2 * h))
        expected = np.array(columns).T
        values(base)
        references = [r for n in unknowns for r in fmu._references(n)[0]]
        seeds = [r for n in knowns for r in fmu._references(n)[0]]
        direction = np.array([0.3, -1.2, 0.5, 2.0])
        if version == "2.0":
            found = fmu.raw.getDirectionalDerivative(references, seeds, list(direction))
        else:
            n, m, size = len(references), len(seeds), expected.shape[0]
            u32 = ctypes.c_uint32
            arrays = (u32 * n)(*references), n, (u32 * m)(*seeds), m
            out = (c_double * size)()
            fmu.raw.fmi3GetDirectionalDerivative(fmu.raw.component, *arrays, (c_double * 4)(*direction), 4, out, size)
            found = list(out)
            weights, back = np.array([1.0, -2, 0.5, 3, 0.1]), (c_double * 4)()
            fmu.raw.fmi3GetAdjointDerivative(fmu.raw.component, *arrays, (c_double * 5)(*weights), 5, back, 4)
            np.testing.assert_allclose(list(back), weights @ expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found, expected @ direction, rtol=1e-6, atol=1e-8)


BALL = """
model Ball
  output Real h(start=1, fixed=true), v(start=0, fixed=true);
  output Integer n(start=0, fixed=true);
  output Real held(start=0, fixed=true);
equation
  der(h) = v;
  der(v) = -9.81;
  when h <= 0 then
    reinit(v, -0.7*pre(v));
    n = pre(n) + 1;
  end when;
  when sample(0.15, 0.25) then
    held = v;
  end when;
end Ball;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_model_exchange_agrees_with_co_simulation(version: str) -> None:
    path = str(build(BALL, version).path)
    options = {"stop_time": 1.2, "output_interval": 0.1, "relative_tolerance": 1e-9, "validate": False}
    found = fmpy.simulate_fmu(path, fmi_type="ModelExchange", record_events=False, **options)
    other = simulate(BALL, ["h", "v", "n", "held"], version=version, step=0.1, steps=12)
    for name, values in other.items():
        np.testing.assert_allclose(found[name], values, atol=1e-6, err_msg=name)
    assert values[-1] != 0


def test_event_mode_stops_at_every_event() -> None:
    """FMI 3: the host asked for event mode and early return, and handles each event itself."""
    fmu = Fmu(BALL, "3.0", event_mode=True)
    fmu.raw.exitInitializationMode()
    time, events = 0.0, []
    event, terminate, early, last = c_bool(), c_bool(), c_bool(), c_double()
    while time < 1.0 - 1e-12:
        fmu.raw.fmi3DoStep(
            fmu.raw.component, time, 1.0 - time, False, byref(event), byref(terminate), byref(early), byref(last)
        )
        time = last.value
        if event.value:
            before = fmu["n"], fmu["held"]
            fmu.raw.enterEventMode()
            _, _, _, _, defined, _ = fmu.raw.updateDiscreteStates()
            fmu.raw.enterStepMode()
            assert defined
            # That the ball leaves the ground is an event too, with nothing to do.
            if (fmu["n"], fmu["held"]) != before:
                events.append(time)
    fall = np.sqrt(2 / 9.81)
    np.testing.assert_allclose(events, [0.15, 0.4, fall, 0.65, 0.9], atol=1e-9)
    with Fmu(BALL, "3.0") as plain:
        plain.step(1.0)
        assert fmu["h"] == pytest.approx(plain["h"], abs=1e-9)
    fmu.close()


@pytest.mark.parametrize("code", [EVERYTHING, OSCILLATOR, NONLINEAR, BALL], ids=lambda code: code.split()[1])
def test_sources_compile_without_a_warning(code: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(build(code).path) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".c")]
        archive.extract(name, tmp_path)
    command = [*find_compiler().command, "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", name, "-o", "out.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_sources_are_in_the_fmu() -> None:
    for version, names in (("2.0", {"sources/Ball.c"}), ("3.0", {"sources/Ball.c", "sources/buildDescription.xml"})):
        with zipfile.ZipFile(build(BALL, version).path) as archive:
            content = set(archive.namelist())
            assert {n for n in content if n.startswith("sources/")} == names
            assert b"main.mo" not in archive.read("sources/Ball.c")
