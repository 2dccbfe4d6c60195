"""A hash-consed graph of scalar expressions, with constant folding and symbolic derivatives.

An expression is an integer: the index of an entry `(operation, *arguments)`. Equal expressions are
the same integer, so every common subexpression is computed once in the generated C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cosim.diagnostic import SourceLocation

Expression = int

# A text is a number: that of a literal, or of a place for the texts that a host sets.
REAL, INTEGER, BOOLEAN, TEXT = "R", "I", "B", "S"
# Entries without operands: their arguments are not expressions.
LEAVES = frozenset({"const", "var", "pre", "time", "tick", "held", "initial", "seed", "delayed"})


class Refused(Exception):
    """A construct that the compiler does not support.

    Attributes:
        where: its place in the source, as soon as somebody knows it.
        hint: what to write instead.
    """

    def __init__(self, message: str, where: SourceLocation | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.where, self.hint = where, hint


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation means in Python and in C.

    Attributes:
        evaluate: on floats.
        code: C expression with `{}` for the operands.
    """

    evaluate: Callable[..., float]
    code: str


def _mod(a: float, b: float) -> float:
    return a - math.floor(a / b) * b


def _function(name: str) -> Operation:
    return Operation(getattr(math, name), name + "({})")


OPERATIONS: dict[str, Operation] = {
    "add": Operation(lambda a, b: a + b, "({}+{})"),
    "sub": Operation(lambda a, b: a - b, "({}-{})"),
    "mul": Operation(lambda a, b: a * b, "({}*{})"),
    "div": Operation(lambda a, b: a / b, "({}/{})"),
    "neg": Operation(lambda a: -a, "(-{})"),
    "pow": Operation(lambda a, b: a**b, "pow({},{})"),
    "lt": Operation(lambda a, b: a < b, "({}<{})"),
    "le": Operation(lambda a, b: a <= b, "({}<={})"),
    "gt": Operation(lambda a, b: a > b, "({}>{})"),
    "ge": Operation(lambda a, b: a >= b, "({}>={})"),
    "eq": Operation(lambda a, b: a == b, "({}=={})"),
    "ne": Operation(lambda a, b: a != b, "({}!={})"),
    "and": Operation(lambda a, b: bool(a) and bool(b), "(({}!=0)&&({}!=0))"),
    "or": Operation(lambda a, b: bool(a) or bool(b), "(({}!=0)||({}!=0))"),
    "not": Operation(lambda a: not a, "({}==0)"),
    "min": Operation(min, "fmin({},{})"),
    "max": Operation(max, "fmax({},{})"),
    "floor": Operation(math.floor, "floor({})"),
    "ceil": Operation(math.ceil, "ceil({})"),
    "trunc": Operation(math.trunc, "trunc({})"),
    "abs": Operation(abs, "fabs({})"),
    "sign": Operation(lambda a: (a > 0) - (a < 0), "rt_sign({})"),
    "mod": Operation(_mod, "rt_mod({},{})"),
    "rem": Operation(math.fmod, "fmod({},{})"),
    "quotient": Operation(lambda a, b: math.trunc(a / b), "trunc({}/{})"),
    # Equal texts have equal numbers, as far as the compiler knows them.
    "same": Operation(lambda a, b: a == b, "rt_same(s,{},{})"),
    "select": Operation(lambda c, a, b: a if c else b, "(({}!=0)?{}:{})"),
    "atan2": Operation(math.atan2, "atan2({},{})"),
    "sqrt": _function("sqrt"),
    "sin": _function("sin"),
    "cos": _function("cos"),
    "tan": _function("tan"),
    "asin": _function("asin"),
    "acos": _function("acos"),
    "atan": _function("atan"),
    "exp": _function("exp"),
    "log": _function("log"),
    "log10": _function("log10"),
    "sinh": _function("sinh"),
    "cosh": _function("cosh"),
    "tanh": _function("tanh"),
}
# C functions that an `external "C"` function may name.
EXTERNALS: dict[str, Callable[..., float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "atan2": math.atan2, "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log10": math.log10,
    "fmod": math.fmod, "pow": math.pow, "tanh": math.tanh, "sinh": math.sinh, "cosh": math.cosh,
    "erf": math.erf, "fabs": abs, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_STEPS = frozenset(
    ["floor", "ceil", "trunc", "sign", "quotient", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "same"]
)


class Graph:
    """All expressions of one model."""

    def __init__(self) -> None:
        self.entries: list[tuple[Any, ...]] = []
        self.types: list[str] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._slots: dict[int, frozenset[int]] = {}

    # ---- making

    def leaf(self, kind: str, *arguments: Any, type: str = REAL) -> Expression:
        """An entry without operands."""
        return self._make(type, (kind, *arguments))

    def const(self, value: float, type: str = REAL) -> Expression:
        """A literal."""
        return self._make(type, ("const", float(value)))

    def external(self, name: str, *operands: Expression) -> Expression:
        """A call of a C function."""
        return self._make(REAL, ("external", name, *operands))

    def apply(self, operation: str, *operands: Expression, type: str = REAL) -> Expression:
        """An operation, folded where operands are literals and simplified by its neutral elements."""
        if all(self.is_const(x) for x in operands):
            try:
                return self.const(OPERATIONS[operation].evaluate(*(self.value(x) for x in operands)), type)
            except (ValueError, ZeroDivisionError, OverflowError, TypeError):
                pass
        simple = self._simplified(operation, operands)
        return self._make(type, (operation, *operands)) if simple is None else simple

    def _make(self, type: str, entry: tuple[Any, ...]) -> Expression:
        # -0.0 and 0.0 are equal keys and different numbers.
        key = (type, *entry, math.copysign(1.0, entry[1])) if entry[0] == "const" else (type, *entry)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.entries)
            self.entries.append(entry)
            self.types.append(type)
        return found

    def _simplified(self, operation: str, x: tuple[Expression, ...]) -> Expression | None:
        if operation in ("add", "sub", "mul", "div", "neg", "pow"):
            return self._simplified_arithmetic(operation, x)
        if operation == "select":
            if self.is_const(x[0]):
                return x[1] if self.value(x[0]) else x[2]
            return x[1] if x[1] == x[2] else None
        if operation in ("and", "or"):
            absorbing = operation == "or"
            for one, other in (x, x[::-1]):
                if self.is_const(one):
                    return self.const(absorbing, BOOLEAN) if bool(self.value(one)) == absorbing else other
        return None

    def _simplified_arithmetic(self, operation: str, x: tuple[Expression, ...]) -> Expression | None:
        if operation == "neg":
            return self.entries[x[0]][1] if self.entries[x[0]][0] == "neg" else None
        a, b = x
        if operation == "add":
            return b if self._is(a, 0) else a if self._is(b, 0) else None
        if operation == "sub":
            return a if self._is(b, 0) else self.apply("neg", b) if self._is(a, 0) else None
        if operation == "mul":
            # As Modelica tools do: a literal zero removes its factor.
            if self._is(a, 0) or self._is(b, 0):
                return self.const(0)
            return b if self._is(a, 1) else a if self._is(b, 1) else None
        if operation == "div":
            return a if self._is(b, 1) else None
        if self._is(b, 2):
            return self.apply("mul", a, a)
        return a if self._is(b, 1) else None

    # ---- asking

    def is_const(self, x: Expression) -> bool:
        """Whether it is a literal."""
        return bool(self.entries[x][0] == "const")

    def value(self, x: Expression) -> float:
        """Of a literal."""
        return float(self.entries[x][1])

    def _is(self, x: Expression, value: float) -> bool:
        return self.is_const(x) and self.value(x) == value

    def operands(self, x: Expression) -> tuple[Expression, ...]:
        """The expressions that this one is made of."""
        entry = self.entries[x]
        if entry[0] in LEAVES:
            return ()
        return entry[2:] if entry[0] == "external" else entry[1:]

    def slots(self, x: Expression) -> frozenset[int]:
        """Every variable slot whose current value it reads."""
        found = self._slots.get(x)
        if found is None:
            entry = self.entries[x]
            if entry[0] == "var":
                found = frozenset((entry[1],))
            else:
                found = frozenset().union(*(self.slots(k) for k in self.operands(x)))
            self._slots[x] = found
        return found

    def walk(self, *roots: Expression) -> Iterator[Expression]:
        """Every entry below, each once."""
        seen: set[int] = set()
        queue = list(roots)
        while queue:
            x = queue.pop()
            if x not in seen:
                seen.add(x)
                yield x
                queue += self.operands(x)

    def evaluate(self, x: Expression, values: Mapping[int, float], memo: dict[int, float] | None = None) -> float:
        """A number, where every variable has one.

        Raises:
            KeyError: a variable has no value, or the expression depends on time or events.
        """
        memo = {} if memo is None else memo
        if x in memo:
            return memo[x]
        entry = self.entries[x]
        if entry[0] == "const":
            result = float(entry[1])
        elif entry[0] == "var":
            result = values[entry[1]]
        elif entry[0] in LEAVES:
            raise KeyError(entry)
        else:
            call = EXTERNALS[entry[1]] if entry[0] == "external" else OPERATIONS[entry[0]].evaluate
            result = float(call(*(self.evaluate(k, values, memo) for k in self.operands(x))))
        memo[x] = result
        return result

    # ---- rewriting

    def substitute(self, x: Expression, mapping: Mapping[Expression, Expression], memo: dict[int, int]) -> Expression:
        """With some entries replaced."""
        if x in mapping:
            return mapping[x]
        if x not in memo:
            entry, operands = self.entries[x], self.operands(x)
            if not operands:
                memo[x] = x
            else:
                new = [self.substitute(k, mapping, memo) for k in operands]
                is_call = entry[0] == "external"
                memo[x] = self.external(entry[1], *new) if is_call else self.apply(entry[0], *new, type=self.types[x])
        return memo[x]

    def derivative(self, x: Expression, by: int) -> Expression:
        """∂x/∂(variable in slot `by`).

        Raises:
            Refused: the operation has no derivative here.
        """
        return self.tangent(x, {by: self.const(1)}, {})

    def tangent(self, x: Expression, seeds: Mapping[int, Expression], memo: dict[int, int]) -> Expression:
        """The change of x for changes of slots, to first order.

        Args:
            x: an expression.
            seeds: slot → its change.
            memo: for calls with the same seeds.

        Raises:
            Refused: the operation has no derivative here.
        """
        if self.slots(x).isdisjoint(seeds.keys()):
            return self.const(0)
        if x not in memo:
            memo[x] = self._derivative(x, seeds, memo)
        return memo[x]

    def _derivative(self, x: Expression, seeds: Mapping[int, Expression], memo: dict[int, int]) -> Expression:
        entry = self.entries[x]
        name = entry[0]

        def d(k: Expression) -> Expression:
            return self.tangent(k, seeds, memo)

        if name == "var":
            return seeds[entry[1]]
        if name in _STEPS:
            return self.const(0)
        if name in ("add", "sub"):
            return self.apply(name, d(entry[1]), d(entry[2]))
        if name == "select":
            return self.apply("select", entry[1], d(entry[2]), d(entry[3]))
        if name in ("min", "max"):
            first = self.apply("lt" if name == "min" else "gt", entry[1], entry[2], type=BOOLEAN)
            return self.apply("select", first, d(entry[1]), d(entry[2]))
        if name == "atan2":
            y, z = entry[1], entry[2]
            top = self.apply("sub", self._times(d(y), z), self._times(y, d(z)))
            return self.apply("div", top, self.apply("add", self._times(y, y), self._times(z, z)))
        if name in ("mod", "rem"):
            # a − b·⌊a/b⌋: the whole number is constant between events.
            whole = self.apply("div", self.apply("sub", entry[1], x), entry[2])
            return self.apply("sub", d(entry[1]), self._times(whole, d(entry[2])))
        if name in ("mul", "div", "pow"):
            return self._product_rule(x, name, entry[1], entry[2], d)
        if name in _CHAIN:
            return self._times(_CHAIN[name](self, x, entry[1]), d(entry[1]))
        raise Refused(f"the derivative of {name if name != 'external' else entry[1]}() is not known")

    def _times(self, a: Expression, b: Expression) -> Expression:
        return self.apply("mul", a, b)

    def _product_rule(
        self, x: Expression, name: str, a: Expression, b: Expression, d: Callable[[int], int]
    ) -> Expression:
        if name == "mul":
            return self.apply("add", self._times(d(a), b), self._times(a, d(b)))
        if name == "div":
            return self.apply("sub", self.apply("div", d(a), b), self._times(self.apply("div", x, b), d(b)))
        if self.is_const(b):
            power = self.apply("pow", a, self.const(self.value(b) - 1))
            return self._times(self._times(b, power), d(a))
        grow = self._times(d(b), self.apply("log", a))
        return self._times(x, self.apply("add", grow, self._times(self.apply("div", b, a), d(a))))


def _one_over(g: Graph, x: Expression) -> Expression:
    return g.apply("div", g.const(1), x)


def _square(g: Graph, x: Expression) -> Expression:
    return g.apply("mul", x, x)


# f'(a), from the graph, f(a) and a.
_CHAIN: dict[str, Callable[[Graph, Expression, Expression], Expression]] = {
    "neg": lambda g, f, a: g.const(-1),
    "sin": lambda g, f, a: g.apply("cos", a),
    "cos": lambda g, f, a: g.apply("neg", g.apply("sin", a)),
    "tan": lambda g, f, a: g.apply("add", g.const(1), _square(g, f)),
    "asin": lambda g, f, a: _one_over(g, g.apply("sqrt", g.apply("sub", g.const(1), _square(g, a)))),
    "acos": lambda g, f, a: g.apply("neg", _one_over(g, g.apply("sqrt", g.apply("sub", g.const(1), _square(g, a))))),
    "atan": lambda g, f, a: _one_over(g, g.apply("add", g.const(1), _square(g, a))),
    "exp": lambda g, f, a: f,
    "log": lambda g, f, a: _one_over(g, a),
    "log10": lambda g, f, a: _one_over(g, g.apply("mul", a, g.const(math.log(10)))),
    "sqrt": lambda g, f, a: g.apply("div", g.const(0.5), f),
    "sinh": lambda g, f, a: g.apply("cosh", a),
    "cosh": lambda g, f, a: g.apply("sinh", a),
    "tanh": lambda g, f, a: g.apply("sub", g.const(1), _square(g, f)),
    "abs": lambda g, f, a: g.apply("sign", a),
}
