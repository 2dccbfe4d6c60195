"""The controllers in closed loop with plants that numpy integrates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fmus_harness import Instance, Run, simulate

STEP = 1 / 240


def servo(seconds: float, target: float = 1.0, gain: float = 1.0, **parameters: float) -> tuple[np.ndarray, np.ndarray]:
    """PID on a first-order plant 0.3 y' = gain*u - y; returns y and u at each step."""
    y = 0.0
    track = []
    with Instance("PID", "2.0", parameters=parameters, inputs={"setpoint": target}) as pid:
        for _ in range(round(seconds / STEP)):
            pid.write({"measurement": y})
            pid.step(STEP)
            u = pid.read(["command"])[0]
            y += (gain * u - y) * (1 - math.exp(-STEP / 0.3))
            track.append((y, u))
    found = np.array(track)
    return found[:, 0], found[:, 1]


def test_pid_integral_removes_the_error() -> None:
    assert servo(4.0, kp=2.0)[0][-1] == pytest.approx(2 / 3, rel=1e-3)
    assert servo(4.0, kp=2.0, ki=6.0)[0][-1] == pytest.approx(1.0, abs=1e-3)


def test_pid_does_not_wind_up() -> None:
    """A target out of reach for a while: without back-calculation the integral would overshoot for as long."""
    y, u = servo(6.0, kp=2.0, ki=8.0, command_max=1.15, command_min=-1.15)
    assert u.max() == 1.15
    assert y.max() < 1.03
    wound, _ = servo(6.0, kp=2.0, ki=8.0, command_max=1.15, command_min=-1.15, anti_windup_time_constant_s=1e9)
    assert wound.max() > 1.1


def test_pid_setpoint_step_gives_no_derivative_spike() -> None:
    found = simulate("PID", "2.0", Run(STEP, {"setpoint": [0.0] * 10 + [1.0] * 10}, {"kd": 5.0}))
    assert np.max(np.abs(found["command"])) == 1.0


def test_pid_first_sample_gives_no_derivative_spike() -> None:
    found = simulate("PID", "2.0", Run(STEP, {"measurement": [7.0] * 10}, {"kd": 5.0}))
    np.testing.assert_array_equal(found["command"], -7.0)


def test_pid_disabled_commands_nothing_and_forgets() -> None:
    enable = [1.0] * 40 + [0.0] * 40 + [1.0] * 40
    found = simulate("PID", "2.0", Run(STEP, {"setpoint": [1.0] * 120, "enable": enable}, {"ki": 5.0}))
    np.testing.assert_array_equal(found["command"][42:80], 0.0)
    np.testing.assert_allclose(found["command"][82:120], found["command"][0:38], rtol=1e-12)


def test_pid_circular_goes_over_the_seam() -> None:
    inputs = {"setpoint": [-3.0] * 10, "measurement": [3.0] * 5 + [-3.1] * 5}
    found = simulate("PID", "2.0", Run(STEP, inputs, {"circular": 1.0}))
    np.testing.assert_allclose(found["error"][:5], 2 * math.pi - 6.0)
    np.testing.assert_allclose(found["error"][-1], 0.1)


def land(altitude: float, rate: float, *, mass: float = 2000.0, gravity: float = 1.62) -> dict[str, float]:
    """A point mass on legs of 1.5 m with altimeter, descent controller and touchdown detector, each an FMU.

    The ground is a stiff damped spring below the legs; the ray reaches 220 m.
    """
    speed_at_contact = math.nan
    with (
        Instance("Altimeter", "2.0", parameters={"minimum_vertical_projection": 0.9}) as altimeter,
        Instance("DescentController", "2.0", parameters={"contact_altitude_m": 1.5}) as controller,
        Instance("TouchdownDetector", "2.0") as detector,
    ):
        controller.write({"vehicle_mass_kg": mass, "gravity_mps2": gravity})
        for k in range(240 * 120):
            hit = altitude <= 220.0
            altimeter.write({"ray_distance_m": altitude if hit else 0.0, "ray_hit_valid": float(hit)})
            altimeter.step(STEP)
            range_m, range_rate, valid, rate_valid = altimeter.read(
                ["range_m", "range_rate_mps", "range_valid", "range_rate_valid"]
            )
            depth = max(0.0, 1.5 - altitude)
            contact = max(0.0, 4e5 * depth - 4e4 * rate) if depth > 0.0 else 0.0
            detector.write({"contact_force_n": contact})
            detector.step(STEP)
            landed, cut = detector.read(["landed", "engine_cut"])
            controller.write(
                {
                    "altitude_m": range_m,
                    "altitude_rate_mps": range_rate,
                    "altitude_valid": valid,
                    "altitude_rate_valid": rate_valid,
                    "engine_cut": cut,
                }
            )
            controller.step(STEP)
            thrust = controller.read(["thrust_n"])[0]
            if depth > 0.0 and math.isnan(speed_at_contact):
                speed_at_contact = -rate
            rate += STEP * ((thrust + contact) / mass - gravity)
            altitude += STEP * rate
            if landed and abs(rate) < 1e-3:
                return {"time": k * STEP, "speed": speed_at_contact, "thrust": thrust, "altitude": altitude}
    raise AssertionError(f"still at {altitude} m, {rate} m/s")


@pytest.mark.parametrize(("altitude", "rate"), [(60.0, 0.0), (200.0, -9.0), (15.0, -5.0), (60.0, 3.0)])
def test_descent_ends_softly_with_the_engine_cut(altitude: float, rate: float) -> None:
    landing = land(altitude, rate)
    assert 0.2 < landing["speed"] < 0.55
    assert landing["thrust"] == 0.0
    assert landing["altitude"] == pytest.approx(1.5, abs=0.02)


def test_descent_begins_beyond_the_altimeter() -> None:
    """Out of range it sinks slowly on most of its weight, and takes over once the ground is seen."""
    assert land(225.0, 0.0)["speed"] < 0.55


def test_descent_lands_with_another_mass_and_gravity() -> None:
    assert land(40.0, -2.0, mass=900.0, gravity=3.71)["speed"] < 0.55


def test_descent_without_a_measurement_carries_a_share_of_the_weight() -> None:
    found = simulate(
        "DescentController", "2.0", Run(0.1, {"altitude_valid": [0.0, 1.0], "altitude_rate_valid": [1.0, 0.0]})
    )
    np.testing.assert_allclose(found["thrust_n"], 0.9 * 2000 * 1.62)
    np.testing.assert_array_equal(found["tracking"], 0.0)


def test_descent_engine_cut_wins() -> None:
    inputs = {"altitude_m": [5.0], "altitude_rate_mps": [-30.0], "altitude_valid": [1.0], "engine_cut": [1.0]}
    found = simulate("DescentController", "2.0", Run(0.1, inputs))
    assert found["thrust_n"][-1] == found["throttle"][-1] == found["saturated"][-1] == 0.0


def test_descent_thrust_stays_within_the_engine() -> None:
    inputs = {"altitude_m": [5.0, 100.0], "altitude_rate_mps": [-60.0, 60.0], "altitude_valid": [1.0, 1.0]}
    found = simulate("DescentController", "2.0", Run(0.1, inputs, {"minimum_thrust_n": 500.0}))
    np.testing.assert_array_equal(found["thrust_n"][1:], [60000.0, 500.0])
    np.testing.assert_array_equal(found["saturated"][1:], 1.0)
