"""FMUs as components: values of every type, life cycle, state, and text."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.component import Causality, Component, PortType, StepStatus, Variability
from cosim.diagnostic import FmuError, StepError
from tests.fmi.fmi_zoo import REAL_2, Bench, build, live, ref

VERSIONS = ("2.0", "3.0")


@pytest.mark.parametrize("version", VERSIONS)
def test_real_inputs_reach_outputs_and_the_integral(tmp_path: Path, version: str) -> None:
    with Bench(build(tmp_path, version), ["u"], ["y", "imu:x_1_2"]) as bench:
        assert isinstance(bench.component, Component)
        bench.start(gain=2.0, offset=0.25)
        for k in range(10):
            bench.set(u=k + 1.0)
            bench.step()
            assert bench.get()["y"] == 2.0 * (k + 1) + 0.25
        assert bench.get()["imu:x_1_2"] == pytest.approx(5.5, abs=1e-12)
        assert live(bench.fmu) == 1
    assert live(bench.fmu) == 0
    bench.component.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_ports_say_everything_that_the_description_says(tmp_path: Path, version: str) -> None:
    bench = Bench(build(tmp_path, version))
    u = bench.port("u")
    assert (u.causality, u.type, u.variability, u.start) == (Causality.INPUT, PortType.REAL, Variability.CONTINUOUS, 0)
    assert u.unit is not None
    assert u.unit.exponents == (0, 0, -1, 0, 0, 0, 0, 1)
    assert u.unit.factor == 0.104719755119660
    if version == "2.0":
        assert (u.minimum, u.maximum, u.nominal) == (-1e6, 1e6, 10.0)
    assert bench.port("gain").causality is Causality.PARAMETER
    assert bench.port("clock_time", "outputs").causality is Causality.LOCAL
    assert bench.port("clock_time", "outputs").variable == "clock time"
    assert bench.port("imu:x_1_2", "outputs").variable == "imu.x[1,2]"
    assert u.where is not None and u.where.line is not None
    names = [p.ref for p in bench.component.ports()]
    assert names == sorted(names)
    assert bench.component.find(ref("nothing")) is None
    assert bench.component.dependencies(ref("y", "outputs")) == {ref("u")}
    assert bench.component.dependencies(ref("imu:x_1_2", "outputs")) == frozenset()


def test_fmi2_types(tmp_path: Path) -> None:
    with Bench(build(tmp_path)) as bench:
        bench.start()
        for number, logical in ((-7, 1.0), (2**30, 0.49)):
            bench.set(u=1.5, i_in=number, b_in=logical)
            bench.step()
            got = bench.get()
            assert got["i_out"] == np.array(2 * number).astype(np.int32)
            assert got["b_out"] == float(not logical > 0.5)
            assert got["y"] == 1.5


@pytest.mark.parametrize("kind", ["Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"])
def test_fmi3_integers_are_exact(tmp_path: Path, kind: str) -> None:
    limits = np.iinfo(kind.lower())
    smallest = max(limits.min, -(2**53))
    largest = min(int(limits.max) - 1, 2**53 - 1)
    with Bench(build(tmp_path, "3.0"), [f"{kind}_in"], [f"{kind}_out"]) as bench:
        bench.start()
        for value in (smallest, 0, 5, largest):
            bench.set(**{f"{kind}_in": float(value)})
            bench.step()
            assert bench.get()[f"{kind}_out"] == value + 1
        for wrong in (0.5, float(limits.max) * 4, float(limits.min) - 2.0**62):
            with pytest.raises(StepError, match=f"/P.inputs:{kind}_in") as error:
                bench.set(**{f"{kind}_in": wrong})
            assert error.value.diagnostics[0].code == "fmu-value-inexact"


def test_fmi3_integers_beyond_exactness_are_refused(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "3.0"), ["Int64_in"], ["Int64_out"]) as bench:
        bench.start()
        bench.set(Int64_in=2.0**60)
        with pytest.raises(StepError, match=r"Int64_out.*exactly"):
            bench.get()


def test_fmi3_float32_boolean(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "3.0"), ["Float32_in", "b_in", "u"], ["Float32_out", "b_out", "y"]) as bench:
        bench.start()
        bench.set(Float32_in=0.1, b_in=1.0, u=4.0)
        assert bench.get() == {"Float32_out": float(np.float32(0.1) + np.float32(1)), "b_out": 0.0, "y": 4.0}


def test_fmi3_arrays_are_scalar_ports(tmp_path: Path) -> None:
    path = build(tmp_path, "3.0")
    with Bench(path, ["q_1", "q_2", "q_3"], ["r_1", "r_2", "r_3", "m_1_1", "m_1_2", "m_2_1", "m_2_2"]) as bench:
        assert bench.port("q_2").start == 2.0
        assert bench.port("m_2_1", "outputs").variable == "m[2,1]"
        bench.start()
        bench.set(q_1=4.0, q_2=5.0, q_3=6.0)
        assert list(bench.get().values()) == [8.0, 10.0, 12.0, 15.0, 16.0, 25.0, 26.0]
    assert bench.component.dependencies(ref("m_1_2", "outputs")) == {ref("q_1"), ref("q_2"), ref("q_3")}


def test_fmi3_array_bound_in_part_keeps_the_rest(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "3.0"), ["q_2"], ["r_1", "r_2", "r_3"]) as bench:
        bench.start(q_3=30.0)
        bench.set(q_2=7.0)
        assert list(bench.get().values()) == [2.0, 14.0, 60.0]
        bench.component.hold(bench.port("q_1"), 9.0)
        bench.set(q_2=8.0)
        assert list(bench.get().values()) == [18.0, 16.0, 60.0]


def test_an_input_that_is_not_driven_keeps_its_own_value(tmp_path: Path) -> None:
    with Bench(build(tmp_path), ["u", "i_in"], ["y", "i_out"]) as bench:
        bench.start()
        bench.set(i_in=3)
        assert bench.get() == {"y": 0.0, "i_out": 6.0}
        bench.set(u=5.0)
        assert bench.get() == {"y": 5.0, "i_out": 0.0}


def test_text_ports(tmp_path: Path) -> None:
    for version, name in (("2.0", "s"), ("3.0", "s"), ("3.0", "d")):
        with Bench(build(tmp_path, version), [f"{name}_in", "u"], [f"{name}_out", "y"]) as bench:
            bench.start()
            value: str | bytes = "größe" if name == "s" else b"\x00\x01\xff"
            bench.component.set_text([value])
            bench.component.set_text([None])
            assert bench.component.get_text() == ["<größe>" if name == "s" else b"\xff\x01\x00"]
            bench.set(u=2.0)
            assert bench.get() == {"y": 2.0}


@pytest.mark.parametrize("version", VERSIONS)
def test_save_and_restore_is_bit_for_bit(tmp_path: Path, version: str) -> None:
    with Bench(build(tmp_path, version), ["u"], ["imu:x_1_2", "y"]) as bench:
        bench.start()
        bench.set(u=0.1)
        bench.step()
        state = bench.component.save()
        before = bench.get()
        bench.step()
        first = bench.get()
        bench.component.restore(state)
        assert bench.get() == before
        bench.tick = 1
        bench.step()
        assert bench.get() == first
        other = bench.component.save()
        assert live(bench.fmu) == 2001
        del other
        assert live(bench.fmu) == 1001
    assert live(bench.fmu) == 0
    with pytest.raises(StepError):
        bench.component.restore(state)


def test_an_fmu_without_state_says_so(tmp_path: Path) -> None:
    with Bench(build(tmp_path, attributes='canGetAndSetFMUstate="false"')) as bench:
        bench.start()
        with pytest.raises(StepError, match="fmu-state-unsupported"):
            bench.component.save()


@pytest.mark.parametrize("version", VERSIONS)
def test_optional_symbols_are_needed_only_when_used(tmp_path: Path, version: str) -> None:
    with Bench(build(tmp_path, version, "ONLY_REAL"), ["u"], ["y"]) as bench:
        bench.start()
        bench.set(u=1.0)
        bench.step()
        assert bench.get() == {"y": 1.0}
        with pytest.raises(FmuError, match=r"fmu-symbol-missing.*GetFMU"):
            bench.component.save()


def test_hold_and_release(tmp_path: Path) -> None:
    with Bench(build(tmp_path), [], ["y"]) as bench:
        bench.start()
        bench.component.hold(bench.port("u"), 3.0)
        assert bench.get() == {"y": 3.0}
        bench.component.hold(bench.port("gain"), 4.0)
        assert bench.get() == {"y": 12.0}
        bench.component.release(bench.port("gain"))
        assert bench.get() == {"y": 3.0}
        with pytest.raises(StepError, match="fmu-parameter-fixed"):
            bench.component.hold(bench.port("offset"), 1.0)


def test_a_bound_parameter_is_written_only_when_it_changes(tmp_path: Path) -> None:
    with Bench(build(tmp_path), ["gain", "offset", "u"], ["y"]) as bench:
        bench.start(offset=0.5)
        bench.set(gain=1.0, offset=0.5, u=2.0)
        assert bench.get() == {"y": 2.5}
        bench.set(gain=3.0, offset=0.5, u=2.0)
        assert bench.get() == {"y": 6.5}


def test_the_last_step_ends_at_the_stop_time(tmp_path: Path) -> None:
    with Bench(build(tmp_path), ["u"], ["h", "clock_time"], step="0.3", stop="1") as bench:
        bench.start()
        for _ in range(4):
            bench.step()
        assert bench.get() == {"h": pytest.approx(0.1, abs=1e-15), "clock_time": 1.0}


def test_made_up_names_bind_without_a_change_here(tmp_path: Path) -> None:
    names = ("Käse.reif[3]", "der(α).v", "_", "m.'x y'", "a:b;c", "1st")
    rows = [(name, *row[1:]) for name, row in zip(names, REAL_2, strict=True)]
    bench = Bench(build(tmp_path, variables=rows))
    assert {p.ref.name for p in bench.component.ports()} == {"Käse:reif_3", "der_α_:v", "_", "m:_x_y_", "a_b_c", "_1st"}
    with bench:
        bench.start()
        bench.set(**{"Käse:reif_3": 6.0})
        assert bench.get()["m:_x_y_"] == 6.0


def test_a_name_clash_asks_for_an_explicit_name(tmp_path: Path) -> None:
    rows = [(name, *row[1:]) for name, row in zip(("u", "a.b", "c", "y[1]", "y_1", "t"), REAL_2, strict=True)]
    bench = Bench(build(tmp_path, variables=rows))
    (found,) = bench.log.errors
    assert found.code == "fmu-port-clash"
    assert "cosim:variable:y_1" in found.hint
    with Bench(build(tmp_path, variables=rows), ["u"], variables={"first": "y[1]"}) as bench:
        assert not bench.log.errors
        bench.start()
        bench.set(u=2.0)
        assert bench.get() == {"first": 2.0, "y_1": 0.0}


def test_an_explicit_name_must_exist(tmp_path: Path) -> None:
    bench = Bench(build(tmp_path), variables={"first": "imu.x[1,3]"})
    (found,) = bench.log.errors
    assert found.code == "fmu-variable-unknown"
    assert "imu.x[1,2]" in found.hint


def test_elements_of_arrays_can_be_named_explicitly(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "3.0"), ["mid"], ["r_2"], variables={"mid": "q[2]"}) as bench:
        bench.start()
        bench.set(mid=4.0)
        assert bench.get() == {"r_2": 8.0}


def test_once_per_process_instances_do_not_share_globals(tmp_path: Path) -> None:
    path = build(tmp_path, attributes='canBeInstantiatedOnlyOncePerProcess="true"')
    with Bench(path, ["u"], ["y"]) as first, Bench(path, ["u"], ["y"]) as second:
        first.start()
        second.start()
        assert live(first.fmu) == 1
        assert first.component._instance.library is not second.component._instance.library


def test_status_of_a_step(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "2.0", 'FAULT_CALL="DoStep"', "FAULT_STATUS=1"), ["u"], ["y"]) as bench:
        bench.start()
        assert [bench.component.step(k, 1) for k in (0, 1, 2, 3, 4)][-1] is StepStatus.OK
        assert bench.component.step(5, 1) is StepStatus.WARNING
    assert "cannot DoStep: 7 is above 6.50" in bench.component.messages[-1].text


@pytest.mark.skipif(sys.platform == "win32", reason="the C runtime of another compiler")
def test_thousand_instances_leave_nothing(tmp_path: Path) -> None:
    path = build(tmp_path)
    for _ in range(1000):
        with Bench(path, ["u"], ["y"]) as bench:
            bench.start()
            bench.step()
    assert live(bench.fmu) == 0
