"""Random expressions and systems of equations against Python and numpy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from modelica_harness import VERSIONS, Fmu

from cosim.modelica.expression import BOOLEAN, OPERATIONS, Graph
from cosim.modelica.sort import Assignment, Equation, sort

Values = Mapping[str, float]
Function = Callable[[Values], float]

_BINARY: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "add": ("({} + {})", lambda a, b: a + b),
    "sub": ("({} - {})", lambda a, b: a - b),
    "mul": ("({} * {})", lambda a, b: a * b),
    "div": ("({} / (1.5 + abs({})))", lambda a, b: a / (1.5 + abs(b))),
    "min": ("min({}, {})", min),
    "max": ("max({}, {})", max),
    "atan2": ("atan2({}, 2 + {})", lambda a, b: math.atan2(a, 2 + b)),
}
_UNARY: dict[str, tuple[str, Callable[[float], float]]] = {
    "neg": ("(-{})", lambda a: -a),
    "sin": ("sin({})", math.sin),
    "cos": ("cos({})", math.cos),
    "tanh": ("tanh({})", math.tanh),
    "exp": ("exp(-abs({}))", lambda a: math.exp(-abs(a))),
    "sqrt": ("sqrt(1 + abs({}))", lambda a: math.sqrt(1 + abs(a))),
    "square": ("({})^2", lambda a: a * a),
    "log": ("log(2 + abs({}))", lambda a: math.log(2 + abs(a))),
    "floor": ("noEvent(floor({}))", lambda a: float(math.floor(a))),
    "sign": ("sign({})", lambda a: float((a > 0) - (a < 0))),
}


def _tree(r: random.Random, depth: int) -> tuple[str, Function]:
    """A Modelica expression of a, b and c, and what it is in Python."""
    if depth == 0 or r.random() < 0.1:
        if r.random() < 0.3:
            number = round(r.uniform(-3, 3), 2)
            return (f"({number})", lambda v: number)
        name = r.choice("abc")
        return name, lambda v: v[name]
    kind = r.random()
    if kind < 0.15:
        (c, fc), (x, fx), (y, fy) = (_tree(r, depth - 1) for _ in range(3))
        return f"(if {c} > 0.1 then {x} else {y})", lambda v: fx(v) if fc(v) > 0.1 else fy(v)
    if kind < 0.5:
        form, one = _UNARY[r.choice(sorted(_UNARY))]
        x, fx = _tree(r, depth - 1)
        return form.format(x), lambda v: one(fx(v))
    form, two = _BINARY[r.choice(sorted(_BINARY))]
    (x, fx), (y, fy) = _tree(r, depth - 1), _tree(r, depth - 1)
    return form.format(x, y), lambda v: two(fx(v), fy(v))


@pytest.mark.parametrize("version", VERSIONS)
def test_random_expressions_have_the_value_that_python_gives(version: str) -> None:
    r = random.Random(20)
    trees = [_tree(r, 5) for _ in range(60)]
    lines = "\n".join(f"  y[{k}] = {text};" for k, (text, _) in enumerate(trees, start=1))
    code = f"model Trees\n  input Real a, b, c;\n  output Real y[{len(trees)}];\nequation\n{lines}\nend Trees;\n"
    with Fmu(code, version) as fmu:
        for _ in range(25):
            values = {name: r.uniform(-2, 2) for name in "abc"}
            for name, value in values.items():
                fmu[name] = value
            np.testing.assert_allclose(fmu["y"], [f(values) for _, f in trees], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_random_linear_systems_are_solved(seed: int) -> None:
    """Sparse and scrambled: several strong components, some of one equation, some of more."""
    generator = np.random.default_rng(seed)
    n = 9
    matrix = np.where(generator.random((n, n)) < 0.25, generator.uniform(-1, 1, (n, n)), 0.0) + 3 * np.eye(n)
    matrix = matrix[generator.permutation(n)]
    rows = [
        " + ".join(f"({float(matrix[i, j])!r})*x[{j + 1}]" for j in range(n) if matrix[i, j]) + f" = u[{i + 1}]"
        for i in range(n)
    ]
    lines = "\n".join(f"  {row};" for row in rows)
    code = f"model Linear\n  input Real u[{n}];\n  output Real x[{n}];\nequation\n{lines}\nend Linear;\n"
    with Fmu(code) as fmu:
        for _ in range(5):
            right = generator.uniform(-5, 5, n)
            fmu["u"] = right
            np.testing.assert_allclose(fmu["x"], np.linalg.solve(matrix, right), rtol=1e-10, atol=1e-12)


# ---- without a compiler: the graph itself

_NUMBERS = st.floats(-3, 3, allow_subnormal=False) | st.sampled_from([0.0, 1.0, -1.0, 2.0])
_SMOOTH = ("add", "sub", "mul", "sin", "cos", "tanh", "neg", "exp", "select")


@st.composite
def _recipes(draw: st.DrawFn) -> list[tuple[str, tuple[int, ...]]]:
    """Operations, each on earlier results; results 0 to 3 are two variables and two numbers."""
    count = draw(st.integers(1, 12))
    recipe = []
    for k in range(count):
        name = draw(st.sampled_from(_SMOOTH))
        arity = {"select": 3, "add": 2, "sub": 2, "mul": 2}.get(name, 1)
        recipe.append((name, tuple(draw(st.integers(0, 3 + k)) for _ in range(arity))))
    return recipe


def _run(recipe: list[tuple[str, tuple[int, ...]]], start: list[complex]) -> complex:
    """The last result, in complex arithmetic; a choice looks at the real part."""
    calls: dict[str, Callable[..., complex]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "neg": lambda a: -a,
        "sin": np.sin,
        "cos": np.cos,
        "tanh": np.tanh,
        "exp": lambda a: np.exp(np.sin(a)),
        "select": lambda c, a, b: a if c.real > 0.3 else b,
    }
    found = list(start)
    for name, operands in recipe:
        found.append(calls[name](*(found[k] for k in operands)))
    return found[-1]


def _graph(recipe: list[tuple[str, tuple[int, ...]]], numbers: tuple[float, float]) -> tuple[Graph, int]:
    g = Graph()
    found = [g.leaf("var", 0), g.leaf("var", 1), *(g.const(n) for n in numbers)]
    for name, operands in recipe:
        x = [found[k] for k in operands]
        if name == "exp":
            found.append(g.apply("exp", g.apply("sin", x[0])))
        elif name == "select":
            condition = g.apply("gt", x[0], g.const(0.3), type=BOOLEAN)
            found.append(g.apply("select", condition, x[1], x[2]))
        else:
            found.append(g.apply(name, *x))
    return g, found[-1]


@settings(max_examples=300, deadline=None)
@given(_recipes(), st.tuples(_NUMBERS, _NUMBERS), _NUMBERS, _NUMBERS)
def test_simplified_graphs_keep_value_and_derivative(
    recipe: list[tuple[str, tuple[int, ...]]], numbers: tuple[float, float], x: float, y: float
) -> None:
    g, last = _graph(recipe, numbers)
    expected = _run(recipe, [complex(x), complex(y), *map(complex, numbers)]).real
    # A product of large numbers may overflow on the way; nothing is claimed then.
    if not math.isfinite(expected) or abs(expected) > 1e100:
        return
    assert g.evaluate(last, {0: x, 1: y}) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # The complex step gives derivatives without a difference (Squire and Trapp, SIAM Review 40, 1998).
    slope = _run(recipe, [complex(x, 1e-30), complex(y), *map(complex, numbers)]).imag / 1e-30
    if math.isfinite(slope) and abs(slope) < 1e100:
        assert g.evaluate(g.derivative(last, 0), {0: x, 1: y}) == pytest.approx(slope, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 8), st.randoms(use_true_random=False))
def test_scrambled_explicit_equations_are_ordered(n: int, r: random.Random) -> None:
    """x_k = k + Σ of some earlier x, in any order and with sides swapped."""
    g = Graph()
    leaves = [g.leaf("var", k) for k in range(n)]
    expected: dict[int, float] = {}
    equations = []
    for k in range(n):
        chosen = [j for j in range(k) if r.random() < 0.5]
        right = g.const(float(k))
        for j in chosen:
            right = g.apply("add", right, leaves[j])
        expected[k] = k + sum(expected[j] for j in chosen)
        sides = (leaves[k], right) if r.random() < 0.5 else (right, leaves[k])
        equations.append(Equation(g.apply("sub", *sides)))
    r.shuffle(equations)
    values: dict[int, float] = {}
    for item in sort(g, equations, range(n), str):
        assert isinstance(item, Assignment)
        values[item.slot] = g.evaluate(item.expression, values)
    assert values == pytest.approx(expected)


def test_every_operation_evaluates_in_python_as_in_c() -> None:
    """One output for each operation of the table, at arguments where each is defined."""
    names = {"abs", "sign", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "log10"}
    names |= {"sinh", "cosh", "tanh", "floor", "ceil"}
    assert names <= OPERATIONS.keys()
    ordered = sorted(names)
    lines = "\n".join(f"  y[{k}] = noEvent({name}(u));" for k, name in enumerate(ordered, start=1))
    code = f"model Table\n  input Real u;\n  output Real y[{len(ordered)}];\nequation\n{lines}\nend Table;\n"
    with Fmu(code) as fmu:
        for u in (0.1, 0.5, 0.99):
            fmu["u"] = u
            np.testing.assert_allclose(fmu["y"], [OPERATIONS[name].evaluate(u) for name in ordered], rtol=1e-14)
