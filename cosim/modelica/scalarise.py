"""From arena nodes to arrays of scalar expressions: functions inlined, loops unrolled.

The value of a node is a numpy array of expression indices, 0-dimensional for a scalar, or a list of
such values for a record.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosim.modelica.arrays import ARRAY_BUILTINS
from cosim.modelica.dae import Dae, Variable, variant
from cosim.modelica.expression import BOOLEAN, EXTERNALS, INTEGER, OPERATIONS, REAL, TEXT, Expression, Graph, Refused

Value = Any

_DEEPEST_CALL = 40

_TYPES = {"real": REAL, "integer": INTEGER, "boolean": BOOLEAN, "enumeration": INTEGER, "string": TEXT}
_COMPARISONS = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "and": "and",
    "or": "or",
}
_VARIABLE_COORDINATES = frozenset(
    ["state", "algebraic", "input", "parameter", "constant", "discrete_real", "discrete_value", "output"]
)


class Scope:
    """What names mean inside a function body or a loop."""

    _keys = itertools.count()

    def __init__(self, parameters: Sequence[Value] = (), binders: dict[tuple[int, int], int] | None = None) -> None:
        self.parameters = parameters
        self.binders = binders or {}
        self.definitions: dict[int, Value] = {}
        self.key = next(Scope._keys)

    def renew(self) -> None:
        """Values computed under the old bindings no longer count."""
        self.key = next(Scope._keys)


class Scalariser:
    """Values of expression nodes.

    Args:
        dae: the flat model.
        graph: where expressions go.
    """

    def __init__(self, dae: Dae, graph: Graph) -> None:
        self.dae, self.graph = dae, graph
        self.outside = Scope()
        self.texts: list[str] = [""]
        self._depth = 0
        self._memo: dict[tuple[Any, ...], Value] = {}

    # ---- values

    def variable(self, variable: Variable, kind: str = "var") -> Value:
        """The elements of a variable, now ("var") or before the event ("pre")."""
        type = _TYPES[variable.scalar]
        found = np.empty(variable.size, object)
        for k, slot in enumerate(variable.slots):
            found[k] = self.graph.leaf(kind, slot, type=type)
        return found.reshape(variable.shape)

    def value(self, node: int, scope: Scope | None = None) -> Value:
        """The value of a node."""
        scope = scope or self.outside
        key = (node, scope.key)
        if key not in self._memo:
            kind, fields = self.dae.nodes[node]
            handler = getattr(self, f"_on_{kind}", None)
            if handler is None:
                raise Refused(f"an expression of kind {kind!r} cannot be compiled")
            self._memo[key] = handler(fields, scope)
        return self._memo[key]

    def scalar(self, node: int, scope: Scope | None = None) -> Expression:
        """The value of a node that is one number."""
        found = self.value(node, scope)
        if found.size != 1:
            raise Refused(f"a scalar is needed and this has the shape {found.shape}")
        return int(found.reshape(()).item())

    def flat(self, node: int, scope: Scope | None = None) -> list[Expression]:
        """All elements of a node, row by row."""
        return [int(x) for x in self.value(node, scope).reshape(-1)]

    def broadcast(self, function: Callable[..., Expression], *values: Value) -> Value:
        """An operation element by element; scalars meet arrays."""
        shape = next((v.shape for v in values if v.shape), ())
        spread = [np.broadcast_to(v, shape).reshape(-1) for v in values]
        found = np.empty(spread[0].size, object)
        for k in range(found.size):
            found[k] = function(*(v[k] for v in spread))
        return found.reshape(shape)

    def _wrapped(self, x: Expression) -> Value:
        found = np.empty((), object)
        found[()] = x
        return found

    def _integral(self, *operands: Expression) -> str:
        return INTEGER if all(self.graph.types[x] == INTEGER for x in operands) else REAL

    def _literal(self, x: Expression, what: str) -> int:
        if not self.graph.is_const(x):
            raise Refused(f"{what} must be known when the model is compiled")
        return int(self.graph.value(x))

    # ---- leaves

    def _on_literal(self, fields: dict[str, Any], scope: Scope) -> Value:
        type, value = next(iter(fields.items()))
        if type == "string":
            if value not in self.texts:
                self.texts.append(value)
            return self._wrapped(self.graph.const(self.texts.index(value), TEXT))
        return self._wrapped(self.graph.const(float(value), _TYPES[type]))

    def _on_coordinate(self, fields: dict[str, Any], scope: Scope) -> Value:
        at: Any = None
        kind, at = (fields[""], None) if "" in fields else next(iter(fields.items()))
        if kind == "time":
            return self._wrapped(self.graph.leaf("time"))
        if kind == "function_parameter":
            return scope.parameters[at["ordinal"]]
        if kind == "binder":
            return self._wrapped(self.graph.const(scope.binders[(at["domain"], at["ordinal"])], INTEGER))
        if kind == "derivative":
            return self.variable(self.dae.derivatives[at])
        if at in self.dae.by_index:
            if kind in ("pre_discrete_real", "pre_discrete_value"):
                return self.variable(self.dae.by_index[at], "pre")
            # A state keeps its value from before the event to the end of a pass.
            if kind in _VARIABLE_COORDINATES or kind == "pre_state":
                return self.variable(self.dae.by_index[at])
        if kind.startswith("pre_"):
            raise Refused(
                "pre() of a continuous variable cannot be compiled",
                hint="make it a discrete variable that a when-clause assigns",
            )
        if kind == "delay":
            raise Refused("delay() cannot be compiled", hint="shift a discrete array in a when sample() clause instead")
        raise Refused(f"a reference of kind {kind!r} cannot be compiled")

    # ---- operators

    def _on_unary(self, fields: dict[str, Any], scope: Scope) -> Value:
        g, operator, operand = self.graph, fields["operator"], self.value(fields["operand"], scope)
        if operator in ("negate", "negate_elementwise"):
            return self.broadcast(lambda x: g.apply("neg", x, type=g.types[x]), operand)
        if operator == "not":
            return self.broadcast(lambda x: g.apply("not", x, type=BOOLEAN), operand)
        if operator in ("plus", "identity"):
            return operand
        raise Refused(f"the operator {operator!r} cannot be compiled")

    def _on_binary(self, fields: dict[str, Any], scope: Scope) -> Value:
        g, name = self.graph, fields["operator"]
        a, b = self.value(fields["lhs"], scope), self.value(fields["rhs"], scope)
        is_elementwise = "elementwise" in name
        name = name.replace("_elementwise", "").replace("elementwise_", "")
        if any(g.types[int(x)] == TEXT for x in (*a.reshape(-1)[:1], *b.reshape(-1)[:1])):
            return self._on_texts(name, a, b)
        if name in _COMPARISONS:
            return self.broadcast(lambda x, y: g.apply(_COMPARISONS[name], x, y, type=BOOLEAN), a, b)
        if name in ("add", "subtract"):
            return self.broadcast(lambda x, y: g.apply(name[:3], x, y, type=self._integral(x, y)), a, b)
        if name == "multiply":
            if is_elementwise or not a.shape or not b.shape:
                return self.broadcast(lambda x, y: g.apply("mul", x, y, type=self._integral(x, y)), a, b)
            return self._matrix_product(a, b)
        if name == "divide":
            return self.broadcast(lambda x, y: g.apply("div", x, y), a, b)
        if name == "power":
            return self.broadcast(lambda x, y: g.apply("pow", x, y), a, b)
        raise Refused(f"the operator {name!r} cannot be compiled")

    def _on_texts(self, name: str, a: Value, b: Value) -> Value:
        g = self.graph
        if name not in ("equal", "not_equal"):
            raise Refused(f"the operator {name!r} on texts cannot be compiled: only = and <> can")
        same = self.broadcast(lambda x, y: g.apply("same", x, y, type=BOOLEAN), a, b)
        return same if name == "equal" else self.broadcast(lambda x: g.apply("not", x, type=BOOLEAN), same)

    def _matrix_product(self, a: Value, b: Value) -> Value:
        g = self.graph

        def dot(x: Value, y: Value) -> Expression:
            total = g.const(0)
            for p, q in zip(x, y, strict=True):
                total = g.apply("add", total, g.apply("mul", p, q))
            return total

        rows = a if a.ndim == 2 else a.reshape(1, -1)
        columns = b if b.ndim == 2 else b.reshape(-1, 1)
        found = np.empty((rows.shape[0], columns.shape[1]), object)
        for i in range(rows.shape[0]):
            for j in range(columns.shape[1]):
                found[i, j] = dot(rows[i], columns[:, j])
        return found.reshape((a.shape[:-1] if a.ndim == 2 else ()) + (b.shape[1:] if b.ndim == 2 else ()))

    def _on_conditional(self, fields: dict[str, Any], scope: Scope) -> Value:
        g = self.graph
        values = [self.value(k, scope) for k in fields["ops"]]

        def choose(c: Expression, x: Expression, y: Expression) -> Expression:
            return g.apply("select", c, x, y, type=g.types[x] if g.types[x] == g.types[y] else REAL)

        result = values[-1]
        for condition, value in reversed(list(zip(values[0:-1:2], values[1:-1:2], strict=True))):
            spread = np.broadcast_to(condition, value.shape) if value.shape else condition
            result = self.broadcast(choose, spread, value, result)
        return result

    # ---- arrays and records

    def _on_array(self, fields: dict[str, Any], scope: Scope) -> Value:
        return _stacked([self.value(k, scope) for k in fields["ops"]])

    def _on_index(self, fields: dict[str, Any], scope: Scope) -> Value:
        base = self.value(fields["base"], scope)
        index: list[Any] = []
        for position, subscript in enumerate(fields["subs"]):
            chosen = self._subscript(subscript["kind"], scope)
            if isinstance(chosen, int) and not 0 <= chosen < base.shape[position]:
                raise Refused(f"the subscript {chosen + 1} is outside 1:{base.shape[position]}")
            index.append(chosen)
        return self._element(base, index)

    def _element(self, base: Value, index: Sequence[Any]) -> Value:
        """Elements by subscripts; one that is known at run time only becomes a chain of choices."""
        for position, chosen in enumerate(index):
            if not isinstance(chosen, _Dynamic):
                continue
            cases = [
                self._element(base, [*index[:position], k, *index[position + 1 :]]) for k in range(base.shape[position])
            ]
            return self._chosen(chosen.expression, cases)
        found = base[tuple(index)]
        return found if isinstance(found, np.ndarray) else self._wrapped(found)

    def _subscript(self, kind: Any, scope: Scope) -> Any:
        if kind == "whole" or (isinstance(kind, dict) and "whole" in kind):
            return slice(None)
        node = kind.get("index", kind.get("slice")) if isinstance(kind, dict) else None
        if node is None:
            raise Refused(f"the subscript {kind} cannot be compiled")
        value = self.value(node, scope)
        if value.shape:
            return [self._literal(x, "a slice") - 1 for x in value]
        x = value.item()
        return int(self.graph.value(x)) - 1 if self.graph.is_const(x) else _Dynamic(x)

    def _chosen(self, index: Expression, cases: Sequence[Value]) -> Value:
        """The case number `index`, counted from 1. Outside there is no value: NaN, where the type has it.

        Not an assertion, because a branch that is not taken may well compute it.
        """
        g = self.graph
        result = self.broadcast(lambda x: g.const(math.nan) if g.types[x] == REAL else x, cases[-1])
        for k in range(len(cases) - 1, -1, -1):
            here = g.apply("eq", index, g.const(k + 1, INTEGER), type=BOOLEAN)
            result = self.broadcast(
                lambda x, y, here=here: g.apply("select", here, x, y, type=g.types[x]), cases[k], result
            )
        return result

    def _on_array_update(self, fields: dict[str, Any], scope: Scope) -> Value:
        index = [self._subscript(subscript["kind"], scope) for subscript in fields["subs"]]
        return self._updated(self.value(fields["base"], scope), index, self.value(fields["value"], scope))

    def _updated(self, base: Value, index: Sequence[Any], value: Value) -> Value:
        """An array with some elements replaced; which ones may be known at run time only."""
        g = self.graph
        for position, chosen in enumerate(index):
            if not isinstance(chosen, _Dynamic):
                continue
            result = base
            for k in range(base.shape[position]):
                here = g.apply("eq", chosen.expression, g.const(k + 1, INTEGER), type=BOOLEAN)
                new = self._updated(base, [*index[:position], k, *index[position + 1 :]], value)
                result = self.broadcast(
                    lambda x, y, here=here: x if x == y else g.apply("select", here, x, y, type=g.types[y]), new, result
                )
            return result
        found = base.copy()
        found[tuple(index)] = value if value.shape else value.item()
        return found

    def _on_range(self, fields: dict[str, Any], scope: Scope) -> Value:
        first = self._literal(self.scalar(fields["start_expression"], scope), "a range")
        last = self._literal(self.scalar(fields["stop_expression"], scope), "a range")
        step_node = fields["explicit_step_expression"]
        step = 1 if step_node is None else self._literal(self.scalar(step_node, scope), "a range")
        numbers = list(range(first, last + (1 if step > 0 else -1), step))
        found = np.empty(len(numbers), object)
        found[:] = [self.graph.const(n, INTEGER) for n in numbers]
        return found

    def _on_comprehension(self, fields: dict[str, Any], scope: Scope) -> Value:
        ranges = self.dae.domain(fields["domain"])
        kept, values = dict(scope.binders), []
        for numbers in itertools.product(*ranges):
            scope.binders.update({(fields["domain"], k): n for k, n in enumerate(numbers)})
            scope.renew()
            values.append(self.value(fields["body"], scope))
        scope.binders.clear()
        scope.binders.update(kept)
        scope.renew()
        return _stacked(values).reshape(tuple(len(r) for r in ranges) + values[0].shape)

    def _on_record(self, fields: dict[str, Any], scope: Scope) -> Value:
        return [self.value(k, scope) for k in fields["ops"]]

    def _on_field(self, fields: dict[str, Any], scope: Scope) -> Value:
        return self.value(fields["base"], scope)[fields["field"]]

    # ---- built-in functions

    def _on_runtime_quotient_owner(self, fields: dict[str, Any], scope: Scope) -> Value:
        return self._quotient(fields["builtin"], self.value(fields["lhs"], scope), self.value(fields["rhs"], scope))

    def _quotient(self, name: str, a: Value, b: Value) -> Value:
        operation = {"div": "quotient"}.get(name, name)
        return self.broadcast(lambda x, y: self.graph.apply(operation, x, y, type=self._integral(x, y)), a, b)

    def _on_builtin(self, fields: dict[str, Any], scope: Scope) -> Value:
        name, x = fields["builtin"], [self.value(k, scope) for k in fields["ops"]]
        if name in ("no_event", "smooth"):
            return x[-1]
        if name == "homotopy":
            return x[0]
        if name in ("mod", "rem", "div"):
            return self._quotient(name, *x)
        if name in ARRAY_BUILTINS:
            return ARRAY_BUILTINS[name](self, x)
        g = self.graph
        if name in ("min", "max") and len(x) == 2:
            return self.broadcast(lambda a, b: g.apply(name, a, b, type=self._integral(a, b)), *x)
        if name in ("min", "max", "sum", "product"):
            return self._wrapped(self._reduced(name, [int(e) for e in x[0].reshape(-1)]))
        if name in ("floor", "ceil", "integer"):
            operation = "ceil" if name == "ceil" else "floor"
            type = INTEGER if name == "integer" else REAL
            return self.broadcast(lambda a: a if g.types[a] == INTEGER else g.apply(operation, a, type=type), x[0])
        if name in OPERATIONS and len(x) <= 2:
            return self.broadcast(lambda *a: g.apply(name, *a), *x)
        raise Refused(f"the function {name}() cannot be compiled")

    def _reduced(self, name: str, elements: list[Expression]) -> Expression:
        g = self.graph
        if name in ("min", "max"):
            result = elements[0]
            for x in elements[1:]:
                result = g.apply(name, result, x, type=self._integral(result, x))
            return result
        result = g.const(0 if name == "sum" else 1)
        for x in elements:
            result = g.apply("add" if name == "sum" else "mul", result, x)
        return result

    def fill(self, shape: Sequence[Value], value: Value) -> Value:
        """An array of one value."""
        sizes = tuple(self._literal(n.item(), "the size of an array") for n in shape)
        return np.broadcast_to(value, sizes).copy()

    def constant(self, number: float) -> Value:
        """A literal as a value."""
        return self._wrapped(self.graph.const(number))

    def _on_string_conversion(self, fields: dict[str, Any], scope: Scope) -> Value:
        raise Refused("String() of a value can only be compiled in the message of an assert or terminate")

    # ---- user functions

    def _on_function_value(self, fields: dict[str, Any], scope: Scope) -> Value:
        return scope.definitions[fields["definition_ordinal"]]

    def _on_call(self, fields: dict[str, Any], scope: Scope) -> Value:
        # The outputs of one call share the operands of the first of them.
        owner = fields if fields["ops"] else self.dae.nodes[fields["owner"]][1]
        key = ("call", fields["function"], tuple(owner["ops"]), scope.key)
        if key not in self._memo:
            self._memo[key] = self._call(fields["function"], [self.value(k, scope) for k in owner["ops"]])
        return self._memo[key][fields["output"]]

    def _call(self, number: int, arguments: Sequence[Value]) -> list[Value]:
        function = self.dae.storage["functions"][number]
        if function["external"]:
            name = function["external"].get("name") or function["external"].get("symbol") or function["name"]
            if name not in EXTERNALS:
                raise Refused(f"the external function {name}() cannot be compiled")
            return [self._wrapped(self.graph.external(name, *(a.item() for a in arguments)))]
        if self._depth > _DEEPEST_CALL:
            raise Refused(f"the function {function['name']}() calls itself without an end that is known here")
        self._depth += 1
        found = _FunctionBody(self, arguments).run(function)
        self._depth -= 1
        return found


class _FunctionBody:
    """Executes a function symbolically: each assignment defines the next ordinal."""

    def __init__(self, scalariser: Scalariser, arguments: Sequence[Value]) -> None:
        self._scalariser = scalariser
        self._scope = Scope(arguments)
        self._current: dict[int, Value] = {}
        self._ordinal = 0

    def run(self, function: dict[str, Any]) -> list[Value]:
        self._statements(function["statements"])
        return [self._current[k] for k in range(len(function["outputs"]))]

    def _put(self, target: int, value: Value) -> None:
        self._scope.definitions[self._ordinal] = value
        self._ordinal += 1
        self._current[target] = value

    def _statements(self, statements: Sequence[dict[str, Any]]) -> None:
        for statement in statements:
            kind, fields = variant(statement)
            if kind == "assignment":
                self._put(fields["target"], self._scalariser.value(fields["rhs"], self._scope))
            elif kind == "assignment_group":
                group = fields["assignments"]
                values = [(a["target"], self._scalariser.value(a["rhs"], self._scope)) for a in group]
                for target, value in values:
                    self._put(target, value)
            elif kind == "for":
                self._loop(fields)
            else:
                raise Refused(f"a statement of kind {kind!r} in a function cannot be compiled")

    def _loop(self, fields: dict[str, Any]) -> None:
        """A loop takes ordinals once: for what goes in, its body, and what comes out."""
        ranges, first = self._scalariser.dae.domain(fields["domain"]), self._ordinal
        if not all(len(r) for r in ranges):
            raise Refused("a loop in a function that never runs cannot be compiled")
        for numbers in itertools.product(*ranges):
            self._ordinal = first
            self._scope.binders.update({(fields["domain"], k): n for k, n in enumerate(numbers)})
            for target in fields["targets"]:
                self._put(target, self._current.get(target))
            self._scope.renew()
            self._statements(fields["statements"])
        for target in fields["targets"]:
            self._put(target, self._current.get(target))
        self._scope.renew()


class _Dynamic:
    """A subscript that is only known at run time."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression


def _stacked(values: Sequence[Value]) -> Value:
    found = np.empty((len(values), *values[0].shape), object)
    for k, value in enumerate(values):
        found[k] = value if value.shape else value.item()
    return found
