"""What the encoders and controllers must compute, in plain Python, written apart from the Modelica."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from fmus_harness import Array, Run
from fmus_reference import Outputs

TURN = 2 * math.pi


def ticks(run: Run, period: float) -> Iterator[tuple[int, int]]:
    """Pairs (communication point, samples that are due there).

    Samples lie at 0, period, 2*period …; one at the end of a step belongs to that step.
    """
    done = 0
    for k, t in enumerate(run.time):
        due = math.floor(t / period + 1e-9) + 1
        yield k, due - done
        done = due


def nearest_turn(angle: float) -> float:
    """The angle in [-pi, pi)."""
    return angle - TURN * math.floor(angle / TURN + 0.5)


def pid(run: Run) -> Outputs:
    period = 1 / 120
    kp, ki, kd = run.p("kp", 1.0), run.p("ki", 0.0), run.p("kd", 0.0)
    tf, tt = run.p("derivative_filter_time_constant_s", 0.02), run.p("anti_windup_time_constant_s", 0.1)
    low, high = run.p("command_min", -1e9), run.p("command_max", 1e9)
    circular = run.p("circular", 0.0) > 0.5
    setpoint, measurement, feedforward = run.u("setpoint"), run.u("measurement"), run.u("feedforward")
    enable = run.u("enable", 1.0) > 0.5
    names = ("command", "error", "integral", "saturated")
    rows = np.zeros((run.count + 1, 4))
    integral = derivative = 0.0
    before: float | None = None
    row: tuple[float, ...] = (0.0,) * 4
    for k, due in ticks(run, period):
        for _ in range(due):
            y = float(measurement[k])
            error = float(setpoint[k]) - y
            error = nearest_turn(error) if circular else error
            if not enable[k]:
                integral, derivative, before = 0.0, 0.0, None
                row = (min(high, max(low, 0.0)), error, 0.0, float(low > 0.0 or high < 0.0))
                continue
            if before is None:
                derivative = 0.0
            else:
                change = nearest_turn(y - before) if circular else y - before
                derivative = (tf * derivative - kd * change) / (tf + period)
            before = y
            wanted = kp * error + integral + derivative + float(feedforward[k])
            command = min(high, max(low, wanted))
            integral = integral + period * ki * error + (command - wanted) * period / max(tt, period)
            row = (command, error, integral, float(command != wanted))
        rows[k] = row
    return dict(zip(names, rows.T, strict=True))


def _followed(angles: Array, run: Run, period: float, sense: float, zero: float) -> Iterator[tuple[int, bool, float]]:
    """Per sample: (communication point, first sample, angle with full turns)."""
    position, last = 0.0, None
    for k, due in ticks(run, period):
        for _ in range(due):
            angle = sense * (float(angles[k]) - zero)
            position = nearest_turn(angle) if last is None else position + nearest_turn(angle - last)
            first, last = last is None, angle
            yield k, first, position


def joint_encoder(run: Run) -> Outputs:
    period = 1 / 240
    resolution = TURN / run.p("counts_per_revolution", 4096.0)
    tf = run.p("rate_filter_time_constant_s", 0.02)
    names = ("angle_measured", "angle_unwrapped", "rate_measured", "counts")
    rows = np.zeros((run.count + 1, 4))
    rate, counts = 0.0, 0.0
    sense, zero = run.p("direction", 1.0), run.p("zero_offset_rad", 0.0)
    for k, first, position in _followed(run.u("angle"), run, period, sense, zero):
        reading = math.floor(position / resolution + 0.5)
        rate = 0.0 if first else (tf * rate + (reading - counts) * resolution) / (tf + period)
        counts = reading
        unwrapped = counts * resolution
        rows[k:] = unwrapped - TURN * math.ceil(unwrapped / TURN - 0.5), unwrapped, rate, counts
    return dict(zip(names, rows.T, strict=True))


def wheel_encoder(run: Run) -> Outputs:
    period, window = 1 / 240, 8
    resolution, radius = TURN / run.p("pulses_per_revolution", 1024.0), run.p("wheel_radius_m", 0.15)
    names = ("pulses", "distance_m", "wheel_rate_radps", "speed_mps")
    rows = np.zeros((run.count + 1, 4))
    history: list[int] = []
    origin: float | None = None
    for k, _, position in _followed(run.u("angle"), run, period, run.p("direction", 1.0), 0.0):
        origin = position if origin is None else origin
        history.append(math.floor((position - origin) / resolution + 0.5))
        past = history[-1 - window] if len(history) > window else 0
        rate = (history[-1] - past) * resolution / (window * period)
        rows[k:] = history[-1], history[-1] * resolution * radius, rate, rate * radius
    return dict(zip(names, rows.T, strict=True))


def descent_controller(run: Run) -> Outputs:
    rate = run.u("altitude_rate_mps")
    measured = (run.u("altitude_valid") > 0.5) & (run.u("altitude_rate_valid", 1.0) > 0.5)
    cut = run.u("engine_cut") > 0.5
    mass, gravity = run.u("vehicle_mass_kg", 2000.0), run.u("gravity_mps2", 1.62)
    final, braking = run.p("touchdown_speed_mps", 0.4), run.p("braking_deceleration_mps2", 0.6)
    ceiling, gain = run.p("maximum_descent_speed_mps", 10.0), run.p("rate_gain_per_s", 1.5)
    low, high = run.p("minimum_thrust_n", 0.0), run.p("maximum_thrust_n", 60000.0)
    height = np.clip(run.u("altitude_m") - run.p("contact_altitude_m", 0.0), 0.0, None)
    profile = np.sqrt(final**2 + 2 * braking * height)
    speed = np.minimum(ceiling, profile)
    on_profile = (height > 0.0) & (profile < ceiling)
    feedforward = np.where(on_profile, braking * np.clip(-rate / profile, 0.0, 2.0), 0.0)
    wanted = mass * (gravity + feedforward - gain * (rate + speed))
    wanted = np.where(measured, wanted, run.p("blind_thrust_fraction", 0.9) * mass * gravity)
    thrust = np.where(cut, 0.0, np.clip(wanted, low, high))
    return {
        "thrust_n": thrust,
        "throttle": thrust / high,
        "wanted_rate_mps": np.where(measured, -speed, 0.0),
        "tracking": (measured & ~cut).astype(float),
        "saturated": (~cut & ((wanted > high) | (wanted < low))).astype(float),
    }


def attitude_controller(run: Run) -> Outputs:
    on = (run.u("attitude_valid", 1.0) > 0.5) & (run.u("enable", 1.0) > 0.5) & ~(run.u("disable") > 0.5)
    stiffness, damping = run.p("stiffness_nm", 1000.0), run.p("damping_nms", 1000.0)
    limit = run.p("maximum_torque_nm", 1000.0)
    torques = {
        f"torque_{a}": np.where(
            on, np.clip(stiffness * run.u(f"error_{a}") - damping * run.u(f"rate_{a}"), -limit, limit), 0.0
        )
        for a in "xyz"
    }
    return {**torques, "active": on.astype(float)}
