"""The sensor programs against physics: figures from closed forms, and what they say when there is no measurement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fmus_harness import Instance, Run, simulate

MOON = 1.62


def constant(value: float, steps: int = 2) -> list[float]:
    return [value] * steps


def about(axis: str, angle: float, stem: str) -> dict[str, list[float]]:
    """A constant attitude: a turn of `angle` about one axis."""
    q = {"w": math.cos(angle / 2), "x": 0.0, "y": 0.0, "z": 0.0, axis: math.sin(angle / 2)}
    return {f"{stem}_{name}": constant(value) for name, value in q.items()}


def last(outputs: dict[str, np.ndarray], stem: str, axes: str = "xyz") -> list[float]:
    return [float(outputs[f"{stem}_{axis}"][-1]) for axis in axes]


# ---- IMUSensor


def imu(**changes: list[float]) -> dict[str, np.ndarray]:
    inputs = {"raw_sample_valid": constant(1.0), "gravity_world_y": constant(-MOON), **changes}
    return simulate("IMUSensor", "2.0", Run(0.01, inputs))


def test_imu_of_the_specification() -> None:
    found = imu(raw_acceleration_x=constant(1.25), raw_acceleration_y=constant(0.5), raw_acceleration_z=constant(-0.75))
    assert last(found, "specific_force") == [1.25, 2.12, -0.75]
    assert last(found, "coordinate_accel_local") == [1.25, 0.5, -0.75]
    assert found["sensor_health"][-1] == 1.0


def test_imu_at_rest_feels_the_support_and_in_free_fall_nothing() -> None:
    assert last(imu(), "specific_force") == [0.0, MOON, 0.0]
    assert last(imu(raw_acceleration_y=constant(-MOON)), "specific_force") == [0.0, 0.0, 0.0]


def test_imu_lying_on_its_side_feels_the_support_in_body_axes() -> None:
    # body x points up after a quarter turn about z
    found = imu(**about("z", math.pi / 2, "raw_quat"))
    np.testing.assert_allclose(last(found, "specific_force"), [MOON, 0.0, 0.0], atol=1e-15)


def test_imu_off_the_centre_feels_the_centripetal_acceleration() -> None:
    run = Run(0.01, {"raw_sample_valid": constant(1.0), "raw_angvel_z": constant(2.0)}, {"mount_offset_x": 0.5})
    assert last(simulate("IMUSensor", "2.0", run), "specific_force") == [-2.0, 0.0, 0.0]


def test_imu_off_the_centre_feels_the_angular_acceleration() -> None:
    # omega = 3 t about z: alpha x r = (0, 1.5, 0) at r = (0.5, 0, 0), read through held inputs
    step, tau, steps = 0.001, 0.02, 400
    inputs = {"raw_sample_valid": constant(1.0, steps), "raw_angvel_z": [3 * step * k for k in range(steps)]}
    found = simulate("IMUSensor", "2.0", Run(step, inputs, {"mount_offset_x": 0.5}))
    held = step / tau * math.exp(-step / tau) / (1 - math.exp(-step / tau))
    assert found["specific_force_y"][-1] == pytest.approx(1.5 * held, rel=1e-6)


def test_imu_started_spinning_reports_no_jerk() -> None:
    valid = [0.0, 0.0, 1.0, 1.0]
    run = Run(0.01, {"raw_sample_valid": valid, "raw_angvel_z": [0.0, 0.0, 50.0, 50.0]}, {"mount_offset_y": 1.0})
    found = simulate("IMUSensor", "2.0", run)
    np.testing.assert_array_equal(found["sensor_health"], [0, 0, 0, 1, 1])
    np.testing.assert_allclose(found["specific_force_x"], 0.0, atol=1e-9)
    np.testing.assert_allclose(found["specific_force_y"], [0, 0, 0, -2500, -2500])


def test_imu_without_samples_is_not_healthy_but_knows_its_attitude() -> None:
    found = imu(raw_sample_valid=constant(0.0), raw_angvel_x=constant(0.3), **about("y", 0.4, "raw_quat"))
    assert found["sensor_health"][-1] == 0.0
    assert last(found, "specific_force") == [0.0, 0.0, 0.0]
    assert found["attitude_quat_valid"][-1] == 1.0
    np.testing.assert_allclose(last(found, "gyro"), [0.3 * math.cos(0.4), 0.0, 0.3 * math.sin(0.4)], rtol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-7])
def test_imu_with_a_degenerate_quaternion_reads_nothing(size: float) -> None:
    found = imu(raw_quat_w=constant(size), raw_angvel_x=constant(1.0), raw_acceleration_x=constant(1.0))
    assert all(values[-1] == 0.0 for values in found.values())


def test_imu_normalizes_the_quaternion() -> None:
    unit, scaled = (
        imu(**{name: [size * q for q in values] for name, values in about("z", 0.7, "raw_quat").items()})
        for size in (1.0, 20.0)
    )
    for name, values in unit.items():
        np.testing.assert_allclose(scaled[name], values, rtol=1e-14, atol=1e-15, err_msg=name)


# ---- Altimeter


def altimeter(
    steps: int = 2, parameters: dict[str, float] | None = None, **inputs: list[float]
) -> dict[str, np.ndarray]:
    return simulate("Altimeter", "2.0", Run(0.01, {"ray_hit_valid": constant(1.0, steps), **inputs}, parameters or {}))


def test_altimeter_over_level_ground() -> None:
    found = altimeter(ray_distance_m=constant(0.8))
    assert found["range_m"][-1] == 0.8
    assert found["range_valid"][-1] == found["range_confidence"][-1] == found["vertical_projection"][-1] == 1.0


def test_altimeter_miss_is_never_an_altitude() -> None:
    hit = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    distance = [0.0, 10.0, 10.0, 10.0, 0.0, 7.0]
    position = [5.0] * 6
    found = simulate(
        "Altimeter", "2.0", Run(0.1, {"ray_hit_valid": hit, "ray_distance_m": distance, "ray_hit_position_y": position})
    )
    np.testing.assert_array_equal(found["range_valid"], [0, 0, 1, 1, 0, 0, 1])
    np.testing.assert_array_equal(found["range_m"], [0, 0, 10, 10, 0, 0, 7])
    np.testing.assert_array_equal(found["vehicle_position_y"], [0, 0, 15, 15, 0, 0, 12])
    missed = found["range_valid"] == 0.0
    for name in ("range_rate_mps", "range_confidence", "range_rate_valid", "vehicle_position_x", "vehicle_position_y"):
        np.testing.assert_array_equal(found[name][missed], 0.0, err_msg=name)


def test_altimeter_reports_no_rate_for_the_jump_to_the_first_hit() -> None:
    found = altimeter(6, ray_hit_valid=[0.0, 0.0, 1.0, 1.0, 0.0, 1.0], ray_distance_m=[0.0, 0.0, 50.0, 50.0, 0.0, 20.0])
    np.testing.assert_allclose(found["range_rate_mps"], 0.0, atol=1e-9)


def test_altimeter_rate_waits_until_it_has_settled() -> None:
    found = altimeter(
        12, ray_distance_m=[10 - 0.01 * k for k in range(12)], parameters={"range_filter_time_constant_s": 0.025}
    )
    np.testing.assert_array_equal(found["range_rate_valid"], [0] * 8 + [1] * 5)


def test_altimeter_of_a_tilted_vehicle_gives_height_not_distance() -> None:
    found = altimeter(ray_distance_m=constant(10.0), **about("x", math.pi / 3, "attitude_quat"))
    assert found["range_m"][-1] == pytest.approx(5.0, rel=1e-12)
    assert found["range_confidence"][-1] == pytest.approx((0.5 - 0.05) / 0.95, rel=1e-12)


@pytest.mark.parametrize("angle", [math.pi, math.pi / 2 + 0.01, math.acos(0.04)])
def test_altimeter_beam_that_does_not_point_down_is_no_altitude(angle: float) -> None:
    found = altimeter(ray_distance_m=constant(10.0), **about("x", angle, "attitude_quat"))
    assert found["range_valid"][-1] == found["range_m"][-1] == found["range_confidence"][-1] == 0.0


def test_altimeter_authored_projection_refuses_an_oblique_beam() -> None:
    tilt = about("x", 0.5, "attitude_quat")  # cos = 0.878
    assert altimeter(ray_distance_m=constant(9.0), **tilt)["range_valid"][-1] == 1.0
    refused = altimeter(ray_distance_m=constant(9.0), parameters={"minimum_vertical_projection": 0.9}, **tilt)
    assert refused["range_valid"][-1] == refused["range_m"][-1] == 0.0


def test_altimeter_without_attitude_or_too_near_is_no_altitude() -> None:
    assert altimeter(ray_distance_m=constant(10.0), attitude_quat_w=constant(0.0))["range_valid"][-1] == 0.0
    assert altimeter(ray_distance_m=constant(0.0009))["range_valid"][-1] == 0.0


def test_altimeter_that_only_rotates_does_not_climb() -> None:
    """Height 10 m over level ground, turning at 0.2 rad/s about x: the slant distance grows, the height does not."""
    step, rate, steps = 0.001, 0.2, 1500
    angle = [0.3 + rate * step * k for k in range(steps)]
    inputs = {
        "ray_hit_valid": [1.0] * steps,
        "ray_distance_m": [10 / math.cos(a) for a in angle],
        "attitude_quat_w": [math.cos(a / 2) for a in angle],
        "attitude_quat_x": [math.sin(a / 2) for a in angle],
        "angular_velocity_local_x": [rate] * steps,
    }
    found = simulate("Altimeter", "2.0", Run(step, inputs))
    np.testing.assert_allclose(found["range_m"], 10.0, rtol=1e-12)
    # what is left is the lag of the derivative's filter; without the product rule it would be 1.4 m/s
    assert np.max(np.abs(found["range_rate_mps"][200:])) < 0.06


def test_altimeter_finds_the_vehicle_behind_the_ray() -> None:
    """Vehicle at (1, 20, -2), turned by 0.3 about x, sensor 3.3 m below its origin."""
    c, s = math.cos(0.3), math.sin(0.3)
    mount = np.array([0.0, -3.3 * c, -3.3 * s])
    direction = np.array([0.0, -c, -s])
    hit = np.array([1.0, 20.0, -2.0]) + mount + 15.0 * direction
    found = altimeter(
        ray_distance_m=constant(15.0),
        mount_local_y=constant(-3.3),
        **{f"ray_hit_position_{axis}": constant(float(value)) for axis, value in zip("xyz", hit, strict=True)},
        **about("x", 0.3, "attitude_quat"),
    )
    np.testing.assert_allclose(last(found, "vehicle_position"), [1.0, 20.0, -2.0], rtol=1e-12)


# ---- AttitudeReference


def test_attitude_error_turns_the_vehicle_back() -> None:
    found = simulate("AttitudeReference", "2.0", Run(0.1, about("x", 0.2, "attitude_quat")))
    np.testing.assert_allclose(last(found, "error"), [-math.sin(0.2), 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(last(found, "estimated_up"), [0.0, math.cos(0.2), -math.sin(0.2)], atol=1e-15)


def test_attitude_wanted_tilt_is_met_exactly() -> None:
    """A vehicle that leans as wanted has no error: +x leans body y to world +z, +z to world -x."""
    for axis in "xz":
        inputs = {**about(axis, 0.7, "attitude_quat"), f"desired_tilt_{axis}": constant(0.7)}
        found = simulate("AttitudeReference", "2.0", Run(0.1, inputs))
        np.testing.assert_allclose(last(found, "error"), 0.0, atol=1e-15)
        assert found["alignment"][-1] == pytest.approx(1.0)


def test_attitude_upside_down_shows_in_the_alignment_only() -> None:
    found = simulate("AttitudeReference", "2.0", Run(0.1, about("x", math.pi, "attitude_quat")))
    np.testing.assert_allclose(last(found, "error"), 0.0, atol=1e-15)
    assert found["alignment"][-1] == pytest.approx(-1.0)


def test_attitude_without_a_quaternion_gives_nothing() -> None:
    found = simulate(
        "AttitudeReference", "2.0", Run(0.1, {"attitude_quat_w": constant(0.0), "desired_tilt_x": constant(0.3)})
    )
    assert all(values[-1] == 0.0 for values in found.values())


# ---- filters, touchdown, encoders


@pytest.mark.parametrize(
    ("hold", "reading"),
    [(1 / 240, -0.899), (1 / 120, -0.806), (1 / 60, -0.641), (1 / 30, -0.388), (0.05, -0.224), (0.1, -0.034)],
)
def test_filtered_derivative_of_a_held_ramp(hold: float, reading: float) -> None:
    steps = math.ceil(1.0 / hold)
    found = simulate("FilteredDerivative", "2.0", Run(hold, {"u": [-hold * k for k in range(steps)]}), tolerance=1e-6)
    assert found["y"][-1] == pytest.approx(reading, rel=0.01)
    ratio = hold / 0.02
    assert found["y"][-1] == pytest.approx(-ratio * math.exp(-ratio) / (1 - math.exp(-ratio)), rel=1e-3)


def test_filters_start_at_the_first_valid_sample() -> None:
    inputs = {"u": [0.0, 5.0, 5.0, 5.0], "sample_valid": [0.0, 1.0, 1.0, 0.0]}
    np.testing.assert_allclose(simulate("FilteredDerivative", "2.0", Run(0.01, inputs))["y"], 0.0, atol=1e-12)
    np.testing.assert_allclose(simulate("FilteredSignal", "2.0", Run(0.01, inputs))["y"], [0, 0, 5, 5, 5], atol=1e-12)


def test_oscillator_changes_frequency_without_a_jump() -> None:
    steps = 400
    found = simulate("Oscillator", "2.0", Run(0.001, {"frequency": [1.0 if k < 190 else 9.0 for k in range(steps)]}))
    assert np.max(np.abs(np.diff(found["signal"]))) <= 2 * math.pi * 9 * 0.001
    assert found["phase"][-1] == pytest.approx(2 * math.pi * (0.19 + 9 * 0.21), rel=1e-9)


def test_touchdown_sensor_opens_at_its_threshold() -> None:
    found = simulate("TouchdownSensor", "2.0", Run(0.1, {"contact_force_n": [199.0, 200.0, 200.1, 0.0, -5.0]}))
    np.testing.assert_array_equal(found["touchdown"], [0, 0, 0, 1, 0, 0])


def detector(force: list[float], reset: list[float] | None = None, **parameters: float) -> dict[str, np.ndarray]:
    inputs = {"contact_force_n": force, "reset": reset or [0.0] * len(force)}
    return simulate("TouchdownDetector", "2.0", Run(0.01, inputs, parameters))


def test_touchdown_bounces_shorter_than_the_debounce_do_not_latch() -> None:
    found = detector([300.0, 300.0, 300.0, 0.0] * 8, debounce_s=0.035)
    assert found["landed"].max() == found["touchdown"].max() == 0.0
    assert found["contact_count"][-1] == 8
    assert found["touchdown_time_s"][-1] == -1.0


def test_touchdown_latches_once_the_load_has_lasted_and_survives_a_rebound() -> None:
    found = detector([0.0] * 2 + [300.0] * 6 + [0.0] * 4, debounce_s=0.035)
    np.testing.assert_array_equal(found["touchdown"], [0] * 6 + [1] * 3 + [0] * 4)
    np.testing.assert_array_equal(found["landed"], [0] * 6 + [1] * 7)
    np.testing.assert_array_equal(found["engine_cut"], found["landed"])
    assert found["touchdown_time_s"][-1] == pytest.approx(0.055, abs=1e-9)


def test_touchdown_hysteresis_keeps_its_state_between_the_thresholds() -> None:
    found = detector([100.0, 201.0, 100.0, 50.0, 49.9, 100.0, 200.0])
    np.testing.assert_array_equal(found["contact"], [0, 0, 1, 1, 1, 0, 0, 0])


def test_touchdown_reset_releases_the_latch_until_the_load_lasts_again() -> None:
    found = detector([300.0] * 3 + [0.0] * 3 + [300.0] * 3, [0.0] * 3 + [1.0] * 2 + [0.0] * 4, debounce_s=0.0)
    np.testing.assert_array_equal(found["landed"], [1, 1, 1, 1, 0, 0, 0, 1, 1, 1])


def test_touchdown_of_a_vehicle_that_starts_on_its_legs() -> None:
    found = detector([300.0] * 8, debounce_s=0.05)
    np.testing.assert_array_equal(found["contact_count"], 1)
    np.testing.assert_array_equal(found["landed"], [0] * 5 + [1] * 4)


def turning(rate: float, steps: int, start: float = 0.0) -> dict[str, list[float]]:
    angle = start + rate * np.arange(steps) / 240
    return {"angle": np.arctan2(np.sin(angle), np.cos(angle)).tolist()}


def test_joint_encoder_follows_the_angle_over_the_seam() -> None:
    found = simulate("JointEncoder", "2.0", Run(1 / 240, turning(20.0, 480, 3.0)))
    true = 3.0 + 20.0 * np.arange(480) / 240
    resolution = 2 * math.pi / 4096
    assert np.max(np.abs(found["angle_unwrapped"][1:] - true)) <= resolution / 2 + 1e-12
    assert np.max(np.abs(found["angle_measured"])) <= math.pi + 1e-12
    assert np.mean(found["rate_measured"][-240:]) == pytest.approx(20.0, rel=1e-2)


def test_joint_encoder_at_rest_has_no_rate_and_at_a_crawl_has_pulses() -> None:
    assert np.all(simulate("JointEncoder", "2.0", Run(1 / 240, {"angle": [0.7] * 10}))["rate_measured"] == 0.0)
    crawl = simulate("JointEncoder", "2.0", Run(1 / 240, turning(0.1, 240), {"rate_filter_time_constant_s": 0.0}))[
        "rate_measured"
    ]
    pulse = 2 * math.pi / 4096 * 240
    np.testing.assert_allclose(np.unique(np.round(crawl / pulse, 9)), [0.0, 1.0])


def test_wheel_encoder_rolls_its_circumference_per_turn() -> None:
    rate, steps = 2 * math.pi, 481  # one turn per second for two seconds
    found = simulate("WheelEncoder", "2.0", Run(1 / 240, turning(rate, steps, 1.0)))
    assert found["pulses"][-1] == pytest.approx(2048, abs=1)
    assert found["distance_m"][-1] == pytest.approx(2 * 2 * math.pi * 0.15, rel=1e-3)
    assert np.mean(found["speed_mps"][-240:]) == pytest.approx(rate * 0.15, rel=2e-3)


def test_wheel_encoder_backward_undoes_forward() -> None:
    forth = turning(5.0, 200, 0.001)["angle"]
    found = simulate("WheelEncoder", "2.0", Run(1 / 240, {"angle": forth + forth[::-1]}))
    assert found["pulses"].max() > 500
    assert found["pulses"][-1] == 0.0


def test_wheel_encoder_of_a_trembling_wheel_counts_nothing() -> None:
    found = simulate("WheelEncoder", "2.0", Run(1 / 240, {"angle": [1.0, 1.0 + 1e-9, 1.0 - 1e-9] * 20}))
    assert not found["pulses"].any()


# ---- pointing, balloon


def sun(azimuth: float, elevation: float = 0.4) -> dict[str, float]:
    level = math.cos(elevation)
    return {
        "sun_mount_x": -math.sin(azimuth) * level,
        "sun_mount_y": math.sin(elevation),
        "sun_mount_z": -math.cos(azimuth) * level,
    }


def track(*path: dict[str, float], steps: int = 200) -> dict[str, np.ndarray]:
    names = path[0].keys()
    return simulate("SunTracker", "2.0", Run(0.01, {n: [p[n] for p in path for _ in range(steps)] for n in names}))


def test_sun_tracker_follows_a_step_of_one_radian() -> None:
    found = track(sun(0.0), sun(1.0))
    assert found["yaw"][200] == pytest.approx(0.0, abs=1e-12)
    assert found["yaw"][-1] == pytest.approx(1.0, abs=1e-4)
    assert found["sun_elevation"][-1] == pytest.approx(0.4)


def test_sun_tracker_takes_the_short_way_behind() -> None:
    found = track(sun(3.0), sun(-3.0))
    assert found["yaw"][-1] == pytest.approx(2 * math.pi - 3.0, abs=1e-3)
    assert np.max(np.abs(np.diff(found["yaw"]))) < 0.2


@pytest.mark.parametrize(
    "nothing", [dict.fromkeys(sun(0.0), 0.0), {"sun_mount_x": 0.0, "sun_mount_y": 1.0, "sun_mount_z": 0.0}]
)
def test_sun_tracker_without_an_azimuth_stays_where_it_is(nothing: dict[str, float]) -> None:
    found = track(sun(1.0), nothing)
    assert found["sun_valid"][-1] == found["pointing_error"][-1] == 0.0
    assert found["yaw"][-1] == pytest.approx(found["yaw"][200], abs=1e-12)


def fall(rho0: float, gravity: float, seconds: float = 10.0, mass: float = 4.5) -> float:
    """Height gained by a body of the balloon's mass that carries the program."""
    step = 1 / 240
    height, velocity = 5.0, 0.0
    with Instance("Balloon", "2.0", inputs={"rho0": rho0, "gravity": gravity}) as balloon:
        for _ in range(round(seconds / step)):
            balloon.write({"height": height, "velocity": velocity})
            balloon.step(step)
            velocity += step * (balloon.read(["netForce"])[0] / mass - gravity)
            height += step * velocity
    return height - 5.0


def test_balloon_rises_in_air_and_falls_in_vacuum() -> None:
    assert fall(1.225, 9.81) > 2.0
    assert fall(0.0, MOON, seconds=1.0) == pytest.approx(-MOON / 2, rel=0.01)


def test_balloon_density_is_that_of_the_standard_atmosphere() -> None:
    """ISO 2533: 0.7361 kg/m3 at 5 km and 0.4127 kg/m3 at 10 km."""
    found = simulate("Balloon", "2.0", Run(1.0, {"height": [0.0, 5000.0, 10000.0]}, {"rho0": 1.225}))
    np.testing.assert_allclose(found["airDensity"][1:], [1.225, 0.7361, 0.4127], rtol=2e-3)


def test_balloon_above_the_atmosphere_has_no_lift_and_stays_finite() -> None:
    found = simulate("Balloon", "2.0", Run(1.0, {"height": [50e3, 1e6], "velocity": [5.0, -900.0]}, {"rho0": 1.225}))
    assert all(np.all(np.isfinite(values)) for values in found.values())
    np.testing.assert_array_equal(found["netForce"], 0.0)


def test_balloon_buoyancy_is_the_weight_of_the_displaced_air() -> None:
    found = simulate("Balloon", "2.0", Run(1.0, {"height": [0.0]}, {"rho0": 1.2, "gravity": 9.81, "initVolume": 6.0}))
    assert found["buoyancy"][0] == pytest.approx(1.2 * 6.0 * 9.81)
    assert found["free_lift"][0] == pytest.approx((1.2 * 6.0 - 4.5) * 9.81)
