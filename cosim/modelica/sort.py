"""Equations into an order of assignments: matching, strong components, symbolic solution.

Matching gives each unknown its equation; Tarjan's algorithm orders the equations so that each comes
after what it needs (block lower triangular form). A block of one equation that is linear in its
unknown is solved symbolically; every other block by Newton's method with a symbolic Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.diagnostic import SourceLocation
from cosim.modelica.expression import Expression, Graph, Refused


@dataclass(frozen=True, slots=True)
class Assignment:
    """`slot = expression`."""

    slot: int
    expression: Expression

    @property
    def slots(self) -> tuple[int, ...]:
        """What it computes."""
        return (self.slot,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it needs."""
        return (self.expression,)


@dataclass(frozen=True, slots=True)
class Block:
    """Residuals that are zero at the solution, with their Jacobian row by row."""

    slots: tuple[int, ...]
    residuals: tuple[Expression, ...]
    jacobian: tuple[Expression, ...]
    is_linear: bool

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it needs; its own unknowns among it."""
        return (*self.residuals, *self.jacobian)


Solution = Assignment | Block


@dataclass(frozen=True, slots=True)
class Equation:
    """`residual = 0`, and where it stands."""

    residual: Expression
    where: SourceLocation | None = None


def sort(
    graph: Graph, equations: Sequence[Equation], unknowns: Iterable[int], name: Callable[[int], str]
) -> list[Solution]:
    """Order and solve a square system.

    Args:
        graph: the expressions.
        equations: of the system.
        unknowns: slots to solve for.
        name: of the variable in a slot, for messages.

    Raises:
        Refused: the system is not square or structurally singular (a higher index).
    """
    wanted = set(unknowns)
    matching = Matching(graph, equations, wanted)
    for number, equation in enumerate(equations):
        if not matching.match(number):
            raise _unmatched(graph, equation, matching, wanted, name)
    if missing := wanted - matching.equation_of.keys():
        names = ", ".join(sorted({name(slot) for slot in missing})[:6])
        raise Refused(f"there are {len(equations)} equations for {len(wanted)} unknowns: none determines {names}")
    return [_solved(graph, equations, matching, component) for component in _components(matching)]


def _unmatched(
    graph: Graph, equation: Equation, matching: Matching, wanted: set[int], name: Callable[[int], str]
) -> Refused:
    """Why an equation has no variable left to determine."""
    slots = graph.slots(equation.residual)
    left = ", ".join(sorted({name(slot) for slot in wanted - matching.equation_of.keys()})[:6])
    names = ", ".join(sorted({name(slot) for slot in slots})[:6])
    if slots and not slots & wanted:
        return Refused(
            f"this equation is a constraint between {names}, which are states or given (a higher index)"
            + (f"; nothing determines {left}" if left else ""),
            equation.where,
            "choose independent states, such as an angle instead of x and y, or differentiate the constraint by hand",
        )
    return Refused(
        "the equations are structurally singular: this one determines nothing that the others leave open"
        + (f" ({left})" if left else ""),
        equation.where,
        "a variable is determined twice, or the model has a constraint between states (a higher index)",
    )


class Matching:
    """Which equation determines which unknown.

    Args:
        graph: the expressions.
        equations: of the system.
        unknowns: slots to solve for.
    """

    def __init__(self, graph: Graph, equations: Sequence[Equation], unknowns: set[int]) -> None:
        self.equations = equations
        self.incident = [sorted(graph.slots(e.residual) & unknowns) for e in equations]
        self.explicit = [_explicit(graph, e.residual, unknowns) for e in equations]
        self.equation_of: dict[int, int] = {}
        self.unknown_of: dict[int, int] = {}

    def match(self, equation: int) -> bool:
        """Find an unknown for an equation, moving others if needed."""
        explicit = self.explicit[equation]
        if explicit is not None and explicit[0] not in self.equation_of:
            self._pair(equation, explicit[0])
            return True
        return self._augment(equation)

    def _pair(self, equation: int, unknown: int) -> None:
        self.equation_of[unknown] = equation
        self.unknown_of[equation] = unknown

    def _augment(self, start: int) -> bool:
        """An augmenting path, by iterative depth-first search."""
        seen: set[int] = set()
        path: list[tuple[int, Iterable[int]]] = [(start, iter(self._preferred(start)))]
        chosen: list[int] = []
        while path:
            for unknown in path[-1][1]:
                if unknown in seen:
                    continue
                seen.add(unknown)
                chosen.append(unknown)
                if unknown not in self.equation_of:
                    for (e, _), u in zip(path, chosen, strict=True):
                        self._pair(e, u)
                    return True
                other = self.equation_of[unknown]
                path.append((other, iter(self._preferred(other))))
                break
            else:
                path.pop()
                if chosen:
                    chosen.pop()
        return False

    def _preferred(self, equation: int) -> list[int]:
        explicit = self.explicit[equation]
        first = explicit[0] if explicit else None
        return sorted(self.incident[equation], key=lambda u: (u != first, u))


def _explicit(graph: Graph, residual: Expression, unknowns: set[int]) -> tuple[int, Expression] | None:
    """The residual `u − e` or `e − u` as u and e."""
    entry = graph.entries[residual]
    if entry[0] == "sub":
        for side, other in ((entry[1], entry[2]), (entry[2], entry[1])):
            leaf = graph.entries[side]
            if leaf[0] == "var" and leaf[1] in unknowns and leaf[1] not in graph.slots(other):
                return leaf[1], other
    return None


def _components(matching: Matching) -> list[list[int]]:
    """Strong components of equations, each after those that it reads (Tarjan 1972, iterative)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []

    def neighbours(equation: int) -> list[int]:
        others = (matching.equation_of[u] for u in matching.incident[equation])
        return [e for e in others if e != equation]

    for root in range(len(matching.incident)):
        if root in index:
            continue
        work: list[tuple[int, list[int]]] = [(root, neighbours(root))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            at, rest = work[-1]
            if rest:
                following = rest.pop(0)
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    on_stack.add(following)
                    work.append((following, neighbours(following)))
                elif following in on_stack:
                    low[at] = min(low[at], index[following])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[at])
            if low[at] == index[at]:
                component = []
                while True:
                    equation = stack.pop()
                    on_stack.discard(equation)
                    component.append(equation)
                    if equation == at:
                        break
                found.append(sorted(component))
    return found


def _solved(graph: Graph, equations: Sequence[Equation], matching: Matching, component: list[int]) -> Solution:
    if len(component) == 1:
        number = component[0]
        slot, explicit = matching.unknown_of[number], matching.explicit[number]
        if explicit is not None and explicit[0] == slot:
            return Assignment(slot, explicit[1])
        linear = _linear_solution(graph, equations[number].residual, slot)
        if linear is not None:
            return Assignment(slot, linear)
    slots = tuple(matching.unknown_of[e] for e in component)
    rows = tuple(equations[e].residual for e in component)
    entries = []
    for number in component:
        try:
            entries += [graph.derivative(equations[number].residual, slot) for slot in slots]
        except Refused as error:
            error.where = equations[number].where
            raise
    jacobian = tuple(entries)
    own = set(slots)
    is_linear = not any(graph.slots(entry) & own for entry in jacobian)
    if all(graph.is_const(entry) for entry in jacobian):
        matrix = np.array([graph.value(entry) for entry in jacobian]).reshape(len(rows), len(rows))
        if np.linalg.matrix_rank(matrix) < len(rows):
            raise Refused(
                f"these {len(rows)} linear equations contradict or repeat each other", equations[component[0]].where
            )
    return Block(slots, rows, jacobian, is_linear)


def _linear_solution(graph: Graph, residual: Expression, slot: int) -> Expression | None:
    """r(u) = r(0) + u·r' with r' independent of u: u = −r(0)/r'."""
    try:
        slope = graph.derivative(residual, slot)
    except Refused:
        return None
    if slot in graph.slots(slope):
        return None
    leaf = graph.leaf("var", slot)
    offset = graph.substitute(residual, {leaf: graph.const(0)}, {})
    if slot in graph.slots(offset):
        return None
    return graph.apply("div", graph.apply("neg", offset), slope)


def order_together(graph: Graph, items: Sequence[Solution], name: Callable[[int], str]) -> list[Solution]:
    """Assignments and blocks of several systems, each after what it reads.

    Raises:
        Refused: they read one another in a circle.
    """
    owner = {slot: k for k, item in enumerate(items) for slot in item.slots}
    done: list[int] = []
    state: dict[int, int] = {}
    for root in range(len(items)):
        work: list[tuple[int, list[int]]] = [(root, _needs(graph, items, owner, root))] if root not in state else []
        state.setdefault(root, 1)
        while work:
            at, rest = work[-1]
            if rest:
                following = rest.pop(0)
                if state.get(following) == 1:
                    circle = [k for k, _ in work[next(i for i, (k, _) in enumerate(work) if k == following) :]]
                    names = " → ".join(name(items[k].slots[0]) for k in [*circle[::-1], circle[-1]])
                    raise Refused(
                        f"discrete and continuous variables depend on each other at the same instant: {names}",
                        hint="break the circle with pre()",
                    )
                if following not in state:
                    state[following] = 1
                    work.append((following, _needs(graph, items, owner, following)))
                continue
            work.pop()
            state[at] = 2
            done.append(at)
    return [items[k] for k in done]


def _needs(graph: Graph, items: Sequence[Solution], owner: dict[int, int], k: int) -> list[int]:
    read: set[int] = set()
    for expression in items[k].expressions:
        read |= graph.slots(expression)
    return sorted({owner[slot] for slot in read if slot in owner} - {k})
