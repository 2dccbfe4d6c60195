"""The solver inside the host, for FMUs that bring none (model exchange).

A Dormand-Prince pair of order 5(4) with local extrapolation [Dormand, Prince 1980;
Hairer, Nørsett, Wanner, Solving ODEs I, table II.5.2] advances the states; where its step
size collapses, which means that the model is stiff, a linearly implicit pair of order 2(3)
[Shampine, Reichelt, The MATLAB ODE Suite, 1997, section 3.1] takes over for the rest of the
communication step. State events are bracketed by bisection on the cubic Hermite interpolant.
"""

from __future__ import annotations

import abc
import math

import numpy as np

from cosim.component import FloatArray

_A = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_C = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_E = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
_STIFF_AFTER = 1000  # explicit steps within one communication step
_MOST_STEPS = 200_000
_MOST_EVENTS = 10_000


class SolverError(Exception):
    """The solver cannot go on: says why, and at which time."""


class DomainError(Exception):
    """The model cannot be evaluated here (status Discard): a smaller step may help."""


class Model(abc.ABC):
    """What the solver needs of an FMU in model exchange."""

    @abc.abstractmethod
    def set_point(self, time: float, states: FloatArray) -> None:
        """Set time [s] and states."""

    @abc.abstractmethod
    def states(self) -> FloatArray:
        """A copy of the states, shape (n,)."""

    @abc.abstractmethod
    def derivatives(self) -> FloatArray:
        """A copy of the state derivatives at the point that is set, shape (n,)."""

    @abc.abstractmethod
    def indicators(self) -> FloatArray:
        """A copy of the event indicators at the point that is set, shape (m,)."""

    @abc.abstractmethod
    def completed_step(self) -> bool:
        """Tell that a step was accepted; whether an event must be handled now."""

    @abc.abstractmethod
    def handle_events(self) -> None:
        """Enter event mode and iterate it to the end; leaves the model in event mode."""

    @abc.abstractmethod
    def enter_continuous_time(self) -> None:
        """Leave event mode."""

    @property
    @abc.abstractmethod
    def next_event(self) -> float:
        """Time of the next time event [s], infinite if there is none."""


class Solver:
    """Advances a model over communication steps.

    Args:
        model: in event mode, its events handled.
        nominal: magnitude of each state, shape (n,).
        tolerance: relative tolerance; the absolute one is a tenth of it, times the nominal values.
    """

    def __init__(self, model: Model, nominal: FloatArray, tolerance: float) -> None:
        self._model = model
        self._relative = tolerance
        self._absolute = 0.1 * tolerance * np.abs(nominal)
        self.step_size = 0.0
        self._steps = 0
        self._is_stiff = False

    def advance(self, start: float, end: float) -> None:
        """From one communication point to the next; the model is in event mode before and after.

        Raises:
            SolverError: the step size or the distance of events collapses.
        """
        model = self._model
        model.enter_continuous_time()
        time, x = start, model.states()
        model.set_point(time, x)
        z = model.indicators()
        slope: FloatArray | None = None
        self._steps, self._is_stiff, events = 0, False, 0
        while time < end:
            limit = min(end, max(model.next_event, time))
            if limit <= time:
                new_time, new_x, new_slope = time, x, slope
            else:
                slope = self._slope(time, x) if slope is None else slope
                new_time, new_x, new_slope = self._step(time, x, slope, limit)
            model.set_point(new_time, new_x)
            new_z = model.indicators()
            crossed = bool(np.any((z > 0) != (new_z > 0)))
            if crossed and slope is not None and new_slope is not None:
                new_time, new_x = self._locate((time, x, slope), (new_time, new_x, new_slope), z)
                model.set_point(new_time, new_x)
            wants_event = model.completed_step()
            if crossed or wants_event or (new_time >= model.next_event and new_time < end):
                events = events + 1 if new_time - time < 1e-9 * max(1.0, abs(time)) else 0
                if events > _MOST_EVENTS:
                    raise SolverError(f"{events} events follow each other without progress at t = {time:.9g} s")
                model.handle_events()
                model.enter_continuous_time()
                time, x, slope = new_time, model.states(), None
                z = model.indicators()
            else:
                time, x, slope, z = new_time, new_x, new_slope, new_z
        model.handle_events()

    # ---- one step

    def _slope(self, time: float, x: FloatArray) -> FloatArray:
        self._model.set_point(time, x)
        return self._model.derivatives()

    def _step(
        self, time: float, x: FloatArray, slope: FloatArray, limit: float
    ) -> tuple[float, FloatArray, FloatArray]:
        """One accepted step, not beyond the limit: time, states and slope at its end."""
        if len(x) == 0:
            return limit, x, slope
        size = self.step_size or self._first_size(x, slope, limit - time)
        while True:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise SolverError(f"more than {_MOST_STEPS} steps are needed at t = {time:.9g} s")
            self._is_stiff = self._is_stiff or self._steps > _STIFF_AFTER
            ends = size >= limit - time
            new_time = limit if ends else time + size
            if new_time <= time + 1e-15 * abs(time):
                raise SolverError(f"the step size collapses at t = {time:.9g} s")
            exponent = -1 / 3 if self._is_stiff else -1 / 5
            try:
                attempt = self._implicit if self._is_stiff else self._explicit
                new_x, new_slope, error = attempt(time, x, slope, new_time - time)
                scale = self._absolute + self._relative * np.maximum(np.abs(x), np.abs(new_x))
                ratio = float(np.max(np.abs(error) / scale))
            except DomainError:
                ratio = math.nan
            if ratio <= 1.0:
                grown = (new_time - time) * min(5.0, 0.9 * max(ratio, 1e-10) ** exponent)
                # A step that was cut short by the limit says little about the size that is right.
                self.step_size = max(size, grown) if ends else grown
                return new_time, new_x, new_slope
            factor = 0.25 if math.isnan(ratio) else max(0.2, 0.9 * ratio**exponent)
            size = (new_time - time) * factor

    def _first_size(self, x: FloatArray, slope: FloatArray, span: float) -> float:
        scale = self._absolute + self._relative * np.abs(x)
        fastest = float(np.max(np.abs(slope) / (scale / self._relative)))
        return min(span, 0.01 / fastest) if fastest > 0 else span

    def _explicit(
        self, time: float, x: FloatArray, slope: FloatArray, h: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        slopes = [slope]
        stage = x
        for a, c in zip(_A[1:], _C[1:], strict=True):
            stage = x + h * sum(weight * k for weight, k in zip(a, slopes, strict=True))
            slopes.append(self._slope(time + c * h, stage))
        return stage, slopes[-1], h * (_E @ np.array(slopes))

    def _implicit(
        self, time: float, x: FloatArray, slope: FloatArray, h: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        d, e = 1.0 / (2.0 + math.sqrt(2.0)), 6.0 + math.sqrt(2.0)
        jacobian = np.empty((len(x), len(x)))
        for k in range(len(x)):
            delta = math.sqrt(np.finfo(float).eps) * max(abs(x[k]), self._absolute[k] / self._relative)
            moved = x.copy()
            moved[k] += delta
            jacobian[:, k] = (self._slope(time, moved) - slope) / delta
        dt = 1e-6 * h
        in_time = (self._slope(time + dt, x) - slope) / dt
        matrix = np.eye(len(x)) - h * d * jacobian
        try:
            k1 = np.linalg.solve(matrix, slope + h * d * in_time)
            f1 = self._slope(time + 0.5 * h, x + 0.5 * h * k1)
            k2 = np.linalg.solve(matrix, f1 - k1) + k1
            new_x = x + h * k2
            f2 = self._slope(time + h, new_x)
            k3 = np.linalg.solve(matrix, f2 - e * (k2 - f1) - 2.0 * (k1 - slope) + h * d * in_time)
        except np.linalg.LinAlgError:
            raise DomainError from None
        return new_x, f2, h / 6.0 * (k1 - 2.0 * k2 + k3)

    # ---- events

    def _locate(
        self,
        left: tuple[float, FloatArray, FloatArray],
        right: tuple[float, FloatArray, FloatArray],
        z: FloatArray,
    ) -> tuple[float, FloatArray]:
        """The first point after the earliest sign change of an indicator."""
        (t0, x0, f0), (t1, x1, f1) = left, right
        span = t1 - t0
        low, high, at_high = 0.0, 1.0, x1
        width = 1e-12 * max(1.0, abs(t0)) / span if span > 0 else 1.0
        while high - low > width:
            s = 0.5 * (low + high)
            if s in (low, high):
                break
            x = (
                (1 + 2 * s) * (1 - s) ** 2 * x0
                + s * (1 - s) ** 2 * span * f0
                + s**2 * (3 - 2 * s) * x1
                - s**2 * (1 - s) * span * f1
            )
            self._model.set_point(t0 + s * span, x)
            if np.any((z > 0) != (self._model.indicators() > 0)):
                high, at_high = s, x
            else:
                low = s
        return (t1 if high == 1.0 else t0 + high * span), at_high
