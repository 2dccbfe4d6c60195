"""One experiment per program: what `_in.csv` drives and `_ref.csv` records, with its numpy reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import fmus_reference as reference
import fmus_reference_control as control
import numpy as np
from fmus_harness import Array, Run

Reference = Callable[[Run], Mapping[str, Array]]


@dataclass(frozen=True)
class Experiment:
    """A program's published experiment, with the program's own parameters.

    Attributes:
        run: what is driven.
        reference: computes every output without the FMU.
        settings: another value for every parameter that can be set; a second run uses them all.
        exact: outputs that must match to the last bit (flags, counts).
        tolerance: of the other outputs, relative to the largest value of each.
        still: outputs that are the same all the time by their nature.
    """

    run: Run
    reference: Reference
    settings: Mapping[str, float] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    tolerance: float = 1e-6
    still: tuple[str, ...] = ()

    @property
    def varied(self) -> Run:
        """The same inputs with the other parameters."""
        return dataclasses.replace(self.run, parameters=self.settings)


def _turning(t: Array, stem: str, rate: tuple[float, float, float] = (0.3, 0.8, -0.5)) -> dict[str, Array]:
    """An attitude that turns about a fixed axis, as inputs stem_w to stem_z; its length is not 1 on purpose."""
    speed = np.linalg.norm(rate)
    axis = np.asarray(rate) / speed
    q = np.stack([np.cos(speed * t / 2), *(np.sin(speed * t / 2) * a for a in axis)]) * (0.8 + 0.6 * t / t[-1])
    return {f"{stem}_{name}": values for name, values in zip("wxyz", q, strict=True)}


def _held(step: float, count: int) -> Array:
    """The communication points at which a step begins."""
    return np.arange(count) * step


def _filtered(t: Array) -> dict[str, Array]:
    return {"u": np.sin(7 * t) + 2 * t, "sample_valid": ((t > 0.05) & ~((t > 0.4) & (t < 0.5))).astype(float)}


def _imu(t: Array) -> dict[str, Array]:
    wave = {
        "raw_acceleration_x": np.sin(3 * t),
        "raw_acceleration_y": 0.3 - t,
        "raw_acceleration_z": np.cos(5 * t),
        "raw_angvel_x": 0.3 + 0.1 * np.sin(2 * t),
        "raw_angvel_y": 0.8 * np.cos(3 * t),
        "raw_angvel_z": -0.5 + t,
        "raw_sample_valid": (t > 0.015).astype(float),
        "gravity_world_y": np.full_like(t, -1.62),
        "gravity_world_z": 0.1 * t,
    }
    quaternion = _turning(t, "raw_quat")
    for values in quaternion.values():
        values[(t > 0.6) & (t < 0.65)] = 0.0
    return {**wave, **quaternion}


def _altimeter(t: Array) -> dict[str, Array]:
    wave = {
        "ray_distance_m": 120 - 40 * t + np.sin(4 * t),
        "ray_hit_valid": ((t > 0.1) & ~((t > 0.7) & (t < 0.9))).astype(float),
        "ray_hit_position_x": 2 * t,
        "ray_hit_position_y": -t,
        "ray_hit_position_z": 3 + t,
        "ray_sample_time": t,
        "mount_local_y": np.full_like(t, -3.3),
        "mount_local_z": np.full_like(t, 0.2),
        "angular_velocity_local_x": np.full_like(t, 0.15),
        "angular_velocity_local_z": np.full_like(t, -0.25),
    }
    return {**wave, **_turning(t, "attitude_quat", (0.15, 0.0, -0.25))}


def _attitude(t: Array) -> dict[str, Array]:
    tilt = {"desired_tilt_x": 0.4 * np.sin(t), "desired_tilt_z": 0.3 - 0.2 * t}
    return {**_turning(t, "attitude_quat", (1.0, 0.4, -0.7)), **tilt}


def _sun(t: Array) -> dict[str, Array]:
    azimuth, elevation = 0.4 + 3.5 * t, 0.3 + 0.2 * t
    seen = (t > 0.1) & ~((t > 1.0) & (t < 1.1))
    return {
        "sun_mount_x": -np.sin(azimuth) * np.cos(elevation) * seen,
        "sun_mount_y": np.sin(elevation) * seen,
        "sun_mount_z": -np.cos(azimuth) * np.cos(elevation) * seen,
    }


def _landing_force(t: Array) -> dict[str, Array]:
    force = np.where(t < 0.1, 0.0, 300 * np.abs(np.sin(18 * t)) * np.exp(-3 * (t - 0.1)) + 160 * (t > 0.55))
    return {"contact_force_n": force}


def _balloon(t: Array) -> dict[str, Array]:
    return {
        "rho0": np.full_like(t, 1.225),
        "gravity": np.full_like(t, 9.81),
        "height": 30 * t**2,
        "velocity": 60 * t - 20,
    }


def _steered(t: Array) -> dict[str, Array]:
    return {
        **{f"error_{a}": 0.9 * np.sin((2 + k) * t + k) for k, a in enumerate("xyz")},
        **{f"rate_{a}": 0.7 * np.cos((3 - k) * t + 2 * k) for k, a in enumerate("xyz")},
        "attitude_valid": (t > 0.2).astype(float),
        "enable": (t < 1.3).astype(float),
        "disable": ((t > 0.6) & (t < 0.7)).astype(float),
    }


def _pid(t: Array) -> dict[str, Array]:
    return {
        "setpoint": np.where(t > 0.05, 1.2, 0.0) - np.where(t > 0.4, 2.5, 0.0),
        "measurement": np.arctan2(np.sin(5 * t**2), np.cos(5 * t**2)),
        "feedforward": 0.1 * np.sin(9 * t),
        "enable": 1.0 - ((t > 0.5) & (t < 0.6)),
    }


def _turned(t: Array) -> dict[str, Array]:
    angle = 9 * t - 4 * np.sin(6 * t) + 2
    return {"angle": np.arctan2(np.sin(angle), np.cos(angle))}


def _descent(t: Array) -> dict[str, Array]:
    return {
        "altitude_m": np.maximum(60 - 9 * t, 0.3),
        "altitude_rate_mps": -9 + 2 * t,
        "altitude_valid": (t > 0.5).astype(float),
        "altitude_rate_valid": ((t > 0.8) & ~((t > 2) & (t < 2.3))).astype(float),
        "vehicle_mass_kg": 1500 - 10 * t,
        "engine_cut": (t > 7).astype(float),
    }


_T = _held(0.01, 150)
_LANDING = _held(0.011, 150)
_SLOW = _held(0.05, 150)
_FAST = _held(1 / 240, 192)

EXPERIMENTS: dict[str, Experiment] = {
    "FilteredDerivative": Experiment(
        Run(0.01, _filtered(_T)), reference.filtered_derivative, {"time_constant_s": 0.05}
    ),
    "FilteredSignal": Experiment(
        Run(0.01, _filtered(_T)),
        reference.filtered_signal,
        {"time_constant_s": 0.05, "acquisition_time_constant_s": 0.1},
    ),
    "Oscillator": Experiment(
        Run(0.01, {"frequency": 1 + 2 * _T}),
        reference.oscillator,
        {"amplitude": 2.5, "offset": 0.5, "initial_phase": 0.3},
    ),
    "IMUSensor": Experiment(
        Run(0.01, _imu(_T)),
        reference.imu_sensor,
        {
            **{"mount_offset_x": 0.2, "mount_offset_y": -0.1, "mount_offset_z": 0.05},
            **{"accel_bias_x": 0.02, "accel_bias_y": -0.01, "accel_bias_z": 0.03, "accel_scale_factor": 1.002},
            **{"gyro_bias_x": 0.001, "gyro_bias_y": 0.002, "gyro_bias_z": -0.001},
            **{"quaternion_epsilon": 0.8, "angular_accel_filter_time_constant_s": 0.03},
        },
        ("sensor_health", "attitude_quat_valid"),
    ),
    "Altimeter": Experiment(
        Run(0.01, _altimeter(_T)),
        reference.altimeter,
        {
            **{"ray_direction_local_x": 0.1, "ray_direction_local_y": -1.1, "ray_direction_local_z": -0.2},
            **{"minimum_vertical_projection": 0.93, "minimum_range_m": 100.0, "quaternion_epsilon": 0.8},
            **{"range_filter_time_constant_s": 0.033, "rate_settling_time_constants": 2.2},
        },
        ("range_valid", "range_rate_valid", "sample_time_s"),
    ),
    "AttitudeReference": Experiment(
        Run(0.05, _attitude(_SLOW)),
        reference.attitude_reference,
        {"quaternion_epsilon": 0.8},
        ("attitude_valid",),
        still=("error_y", "attitude_valid"),
    ),
    "SunTracker": Experiment(
        Run(0.02, _sun(_held(0.02, 150))),
        reference.sun_tracker,
        {"tau": 0.35, "minimum_horizontal": 0.8},
        ("sun_valid",),
    ),
    "Balloon": Experiment(
        Run(0.1, _balloon(_held(0.1, 150))),
        reference.balloon,
        {
            **{"mass": 3.0, "maxVolume": 5.0, "initVolume": 2.5, "dragCoeff": 0.6, "tau": 2.0},
            **{"t0": 280.0, "lapse": 0.005, "pressure_exponent": 5.4},
        },
    ),
    "TouchdownSensor": Experiment(
        Run(0.01, _landing_force(_T)), reference.touchdown_sensor, {"force_threshold_n": 120.0}, ("touchdown",)
    ),
    "TouchdownDetector": Experiment(
        # The debounce is no multiple of the step: a deadline on a communication point would be a matter of rounding.
        Run(
            0.011,
            {
                **_landing_force(_LANDING),
                "vertical_velocity_mps": -2.0 + 3.0 * _LANDING + 0.3 * np.sin(40 * _LANDING),
                "reset": ((_LANDING > 1.2) & (_LANDING < 1.3)).astype(float),
            },
        ),
        reference.touchdown_detector,
        {"force_on_n": 150.0, "force_off_n": 20.0, "debounce_s": 0.095},
        ("contact", "touchdown", "landed", "engine_cut", "contact_count"),
    ),
    "AttitudeController": Experiment(
        Run(0.01, _steered(_T)),
        control.attitude_controller,
        {"stiffness_nm": 300.0, "damping_nms": 2500.0, "maximum_torque_nm": 450.0},
        ("active",),
        1e-12,
    ),
    "PID": Experiment(
        Run(1 / 240, _pid(_FAST)),
        control.pid,
        {
            **{"kp": 2.0, "ki": 3.0, "kd": 0.05, "derivative_filter_time_constant_s": 0.05},
            **{"command_min": -0.5, "command_max": 2.5, "anti_windup_time_constant_s": 0.2, "circular": 1.0},
        },
        ("saturated",),
        1e-12,
        still=("saturated", "integral"),
    ),
    "JointEncoder": Experiment(
        Run(1 / 240, _turned(_FAST)),
        control.joint_encoder,
        {
            **{"counts_per_revolution": 500.0, "zero_offset_rad": 0.5, "direction": -1.0},
            **{"rate_filter_time_constant_s": 0.01},
        },
        ("counts",),
        1e-12,
    ),
    "WheelEncoder": Experiment(
        Run(1 / 240, _turned(_FAST)),
        control.wheel_encoder,
        {"pulses_per_revolution": 200.0, "wheel_radius_m": 0.2, "direction": -1.0},
        ("pulses",),
        1e-12,
    ),
    "DescentController": Experiment(
        Run(0.05, _descent(_SLOW)),
        control.descent_controller,
        {
            **{"contact_altitude_m": 1.5, "touchdown_speed_mps": 0.7, "braking_deceleration_mps2": 0.4},
            **{"maximum_descent_speed_mps": 6.0, "rate_gain_per_s": 1.1, "minimum_thrust_n": 1500.0},
            **{"maximum_thrust_n": 5000.0, "blind_thrust_fraction": 0.8},
        },
        ("tracking", "saturated"),
        1e-12,
    ),
}
