from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.component import Direction, Experiment, LinearTransformation, PortRef
from cosim.diagnostic import UsageError


def test_port_addresses_round_trip() -> None:
    ref = PortRef("/World/Elbow", Direction.INPUT, "angle")
    assert str(ref) == "/World/Elbow.inputs:angle"
    assert PortRef.parse(str(ref)) == ref
    assert PortRef.parse("/A.outputs:imu:gyro_1").name == "imu:gyro_1"


@pytest.mark.parametrize("text", ["", "angle", "/A", "/A.angle", "/A.inputs:", "A.inputs:x", "/A.params:x"])
def test_malformed_port_addresses_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError, match="port-address-invalid"):
        PortRef.parse(text)


@given(st.integers(1, 10_000), st.integers(0, 10**9), st.integers(-100, 100))
def test_time_is_the_correctly_rounded_rational(denominator: int, tick: int, start: int) -> None:
    experiment = Experiment(step=Fraction(1, denominator), start=Fraction(start, 7))
    assert experiment.time(tick) == float(Fraction(start, 7) + Fraction(tick, denominator))


def test_time_does_not_drift_over_a_day_of_sixtieths() -> None:
    experiment = Experiment(step=Fraction(1, 60))
    assert experiment.time(60 * 86400) == 86400.0


def test_the_last_step_is_clipped_to_the_stop_time() -> None:
    experiment = Experiment(step=Fraction(1, 10), stop=Fraction(1, 4))
    assert experiment.ticks == 3
    assert [experiment.time(k) for k in range(4)] == [0.0, 0.1, 0.2, 0.25]
    assert experiment.interval(2) == 0.05
    assert experiment.interval(0, 2) == 0.2
    assert experiment.interval(0, 3) == 0.25


def test_transformations_compose() -> None:
    inner, outer = LinearTransformation(2.0, 1.0), LinearTransformation(-3.0, 0.5)
    total = inner.then(outer)
    assert total.factor * 5.0 + total.offset == -3.0 * (2.0 * 5.0 + 1.0) + 0.5
