"""Units as FMI has them: a factor and an offset to SI, and exponents of eight base units.

`v_SI = factor * v + offset`, with the exponents of kg, m, s, A, K, mol, cd and rad
(FMI 2.0.4 section 2.2.2 and FMI 3.0 section 2.4.4, `BaseUnit`). A unit comes either
from an FMU's `UnitDefinitions` or from its name by the unit grammar of the Modelica
Language Specification, chapter 19 (`kg.m2/s2`, `N.m`, `rad/s`), of which we also take
`m/s^2` and `m*s-2`.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
_NONE = (0,) * len(BASE_UNITS)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement.

    Attributes:
        name: as authored, such as "m/s2".
        exponents: powers of kg, m, s, A, K, mol, cd, rad.
        factor: SI value of one unit (no offset).
        offset: SI value of zero units, not zero for degC and degF only.
    """

    name: str
    exponents: tuple[int, ...] = _NONE
    factor: float = 1.0
    offset: float = 0.0

    @property
    def is_pure_number(self) -> bool:
        """True for "1", "%", rad and deg: no dimension beside the angle."""
        return not any(self.exponents[:-1])

    def same_dimension(self, other: Unit) -> bool:
        """Whether a value can be carried from one unit to the other.

        The exponent of rad counts, so that Hz does not silently become rad/s
        (a factor of 2 pi); only a pure number and a plane angle meet freely.
        """
        if self.exponents == other.exponents:
            return True
        one_angle = {self.exponents[-1], other.exponents[-1]} == {0, 1}
        return self.is_pure_number and other.is_pure_number and one_angle


def conversion(source: Unit, target: Unit, *, relative: bool = False) -> tuple[float, float]:
    """Factor and offset with `v_target = factor * v_source + offset`.

    Args:
        source: unit of the value that is given.
        target: unit of the value that is wanted, of the same dimension.
        relative: the quantity is a difference (FMI `relativeQuantity`): no offset.

    Raises:
        ValueError: the dimensions differ.
    """
    if not source.same_dimension(target):
        raise ValueError(f"{source.name!r} and {target.name!r} differ in dimension")
    if source.factor == target.factor and source.offset == target.offset:
        return 1.0, 0.0
    offset = 0.0 if relative else (source.offset - target.offset) / target.factor
    return source.factor / target.factor, offset


def dimension_text(unit: Unit) -> str:
    """The dimension in base units, such as "kg.m2.s-2" ("1" for a pure number)."""
    parts = [
        base + (str(power) if power != 1 else "")
        for base, power in zip(BASE_UNITS, unit.exponents, strict=True)
        if power
    ]
    return ".".join(parts) or "1"


def _unit(name: str, factor: float = 1.0, offset: float = 0.0, **powers: int) -> Unit:
    return Unit(name, tuple(powers.get(base, 0) for base in BASE_UNITS), factor, offset)


# Symbols that take SI prefixes (BIPM SI brochure, 9th edition, tables 2, 4 and 8).
_PREFIXABLE = {
    unit.name: unit
    for unit in (
        _unit("g", 1e-3, kg=1),
        _unit("m", m=1),
        _unit("s", s=1),
        _unit("A", A=1),
        _unit("K", K=1),
        _unit("mol", mol=1),
        _unit("cd", cd=1),
        _unit("rad", rad=1),
        _unit("sr", rad=2),
        _unit("Hz", s=-1),
        _unit("N", kg=1, m=1, s=-2),
        _unit("Pa", kg=1, m=-1, s=-2),
        _unit("J", kg=1, m=2, s=-2),
        _unit("W", kg=1, m=2, s=-3),
        _unit("C", A=1, s=1),
        _unit("V", kg=1, m=2, s=-3, A=-1),
        _unit("F", kg=-1, m=-2, s=4, A=2),
        _unit("Ohm", kg=1, m=2, s=-3, A=-2),
        _unit("S", kg=-1, m=-2, s=3, A=2),
        _unit("Wb", kg=1, m=2, s=-2, A=-1),
        _unit("T", kg=1, s=-2, A=-1),
        _unit("H", kg=1, m=2, s=-2, A=-2),
        _unit("lm", cd=1, rad=2),
        _unit("lx", cd=1, rad=2, m=-2),
        _unit("Bq", s=-1),
        _unit("Gy", m=2, s=-2),
        _unit("Sv", m=2, s=-2),
        _unit("kat", mol=1, s=-1),
        _unit("L", 1e-3, m=3),
        _unit("l", 1e-3, m=3),
        _unit("eV", 1.602176634e-19, kg=1, m=2, s=-2),
        _unit("bar", 1e5, kg=1, m=-1, s=-2),
        _unit("t", 1e3, kg=1),
        _unit("Wh", 3600.0, kg=1, m=2, s=-2),
        _unit("Ah", 3600.0, A=1, s=1),
    )
}
_PLAIN = {
    unit.name: unit
    for unit in (
        _unit("1"),
        _unit("%", 0.01),
        _unit("deg", math.pi / 180.0, rad=1),
        _unit("min", 60.0, s=1),
        _unit("h", 3600.0, s=1),
        _unit("d", 86400.0, s=1),
        _unit("degC", 1.0, 273.15, K=1),
        _unit("degF", 5.0 / 9.0, 459.67 * 5.0 / 9.0, K=1),
        _unit("degR", 5.0 / 9.0, K=1),
        _unit("rev", 2.0 * math.pi, rad=1),
        _unit("rpm", 2.0 * math.pi / 60.0, rad=1, s=-1),
        _unit("ft", 0.3048, m=1),
        _unit("in", 0.0254, m=1),
        _unit("atm", 101325.0, kg=1, m=-1, s=-2),
        _unit("gn", 9.80665, m=1, s=-2),
        _unit("ppm", 1e-6),
    )
}
_ALIASES = {"Ω": "Ohm", "ohm": "Ohm", "°": "deg", "°C": "degC", "r/min": "rpm", "rev/min": "rpm"}
_PREFIXES = {
    "Q": 1e30, "R": 1e27, "Y": 1e24, "Z": 1e21, "E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6,
    "k": 1e3, "h": 1e2, "da": 1e1, "d": 1e-1, "c": 1e-2, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9,
    "p": 1e-12, "f": 1e-15, "a": 1e-18, "z": 1e-21, "y": 1e-24, "r": 1e-27, "q": 1e-30,
}  # fmt: skip
_FACTOR = re.compile(r"(1(?![0-9])|%|[A-Za-zµΩ°]+)\^?([+-]?[0-9]+)?")


@functools.lru_cache(maxsize=4096)
def parse_unit(name: str) -> Unit | None:
    """The unit of this name, or None when the name is not understood.

    An affine unit (degC, degF) is understood on its own only: in `W/degC` it stands
    for a difference, hence without offset.
    """
    text = name.strip()
    text = _ALIASES.get(text, text)
    if text in ("", "-", "1"):
        return Unit(name) if text else None
    single = _symbol(text)
    if single is not None:
        return Unit(name, single.exponents, single.factor, single.offset)
    numerator, *denominators = text.split("/")
    exponents, factor = list(_NONE), 1.0
    for sign, side in [(1, numerator), *((-1, part) for part in denominators)]:
        parsed = _product(side)
        if parsed is None:
            return None
        for symbol, power in parsed:
            factor *= symbol.factor ** (sign * power)
            for i, exponent in enumerate(symbol.exponents):
                exponents[i] += sign * power * exponent
    return Unit(name, tuple(exponents), factor)


def _product(text: str) -> list[tuple[Unit, int]] | None:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    found: list[tuple[Unit, int]] = []
    for part in re.split(r"[.*·\s]+", text):
        match = _FACTOR.fullmatch(part)
        if match is None:
            return None
        symbol = _symbol(match[1])
        if symbol is None:
            return None
        found.append((symbol, int(match[2] or 1)))
    return found


def _symbol(text: str) -> Unit | None:
    text = _ALIASES.get(text, text)
    known = _PLAIN.get(text) or _PREFIXABLE.get(text)
    if known is not None:
        return known
    for length in (2, 1):
        scale, base = _PREFIXES.get(text[:length]), _PREFIXABLE.get(text[length:])
        if scale is not None and base is not None:
            return Unit(text, base.exponents, scale * base.factor)
    return None
