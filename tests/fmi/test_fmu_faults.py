"""FMUs that break the contract: each gets the required answer, and is freed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.diagnostic import CosimError, FmuError, StepError
from tests.fmi.fmi_zoo import Bench, build, live, ref

VERSIONS = ("2.0", "3.0")


def _run(bench: Bench) -> None:
    bench.start()
    bench.set(u=1.0)
    for _ in range(10):
        bench.step()
        bench.get()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("status", "word"),
    [("2", "Discard"), ("3", "Error"), ("4", "Fatal"), ("5", "Pending"), ("77", "status 77"), ("-1", "status -1")],
)
def test_status_table_of_a_step(tmp_path: Path, version: str, status: str, word: str) -> None:
    path = build(
        tmp_path, version, 'FAULT_CALL="DoStep"', f"FAULT_STATUS=({status})", f"RUN_{version[0]}_{word[-2:]}=1"
    )
    with Bench(path, ["u"], ["y"]) as bench, pytest.raises(StepError) as error:
        _run(bench)
    text = str(error.value)
    assert error.value.diagnostics[0].code == ("fmu-step-discarded" if word == "Discard" else "fmu-call-failed")
    for part in ("/P (zoo.fmu)", "t = 0.5 s", f"fmi{version[0]}DoStep", word, "the FMU said"):
        assert part in text
    assert ("cannot DoStep: 7 is above 6.50" if version == "2.0" else "cannot go on: 100%s") in text
    if word == "Discard":
        assert "last successful time is 0.5 s" in text
    # After Fatal FMI forbids every call, also the one that frees.
    assert live(bench.fmu) == (1 if word == "Fatal" else 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "call", ["EnterInitializationMode", "ExitInitializationMode", "GetReal", "SetReal", "SetupExperiment"]
)
def test_errors_of_other_calls(tmp_path: Path, version: str, call: str) -> None:
    name = call.replace("Real", "Float64") if version == "3.0" else call
    if version == "3.0" and call == "SetupExperiment":
        pytest.skip("FMI 3 has no such call")
    path = build(tmp_path, version, f'FAULT_CALL="{name}"', "FAULT_STATUS=3")
    with Bench(path, ["u"], ["y"]) as bench, pytest.raises(StepError, match=f"fmi.{name} was answered with Error"):
        _run(bench)
    assert live(bench.fmu) == 0


def test_an_error_of_terminate_is_reported_and_the_instance_freed(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "2.0", 'FAULT_CALL="Terminate"', "FAULT_STATUS=3"), ["u"], ["y"]) as bench:
        _run(bench)
    assert live(bench.fmu) == 0
    assert bench.log.items[-1].code == "fmu-terminate-failed"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("value", ["NAN", "INFINITY"])
def test_values_that_are_not_finite(tmp_path: Path, version: str, value: str) -> None:
    with (
        Bench(build(tmp_path, version, f"FAULT_VALUE={value}"), ["u"], ["imu:x_1_2", "y"]) as bench,
        pytest.raises(StepError) as error,
    ):
        _run(bench)
    assert error.value.diagnostics[0].code == "fmu-nan"
    assert "/P (zoo.fmu) at t = 0.5 s: output /P.outputs:y is" in str(error.value)
    assert live(bench.fmu) == 0


def test_huge_but_finite_values_pass(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "2.0", "FAULT_VALUE=1e208"), ["u"], ["y"]) as bench:
        _run(bench)
        assert bench.get() == {"y": 1e208}


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_token(tmp_path: Path, version: str) -> None:
    with (
        Bench(build(tmp_path, version, token="{other}"), ["u"], ["y"]) as bench,
        pytest.raises(FmuError, match="fmu-instantiate-failed") as error,
    ):
        bench.start()
    assert "'{other}'" in str(error.value)
    if version == "2.0":
        assert "wrong token {other}, expected {zoo}" in str(error.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_instantiate_returns_null(tmp_path: Path, version: str) -> None:
    with (
        Bench(build(tmp_path, version, "INSTANTIATE_NULL"), ["u"], ["y"]) as bench,
        pytest.raises(FmuError, match="fmu-instantiate-failed"),
    ):
        bench.start()


def test_a_wish_to_end_is_not_ignored(tmp_path: Path) -> None:
    for version, defines in (
        ("2.0", ('FAULT_CALL="DoStep"', "FAULT_STATUS=2", "TERMINATED")),
        ("3.0", ("TERMINATED",)),
    ):
        path = build(tmp_path, version, *defines, name=f"zoo{version[0]}")
        with Bench(path, ["u"], ["y"]) as bench, pytest.raises(StepError, match="asks to end the simulation"):
            _run(bench)
        assert live(bench.fmu) == 0


def test_a_missing_function_that_is_needed_is_named(tmp_path: Path) -> None:
    from tests.fmi.fmi_zoo import VARIABLES_2

    path = build(tmp_path, "2.0", "ONLY_REAL", variables=VARIABLES_2)
    with Bench(path, ["i_in"], ["y"]) as bench, pytest.raises(FmuError, match="has no function fmi2SetInteger"):
        bench.start()
    assert live(bench.fmu) == 0


def test_after_a_failure_nothing_goes_on(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "2.0", 'FAULT_CALL="DoStep"', "FAULT_STATUS=3"), ["u"], ["y"]) as bench:
        with pytest.raises(StepError):
            _run(bench)
        for call in (lambda: bench.component.step(6, 1), bench.component.save, bench.component.exit_initialization):
            with pytest.raises(StepError, match="fmu-not-running"):
                call()
    with pytest.raises(StepError, match=r"is closed|failed before"):
        bench.component.step(0, 1)


def test_values_that_a_variable_cannot_take(tmp_path: Path) -> None:
    for value in (1.5, 3e9, float("inf")):
        with Bench(build(tmp_path), ["i_in"], ["i_out"]) as bench:
            bench.start()
            with pytest.raises(StepError, match=r"fmu-value-inexact.*/P\.inputs:i_in"):
                bench.set(i_in=value)
    with Bench(build(tmp_path), [], []) as bench, pytest.raises(StepError, match="fmu-value-inexact"):
        bench.start(i_in=0.25)


def test_messages_are_bounded(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "2.0", "HELLO", 'FAULT_CALL="DoStep"', "FAULT_STATUS=1"), ["u"], ["y"]) as bench:
        bench.start()
        assert bench.component.messages[0].text == "100% of nothing"
        for k in range(1000):
            bench.component.step(k, 1)
    assert len(bench.component.messages) == 200
    assert bench.component.messages[-1].category == "logStatusError"
    warnings = [d for d in bench.log if d.code == "fmu-message"]
    assert 1 <= len(warnings) <= 20
    assert "/P" in warnings[0].message


def test_a_port_of_someone_else_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    bench = Bench(build(tmp_path))
    stranger = replace(bench.port("u"), ref=ref("stranger"))
    with pytest.raises(CosimError, match="port-unknown"):
        bench.component.bind([stranger], [])


def test_structural_parameters_stay(tmp_path: Path) -> None:
    from tests.fmi.fmi_zoo import REAL_3

    rows = [*REAL_3, ("n", 30, "structuralParameter", "fixed", "UInt64", 'start="3"', None)]
    path = build(tmp_path, "3.0", variables=rows)
    with Bench(path, ["u"], ["y"]) as bench:
        bench.start(n=3.0)
    with Bench(path, ["u"], ["y"]) as bench, pytest.raises(FmuError, match="fmu-structural-unsupported"):
        bench.start(n=4.0)
    assert live(bench.fmu) == 0


def test_an_array_parameter_without_start_needs_every_element(tmp_path: Path) -> None:
    from tests.fmi.fmi_zoo import REAL_3

    rows = [("k", 10, "parameter", "fixed", "Float64", "", None, (3,)) if r[0] == "q" else r for r in REAL_3]
    path = build(tmp_path, "3.0", variables=rows)
    with Bench(path, [], ["r_1"]) as bench, pytest.raises(FmuError, match="fmu-start-missing"):
        bench.start(k_1=4.0)
    with Bench(path, [], ["r_1", "r_3"]) as bench:
        bench.start(k_1=4.0, k_2=5.0, k_3=6.0)
        assert bench.get() == {"r_1": 8.0, "r_3": 12.0}
        with pytest.raises(StepError, match="fmu-parameter-fixed"):
            bench.component.hold(bench.port("k_1"), 1.0)


def test_an_input_without_start_has_nothing_to_go_back_to(tmp_path: Path) -> None:
    with Bench(build(tmp_path, "3.0"), ["u"], ["y"]) as bench:
        bench.start()
        with pytest.raises(StepError, match="fmu-start-missing"):
            bench.component.release(bench.port("s_in"))


def test_states_of_another_instance_are_refused(tmp_path: Path) -> None:
    path = build(tmp_path)
    with Bench(path, ["u"], ["y"]) as first, Bench(path, ["u"], ["y"]) as second:
        first.start()
        second.start()
        with pytest.raises(StepError, match="fmu-state-foreign"):
            second.component.restore(first.component.save())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_discarded_step_is_tried_in_parts(tmp_path: Path, version: str) -> None:
    path = build(tmp_path, version, "DISCARD_ABOVE=0.03")
    with Bench(path, ["u"], ["imu:x_1_2", "y"], retries=3) as bench:
        bench.start()
        for k in range(4):
            bench.set(u=k + 1.0)
            bench.step()
        assert bench.get() == {"imu:x_1_2": pytest.approx(1.0, abs=1e-12), "y": 4.0}
        assert [d.code for d in bench.log] == ["fmu-step-retried"]
    assert live(bench.fmu) == 0
    with Bench(path, ["u"], ["y"], retries=1) as bench, pytest.raises(StepError, match="fmu-step-discarded"):
        bench.start()
        bench.step()
    assert live(bench.fmu) == 0
