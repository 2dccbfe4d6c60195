"""What the sensor programs must compute: closed forms and plain numpy, written apart from the Modelica.

Every function takes a `Run` and gives each output at each communication point, shape (count + 1,).
Inputs are held over a step, so that first-order filters have an exact solution per step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from fmus_harness import Array, Run

Outputs = dict[str, Array]


def rotation(q: Array) -> Array:
    """Rotation matrices, body to world, of unit quaternions wxyz; shape (..., 3, 3)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )


def vectors(run: Run, stem: str, axes: str = "xyz") -> Array:
    """Inputs stem_x, stem_y, stem_z as one array, shape (count + 1, 3)."""
    return np.stack([run.u(f"{stem}_{axis}", 1.0 if axis == "w" else 0.0) for axis in axes], -1)


def attitude(run: Run, stem: str, epsilon: float = 1e-12) -> tuple[Array, Array, Array]:
    """Unit quaternions (zero where there is none), whether there is one, and the rotation matrices (or zero)."""
    q = vectors(run, stem, "wxyz")
    norm2 = np.sum(q * q, -1)
    valid = norm2 > epsilon
    unit = np.where(valid[:, None], q / np.sqrt(np.where(valid, norm2, 1.0))[:, None], 0.0)
    return unit, valid, np.where(valid[:, None, None], rotation(unit), 0.0)


def low_pass(u: Array, valid: Array, tau: float, step: float) -> Array:
    """State of tau*x' = u - x over held inputs, started at the first valid sample and held while invalid."""
    x = np.array(u, float)
    decay = np.exp(-step / tau)
    for k in range(1, len(u)):
        state = x[k - 1]
        if valid[k]:
            if not valid[k - 1]:
                state = u[k]
            state = u[k] + (state - u[k]) * decay
        x[k] = state
    return x


def filtered_rate(u: Array, valid: Array, tau: float, step: float) -> Array:
    """Filtered derivative (u - x)/tau, 0 while invalid; u may have trailing axes."""
    gate = valid.reshape(-1, *[1] * (u.ndim - 1))
    return np.where(gate, (u - low_pass(u, valid, tau, step)) / tau, 0.0)


def rk4(f: Callable[[Array], Array], x: Array, step: float, parts: int = 64) -> Array:
    """Integrate x' = f(x) over one held step with the classical Runge-Kutta method."""
    h = step / parts
    for _ in range(parts):
        k1 = f(x)
        k2 = f(x + h / 2 * k1)
        k3 = f(x + h / 2 * k2)
        k4 = f(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def wrap(angle: float) -> float:
    """The angle in (-pi, pi]."""
    return float(np.arctan2(np.sin(angle), np.cos(angle)))


def columns(stem: str, values: Array, axes: str = "xyz") -> Outputs:
    """An array with one column per axis as named outputs."""
    return {f"{stem}_{axis}": values[:, i] for i, axis in enumerate(axes)}


def filtered_derivative(run: Run) -> Outputs:
    valid = run.u("sample_valid", 1.0) > 0.5
    return {"y": filtered_rate(run.u("u"), valid, run.p("time_constant_s", 0.02), run.step)}


def filtered_signal(run: Run) -> Outputs:
    valid = run.u("sample_valid", 1.0) > 0.5
    target = valid.astype(float)
    acquisition = np.zeros(run.count + 1)
    decay = np.exp(-run.step / run.p("acquisition_time_constant_s", 0.02))
    for k in range(1, run.count + 1):
        acquisition[k] = target[k] + (acquisition[k - 1] - target[k]) * decay
    return {"y": low_pass(run.u("u"), valid, run.p("time_constant_s", 0.02), run.step), "acquisition": acquisition}


def imu_sensor(run: Run) -> Outputs:
    q, upright, matrix = attitude(run, "raw_quat", run.p("quaternion_epsilon", 1e-12))
    healthy = upright & (run.u("raw_sample_valid") > 0.5)
    body = np.swapaxes(matrix, -1, -2)
    omega = np.einsum("kij,kj->ki", body, vectors(run, "raw_angvel"))
    alpha = filtered_rate(omega, healthy, run.p("angular_accel_filter_time_constant_s", 0.02), run.step)
    r = np.array([run.p(f"mount_offset_{axis}", 0.0) for axis in "xyz"])
    lever = np.cross(alpha, r) + np.cross(omega, np.cross(omega, r))
    accel = np.einsum("kij,kj->ki", body, vectors(run, "raw_acceleration")) + lever
    gravity = np.einsum("kij,kj->ki", body, vectors(run, "gravity_world"))
    bias = np.array([run.p(f"accel_bias_{axis}", 0.0) for axis in "xyz"])
    gyro_bias = np.array([run.p(f"gyro_bias_{axis}", 0.0) for axis in "xyz"])
    force = run.p("accel_scale_factor", 1.0) * (accel - gravity) + bias
    return {
        **columns("coordinate_accel_local", np.where(healthy[:, None], accel, 0.0)),
        **columns("specific_force", np.where(healthy[:, None], force, 0.0)),
        **columns("gyro", np.where(upright[:, None], omega + gyro_bias, 0.0)),
        **columns("attitude_quat", q, "wxyz"),
        "sensor_health": healthy.astype(float),
        "attitude_quat_valid": upright.astype(float),
    }


def altimeter(run: Run) -> Outputs:
    tau = run.p("range_filter_time_constant_s", 0.02)
    direction = np.array([run.p(f"ray_direction_local_{a}", d) for a, d in zip("xyz", (0.0, -1.0, 0.0), strict=True)])
    least = run.p("minimum_vertical_projection", 0.05)
    _, upright, matrix = attitude(run, "attitude_quat", run.p("quaternion_epsilon", 1e-12))
    u = matrix @ (direction / np.linalg.norm(direction))
    omega = np.einsum("kij,kj->ki", matrix, vectors(run, "angular_velocity_local"))
    mount = np.einsum("kij,kj->ki", matrix, vectors(run, "mount_local"))
    distance = run.u("ray_distance_m")
    projection = np.maximum(0.0, -u[:, 1])
    returned = (run.u("ray_hit_valid") > 0.5) & (distance >= run.p("minimum_range_m", 1e-3))
    valid = returned & upright & (projection > 0.0) & (projection >= least)
    rate = filtered_rate(distance, returned, tau, run.step)
    since = np.zeros(run.count + 1)
    for k in range(1, run.count + 1):
        # inputs change at the beginning of the step that ends at point k
        since[k] = run.time[k - 1] if returned[k] and not returned[k - 1] else since[k - 1]
    settled = valid & (run.time >= since + run.p("rate_settling_time_constants", 3.0) * tau)
    position = vectors(run, "ray_hit_position") - distance[:, None] * u - mount
    confidence = np.clip((projection - least) / max(1 - least, 1e-6), 0.0, 1.0)
    return {
        "range_m": np.where(valid, distance * projection, 0.0),
        "range_rate_mps": np.where(valid, rate * projection - distance * np.cross(omega, u)[:, 1], 0.0),
        "range_valid": valid.astype(float),
        "range_confidence": np.where(valid, confidence, 0.0),
        "range_rate_valid": settled.astype(float),
        **columns("vehicle_position", np.where(valid[:, None], position, 0.0)),
        "sample_time_s": run.u("ray_sample_time"),
        "vertical_projection": projection,
        "ray_direction_nav_y": u[:, 1],
    }


def attitude_reference(run: Run) -> Outputs:
    _, upright, matrix = attitude(run, "attitude_quat", run.p("quaternion_epsilon", 1e-12))
    about_x, about_z = run.u("desired_tilt_x"), run.u("desired_tilt_z")
    cx, sx, cz, sz = np.cos(about_x), np.sin(about_x), np.cos(about_z), np.sin(about_z)
    zero, one = np.zeros_like(cx), np.ones_like(cx)
    turn_x = np.array([[one, zero, zero], [zero, cx, -sx], [zero, sx, cx]]).transpose(2, 0, 1)
    turn_z = np.array([[cz, -sz, zero], [sz, cz, zero], [zero, zero, one]]).transpose(2, 0, 1)
    up = np.array([0.0, 1.0, 0.0])
    body = np.swapaxes(matrix, -1, -2)
    wanted = np.einsum("kij,kj->ki", body, turn_z @ turn_x @ up)
    return {
        **columns("error", np.cross(up, wanted)),
        **columns("estimated_up", body @ up),
        "alignment": wanted @ up,
        "attitude_valid": upright.astype(float),
    }


def sun_tracker(run: Run) -> Outputs:
    x, y, z = vectors(run, "sun_mount").T
    horizontal = np.hypot(x, z)
    valid = horizontal > run.p("minimum_horizontal", 1e-6)
    azimuth = np.where(valid, np.arctan2(-x, -z), 0.0)
    yaw = np.zeros(run.count + 1)
    decay = np.exp(-run.step / run.p("tau", 0.2))
    error = np.zeros(run.count + 1)
    error[0] = azimuth[0]
    for k in range(1, run.count + 1):
        # the wrapped error decays exponentially: it never crosses half a turn on its way
        before = wrap(azimuth[k] - yaw[k - 1]) if valid[k] else 0.0
        error[k] = before * decay
        yaw[k] = yaw[k - 1] + before - error[k]
    return {
        "yaw": yaw,
        "sun_azimuth": azimuth,
        "sun_elevation": np.arctan2(y, horizontal),
        "pointing_error": error,
        "sun_valid": valid.astype(float),
    }


def touchdown_sensor(run: Run) -> Outputs:
    return {"touchdown": (run.u("contact_force_n") > run.p("force_threshold_n", 200.0)).astype(float)}


def touchdown_detector(run: Run) -> Outputs:
    force, reset = run.u("contact_force_n"), run.u("reset") > 0.5
    on, off, wait = run.p("force_on_n", 200.0), run.p("force_off_n", 50.0), run.p("debounce_s", 0.05)
    names = ("contact", "touchdown", "landed", "engine_cut", "touchdown_time_s", "touchdown_speed_mps", "contact_count")
    velocity, period = run.u("vertical_velocity_mps"), 1 / 240
    rows = np.zeros((run.count + 1, len(names)))
    loaded = latched = False
    since, landing, speed, bounces = 0.0, -1.0, 0.0, 0

    def sampled(n: int) -> float:
        """The velocity of tick n: a tick at the end of a step belongs to that step."""
        return float(velocity[int(np.ceil(n * period / run.step - 1e-9))]) if n >= 0 else 0.0

    for k in range(run.count + 1):
        begin, end = run.time[max(k - 1, 0)], run.time[k]
        was_loaded, was_latched = loaded, latched
        loaded = bool(force[k] > on or (loaded and force[k] >= off))
        if loaded and not was_loaded:
            since, bounces = begin, bounces + 1
            if bounces == 1:
                tick = int(np.floor(begin / period + 1e-9))
                speed = max(0.0, -sampled(tick), -sampled(tick - 1))
        settled = loaded and end >= since + wait
        latched = (settled or latched) and not reset[k]
        if latched and not was_latched:
            landing = max(since + wait, begin)
        rows[k] = loaded, settled, latched, latched, landing, speed, bounces
    return dict(zip(names, rows.T, strict=True))


def oscillator(run: Run) -> Outputs:
    frequency = run.u("frequency", 1.0)
    cycles = np.concatenate([[0.0], np.cumsum(frequency[1:]) * run.step])
    phase = run.p("initial_phase", 0.0) + 2 * np.pi * cycles
    return {"phase": phase, "signal": run.p("offset", 0.0) + run.p("amplitude", 1.0) * np.sin(phase)}


def balloon(run: Run) -> Outputs:
    t0, lapse = run.p("t0", 288.15), run.p("lapse", 0.0065)
    height, velocity, gravity = run.u("height"), run.u("velocity"), run.u("gravity", 1.62)
    temperature = np.maximum(t0 - lapse * height, 1.0)
    pressure = np.maximum(1 - lapse * height / t0, 0.0) ** run.p("pressure_exponent", 5.2559)
    density = run.u("rho0") * pressure * t0 / temperature
    target = run.p("maxVolume", 6.0) * temperature / t0
    volume = np.full(run.count + 1, run.p("initVolume", 4.0))
    decay = np.exp(-run.step / run.p("tau", 3.0))
    for k in range(1, run.count + 1):
        volume[k] = target[k] + (volume[k - 1] - target[k]) * decay
    radius = np.cbrt(3 * volume / (4 * np.pi))
    drag = 0.5 * density * run.p("dragCoeff", 0.47) * np.pi * radius**2 * velocity * np.abs(velocity)
    buoyancy = density * volume * gravity
    return {
        "temperature": temperature,
        "airDensity": density,
        "volume": volume,
        "buoyancy": buoyancy,
        "drag": drag,
        "netForce": buoyancy - drag,
        "free_lift": buoyancy - run.p("mass", 4.5) * gravity,
    }
