"""The discrete part: when-clauses, discrete equations, clocks, reinitialization, assertions.

Each discrete variable becomes one explicit equation `v = expression(now, pre(v))`; a when-clause that
does not fire leaves `pre(v)`. A when-clause fires on the rising edge of its trigger: the trigger's
level now, and not its level at the end of the last event iteration ("held").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosim.modelica.dae import Dae, Variable, variant
from cosim.modelica.expression import BOOLEAN, Expression, Refused
from cosim.modelica.scalarise import Scalariser, Value


@dataclass(frozen=True, slots=True)
class Reinitialization:
    """A state's new value when something fires."""

    slot: int
    fires: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Assertion:
    """What must not fire: an assert's violated condition, or a terminate.

    Attributes:
        fires: when.
        message: the author's text, with expressions whose values belong into it.
        kind: error, warning, terminate.
        is_event: it may only fire at events; else it is looked at after every step.
    """

    fires: Expression
    message: tuple[str | Expression, ...]
    kind: str
    is_event: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """Something discrete whose change is an event.

    Attributes:
        value: a Boolean, or a whole number.
        crossing: passes zero where the value changes.
        text: in the source.
    """

    value: Expression
    crossing: Expression
    text: str


@dataclass(frozen=True, slots=True)
class Clock:
    """A periodic tick: phase + n·period, each a ratio of integers [s]."""

    period: tuple[int, int]
    phase: tuple[int, int]


@dataclass(slots=True)
class Discrete:
    """Everything that happens at events.

    Attributes:
        equations: slot → its value at an event.
        clocked: slots that change at clock ticks only.
        triggers: levels whose rising edges fire, in the order of their memory.
        reinitializations: of states.
        assertions: in the order of the source.
        clocks: periodic ticks.
        instants: times of time events [s]; they change at events only.
        relations: conditions whose change is an event, each with its zero-crossing function and source text.
    """

    equations: dict[int, Expression] = field(default_factory=dict)
    clocked: set[int] = field(default_factory=set)
    triggers: list[Expression] = field(default_factory=list)
    reinitializations: list[Reinitialization] = field(default_factory=list)
    assertions: list[Assertion] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    instants: list[Expression] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)


def read_discrete(dae: Dae, scalariser: Scalariser) -> Discrete:
    """Read the discrete tables.

    Raises:
        Refused: something that has no explicit form here.
    """
    return _Reader(dae, scalariser).read()


class _Reader:
    def __init__(self, dae: Dae, scalariser: Scalariser) -> None:
        self.dae, self.s, self.g = dae, scalariser, scalariser.graph
        self.found = Discrete()
        self._triggers: dict[int, int] = {}
        self._values: dict[int, Value] = {}
        self._unclocked: set[int] = set()
        self._discrete = {v.index: v for v in dae.variables if v.is_discrete}

    def read(self) -> Discrete:
        storage = self.dae.storage
        self._read_clocks()
        done = self._read_transactions()
        for owner in storage["discrete_value_owners"]:
            with self.dae.at(owner):
                self._read_owner(owner, done)
        for equation in storage["discrete_real_equations"]:
            with self.dae.at(equation):
                self._read_real(equation, done)
        for index, value in self._values.items():
            for slot, expression in zip(self._discrete[index].slots, value.reshape(-1), strict=True):
                self.found.equations[slot] = int(expression)
        self._read_actions()
        self._read_relations()
        return self.found

    # ---- conditions

    def _level(self, number: int) -> Expression:
        """Whether a condition holds now."""
        kind, value = variant(self.dae.storage["conditions"][number]["node"])
        if kind == "always":
            return self.g.const(1, BOOLEAN)
        if kind == "initial":
            return self.g.leaf("initial", type=BOOLEAN)
        if kind == "relation":
            return self.s.scalar(self.dae.storage["relations"][value]["relation"]["expression"])
        if kind == "discrete":
            return self.s.scalar(value)
        if kind == "clock":
            return self.g.leaf("tick", value, type=BOOLEAN)
        if kind == "not":
            return self.g.apply("not", self._level(value), type=BOOLEAN)
        if kind in ("and", "or"):
            return self.g.apply(kind, self._level(value["lhs"]), self._level(value["rhs"]), type=BOOLEAN)
        if kind == "any_rise":
            return self.g.apply("or", self._rise(value["lhs"]), self._rise(value["rhs"]), type=BOOLEAN)
        raise Refused(f"a condition of kind {kind!r} cannot be compiled")

    def _rise(self, number: int) -> Expression:
        """Whether a condition becomes true at this event."""
        kind, _ = variant(self.dae.storage["conditions"][number]["node"])
        if kind in ("always", "initial", "clock", "any_rise"):
            return self._level(number)
        if number not in self._triggers:
            self._triggers[number] = len(self.found.triggers)
            self.found.triggers.append(self._level(number))
        before = self.g.leaf("held", self._triggers[number], type=BOOLEAN)
        return self.g.apply("and", self._level(number), self.g.apply("not", before, type=BOOLEAN), type=BOOLEAN)

    def _fires(self, activation: Any) -> Expression | None:
        """When an equation is active; None for always."""
        if activation == "always":
            return None
        when = activation["when"]
        fires = self._rise(when["trigger"])
        if when["guard"] != when["trigger"]:
            fires = self.g.apply("and", fires, self._level(when["guard"]), type=BOOLEAN)
        return fires

    def _is_clocked(self, fires: Expression) -> bool:
        entry = self.g.entries[fires]
        return bool(entry[0] == "tick" or (entry[0] == "and" and any(self._is_clocked(k) for k in entry[1:])))

    def _note_clock(self, slots: Iterable[int], fires: Expression | None) -> None:
        """Slots are clocked while every equation that may change them is."""
        for slot in slots:
            if fires is not None and self._is_clocked(fires) and slot not in self._unclocked:
                self.found.clocked.add(slot)
            else:
                self._unclocked.add(slot)
                self.found.clocked.discard(slot)

    # ---- equations

    def _assigned(self, variable: Variable, value: Value, activation: Any, otherwise: Value | None) -> Value:
        before = self.s.variable(variable, "pre") if otherwise is None else otherwise
        fires = self._fires(activation)
        self._note_clock(variable.slots, fires)
        spread = np.broadcast_to(value, before.shape)
        found = np.empty(before.size, object)
        for k, (new, old) in enumerate(zip(spread.reshape(-1), before.reshape(-1), strict=True)):
            found[k] = new if fires is None else self.g.apply("select", fires, new, old, type=self.g.types[old])
        return found.reshape(before.shape)

    def _read_transactions(self) -> set[int]:
        """Algorithm when-clauses: sequential, and already in single-assignment form."""
        done: set[int] = set()
        for transaction in self.dae.storage["model_event_transactions"]:
            values: dict[int, Value] = {}
            for step in transaction["steps"]:
                activation = {"when": {"trigger": step["trigger"], "guard": step["guard"]}}
                for definition in step["definitions"]:
                    where = self.dae.place(definition)
                    index = definition["target"]["variable"]
                    with self.dae.at(where):
                        new = self.s.value(definition["value"])
                    values[index] = self._assigned(self._discrete[index], new, activation, values.get(index))
            self._values.update(values)
            done |= values.keys()
        return done

    def _read_owner(self, owner: Mapping[str, Any], done: set[int]) -> None:
        for position, index in enumerate(owner["targets"]):
            if index in done:
                continue
            value: Value | None = None
            # Branches are in the order of priority: the first is applied last.
            for branch in reversed(owner["branches"]):
                new = self.s.value(branch["values"][position]["value"])
                value = self._assigned(self._discrete[index], new, branch["activation"], value)
            self._values[index] = value

    def _read_real(self, equation: Mapping[str, Any], done: set[int]) -> None:
        fires = self._fires(equation["activation"])
        for residual in self.s.flat(equation["residual"]):
            slot, value = self._explicit(residual)
            variable = next(v for v in self._discrete.values() if slot in v.slots)
            if variable.index in done:
                continue
            if variable.index not in self._values:
                self._values[variable.index] = self.s.variable(variable, "pre").copy()
            elements = self._values[variable.index].reshape(-1)
            k = slot - variable.slot
            old = elements[k]
            elements[k] = value if fires is None else self.g.apply("select", fires, value, old, type=self.g.types[old])
            self._note_clock([slot], fires)

    def _explicit(self, residual: Expression) -> tuple[int, Expression]:
        """The residual `v − e` or `e − v` as v and e."""
        slots = {slot for v in self._discrete.values() for slot in v.slots}
        entry = self.g.entries[residual]
        candidates = (
            [(entry[1], entry[2]), (entry[2], entry[1])] if entry[0] == "sub" else [(residual, self.g.const(0))]
        )
        for side, other in candidates:
            leaf = self.g.entries[side]
            if leaf[0] == "var" and leaf[1] in slots and leaf[1] not in self.g.slots(other):
                return leaf[1], other
            if leaf[0] == "neg" and self.g.entries[leaf[1]][0] == "var" and self.g.entries[leaf[1]][1] in slots:
                return self.g.entries[leaf[1]][1], self.g.apply("neg", other)
        raise Refused("a discrete equation that is not solved for its variable cannot be compiled")

    # ---- actions, relations, clocks

    def _read_actions(self) -> None:
        for action in self.dae.storage["event_actions"]:
            with self.dae.at(action):
                self._read_action(action)

    def _read_action(self, action: Mapping[str, Any]) -> None:
        kind, value = variant(action["kind"])
        if kind == "reinitialize":
            state = self.dae.by_index[value["state"]]
            fires = self._fires({"when": action})
            new = np.broadcast_to(self.s.value(value["value"]), state.shape).reshape(-1)
            assert fires is not None
            for slot, expression in zip(state.slots, new, strict=True):
                self.found.reinitializations.append(Reinitialization(slot, fires, int(expression)))
        elif kind in ("assert", "warning", "terminate"):
            self._read_assertion(action, kind, value)
        else:
            raise Refused(f"{kind} in a when-clause cannot be compiled")

    def _read_assertion(self, action: Mapping[str, Any], kind: str, value: Mapping[str, Any]) -> None:
        """An assert must hold at all times; one in a when-clause is looked at when that fires."""
        is_event = variant(self.dae.storage["conditions"][action["trigger"]]["node"])[0] != "always"
        fires = self._fires({"when": action}) if is_event else self._level(action["guard"])
        assert fires is not None
        if "condition" in value:
            broken = self.g.apply("not", self.s.scalar(value["condition"]), type=BOOLEAN)
            fires = self.g.apply("and", fires, broken, type=BOOLEAN)
        kind = "error" if kind == "assert" else kind
        self.found.assertions.append(Assertion(fires, tuple(self._message(value["message"])), kind, is_event))

    def _message(self, node: int) -> Iterator[str | Expression]:
        """The parts of a text that is joined at run time."""
        kind, fields = self.dae.nodes[node]
        if kind == "literal" and "string" in fields:
            yield str(fields["string"])
        elif kind == "binary" and fields["operator"] == "add":
            yield from self._message(fields["lhs"])
            yield from self._message(fields["rhs"])
        else:
            yield self.s.scalar(fields["value"] if kind == "string_conversion" else node)

    def _read_relations(self) -> None:
        for root in self.dae.storage["roots"]:
            if "quotient_owner" in root:
                self._read_quotient(root["quotient_owner"]["owner"])
                continue
            number = root["root"].get("relation")
            if number is None:
                raise Refused(f"an event of kind {sorted(root['root'])} cannot be compiled")
            relation = self.dae.storage["relations"][number]["relation"]
            expression = self.s.scalar(relation["expression"])
            entry = self.g.entries[expression]
            if entry[0] in ("lt", "le", "gt", "ge"):
                crossing = self.g.apply("sub", entry[1], entry[2])
                value = self._whole(entry[1]) if self.g.is_const(entry[2]) else None
                self.found.relations.append(
                    Relation(expression if value is None else value, crossing, self.dae.text(relation))
                )

    def _whole(self, x: Expression) -> Expression | None:
        """The front end makes sin(π·z) ≥ 0 of floor(z) and its kin; ⌊z⌋ also shows two changes within a step."""
        entry = self.g.entries[x]
        if entry[0] != "sin":
            return None
        product = self.g.entries[entry[1]]
        if product[0] == "mul" and self.g.is_const(product[1]) and self.g.value(product[1]) == math.pi:
            return self.g.apply("floor", product[2])
        return None

    def _read_quotient(self, number: int) -> None:
        """mod, rem and div jump where the quotient a/b passes a whole number; sin(π·a/b) is zero there."""
        owners = [f for k, f in self.dae.nodes if k == "runtime_quotient_owner" and "model" in f.get("kind", {})]
        fields = owners[number]
        whole = "floor" if fields["builtin"] == "mod" else "trunc"
        for a, b in zip(self.s.flat(fields["lhs"]), self.s.flat(fields["rhs"]), strict=True):
            ratio = self.g.apply("div", a, b)
            crossing = self.g.apply("sin", self.g.apply("mul", self.g.const(math.pi), ratio))
            self.found.relations.append(Relation(self.g.apply(whole, ratio), crossing, f"{fields['builtin']}()"))

    def _read_clocks(self) -> None:
        for clock in self.dae.storage["clocks"]:
            kind, value = variant(clock["kind"])
            if kind != "periodic":
                raise Refused(f"a clock of kind {kind!r} cannot be compiled")
            lattice = value["lattice"]
            period, phase = lattice["period"], lattice["phase"]
            self.found.clocks.append(Clock((period["num"], period["den"]), (phase["num"], phase["den"])))
        for event in self.dae.storage["time_events"]:
            if "instant" in event:
                instant = self.g.const(event["instant"]["num"] / event["instant"]["den"])
            elif "deadline" in event:
                instant = self.s.scalar(event["deadline"])
            else:
                raise Refused(f"a time event of kind {sorted(event)} cannot be compiled")
            self.found.instants.append(instant)
