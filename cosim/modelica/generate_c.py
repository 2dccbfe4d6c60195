"""The compiled model as C: tables, and straight-line functions over one array of values."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files

from cosim.modelica.expression import BOOLEAN, INTEGER, LEAVES, OPERATIONS, TEXT, Expression, Graph
from cosim.modelica.model import CompiledModel
from cosim.modelica.sort import Block, Solution

_NEWTON_PASSES = 60
# In the order of the runtime's enumeration.
_KINDS = ("TUNABLE", "FIXED", "INPUT", "START", "COMPUTED", "BAKED")
_ASSERTIONS = ("error", "warning", "terminate")
_TEXT_SIZE = 256
_RUNTIME = ("runtime.c", "runtime_solver.c", "runtime_values.c", "runtime_fmi2.c", "runtime_fmi3.c")
_PRELUDE = """\
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""
# Functions that generated code may call, by name; a source has those that it needs.
_HELPERS = {
    "rt_sign": "static double rt_sign(double a) { return (a > 0) - (a < 0); }\n",
    "rt_mod": "static double rt_mod(double a, double b) { return a - floor(a / b) * b; }\n",
    "rt_text": """\
/* The text with a number: a literal, or one of the host's. */
static const char *rt_text(const State *s, double number) {
    int k = (int)number;
    return k < NLITERAL ? LITERAL[k] : s->text[k - NLITERAL];
}
""",
    "rt_same": """\
static double rt_same(const State *s, double a, double b) { return a == b || !strcmp(rt_text(s, a), rt_text(s, b)); }
""",
    "rt_solve": """\
/* Gaussian elimination with partial pivoting, in place; the solution replaces b. */
static int rt_solve(int n, double *A, double *b) {
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(A[i * n + k]) > fabs(A[p * n + k])) p = i;
        if (!(fabs(A[p * n + k]) > 1e-300)) return 1;
        if (p != k) {
            for (int j = 0; j < n; j++) { double t = A[k * n + j]; A[k * n + j] = A[p * n + j]; A[p * n + j] = t; }
            double t = b[k]; b[k] = b[p]; b[p] = t;
        }
        for (int i = k + 1; i < n; i++) {
            double f = A[i * n + k] / A[k * n + k];
            for (int j = k; j < n; j++) A[i * n + j] -= f * A[k * n + j];
            b[i] -= f * b[k];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) b[i] -= A[i * n + j] * b[j];
        b[i] /= A[i * n + i];
    }
    return 0;
}
""",
}


def generate(model: CompiledModel, name: str) -> tuple[str, str]:
    """The C source of a model.

    Args:
        model: compiled.
        name: of the model, for messages.

    Returns:
        The source, and its token: the same source has the same token.
    """
    functions = "\n".join(_functions(model))
    # The runtime itself needs the texts.
    helpers = [code for key, code in _HELPERS.items() if key == "rt_text" or f"{key}(" in functions]
    body = "\n".join([_PRELUDE, *_sizes(model, name), *_tables(model), *helpers, functions, ""])
    folder = files("cosim.modelica")
    source = body + "".join(folder.joinpath(part).read_text(encoding="utf-8") for part in _RUNTIME)
    token = hashlib.sha256(source.encode()).hexdigest()[:32]
    return source.replace("@TOKEN@", token), token


# ---- tables


def slot_kinds(model: CompiledModel) -> list[str]:
    """What may be done with each slot."""
    kinds = ["COMPUTED"] * model.dae.size
    calculated = {a.slot for a in model.calculated}
    for variable in model.dae.variables:
        for slot in variable.slots:
            if variable.role == "input":
                kinds[slot] = "INPUT"
            elif variable.is_parameter:
                if variable.index in model.baked:
                    kinds[slot] = "BAKED"
                elif variable.role != "constant" and slot not in calculated:
                    kinds[slot] = "TUNABLE" if is_tunable(model, variable.index) else "FIXED"
            elif variable.is_discrete or (variable.role == "state" and slot in model.from_start):
                kinds[slot] = "START"
    return kinds


def is_tunable(model: CompiledModel, index: int) -> bool:
    """Whether a parameter may change between steps."""
    variable = model.dae.by_index[index]
    return variable.scalar == "real" and bool(variable.attributes.get("is_tunable", True))


def text_slots(model: CompiledModel) -> dict[int, int]:
    """Slot → number of the text that a host may set there."""
    given = [v for v in model.dae.variables if v.scalar == "string" and v.role in ("parameter", "input")]
    return {slot: k for k, slot in enumerate(slot for v in given for slot in v.slots)}


def _discrete_slots(model: CompiledModel) -> list[int]:
    return [slot for v in model.dae.variables if v.is_discrete for slot in v.slots]


def _has_strict_time(model: CompiledModel) -> bool:
    """Whether a comparison with time becomes true only just after its instant."""
    g = model.graph
    roots = [e for item in model.event for e in item.expressions] + model.discrete.triggers
    roots += [r.fires for r in model.discrete.reinitializations]
    for x in g.walk(*roots):
        entry = g.entries[x]
        if entry[0] in ("gt", "le") and g.entries[entry[1]][0] == "time":
            return True
        if entry[0] in ("lt", "ge") and g.entries[entry[2]][0] == "time":
            return True
    return False


def _sizes(model: CompiledModel, name: str) -> list[str]:
    dae, discrete = model.dae, model.discrete
    slots = _discrete_slots(model)
    has_events = bool(slots or discrete.triggers or discrete.reinitializations)
    sizes = {
        "NV": dae.size,
        "NX": len(model.states),
        "ND": len(slots),
        "NC": len(discrete.triggers),
        "NCLK": len(discrete.clocks),
        "NTEV": len(discrete.instants),
        "NREL": len(model.moving),
        "NROOT": len(discrete.relations),
        "NASSERT": len(discrete.assertions),
        "HAS_EVENTS": int(has_events),
        "NVARS": len(dae.variables) + len(dae.derivatives),
        "NTEXT": len(text_slots(model)),
        "NLITERAL": len(model.texts),
        "STRICT_TIME": int(bool(discrete.instants) and _has_strict_time(model)),
        "HAS_TANGENT": int(model.tangent is not None),
    }
    return [
        f"#define MODEL_NAME {json.dumps(name)}",
        '#define MODEL_TOKEN "@TOKEN@"',
        *(f"#define {key} {value}" for key, value in sizes.items()),
        "typedef struct {",
        "    double time, rtol, atol, step;",
        "    int dirty, seen, mode, initial, failed, ended, reinit, is_preview;",
        "    double v[NV + 1], start[NV + 1], pre[ND + 1], last[ND + 1], level[NC + 1], held[NC + 1];",
        "    double crossed[NREL + 1], kept[NX + 1];",
        "    int tick[NCLK + 1], crowd[NREL + 1];",
        "    long long next[NCLK + 1];",
        "    unsigned char given[NV + 1], warned[NASSERT + 1], fired[NASSERT + 1];",
        f"    char text[NTEXT + 1][{_TEXT_SIZE}];",
        "} State;",
    ]


def _tables(model: CompiledModel) -> list[str]:
    dae, discrete = model.dae, model.discrete
    states = [v for v in dae.variables if v.role == "state"]
    nominals = [abs(model.limits[v.index][2] or 1.0) for v in states for _ in v.slots]
    known = {s for v in model.inputs if v.scalar == "real" for s in v.slots} | set(model.states)
    of_slot = text_slots(model)
    clocks = [f"{{{c.period[0]}.0, {c.period[1]}.0, {c.phase[0]}.0, {c.phase[1]}.0}}" for c in discrete.clocks]
    variables = [f"{{{v.slot}, {v.size}}}" for v in (*dae.variables, *dae.derivatives.values())]
    starts = [_number(model.starts.get(slot, 0.0)) for slot in range(dae.size)]
    return [
        _table("int", "STATE", model.states),
        _table("int", "RATE", model.derivatives),
        _table("double", "NOMINAL", [_number(x) for x in nominals]),
        _table("int", "DISCRETE", _discrete_slots(model)),
        _table("double", "START_VALUE", starts),
        _table("double", "CLOCK", clocks, "[4]") if clocks else "",
        _table("int", "VARIABLE", variables, "[2]"),
        _table("unsigned char", "SLOT_KIND", [_KINDS.index(kind) for kind in slot_kinds(model)]),
        _table("unsigned char", "SLOT_SEED", [int(slot in known) for slot in range(dae.size)]),
        _texts("RELATION_TEXT", [r.text for r in model.moving]),
        _table("int", "ASSERT_KIND", [_ASSERTIONS.index(a.kind) for a in discrete.assertions])
        if discrete.assertions
        else "",
        _table("int", "TEXT_OF_SLOT", [of_slot.get(slot, -1) for slot in range(dae.size)]) if of_slot else "",
        _texts("LITERAL", model.texts),
    ]


def _texts(name: str, values: Sequence[str]) -> str:
    """Texts as C strings; nothing where there are none."""
    return _table("char *const", name, [_c_text(v) for v in values]) if values else ""


def _c_text(text: str) -> str:
    """A C string literal, in ASCII: other bytes are octal escapes."""
    escaped = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode("utf-8"))
    return f'"{escaped}"'


def _table(type: str, name: str, values: Sequence[object], shape: str = "") -> str:
    empty = "{0}" if shape else "0"
    lines = [", ".join(str(v) for v in values[k : k + 12]) for k in range(0, len(values), 12)] or [empty]
    return f"static const {type} {name}[]{shape} = {{{(',' + chr(10) + '    ').join(lines)}}};"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value) if value >= 0 and not math.copysign(1.0, value) < 0 else f"({value!r})"
    return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"


# ---- functions


def _functions(model: CompiledModel) -> list[str]:
    discrete = model.discrete
    starts = _Code(model)
    for assignment in model.start_equations:
        value = starts.value(assignment.expression)
        starts.line(f"if (!s->given[{assignment.slot}]) s->start[{assignment.slot}] = {value};")
    event = _Code(model).solutions(model.event)
    for k, level in enumerate(discrete.triggers):
        event.line(f"s->level[{k}] = {event.value(level)};")
    # All values first: one reinitialization must not see another's.
    planned = [(event.value(r.fires), event.value(r.value), r.slot) for r in discrete.reinitializations]
    for k, (_, value, _) in enumerate(planned):
        event.line(f"const double n{k} = {value};")
    for k, (fires, _, slot) in enumerate(planned):
        event.line(f"if ({fires} != 0) {{ s->v[{slot}] = n{k}; s->reinit = 1; }}")
    for k, assertion in enumerate(discrete.assertions):
        if assertion.is_event:
            event.line(f"if ({event.value(assertion.fires)} != 0) s->fired[{k}] = 1;")
    instants = _Code(model)
    for k, instant in enumerate(discrete.instants):
        instants.line(f"t[{k}] = {instants.value(instant)};")
    relations = _Code(model)
    for k, relation in enumerate(model.moving):
        relations.line(f"r[{k}] = (int){relations.value(relation.value)};")
    roots = _Code(model)
    for k, relation in enumerate(discrete.relations):
        roots.line(f"z[{k}] = {roots.value(relation.crossing)};")
    return [
        _Code(model).solutions(model.calculated).function("void m_calculated(State *s)"),
        starts.function("void m_starts(State *s)"),
        _Code(model).solutions(model.initial).function("void m_initial(State *s)"),
        _Code(model).solutions(model.continuous).function("void m_continuous(State *s)"),
        _Code(model).solutions(model.rates).function("void m_rates(State *s)") if model.states or model.moving else "",
        event.function("void m_event(State *s)"),
        relations.function("void m_relations(State *s, int *r)", "(void)r;") if model.moving else "",
        roots.function("void m_roots(State *s, double *z)", "(void)z;"),
        instants.function("void m_instants(State *s, double *t)", "(void)t;") if discrete.instants else "",
        *(_assertions(model) if discrete.assertions else []),
        _Code(model).changes(model.tangent or []).function("void m_tangent(State *s, double *d)", "(void)d;"),
    ]


def _assertions(model: CompiledModel) -> list[str]:
    """m_assert: whether the condition is broken; m_message: the text."""
    checks, messages = [], []
    for k, assertion in enumerate(model.discrete.assertions):
        code, value = _Code(model), f"s->fired[{k}]"
        if not assertion.is_event:
            value = code.value(assertion.fires)
        checks += [
            f"    if (k == {k}) {{",
            *(f"    {line}" for line in code.lines),
            f"        return {value} != 0;",
            "    }",
        ]
        code, form, arguments = _Code(model), "", []
        for part in assertion.message:
            if isinstance(part, str):
                form += part.replace("%", "%%")
                continue
            piece, argument = _printed(code, part)
            form += piece
            arguments.append(argument)
        call = ", ".join(["text", "size", _c_text(form), *arguments])
        messages += [
            f"    if (k == {k}) {{",
            *(f"    {line}" for line in code.lines),
            f"        snprintf({call});",
            "    }",
        ]
    return [
        "\n".join(["static int m_assert(State *s, int k) {", "    (void)s;", *checks, "    return 0;", "}"]),
        "\n".join(
            ["static void m_message(State *s, int k, char *text, size_t size) {", "    (void)s;", *messages, "}"]
        ),
    ]


def _printed(code: _Code, x: Expression) -> tuple[str, str]:
    """How printf writes a value, as Modelica's String() does."""
    type, value = code.graph.types[x], code.value(x)
    if type == TEXT:
        return "%s", f"rt_text(s, {value})"
    if type == BOOLEAN:
        return "%s", f'{value} != 0 ? "true" : "false"'
    return ("%.0f" if type == INTEGER else "%.6g"), value


class _Code:
    """Lines of one function. Every expression is computed once; a slot is written before it is first read,
    so that a computed expression stays right to the end of the function."""

    def __init__(self, model: CompiledModel) -> None:
        self.graph: Graph = model.graph
        self._pre = {slot: k for k, slot in enumerate(_discrete_slots(model))}
        self._local: dict[Expression, str] = {}
        self._numbers = itertools.count()
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(f"    {text}")

    def function(self, signature: str, unused: str = "") -> str:
        """The whole function."""
        return "\n".join([f"static {signature} {{", *self.lines, f"    (void)s; {unused}".rstrip(), "}"])

    def solutions(self, items: Iterable[Solution]) -> _Code:
        """Assignments and blocks in order."""
        for item in items:
            if isinstance(item, Block):
                self._newton(item)
            else:
                self.line(f"s->v[{item.slot}] = {self.value(item.expression)};")
        return self

    def changes(self, items: Iterable[Solution]) -> _Code:
        """Changes of slots, from the changes `d` of what is given."""
        for number, item in enumerate(items):
            if isinstance(item, Block):
                n = len(item.slots)
                right = [self.value(x) for x in item.residuals]
                jacobian = [self.value(x) for x in item.jacobian]
                self.line(
                    f"double b{number}[{n}] = {{{', '.join(right)}}}, J{number}[{n * n}] = {{{', '.join(jacobian)}}};"
                )
                self.line(f"if (rt_solve({n}, J{number}, b{number})) b{number}[0] = NAN;")
                for k, slot in enumerate(item.slots):
                    self.line(f"d[{slot}] = b{number}[{k}];")
            else:
                self.line(f"d[{item.slot}] = {self.value(item.expression)};")
        return self

    def value(self, x: Expression) -> str:
        """C text of an expression, after the lines that compute it."""
        g = self.graph
        stack = [x]
        while stack:
            at = stack[-1]
            if at in self._local or g.entries[at][0] in LEAVES:
                stack.pop()
                continue
            missing = [k for k in g.operands(at) if k not in self._local and g.entries[k][0] not in LEAVES]
            if missing:
                stack += missing
                continue
            stack.pop()
            name = f"t{next(self._numbers)}"
            self.line(f"const double {name} = {self._code(at)};")
            self._local[at] = name
        return self._text(x)

    def _code(self, x: Expression) -> str:
        entry, operands = self.graph.entries[x], [self._text(k) for k in self.graph.operands(x)]
        if entry[0] == "external":
            return f"{entry[1]}({', '.join(operands)})"
        return OPERATIONS[entry[0]].code.format(*operands)

    def _text(self, x: Expression) -> str:
        kind, *arguments = self.graph.entries[x]
        if kind == "const":
            return _number(arguments[0])
        if kind == "var":
            return f"s->v[{arguments[0]}]"
        if kind == "pre":
            slot = arguments[0]
            return f"s->pre[{self._pre[slot]}]" if slot in self._pre else f"s->v[{slot}]"
        if kind == "seed":
            return f"d[{arguments[0]}]"
        if kind in ("time", "initial"):
            return f"s->{kind}"
        if kind in ("tick", "held"):
            return f"s->{kind}[{arguments[0]}]"
        return self._local[x]

    def _newton(self, block: Block) -> None:
        """Newton's method, with halved steps where the residual grows."""
        own = set(block.slots)
        # Inside the loop, whatever reads the unknowns is computed anew, under names of its own.
        inner = _Code.__new__(_Code)
        inner.graph, inner._pre, inner._numbers, inner.lines = self.graph, self._pre, self._numbers, []
        inner._local = {x: name for x, name in self._local.items() if not self.graph.slots(x) & own}
        residuals = [inner.value(r) for r in block.residuals]
        jacobian = [inner.value(j) for j in block.jacobian]
        self._iteration(block, inner.lines, residuals, jacobian)

    def _iteration(self, block: Block, inner: list[str], residuals: list[str], jacobian: list[str]) -> None:
        n, slots = len(block.slots), block.slots
        if block.is_linear:
            # One pass, and one that refines.
            self.line("for (int pass = 0; pass < 2; pass++) {")
            self.lines += [f"    {line}" for line in inner]
            self.line(f"    double F[{n}] = {{{', '.join(residuals)}}}, J[{n * n}] = {{{', '.join(jacobian)}}};")
            self.line(f"    if (rt_solve({n}, J, F)) {{ s->failed = 1; break; }}")
            for k, slot in enumerate(slots):
                self.line(f"    s->v[{slot}] -= F[{k}];")
            self.line("}")
            return
        self.line("{")
        self.line(f"    double from[{n}] = {{0}}, step[{n}] = {{0}}, norm = INFINITY, change = INFINITY, part = 1;")
        self.line(f"    for (int pass = 0; pass < {_NEWTON_PASSES}; pass++) {{")
        self.lines += [f"        {line}" for line in inner]
        self.line(
            f"        double F[{n}] = {{{', '.join(residuals)}}}, J[{n * n}] = {{{', '.join(jacobian)}}}, now = 0;"
        )
        self.line(f"        for (int k = 0; k < {n}; k++) now += F[k] * F[k];")
        self.line("        if (!(now <= norm) && change > 1e-10 && part > 1e-6) {")
        self.line("            part *= 0.5;")
        for k, slot in enumerate(slots):
            self.line(f"            s->v[{slot}] = from[{k}] - part * step[{k}];")
        self.line("            continue;")
        self.line("        }")
        self.line("        norm = now; part = 1; change = 0;")
        # At a singular point, such as the start value 0 of x in x² = 2, a step aside.
        self.line(f"        if (rt_solve({n}, J, F)) {{")
        self.line(f"            for (int k = 0; k < {n}; k++) F[k] = -0.1 * (k + 1);")
        self.line("            norm = INFINITY;")
        self.line("        }")
        for k, slot in enumerate(slots):
            self.line(f"        from[{k}] = s->v[{slot}]; step[{k}] = F[{k}]; s->v[{slot}] -= F[{k}];")
            self.line(f"        change = fmax(change, fabs(F[{k}]) / (1 + fabs(s->v[{slot}])));")
        self.line("        if (change < 1e-13) break;")
        self.line("    }")
        self.line("    if (!(change < 1e-6)) s->failed = 1;")
        self.line("}")
