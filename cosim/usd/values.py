"""Attribute values with the type that a reader needs.

A schema fixes the type of its attributes only where it is applied, and USD hands out an
opinion of another type as it is. So every value is checked once, here.
"""

from __future__ import annotations

import math
from typing import Any

from pxr import Usd

from cosim.mechanism import Quaternion, Vector
from cosim.usd.reader import StageReader


class ValueRefused(Exception):
    """An attribute holds what it cannot hold.

    Args:
        prim: where it is authored.
        name: the attribute.
        text: what is wrong with it.
    """

    def __init__(self, prim: Usd.Prim, name: str, text: str) -> None:
        super().__init__(text)
        self.prim, self.name = prim, name

    def report(self, reader: StageReader, code: str = "physics-value-invalid", hint: str = "") -> None:
        """File it as an error with prim, property and value."""
        what = f"{self.name} of {self.prim.GetPath()}" if self.name else str(self.prim.GetPath())
        where = reader.locate(self.prim, self.name)
        reader.log.error(code, f"{what} {self}", where, hint or "author a value of the schema's type and range")
        settle(self.prim, reader)


def settle(prim: Usd.Prim, reader: StageReader) -> None:
    """Close the account of a prim that an error left half read: what was not reached is not "not realised"."""
    reader.consume(prim, *reader.authored_names(prim))
    reader.consume_schema(prim, *reader.unread_schemas(prim))


def number(prim: Usd.Prim, reader: StageReader, name: str, default: float) -> float:
    """A number, which may be infinite or NaN.

    Raises:
        ValueRefused: it is no number.
    """
    value = reader.get(prim, name)
    return default if value is None else _number(prim, name, value)


def authored_number(prim: Usd.Prim, reader: StageReader, name: str) -> float | None:
    """An authored number, None where only a fallback exists.

    Raises:
        ValueRefused: it is no number.
    """
    value = reader.get_authored(prim, name)
    return None if value is None else _number(prim, name, value)


def _number(prim: Usd.Prim, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueRefused(prim, name, f"is {_shown(value)}, not a number")
    return float(value)


def flag(prim: Usd.Prim, reader: StageReader, name: str, default: bool) -> bool:
    """A Boolean.

    Raises:
        ValueRefused: it is none.
    """
    value = reader.get(prim, name)
    if value is None:
        return default
    if not isinstance(value, bool | int):
        raise ValueRefused(prim, name, f"is {_shown(value)}, neither true nor false")
    return bool(value)


def token(prim: Usd.Prim, reader: StageReader, name: str, default: str) -> str:
    """A word.

    Raises:
        ValueRefused: it is none.
    """
    value = reader.get(prim, name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ValueRefused(prim, name, f"is {_shown(value)}, not a word")
    return value


def vector(prim: Usd.Prim, reader: StageReader, name: str, default: Vector) -> Vector:
    """Three numbers, which may be infinite or NaN.

    Raises:
        ValueRefused: they are not three numbers.
    """
    value = reader.get(prim, name)
    return default if value is None else _vector(prim, name, value)


def authored_vector(prim: Usd.Prim, reader: StageReader, name: str) -> Vector | None:
    """Three authored numbers, None where only a fallback exists.

    Raises:
        ValueRefused: they are not three numbers.
    """
    value = reader.get_authored(prim, name)
    return None if value is None else _vector(prim, name, value)


def _vector(prim: Usd.Prim, name: str, value: Any) -> Vector:
    try:
        x, y, z = (float(c) for c in value)
    except (TypeError, ValueError):
        raise ValueRefused(prim, name, f"is {_shown(value)}, not three numbers") from None
    return (x, y, z)


def authored_quaternion(prim: Usd.Prim, reader: StageReader, name: str) -> Quaternion | None:
    """An authored quaternion as (w, x, y, z), not normalised; None where only a fallback exists.

    Raises:
        ValueRefused: it is no quaternion, or not finite.
    """
    value = reader.get_authored(prim, name)
    if value is None:
        return None
    try:
        w, (x, y, z) = value.GetReal(), value.GetImaginary()
    except AttributeError:
        raise ValueRefused(prim, name, f"is {_shown(value)}, not a quaternion") from None
    q = (float(w), float(x), float(y), float(z))
    if not all(math.isfinite(c) for c in q):
        raise ValueRefused(prim, name, f"is {q}, which is not finite")
    return q


def finite(prim: Usd.Prim, name: str, value: Vector) -> Vector:
    """The same vector.

    Raises:
        ValueRefused: a component is infinite or NaN.
    """
    if not all(math.isfinite(c) for c in value):
        raise ValueRefused(prim, name, f"is {value}, which is not finite")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
