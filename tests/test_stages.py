"""The shipped stages against closed forms, end to end."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import cosim

G = 9.80665


@pytest.fixture(scope="module")
def stage(project):
    return lambda name: str(project / "stages" / f"{name}.usda")


def swing(angle: float, time: np.ndarray, ratio: float) -> np.ndarray:
    """θ'' = −ratio·sin θ from rest, by RK4 with 20 sub-steps."""
    y = np.array([angle, 0.0])
    found = [y[0]]
    for h in np.diff(time):
        for _ in range(20):
            y = _rk4(y, h / 20, ratio)
        found.append(y[0])
    return np.array(found)


def _rk4(y, h, ratio):
    def f(s):
        return np.array([s[1], -ratio * math.sin(s[0])])

    a = f(y)
    b = f(y + h / 2 * a)
    c = f(y + h / 2 * b)
    d = f(y + h * c)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


# A slender box of 1 m and 0.04 m about one end: I = m·(L² + w²)/12 + m·(L/2)².
ROD_RATIO = G * 0.5 / ((1 + 0.04**2) / 12 + 0.25)


@pytest.mark.parametrize("substeps", [1, 4])
def test_pendulum_error_falls_in_first_order(stage, substeps):
    errors = []
    for k in (1, 2):
        r = cosim.simulate(
            stage("pendulum"),
            stop=1,
            step="1/240",
            record=["/World/Hinge.outputs:*"],
            system_options={"substeps": substeps * k},
        )
        angle = r["/World/Hinge.angle"]
        assert angle[0] == pytest.approx(math.radians(30), abs=1e-6)
        errors.append(np.abs(angle - swing(angle[0], r.time, ROD_RATIO)).max())
    assert errors[0] < 0.02 / substeps
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


def test_pendulum_period_and_energy(stage):
    r = cosim.simulate(stage("pendulum"), stop=8, step="1/1000", record=["/World/Hinge.outputs:*"])
    angle, rate = r["/World/Hinge.angle"], r["/World/Hinge.angular_velocity"]
    down = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = r.time[down] + angle[down] / (angle[down] - angle[down + 1]) * 1e-3
    amplitude = math.radians(30)
    # T = T0·(1 + θ²/16 + 11·θ⁴/3072), Lima and Arun (2006) and references there.
    exact = 2 * math.pi / math.sqrt(ROD_RATIO) * (1 + amplitude**2 / 16 + 11 * amplitude**4 / 3072)
    assert np.diff(crossings).mean() == pytest.approx(exact, rel=5e-4)
    energy = 0.5 * rate**2 - ROD_RATIO * np.cos(angle)
    assert np.ptp(energy) / ROD_RATIO < 5e-3, "energy drifts"


TAU = "/World/Rod/Imu.inputs:angular_accel_filter_time_constant_s"


def test_imu_at_the_tip_agrees_with_the_analytic_value(stage):
    """f = (L·θ'' + g·sin θ, L·θ'² + g·cos θ, 0) at the tip, from the measured angle, within 2 % of g."""
    r = cosim.simulate(stage("pendulum"), stop=2, step="1/3840", start_values={TAU: 0.0058})
    angle, rate = r["/World/Hinge.angle"], r["/World/Hinge.angular_velocity"]
    force = [r[f"/World/Rod/Imu.specific_force_{a}"] for a in "xyz"]
    late = r.time > 0.1
    # One sample late: the IMU sees the core's last communication point (Jacobi).
    exact = [np.roll(e, 1) for e in ((G - ROD_RATIO) * np.sin(angle), rate**2 + G * np.cos(angle), 0.0 * angle)]
    for measured, expected in zip(force, exact, strict=True):
        assert np.abs(measured - expected)[late].max() < 0.02 * G
    assert np.abs(r["/World/Rod/Imu.gyro_z"] - np.roll(rate, 1))[late].max() < 1e-9
    assert r["/World/Rod/Imu.sensor_health"][-1] == 1.0


def test_imu_equals_its_law_with_held_inputs(stage):
    """To rounding: the filter's exact solution over held inputs, and the core's own accelerations."""
    r = cosim.simulate(stage("pendulum"), stop=1)
    h, tau = 1 / 240, 0.02
    rate = r["/World/Rod.angvel_z"]
    # The first valid sample is that of the second communication point; it starts the filter.
    filtered, alpha = rate[1], [0.0, 0.0]
    for held in rate[1:-1]:
        filtered = held + (filtered - held) * np.exp(-h / tau)
        alpha.append((held - filtered) / tau)
    turn = 2 * np.arctan2(r["/World/Rod.quat_z"], r["/World/Rod.quat_w"])
    ax, ay = r["/World/Rod.acceleration_x"], r["/World/Rod.acceleration_y"] + G
    body_x, body_y = np.cos(turn) * ax + np.sin(turn) * ay, -np.sin(turn) * ax + np.cos(turn) * ay
    # The lever of the tip: r = (0, −0.5, 0).
    expected_x = np.roll(body_x, 1) + 0.5 * np.array(alpha)
    expected_y = np.roll(body_y + 0.5 * rate**2, 1)
    assert np.abs(r["/World/Rod/Imu.specific_force_x"] - expected_x)[3:].max() < 1e-5
    assert np.abs(r["/World/Rod/Imu.specific_force_y"] - expected_y)[3:].max() < 1e-5


def test_arm_servo_has_no_error_left(stage):
    r = cosim.simulate(stage("arm_servo"), stop=8)
    assert r["/World/Elbow.outputs:angle"][-1] == pytest.approx(0.6, abs=2e-3)
    late = r.time > 4
    wave = 0.3 * np.sin(2 * math.pi * 0.5 * r.time)
    assert np.abs(r["/World/Rail.outputs:displacement"] - wave)[late].max() < 0.12
    # Sampled at 120 Hz: its outputs change in every second step at most.
    command = r["/World/Controller.outputs:command"]
    changes = np.flatnonzero(np.diff(command) != 0.0)
    assert np.all(np.diff(changes) % 2 == 0)


def test_arm_servo_sags_without_its_integral(stage):
    r = cosim.simulate(stage("arm_servo"), stop=6, start_values={"/World/Controller.inputs:ki": 0.0})
    assert 0.6 - r["/World/Elbow.outputs:angle"][-1] > 0.02


def test_lander_lands_softly_and_stays(stage):
    r = cosim.simulate(stage("lander"), stop=10)
    touchdown = "/World/Lander/Touchdown"
    assert r[f"{touchdown}.landed"][-1] == 1.0
    assert 0.2 < r[f"{touchdown}.touchdown_speed_mps"][-1] < 0.8
    assert r["/World/Lander.position_y"][-1] == pytest.approx(1.8, abs=0.02)
    assert r["/World/Lander.speed"][-1] < 0.01
    landed = r[f"{touchdown}.landed"] > 0.5
    assert np.all(r["/World/Lander/Descent.thrust_n"][1:][landed[:-1]] == 0.0)
    # At rest an accelerometer reads +g along up.
    force = [r[f"/World/Lander/Imu.specific_force_{a}"][-1] for a in "xyz"]
    assert force == pytest.approx([0, 1.62, 0], abs=0.02)


def test_altimeter_range_is_geometry(stage):
    r = cosim.simulate(stage("lander"), stop=4)
    position, x, z = (r[f"/World/Lander.{n}"] for n in ("position_y", "quat_x", "quat_z"))
    up_y = 1 - 2 * (x**2 + z**2)
    # The sensor is 0.6 m below the origin along body y, and looks along −y.
    distance = (position - 0.6 * up_y) / up_y
    assert np.abs(r["/World/Lander/Radar.ray_distance"] - distance).max() < 1e-5
    # The altimeter reads the ray of the point before, and the IMU's attitude, which is one older.
    measured = r["/World/Lander/Radar/Altimeter.range_m"]
    assert np.abs(measured - np.roll(distance, 1) * np.roll(up_y, 2))[3:].max() < 1e-5
    assert np.abs(measured - np.roll(position - 0.6 * up_y, 1))[3:].max() < 1e-3
    assert np.all(r["/World/Lander/Radar/Altimeter.range_valid"][1:] == 1.0)


def test_free_fall_reads_zero_specific_force(stage):
    r = cosim.simulate(
        stage("lander"),
        stop=1,
        start_values={
            "/World/Lander/Descent.inputs:maximum_thrust_n": 1e-9,
            "/World/Lander/Steering.inputs:maximum_torque_nm": 0.0,
        },
    )
    force = np.array([r[f"/World/Lander/Imu.specific_force_{a}"] for a in "xyz"])[:, 3:]
    assert np.abs(force).max() < 1e-6


@pytest.mark.slow
def test_traces_are_bit_identical_under_any_hash_seed(stage, tmp_path):
    traces = []
    for seed in ("0", "1", "4711"):
        trace = tmp_path / f"trace{seed}.csv"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "cosim",
                "run",
                stage("lander"),
                "--stop-time",
                "2",
                "--no-plot",
                "--output-file",
                trace,
            ],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
        )
        traces.append(trace.read_bytes())
    assert traces[0] == traces[1] == traces[2]


@pytest.mark.parametrize("order", ["jacobi", "gauss-seidel"])
def test_two_runs_are_bit_identical(stage, order):
    one, two = (cosim.simulate(stage("arm_servo"), stop=1, order=order) for _ in range(2))
    assert one.names == two.names
    assert all(np.array_equal(one[n], two[n]) for n in one.names)


@pytest.mark.parametrize("name", ["pendulum", "arm_servo", "lander"])
def test_stage_has_no_findings_but_remarks(stage, name):
    found = [d for d in cosim.check(stage(name)) if d.severity.name != "INFO"]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_fmi_versions_agree(stage, fmi):
    r = cosim.simulate(stage("pendulum"), stop=0.5, system_options={"fmi_version": fmi})
    base = cosim.simulate(stage("pendulum"), stop=0.5)
    assert all(np.array_equal(r[n], base[n]) for n in base.names)
