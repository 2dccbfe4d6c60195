"""Running one FMU alone against a table of inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim.diagnostic import DiagnosticLog, FmuError, UsageError, WiringError
from cosim.fmi import InputTable, simulate_fmu
from tests.fmi.fmi_zoo import build


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_continuous_inputs_are_interpolated(tmp_path: Path, version: str) -> None:
    table = InputTable.of([0.0, 0.5, 0.5, 1.0], u=[0.0, 1.0, 3.0, 3.0])
    got = simulate_fmu(build(tmp_path, version), inputs=table, start_values={"gain": 2.0}, outputs=["y", "imu.x[1,2]"])
    assert np.array_equal(got["time"], np.arange(11) / 10)
    expected = [0.0, 0.2, 0.4, 0.6, 0.8, 3.0, 3.0, 3.0, 3.0, 3.0]
    assert got["y"][1:] == pytest.approx(2.0 * np.array(expected), abs=1e-14)
    assert got["y"][0] == 0.0
    assert got["imu.x[1,2]"] == pytest.approx(np.concatenate([[0], np.cumsum(expected) / 10]), abs=1e-14)


def test_discrete_inputs_take_the_previous_value(tmp_path: Path) -> None:
    table = InputTable.of([0.0, 0.25, 0.6], i_in=[1, 2, 7])
    got = simulate_fmu(build(tmp_path), inputs=table)
    assert got["i_out"].tolist() == [2, 2, 2, 2, 4, 4, 4, 14, 14, 14, 14]
    assert set(got) == {"time", "y", "imu:x_1_2", "i_out", "b_out"}


def test_times_and_steps(tmp_path: Path) -> None:
    path = build(tmp_path)
    got = simulate_fmu(path, start=1, stop="3/2", step=0.2, outputs=["clock time"])
    assert got["time"].tolist() == [1.0, 1.2, 1.4, 1.5]
    assert np.array_equal(got["clock time"], got["time"])
    for wrong in ({"step": -1}, {"stop": -1}):
        with pytest.raises(UsageError, match="step-size-invalid"):
            simulate_fmu(path, **wrong)


def test_wrong_names_and_tables(tmp_path: Path) -> None:
    path = build(tmp_path)
    with pytest.raises(WiringError, match=r"port 'z'.*\n.*|port-unknown"):
        simulate_fmu(path, outputs=["z"])
    with pytest.raises(WiringError, match="port-unknown"):
        simulate_fmu(path, start_values={"z": 1.0})
    with pytest.raises(UsageError, match="input-table-invalid"):
        InputTable.of([1.0, 0.0], u=[0.0, 0.0])
    with pytest.raises(UsageError, match="input-table-invalid"):
        InputTable.of([0.0, 1.0], u=[0.0])
    log = DiagnosticLog()
    with pytest.raises(FmuError, match="fmu-variable-unknown"):
        simulate_fmu(path, variables={"a": "b"}, log=log)
    assert log.errors


def test_two_runs_are_bit_identical(tmp_path: Path) -> None:
    path = build(tmp_path, "3.0")
    table = InputTable.of(np.linspace(0, 1, 33), u=np.sin(np.linspace(0, 9, 33)))
    first, second = (simulate_fmu(path, inputs=table, step="1/240") for _ in range(2))
    for name, column in first.items():
        assert column.tobytes() == second[name].tobytes()
