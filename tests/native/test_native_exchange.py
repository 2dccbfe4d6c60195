"""The loop in C gives the same bits and the same errors as the loop in Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cosim
from cosim.diagnostic import CosimError

HEADER = '#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n'


def program(name, code, *lines):
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f'def Scope "{name}" (prepend apiSchemas = ["LunCoProgramAPI"])\n{{\n'
        f'    string info:sourceCode = """{code}"""\n{body}}}\n'
    )


def write(tmp_path, *parts):
    path = tmp_path / "stage.usda"
    path.write_text(HEADER + "".join(parts))
    return path


def both(stage, act=None, **options):
    """Results of the two loops; `act` steps and holds."""
    found = []
    for loop in ("python", "auto"):
        with cosim.open(stage, loop=loop, **options) as sim:
            (act or (lambda s: s.run()))(sim)
            found.append(sim.results)
    return found


def assert_same(one, two):
    assert one.names == two.names
    assert np.array_equal(one.time, two.time)
    assert one.values.tobytes() == two.values.tobytes()


@pytest.mark.parametrize("order", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("name", ["pendulum", "arm_servo", "lander"])
def test_shipped_stages_to_the_bit(project, name, order):
    # The last step is clipped.
    assert_same(*both(project / "stages" / f"{name}.usda", stop="0.9987", order=order))


LAG = """model Lag parameter Real tau = 0.05; input Real a; input Real b = 0.5; output Real y; output Real z;
  output Integer n(start = 0, fixed = true); output Boolean up; Real x(start = 1, fixed = true);
equation tau*der(x) = a - x; y = x + 0.1*b; z = 2*a - b; up = x > 0.7;
  when sample(0, 0.05) then n = pre(n) + 1; end when; end Lag;"""


def random_stage(tmp_path, seed, count=6):
    """Lags that read each other at random, some at lower rates, with factors, offsets and sums."""
    rng = random.Random(seed)
    parts = []
    for k in range(count):
        lines = [f"double inputs:tau = {rng.uniform(0.02, 0.2)!r}"]
        for port in "ab":
            sources = rng.sample(range(count), rng.randint(0, 3))
            if sources:
                targets = ", ".join(f"</P{s}.outputs:{rng.choice('yz')}>" for s in sources)
                lines.append(f"prepend float inputs:{port}.connect = [{targets}]")
                lines.append(f"double lunco:factor:{port} = {rng.uniform(-0.4, 0.4)!r}")
                lines.append(f"double lunco:offset:{port} = {rng.uniform(-1, 1)!r}")
        if rng.random() < 0.4:
            lines.append(f"double lunco:program:communicationPeriod = {rng.choice((2, 3, 5)) / 100!r}")
        parts.append(program(f"P{k}", LAG, *lines))
    return write(tmp_path, *parts)


@pytest.mark.parametrize("order", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_to_the_bit(tmp_path, seed, version, order):
    stage = random_stage(tmp_path, seed)
    options = {"step": "1/100", "stop": "1.003", "order": order, "system_options": {"fmi_version": version}}
    one, two = both(stage, **options)
    assert_same(one, two)
    assert {"Integer", "Boolean"} <= {c.type.value for c in one.columns} or version == "3.0"


def test_a_period_beyond_any_run(tmp_path):
    stage = write(tmp_path, program("P", LAG, "double lunco:program:communicationPeriod = 1e300"))
    assert_same(*both(stage, step="1/100", stop=1))


def test_nothing_but_fmus_runs_whole(tmp_path):
    with cosim.open(random_stage(tmp_path, 1), step="1/100", stop=30) as sim:
        sim.run()
        assert sim._master._native._is_whole
        assert len(sim.results) == 3001


def test_holds_and_snapshots(tmp_path):
    def act(sim):
        sim.step(5)
        sim.set("/P1.inputs:a", 3.0)
        sim.step(5)
        state = sim.save()
        sim.step(7)
        sim.restore(state)
        sim.release("/P1.inputs:a")
        sim.set("/P0.inputs:tau", 0.4)
        sim.step(20)

    for seed in range(3):
        assert_same(*both(random_stage(tmp_path, seed), act, step="1/100"))


def failures(stage, **options):
    found = []
    for loop in ("python", "auto"):
        with cosim.open(stage, loop=loop, **options) as sim:
            with pytest.raises(CosimError) as error:
                sim.run()
            found.append((error.value.diagnostics, sim.results))
    (first, one), (second, two) = found
    assert [(d.code, d.message) for d in first] == [(d.code, d.message) for d in second]
    assert_same(one, two)
    return first, one


def test_an_fmu_that_fails_stops_both_loops_alike(tmp_path):
    code = 'model P output Real y; equation y = time; assert(time < 0.05, "too late"); end P;'
    found, results = failures(write(tmp_path, program("P", code)), step="1/100", stop=1)
    assert found[0].code == "fmu-call-failed"
    assert "too late" in found[0].message
    assert 4 <= len(results) <= 6


def test_an_output_that_is_not_finite_stops_both_loops_alike(tmp_path):
    code = "model P output Real y; equation y = 1/(0.05 - 5*floor(time*100)/500); end P;"
    found, _ = failures(write(tmp_path, program("P", code)), step="1/100", stop=1)
    assert found[0].code == "fmu-nan"
    assert "/P.outputs:y" in found[0].message


def test_a_sum_that_is_not_finite_stops_both_loops_alike(tmp_path):
    code = "model P input Real u; output Real y; equation y = 1e200*(1 + time); end P;"
    stage = write(
        tmp_path,
        program("P", code, "float inputs:u.connect = </P.outputs:y>", "double lunco:factor:u = 1e200"),
    )
    found, _ = failures(stage, step="1/100", stop=1)
    assert found[0].code == "input-not-finite"


def test_without_a_compiler_it_runs_in_python_and_says_so(project, monkeypatch):
    from cosim.diagnostic import UsageError
    from cosim.native import exchange

    def none():
        raise UsageError.of("toolchain-missing", "there is no C compiler")

    monkeypatch.setattr(exchange, "exchange_library", none)
    with cosim.open(project / "stages" / "pendulum.usda") as sim:
        sim.step(3)
        assert "loop-in-python" in [d.code for d in sim.diagnostics]
        assert len(sim.results) == 4


def test_unknown_loop(project):
    with pytest.raises(CosimError, match="loop-unknown"):
        cosim.open(project / "stages" / "pendulum.usda", loop="fast")
