from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.unit import BASE_UNITS, conversion, dimension_text, parse_unit


@pytest.mark.parametrize(
    ("name", "dimension", "factor"),
    [
        ("m", "m", 1.0),
        ("m/s2", "m.s-2", 1.0),
        ("m/s^2", "m.s-2", 1.0),
        ("kg.m2", "kg.m2", 1.0),
        ("N.m", "kg.m2.s-2", 1.0),
        ("N*m", "kg.m2.s-2", 1.0),
        ("rad/s", "s-1.rad", 1.0),
        ("deg", "rad", math.pi / 180),
        ("deg/s", "s-1.rad", math.pi / 180),
        ("mm", "m", 1e-3),
        ("km/h", "m.s-1", 1000 / 3600),
        ("rpm", "s-1.rad", 2 * math.pi / 60),
        ("W/(m2.K)", "kg.s-3.K-1", 1.0),
        ("1/s", "s-1", 1.0),
        ("1", "1", 1.0),
        ("%", "1", 0.01),
        ("kPa", "kg.m-1.s-2", 1e3),
        ("uT", "kg.s-2.A-1", 1e-6),
        ("A.h", "s.A", 3600.0),
        ("m.s-1", "m.s-1", 1.0),
    ],
)
def test_units_parse_to_base_exponents_and_factor(name: str, dimension: str, factor: float) -> None:
    unit = parse_unit(name)
    assert unit is not None
    assert dimension_text(unit) == dimension
    assert unit.factor == pytest.approx(factor, rel=1e-12)
    assert unit.name == name


@pytest.mark.parametrize("name", ["", "parsec", "m//", "N.", "foo/s", "m^^2", "/s"])
def test_unknown_units_are_none(name: str) -> None:
    assert parse_unit(name) is None


def test_temperature_offsets_and_differences() -> None:
    celsius, kelvin, fahrenheit = parse_unit("degC"), parse_unit("K"), parse_unit("degF")
    assert celsius and kelvin and fahrenheit
    factor, offset = conversion(celsius, kelvin)
    assert 25.0 * factor + offset == pytest.approx(298.15)
    factor, offset = conversion(fahrenheit, celsius)
    assert 212.0 * factor + offset == pytest.approx(100.0)
    assert conversion(fahrenheit, celsius, relative=True) == (pytest.approx(5 / 9), 0.0)


def test_hertz_is_not_rad_per_second_but_a_number_is_an_angle() -> None:
    hertz, rate, one, angle = (parse_unit(n) for n in ("Hz", "rad/s", "1", "deg"))
    assert hertz and rate and one and angle
    assert not hertz.same_dimension(rate)
    assert one.same_dimension(angle)
    with pytest.raises(ValueError, match="dimension"):
        conversion(hertz, rate)


_SYMBOLS = st.sampled_from(["m", "s", "kg", "N", "rad", "K", "mm", "kN", "min", "deg"])
_PRODUCTS = st.lists(st.tuples(_SYMBOLS, st.integers(1, 3)), min_size=1, max_size=3)


@given(_PRODUCTS, _PRODUCTS)
def test_a_quotient_subtracts_exponents(above: list[tuple[str, int]], below: list[tuple[str, int]]) -> None:
    def text(parts: list[tuple[str, int]]) -> str:
        return ".".join(s + (str(p) if p > 1 else "") for s, p in parts)

    quotient = parse_unit(f"{text(above)}/{text(below)}")
    numerator, denominator = parse_unit(text(above)), parse_unit(text(below))
    assert quotient and numerator and denominator
    expected = tuple(a - b for a, b in zip(numerator.exponents, denominator.exponents, strict=True))
    assert quotient.exponents == expected
    assert len(expected) == len(BASE_UNITS)
    assert quotient.factor == pytest.approx(numerator.factor / denominator.factor, rel=1e-12)


@given(st.sampled_from(["m", "mm", "km", "degC", "K", "degF"]), st.floats(-1e6, 1e6))
def test_conversion_there_and_back(name: str, number: float) -> None:
    unit = parse_unit(name)
    assert unit is not None
    base = parse_unit("K" if unit.exponents[4] else "m")
    assert base is not None
    there, back = conversion(unit, base), conversion(base, unit)
    assert (number * there[0] + there[1]) * back[0] + back[1] == pytest.approx(number, rel=1e-9, abs=1e-6)
