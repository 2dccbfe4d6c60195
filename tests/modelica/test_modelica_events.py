"""Events against analytic results: when, pre, edge, sample, reinit, deadlines, assertions, accumulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from modelica_harness import VERSIONS, Fmu, simulate

BALL = """
model Ball
  parameter Real e = 0.8;
  parameter Real v_min = 0.01 "below it the ball rests";
  output Real h(start=1, fixed=true);
  output Real v(start=0, fixed=true);
  output Integer bounces(start=0, fixed=true);
  output Real last(start=-1, fixed=true);
  Boolean flying(start=true, fixed=true);
equation
  der(h) = if flying then v else 0;
  der(v) = if flying then -9.81 else 0;
  when h <= 0 then
    reinit(v, if e*abs(pre(v)) > v_min then -e*pre(v) else 0);
    flying = e*abs(pre(v)) > v_min;
    bounces = pre(bounces) + 1;
    last = time;
  end when;
end Ball;
"""


def _height(t: float, e: float = 0.8) -> tuple[float, int]:
    """Closed form of the bouncing ball: height and number of bounces before t."""
    g, began, v, h, count = 9.81, 0.0, 0.0, 1.0, 0
    while True:
        lasts = (v + np.sqrt(v * v + 2 * g * h)) / g
        if t <= began + lasts:
            s = t - began
            return h + v * s - g * s * s / 2, count
        began, v, h, count = began + lasts, e * np.sqrt(v * v + 2 * g * h), 0.0, count + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_bouncing_ball_agrees_with_its_closed_form(version: str) -> None:
    found = simulate(BALL, ["h", "bounces", "last"], version=version, step=0.05, steps=60)
    expected = [_height(0.05 * k) for k in range(61)]
    np.testing.assert_allclose(found["h"], [h for h, _ in expected], atol=1e-8)
    np.testing.assert_array_equal(found["bounces"], [n for _, n in expected])
    assert found["last"][12] == pytest.approx(np.sqrt(2 / 9.81), abs=1e-10)


def test_ball_comes_to_rest_above_the_smallest_speed() -> None:
    with Fmu(BALL) as fmu:
        for _ in range(100):
            fmu.step(0.1)
        assert fmu["v"] == 0.0
        assert abs(fmu["h"]) < 1e-9


def test_bounces_without_end_are_reported() -> None:
    code = """
model Zeno
  output Real h(start=1, fixed=true);
  Real v(start=0, fixed=true);
equation
  der(h) = v;
  der(v) = -9.81;
  when h <= 0 then
    reinit(v, -0.5*pre(v));
  end when;
end Zeno;
"""
    with Fmu(code) as fmu:
        with pytest.raises(FMICallException):
            for _ in range(30):
                fmu.step(0.1)
        assert "events accumulate" in fmu.messages[0]
        assert "h <= 0" in fmu.messages[0]
        # sqrt(2/g)·(1 + 2·(e + e² + …)), e = 1/2
        assert fmu.time == pytest.approx(3 * np.sqrt(2 / 9.81), abs=0.1)


def test_chattering_is_reported() -> None:
    code = """
model Relay
  output Real x(start=0.5, fixed=true);
equation
  der(x) = if x > 0 then -1 else 1;
end Relay;
"""
    with Fmu(code) as fmu:
        fmu.step(0.4)
        with pytest.raises(FMICallException):
            fmu.step(0.4)
        assert "events accumulate" in fmu.messages[0]
        assert "hysteresis" in fmu.messages[0]


SAMPLED = """
model Sampled
  parameter Real Ts = 0.01;
  input Real u;
  output Real held(start=0, fixed=true);
  output Integer ticks(start=0, fixed=true);
  output Boolean seen(start=false, fixed=true);
  output Real history[3](each start=0, each fixed=true);
equation
  when sample(0, Ts) then
    held = u;
    ticks = pre(ticks) + 1;
    seen = u > 0.5;
    history = cat(1, {u}, pre(history[1:2]));
  end when;
end Sampled;
"""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("step", [0.01, 0.005, 0.02, 1 / 240])
def test_samples_tick_at_zero_and_at_the_end_of_a_step(version: str, step: float) -> None:
    steps = 24
    found = simulate(
        SAMPLED, ["ticks", "held"], version=version, step=step, steps=steps, inputs=lambda t: {"u": 10 + t}
    )
    t = step * np.arange(steps + 1)
    np.testing.assert_array_equal(found["ticks"], 1 + np.floor(t / 0.01 + 1e-9))
    # The tick at the end of a step sees the input that was held over the step.
    expected = [10.0]
    for k in range(steps):
        ticked = np.floor(t[k + 1] / 0.01 + 1e-9) > np.floor(t[k] / 0.01 + 1e-9)
        expected.append(10 + t[k] if ticked else expected[-1])
    np.testing.assert_allclose(found["held"], expected, rtol=1e-15)


def test_arrays_shift_in_a_when() -> None:
    with Fmu(SAMPLED) as fmu:
        for k in range(1, 5):
            fmu["u"] = float(k)
            fmu.step(0.01)
        np.testing.assert_array_equal(fmu["history"], [4, 3, 2])


def test_sample_period_is_built_in_and_says_so() -> None:
    with Fmu(SAMPLED, Ts=0.01) as fmu:
        assert fmu.known["Ts"].variability == "fixed"
    fmu = Fmu(SAMPLED)
    with pytest.raises(FMICallException):
        fmu["Ts"] = 0.02
    assert "a sample period is built in as 0.01" in fmu.messages[0]
    fmu.close()


LATCH = """
model Latch
  input Real u;
  input Boolean reset;
  output Boolean high, latched(start=false, fixed=true), rose(start=false, fixed=true);
  output Integer count(start=0, fixed=true);
  output Real at(start=-1, fixed=true);
equation
  high = u > 1 or (pre(high) and u > 0.5);
  latched = not reset and (pre(latched) or high);
  count = pre(count) + (if edge(high) then 1 else 0);
  when {high, reset} then
    at = time;
    rose = edge(high);
  end when;
end Latch;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_hysteresis_latch_and_edges(version: str) -> None:
    signal = [0, 0.7, 1.2, 0.7, 0.4, 0.7, 1.5, 0.0]
    resets = [False, False, False, False, True, False, False, False]
    with Fmu(LATCH, version) as fmu:
        rows = []
        for u, reset in zip(signal, resets, strict=True):
            fmu["u"], fmu["reset"] = float(u), reset
            now = (fmu["high"], fmu["latched"], fmu["count"])
            fmu.step(0.1)
            assert (fmu["high"], fmu["latched"], fmu["count"]) == now, "an output is right before the step too"
            rows.append((*map(bool, now[:2]), now[2], round(fmu["at"], 9), bool(fmu["rose"])))
    assert rows == [
        (False, False, 0, -1, False),
        (False, False, 0, -1, False),
        (True, True, 1, 0.2, True),
        (True, True, 1, 0.2, True),
        (False, False, 1, 0.4, False),
        (False, False, 1, 0.4, False),
        (True, True, 2, 0.6, True),
        (False, True, 2, 0.6, True),
    ]


DEADLINE = """
model Deadline
  parameter Real wait = 0.05;
  input Boolean go;
  output Boolean soft, hard;
  output Real when_soft(start=-1, fixed=true), when_hard(start=-1, fixed=true);
  Real since(start=0, fixed=true);
equation
  when go then
    since = time;
  end when;
  soft = go and time >= since + wait;
  hard = go and time > since + wait;
  when soft then
    when_soft = time;
  end when;
  when hard then
    when_hard = time;
  end when;
end Deadline;
"""


@pytest.mark.parametrize("step", [0.01, 0.003, 1 / 240, 0.05])
def test_deadlines_are_met_to_rounding(step: float) -> None:
    with Fmu(DEADLINE) as fmu:
        fmu.step(2 * step)
        began = fmu.time
        fmu["go"] = True
        while fmu.time < began + 0.05 - 1e-9:
            assert not fmu["soft"]
            fmu.time = began + round((fmu.time - began) / step) * step
            fmu.step(step)
        fmu.step(step)
        assert fmu["soft"]
        assert fmu["hard"]
        assert fmu["when_soft"] == pytest.approx(began + 0.05, abs=1e-12)
        assert fmu["when_hard"] == pytest.approx(began + 0.05, abs=1e-12)


def test_strict_and_soft_inequalities_of_time() -> None:
    code = """
model M
  output Boolean a, b;
  output Integer n(start=0, fixed=true);
equation
  a = time > 0.3;
  b = time >= 0.3;
  when time > 0.3 then
    n = pre(n) + 1;
  end when;
end M;
"""
    found = simulate(code, ["a", "b", "n"], step=0.1, steps=6)
    np.testing.assert_array_equal(found["b"], [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(found["a"][[0, 1, 2, 4, 5, 6]], [0, 0, 0, 1, 1, 1])
    assert found["n"][-1] == 1


def test_priority_of_elsewhen_and_algorithms_in_order() -> None:
    code = """
model M
  input Real u;
  output Integer first(start=0, fixed=true), second(start=0), third(start=0);
equation
  when u > 2 then
    first = 2;
  elsewhen u > 1 then
    first = 1;
  end when;
algorithm
  when u > 1 then
    second := pre(second) + 1;
    third := second*10;
    second := second + 5;
  end when;
end M;
"""
    with Fmu(code) as fmu:
        fmu["u"] = 3.0
        fmu.step(0.1)
        assert (fmu["first"], fmu["second"], fmu["third"]) == (2, 6, 10)


def test_mod_and_floor_jump_at_their_instants() -> None:
    code = """
model Saw
  output Real y, z;
  output Real x(start=0, fixed=true);
  output Integer wraps(start=0, fixed=true);
equation
  der(x) = 1;
  y = mod(x, 0.3);
  z = rem(-x, 0.3);
  when y < 0.01 then
    wraps = pre(wraps) + 1;
  end when;
end Saw;
"""
    found = simulate(code, ["y", "z", "wraps"], step=0.23, steps=8)
    x = 0.23 * np.arange(9)
    np.testing.assert_allclose(found["y"], np.mod(x, 0.3), atol=1e-9)
    np.testing.assert_allclose(found["z"], -np.mod(x, 0.3), atol=1e-9)
    assert found["wraps"][-1] == 6


def test_whole_numbers_change_at_their_instants_in_steps_of_any_size() -> None:
    code = """
model Encoder
  output Real x(start=0.05, fixed=true);
  output Integer n, counted(start=0, fixed=true);
  output Real f;
equation
  der(x) = 1;
  n = integer(10*x);
  f = floor(4*x);
  when change(n) then
    counted = pre(counted) + n - pre(n);
  end when;
end Encoder;
"""
    for step in (0.03, 0.41, 3.68):
        with Fmu(code) as fmu:
            fmu.step(step)
            x = 0.05 + step
            assert fmu["n"] == math.floor(10 * x)
            assert fmu["counted"] == math.floor(10 * x)
            assert fmu["f"] == math.floor(4 * x)


def test_a_change_there_and_back_within_a_step_is_seen() -> None:
    code = """
model Pulse
  output Real x(start=0, fixed=true);
  output Integer n(start=0, fixed=true);
equation
  der(x) = 1;
  when abs(x - 0.5) < 0.25 then
    n = pre(n) + 1;
  end when;
end Pulse;
"""
    with Fmu(code) as fmu:
        fmu.step(1.2)
        assert fmu["n"] == 1


ASSERTED = """
model Guarded
  input Real u;
  output Real y;
equation
  y = 2*u;
  assert(u < 10, "u is " + String(u) + ", 100% too large");
  assert(u < 5, "u is large", AssertionLevel.warning);
  when u < -10 then
    terminate("u fell");
  end when;
end Guarded;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_assertions_speak_through_the_logger(version: str) -> None:
    with Fmu(ASSERTED, version) as fmu:
        fmu["u"] = 7.0
        fmu.step(0.1)
        fmu.step(0.1)
        assert [m.partition(": ")[2] for m in fmu.messages] == ["u is large"]
        fmu["u"] = 11.0
        with pytest.raises(FMICallException):
            fmu.step(0.1)
        text = fmu.messages[-1].replace("%%", "%")
        assert text.startswith("assertion failed at t = 0.")
        assert text.endswith("u is 11, 100% too large")


def test_terminate_ends_the_run() -> None:
    with Fmu(ASSERTED) as fmu:
        fmu["u"] = -11.0
        with pytest.raises(FMICallException, match="discard"):
            fmu.step(0.1)
        assert "u fell" in fmu.messages[0]
        assert fmu.raw.getBooleanStatus(3)


def test_reset_makes_an_instance_new() -> None:
    with Fmu(BALL) as fmu:
        fmu.step(2.0)
        fmu.raw.reset()
        fmu.raw.setupExperiment(startTime=0.0)
        fmu.raw.enterInitializationMode()
        fmu.raw.exitInitializationMode()
        assert (fmu["h"], fmu["bounces"]) == (1.0, 0)
        fmu.time = 0.0
        fmu.step(0.05)
        assert fmu["h"] == pytest.approx(_height(0.05)[0], abs=1e-9)
