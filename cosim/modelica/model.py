"""The compiled model: everything that the generated C computes, as ordered assignments."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.modelica.dae import Dae, Variable, variant
from cosim.modelica.discrete import Discrete, Relation, read_discrete
from cosim.modelica.expression import Expression, Graph, Refused
from cosim.modelica.scalarise import Scalariser, Scope
from cosim.modelica.sort import Assignment, Block, Equation, Matching, Solution, order_together, sort

_NUMERIC = ("min", "max", "nominal")


@dataclass(slots=True)
class CompiledModel:
    """What a model computes.

    Attributes:
        dae: the flat model.
        graph: all expressions.
        discrete: what happens at events.
        states: slots of continuous states, in order.
        derivatives: slots of their derivatives.
        starts: slot → start value [SI].
        calculated: assignments of parameters that follow from others.
        start_equations: assignments of start values that follow from parameters.
        initial: the initialization problem, in order.
        from_start: states that keep their start value.
        continuous: everything that is algebraic, in order.
        rates: the part of `continuous` that derivatives and moving relations need.
        event: continuous and discrete equations together, in order.
        tangent: changes of all algebraic values for changes of inputs and states, in order; None where some
            operation has no derivative. Slots mean changes here, and seeds the changes of what is given.
        texts: literals, by their number.
        moving: relations that can change between events.
        limits: variable index → (min, max, nominal).
        baked: parameters whose value the front end built into clocks.
    """

    dae: Dae
    graph: Graph
    discrete: Discrete
    states: list[int] = field(default_factory=list)
    derivatives: list[int] = field(default_factory=list)
    starts: dict[int, float] = field(default_factory=dict)
    calculated: list[Assignment] = field(default_factory=list)
    start_equations: list[Assignment] = field(default_factory=list)
    initial: list[Solution] = field(default_factory=list)
    from_start: set[int] = field(default_factory=set)
    continuous: list[Solution] = field(default_factory=list)
    rates: list[Solution] = field(default_factory=list)
    event: list[Solution] = field(default_factory=list)
    moving: list[Relation] = field(default_factory=list)
    tangent: list[Solution] | None = None
    texts: list[str] = field(default_factory=list)
    limits: dict[int, tuple[float | None, float | None, float | None]] = field(default_factory=dict)
    baked: set[int] = field(default_factory=set)

    @property
    def inputs(self) -> list[Variable]:
        """In order."""
        return [v for v in self.dae.variables if v.role == "input"]

    @property
    def outputs(self) -> list[Variable]:
        """In order."""
        return [v for v in self.dae.variables if v.attributes.get("causality") == "output"]

    def feedthrough(self, slot: int) -> set[int]:
        """Slots of inputs and states that a slot depends on at the same instant.

        Through algebraic variables and discrete ones; what changes at clock ticks only passes nothing on.
        """
        owner = {s: item for item in self.event for s in item.slots}
        leaves = {s for v in self.inputs for s in v.slots} | set(self.states)
        seen, queue, found = {slot}, [slot], set()
        while queue:
            at = queue.pop()
            if at in leaves:
                found.add(at)
                continue
            if at in self.discrete.clocked or at not in owner:
                continue
            for expression in owner[at].expressions:
                for other in self.graph.slots(expression) - seen:
                    seen.add(other)
                    queue.append(other)
        return found


def compile_model(dae: Dae) -> CompiledModel:
    """Run the passes.

    Raises:
        Refused: a construct that is not supported.
    """
    return _Compiler(dae).compile()


class _Compiler:
    def __init__(self, dae: Dae) -> None:
        self.dae, self.graph = dae, Graph()
        self.s = Scalariser(dae, self.graph)

    def compile(self) -> CompiledModel:
        dae, g = self.dae, self.graph
        residuals = self._residuals("continuous_equation_operations")
        discrete = read_discrete(dae, self.s)
        model = CompiledModel(dae, g, discrete)
        for state in (v for v in dae.variables if v.role == "state"):
            model.states += state.slots
            model.derivatives += dae.derivatives[state.index].slots
        self._parameters(model)
        self._starts(model)
        unknowns = [*self._slots("algebraic", "output"), *model.derivatives]
        model.continuous = sort(g, residuals, unknowns, self._name)
        assignments = [Assignment(slot, e) for slot, e in sorted(discrete.equations.items())]
        model.event = order_together(g, [*model.continuous, *assignments], self._name)
        model.tangent = _tangent(model)
        model.texts = self.s.texts
        self._initial(model, residuals, unknowns)
        self._moving(model)
        self._baked(model)
        return model

    def _slots(self, *roles: str) -> list[int]:
        return [slot for v in self.dae.variables if v.role in roles for slot in v.slots]

    def _name(self, slot: int) -> str:
        """Of the variable in a slot."""
        variables = (*self.dae.variables, *self.dae.derivatives.values())
        return next(v.name for v in variables if slot in v.slots)

    # ---- equations

    def _residuals(self, table: str) -> list[Equation]:
        found: list[Equation] = []
        for operation in self.dae.storage[table]:
            kind, fields = variant(operation)
            with self.dae.at(fields):
                if kind == "residual":
                    new = self.s.flat(fields["residual"])
                elif kind == "structured":
                    new = self._structured(fields)
                else:
                    raise Refused(f"an equation of kind {kind!r} cannot be compiled")
            where = self.dae.place(fields)
            found += [Equation(x, where) for x in new]
        return found

    def _structured(self, fields: dict[str, object]) -> list[Expression]:
        bodies: Sequence[int] = fields["bodies"]  # type: ignore[assignment]
        if fields["scalar_view"] == "RowMajorProjection":
            return [x for body in bodies for x in self.s.flat(body)]
        number = int(fields["domain"])  # type: ignore[call-overload]
        found = []
        for numbers in itertools.product(*self.dae.domain(number)):
            scope = Scope((), {(number, k): n for k, n in enumerate(numbers)})
            found += [x for body in bodies for x in self.s.flat(body, scope)]
        return found

    # ---- values before the run

    def _parameters(self, model: CompiledModel) -> None:
        """Numbers of all parameters; those that follow from others are also computed anew at run time."""
        waiting: list[tuple[Variable, list[Expression]]] = []
        for variable in (v for v in self.dae.variables if v.is_parameter):
            node = variable.attributes.get("binding")
            node = variable.attributes.get("start") if node is None else node
            if node is None:
                expressions = [self.graph.const(0)] * variable.size
            else:
                value = np.broadcast_to(self._at(variable, node), variable.shape)
                expressions = [int(x) for x in value.reshape(-1)]
            waiting.append((variable, expressions))
        while waiting:
            later = []
            for variable, expressions in waiting:
                try:
                    numbers = [self.graph.evaluate(x, model.starts) for x in expressions]
                except KeyError:
                    later.append((variable, expressions))
                    continue
                except (ValueError, ZeroDivisionError, OverflowError) as error:
                    raise Refused(f"{variable.name} has no value: {error}", variable.where) from None
                model.starts.update(zip(variable.slots, numbers, strict=True))
                if any(self.graph.slots(x) for x in expressions):
                    model.calculated += [Assignment(s, x) for s, x in zip(variable.slots, expressions, strict=True)]
            if len(later) == len(waiting):
                names = ", ".join(v.name for v, _ in later[:4])
                raise Refused(f"the parameters {names} depend on each other or on variables", later[0][0].where)
            waiting = later

    def _at(self, variable: Variable, node: int) -> np.ndarray:
        with self.dae.at(variable.where):
            return np.asarray(self.s.value(node))

    def _starts(self, model: CompiledModel) -> None:
        for variable in self.dae.variables:
            limits = tuple(self._number(variable, name, model) for name in _NUMERIC)
            model.limits[variable.index] = (limits[0], limits[1], limits[2])
            if variable.is_parameter:
                continue
            node = variable.attributes.get("start")
            # A default on an input is its start value; the front end gives a start of 0 beside it.
            if variable.role == "input" and variable.attributes.get("binding") is not None:
                node = variable.attributes["binding"]
            model.starts.update(dict.fromkeys(variable.slots, 0.0))
            if node is None:
                continue
            values = np.broadcast_to(self._at(variable, node), variable.shape).reshape(-1)
            for slot, x in zip(variable.slots, values, strict=True):
                try:
                    model.starts[slot] = self.graph.evaluate(int(x), model.starts)
                except (KeyError, ValueError, ZeroDivisionError, OverflowError):
                    raise Refused(f"the start value of {variable.name} is no number", variable.where) from None
                if self.graph.slots(int(x)) and variable.role != "input":
                    model.start_equations.append(Assignment(slot, int(x)))
        for item in self.dae.storage.get("initial_discrete_values", []):
            variable = self.dae.by_index[item["target"]]
            values = np.broadcast_to(self.s.value(item["value"]), variable.shape).reshape(-1)
            for slot, x in zip(variable.slots, values, strict=True):
                model.start_equations.append(Assignment(slot, int(x)))

    def _number(self, variable: Variable, name: str, model: CompiledModel) -> float | None:
        node = variable.attributes.get(name)
        if node is None:
            return None
        try:
            values = {self.graph.evaluate(x, model.starts) for x in self.s.flat(node)}
        except (KeyError, Refused, ValueError, ZeroDivisionError, OverflowError):
            return None
        return min(values) if name != "max" else max(values)

    # ---- initialization

    def _initial(self, model: CompiledModel, residuals: Sequence[Equation], unknowns: Sequence[int]) -> None:
        """Continuous and initial equations together; states that these leave open keep their start value."""
        own = self._residuals("initialization_equation_operations")
        fixed = [s for v in self.dae.variables if v.role == "state" and self._is_fixed(v) for s in v.slots]
        states = set(model.states)
        wanted = states | set(unknowns)
        equations = [*residuals, *(e for e in own if self.graph.slots(e.residual) & wanted)]
        # The residual `x − x₀` of a kept state: its own start is a slot of the generated code.
        matching = Matching(self.graph, equations, wanted - set(fixed))
        for equation in range(len(equations)):
            if not matching.match(equation):
                raise Refused(
                    "there are more initial equations than states that they could determine",
                    equations[equation].where,
                    "remove it, or fixed = true from a state",
                )
        kept = set(fixed)
        for slot in model.states:
            if len(matching.equation_of) + len(kept) == len(wanted):
                break
            if slot not in kept and self._can_keep(matching, slot):
                kept.add(slot)
        model.from_start = kept
        model.initial = sort(self.graph, equations, wanted - kept, self._name)

    def _can_keep(self, matching: Matching, slot: int) -> bool:
        """Whether a state can keep its start value: nothing determines it, or what does can determine another."""
        equation = matching.equation_of.get(slot)
        if equation is None:
            return True
        del matching.equation_of[slot]
        # The state is no unknown any more.
        for incident in matching.incident:
            if slot in incident:
                incident.remove(slot)
        explicit = matching.explicit[equation]
        if explicit is not None and explicit[0] == slot:
            matching.explicit[equation] = None
        if matching.match(equation):
            return True
        matching.equation_of[slot] = equation
        for k, incident in enumerate(matching.incident):
            if slot in self.graph.slots(matching.equations[k].residual):
                incident.append(slot)
                incident.sort()
        matching.explicit[equation] = explicit
        matching.unknown_of[equation] = slot
        return False

    def _is_fixed(self, variable: Variable) -> bool:
        fixed = variable.attributes.get("fixed")
        return bool(fixed) and all(fixed if isinstance(fixed, list) else [fixed])

    # ---- what moves between events

    def _moving(self, model: CompiledModel) -> None:
        g = model.graph
        moving: set[int] = set(model.states)

        def moves(expressions: Iterable[Expression]) -> bool:
            for x in g.walk(*expressions):
                entry = g.entries[x]
                if entry[0] == "time" or (entry[0] == "var" and entry[1] in moving):
                    return True
            return False

        for item in model.continuous:
            if moves(item.expressions):
                moving.update(item.slots)
        model.moving = [
            r for r in model.discrete.relations if moves((r.value, r.crossing)) and not self._is_timed(model, r, moves)
        ]
        needed = set(model.derivatives)
        for relation in model.moving:
            needed |= g.slots(relation.value)
        for item in reversed(model.continuous):
            if needed & set(item.slots):
                model.rates.insert(0, item)
                for x in item.expressions:
                    needed |= g.slots(x)

    def _is_timed(self, model: CompiledModel, relation: Relation, moves: Callable[[Iterable[int]], bool]) -> bool:
        """Whether it compares time with a fixed value that is among the time events anyway."""
        entry = self.graph.entries[relation.value]
        if entry[0] not in ("lt", "le", "gt", "ge"):
            return False
        for one, other in ((entry[1], entry[2]), (entry[2], entry[1])):
            if self.graph.entries[one][0] == "time" and not moves((other,)):
                instants = model.discrete.instants
                numbers = {self.graph.value(i) for i in instants if self.graph.is_const(i)}
                if other in instants or (self.graph.is_const(other) and self.graph.value(other) in numbers):
                    return True
        return False

    def _baked(self, model: CompiledModel) -> None:
        """The front end builds sample periods into clocks: changing such a parameter would do nothing."""
        names = {v.name: v for v in self.dae.variables if v.is_parameter}
        for clock in self.dae.storage["clocks"]:
            for word in re.findall(r"[A-Za-z_][\w.]*", self.dae.text(clock)):
                if word in names:
                    model.baked.add(names[word].index)


def _tangent(model: CompiledModel) -> list[Solution] | None:
    """Forward differentiation of the sorted equations, one after another (linear in their size)."""
    g = model.graph
    given = {s for v in model.inputs if v.scalar == "real" for s in v.slots} | set(model.states)
    changes = {slot: g.leaf("seed", slot) for slot in given}
    memo: dict[int, int] = {}
    found: list[Solution] = []
    try:
        for item in model.continuous:
            if isinstance(item, Assignment):
                found.append(Assignment(item.slot, g.tangent(item.expression, changes, memo)))
            else:
                # J·Δu = −∂r/∂(given)·Δ: the unknowns' own changes are not among `changes` yet.
                right = tuple(g.apply("neg", g.tangent(r, changes, memo)) for r in item.residuals)
                found.append(Block(item.slots, right, item.jacobian, True))
                memo = {}
            changes.update({slot: g.leaf("seed", slot) for slot in item.slots})
    except Refused:
        return None
    return found


__all__ = ["Assignment", "Block", "CompiledModel", "compile_model"]
