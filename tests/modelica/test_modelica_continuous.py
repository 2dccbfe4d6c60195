"""Continuous models against closed forms: states, algebraic systems, arrays, functions, initialization."""

from __future__ import annotations

import numpy as np
import pytest
from modelica_harness import VERSIONS, Fmu, simulate

LAG = """
model Lag "first-order lag"
  parameter Real T(unit="s", min=0) = 0.5 "time constant";
  input Real u = 1.0 "a default on an input is its start value";
  output Real y "filtered";
  output Real rate;
  Real x(start=0, fixed=true);
equation
  T*der(x) = u - x;
  y = x;
  rate = der(x);
end Lag;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_lag_follows_its_closed_form(version: str) -> None:
    found = simulate(LAG, ["y", "rate"], version=version, step=0.1, steps=20)
    t = 0.1 * np.arange(21)
    np.testing.assert_allclose(found["y"], 1 - np.exp(-t / 0.5), atol=1e-8)
    np.testing.assert_allclose(found["rate"], np.exp(-t / 0.5) / 0.5, atol=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_of_any_size_give_the_same_trajectory(version: str) -> None:
    with Fmu(LAG, version) as fmu:
        for size in (0.013, 0.4, 0.001, 0.25, 0.336):
            fmu.step(size)
        assert fmu["y"] == pytest.approx(1 - np.exp(-1.0 / 0.5), abs=1e-8)


def test_input_set_between_steps_shows_at_once_where_it_feeds_through() -> None:
    with Fmu(LAG) as fmu:
        fmu.step(0.1)
        before = fmu["y"]
        fmu["u"] = 3.0
        assert fmu["y"] == before
        assert fmu["rate"] == pytest.approx((3.0 - before) / 0.5)


def test_parameter_is_tunable_between_steps() -> None:
    with Fmu(LAG) as fmu:
        fmu.step(0.5)
        fmu["T"] = 0.1
        start = fmu["y"]
        fmu.step(0.2)
        assert fmu["y"] == pytest.approx(1 + (start - 1) * np.exp(-2), abs=1e-8)


ALGEBRA = """
model Algebra
  parameter Real A[3,3] = [4,1,0; 1,3,-1; 0,-1,2];
  input Real b[3](start={1,2,3});
  output Real x[3];
  output Real z "of z^3 + z = b1";
  output Real n;
equation
  A*x = b;
  z^3 + z = b[1];
  n = sqrt(x*x);
end Algebra;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_linear_and_nonlinear_systems_are_solved(version: str) -> None:
    matrix = np.array([[4, 1, 0], [1, 3, -1], [0, -1, 2.0]])
    with Fmu(ALGEBRA, version) as fmu:
        for b in ([1.0, 2, 3], [-2.0, 0.5, 7], [30.0, 1, 1]):
            fmu["b"] = b
            x = np.linalg.solve(matrix, b)
            np.testing.assert_allclose(fmu["x"], x, rtol=1e-12)
            z = fmu["z"]
            assert z**3 + z == pytest.approx(b[0], rel=1e-12)
            assert fmu["n"] == pytest.approx(np.linalg.norm(x))


FUNCTIONS = """
package P
  record Limits
    parameter Real lo = -1;
    parameter Real hi = 1;
  end Limits;
  function clip
    input Real u;
    input Real lo;
    input Real hi;
    output Real y;
    output Boolean limited;
  algorithm
    if u < lo then
      y := lo; limited := true;
    elseif u > hi then
      y := hi; limited := true;
    else
      y := u; limited := false;
    end if;
  end clip;
  function poly "Horner"
    input Real c[:];
    input Real x;
    output Real y;
  algorithm
    y := 0;
    for i in size(c, 1):-1:1 loop
      y := y*x + c[i];
    end for;
  end poly;
  model M
    parameter Limits limits(hi=2);
    input Real u;
    output Real y;
    output Boolean over;
    output Real p;
    output Real sums[2];
    Integer k;
  protected
    Real v[4];
  equation
    (y, over) = clip(u, limits.lo, limits.hi);
    p = poly({1, 2, 3}, u);
    for i in 1:4 loop
      v[i] = u^i;
    end for;
    k = if u > 1 then 3 else 1;
    sums = {sum(v[1:3]), v[k]};
  end M;
end P;
"""


@pytest.mark.parametrize("u", [-3.0, 0.5, 1.5, 4.0])
def test_functions_records_loops_and_subscripts(u: float) -> None:
    with Fmu(FUNCTIONS) as fmu:
        fmu["u"] = u
        assert fmu["y"] == min(max(u, -1), 2)
        assert fmu["over"] == (not -1 <= u <= 2)
        assert fmu["p"] == pytest.approx(1 + 2 * u + 3 * u**2)
        np.testing.assert_allclose(fmu["sums"], [u + u**2 + u**3, u**3 if u > 1 else u], rtol=1e-14)


MATRICES = """
model Matrices
  input Real u(start=1);
  input Integer i(start=1), j(start=1);
  output Real picked;
  output Real r[3];
  output Real q;
  Real A[2,3] = [1,2,3;4,5,6]*u;
equation
  picked = A[i, j];
  r = cross({1.0, 0.0, 0.0}, {0.0, u, 0.0});
  q = {1.0, 2.0}*([u, 0.0; 0.0, 3.0]*{1.0, 1.0});
end Matrices;
"""


def test_subscripts_known_at_run_time_only() -> None:
    with Fmu(MATRICES) as fmu:
        fmu["u"] = 2.0
        for i in (1, 2):
            for j in (1, 2, 3):
                fmu["i"], fmu["j"] = i, j
                assert fmu["picked"] == 2.0 * (3 * (i - 1) + j)
        fmu["j"] = 4
        assert np.isnan(fmu["picked"])
        np.testing.assert_array_equal(fmu["r"], [0, 0, 2])
        assert fmu["q"] == 2.0 + 6.0


INITIAL = """
model Steady
  parameter Real k = 2;
  input Real u(start=3);
  output Real x(start=7);
  output Real v(start=1, fixed=true);
  output Real w;
  Real s;
equation
  der(x) = u - k*x;
  der(v) = -v;
  der(s) = -s*s;
  w = x + v;
initial equation
  der(x) = 0;
  s^3 = 8;
end Steady;
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_initial_equations_are_solved_with_the_rest(version: str) -> None:
    with Fmu(INITIAL, version, k=4.0) as fmu:
        assert fmu["x"] == pytest.approx(3.0 / 4.0, rel=1e-14)
        assert fmu["v"] == 1.0
        assert fmu["w"] == pytest.approx(1.75)


def test_inputs_set_in_initialization_mode_enter_the_initial_equations() -> None:
    fmu = Fmu(INITIAL, k=4.0)
    fmu["u"] = 8.0
    assert fmu["x"] == pytest.approx(2.0, rel=1e-14)
    fmu["u"] = 16.0
    with fmu:
        assert fmu["x"] == pytest.approx(4.0, rel=1e-14)


def test_starts_follow_parameters() -> None:
    code = """
model M
  parameter Real a = 2;
  parameter Real b = a^2;
  output Real x(start=3*b, fixed=true);
equation
  der(x) = 0;
end M;
"""
    with Fmu(code, a=5.0) as fmu:
        assert (fmu["b"], fmu["x"]) == (25.0, 75.0)


def test_pendulum_keeps_its_energy() -> None:
    code = """
model Pendulum
  output Real q(start=2.5, fixed=true), w(start=0, fixed=true), e;
equation
  der(q) = w;
  der(w) = -9.81*sin(q);
  e = 0.5*w^2 - 9.81*cos(q);
end Pendulum;
"""
    found = simulate(code, ["e"], step=0.05, steps=400, tolerance=1e-10)
    assert np.ptp(found["e"]) < 1e-7


def test_model_without_states_is_evaluated_at_every_time() -> None:
    code = "model M\n  output Real y = sin(time);\nend M;\n"
    found = simulate(code, ["y"], step=0.3, steps=10)
    np.testing.assert_allclose(found["y"], np.sin(0.3 * np.arange(11)), atol=1e-15)


def test_start_time_other_than_zero() -> None:
    code = "model M\n  output Real x(start=0, fixed=true);\nequation\n  der(x) = time;\nend M;\n"
    with Fmu(code, start=10.0) as fmu:
        fmu.step(2.0)
        assert fmu["x"] == pytest.approx((144 - 100) / 2, rel=1e-12)
