"""Built-in functions that make arrays of arrays of scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from cosim.modelica.expression import Graph

Value = Any


class Maker(Protocol):
    """What the functions need of a scalariser."""

    graph: Graph

    def fill(self, shape: Sequence[Value], value: Value) -> Value:
        """An array of one value."""

    def constant(self, number: float) -> Value:
        """A literal as a value."""


def _cross(s: Maker, x: list[Value]) -> Value:
    g, (a, b) = s.graph, x
    found = np.empty(3, object)
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        found[i] = g.apply("sub", g.apply("mul", a[j], b[k]), g.apply("mul", a[k], b[j]))
    return found


def _concatenated(axis: int) -> Callable[[Maker, list[Value]], Value]:
    def join(s: Maker, x: list[Value]) -> Value:
        depth = max(2, *(v.ndim for v in x)) if len(x) > 1 else max(2, x[0].ndim)
        return np.concatenate([v.reshape(v.shape + (1,) * (depth - v.ndim)) for v in x], axis=axis)

    return join


def _identity(s: Maker, x: list[Value]) -> Value:
    found = s.fill([x[0], x[0]], s.constant(0.0))
    for k in range(found.shape[0]):
        found[k, k] = s.graph.const(1)
    return found


def _diagonal(s: Maker, x: list[Value]) -> Value:
    size = x[0].shape[0]
    found = np.empty((size, size), object)
    found[...] = s.graph.const(0)
    for k in range(size):
        found[k, k] = x[0][k]
    return found


ARRAY_BUILTINS: dict[str, Callable[[Maker, list[Value]], Value]] = {
    "transpose": lambda s, x: x[0].T,
    "cross": _cross,
    "promoted_cat1": _concatenated(0),
    "promoted_cat2": _concatenated(1),
    "fill": lambda s, x: s.fill(x[1:], x[0]),
    "zeros": lambda s, x: s.fill(x, s.constant(0.0)),
    "ones": lambda s, x: s.fill(x, s.constant(1.0)),
    "identity": _identity,
    "diagonal": _diagonal,
}
