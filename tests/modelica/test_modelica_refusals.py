"""Every construct that is not compiled is refused: by name, with its line, and where possible with a cure."""

from __future__ import annotations

import pytest
from modelica_harness import refusal

CLOCKED = """model M
  Real x(start=0);
equation
  when Clock(0.1) then
    x = previous(x) + 1;
  end when;
end M;
"""


def model(declarations: str, equations: str) -> str:
    """A model whose declarations are on line 2 and whose equations start on line 4."""
    return f"model M\n  {declarations}\nequation\n  {equations}\nend M;\n"


# name → source, line (None: the whole model), a part of the message, a part of the hint.
REFUSED: dict[str, tuple[str, int | None, str, str]] = {
    "external function": (
        model("Real x;function f\ninput Real u;output Real y;\nexternal \"C\" y = my_fun(u);\nend f;", "x = f(time);"),
        7,
        "external function my_fun()",
        "",
    ),
    "endless recursion": (
        model(
            "Integer x;function f\ninput Integer n;output Integer y;\nalgorithm y := if n < 2 then 1 else n*f(n - 1);\n"
            "end f;",
            "x = f(5);",
        ),
        7,
        "calls itself",
        "",
    ),
    "while without a bound": (
        model(
            "Real x;function f\ninput Real u;output Real y;\nalgorithm y := u; while y < 10 loop y := 2*y; end while;\n"
            "end f;",
            "x = f(time);",
        ),
        2,
        "function statement",
        "use for",
    ),
    "impure function": (
        model("Real x;impure function f\noutput Real y;\nalgorithm y := 1;\nend f;", "x = f();"), 2, "impure", ""
    ),
    "joined texts": (
        model('parameter String a = "x";output String s;', 's = a + "y";'), 4, "'add' on texts", ""
    ),
    "ordered texts": (model('parameter String a = "x";output Boolean b;', 'b = a < "y";'), 4, "'less' on texts", ""),
    "numbers as texts": (model("input Real u;output String s;", "s = String(u);"), 4, "String()", ""),
    "clocked operators": (CLOCKED, 5, "previous", "sample(start, period)"),
    "spatialDistribution": (
        model("Real y, z;", "(y, z) = spatialDistribution(time, 0, time, true, {0.0, 1.0}, {0.0, 0.0});"),
        4,
        "spatialDistribution",
        "not supported",
    ),
    "state machine": (
        model(
            "block A\n  outer output Real x;\nequation\n  x = previous(x) + 1;\nend A;\ninner Real x(start=0);A a;",
            "initialState(a);",
        ),
        9,
        "initialState",
        "Integer or enumeration",
    ),
    "array elements in a when": (
        model(
            "Real x[2](each start=0);",
            "when sample(0, 0.1) then\n    for i in 1:2 loop\n      x[i] = pre(x[i]) + i;\n    end for;\n  end when;",
        ),
        2,
        "not a discrete coordinate",
        "whole array",
    ),
    "implicit when equations": (
        model(
            "discrete Real x(start=0), y(start=0);",
            "when sample(0, 0.1) then\n    x + y = time;\n    x - y = 1;\n  end when;",
        ),
        None,
        "LHS",
        "solve the equation",
    ),
    "pre of a continuous variable": (
        model("Real x, y(start=0);", "x = sin(time);\n  when x > 0.5 then\n    y = pre(x);\n  end when;"),
        6,
        "pre()",
        "discrete",
    ),
    "circle through an event": (
        model("Boolean a;Real y;", "a = y > 0;\n  y = if a then -1 else 1;"), None, "a → y → a", "pre()"
    ),
    "circle of Booleans": (model("Boolean a, b;", "a = not b;\n  b = not a;"), 2, "cycle", ""),
    "higher index": (
        model(
            "Real x(start=1), y, vx, vy, F;",
            "der(x) = vx;\n  der(y) = vy;\n  der(vx) = -F*x;\n  der(vy) = -F*y - 9.81;\n  x^2 + y^2 = 1;",
        ),
        8,
        "a constraint between x, y",
        "independent states",
    ),
    "structurally singular": (
        model("Real x, y, z;", "x = 1;\n  2*x = 2;\n  y + z = x;"), 5, "structurally singular", "determined twice"
    ),
    "numerically singular": (
        model("Real x, y;", "x + y = 1;\n  x + y = 2;"), 4, "contradict or repeat", ""
    ),
    "too many initial equations": (
        model("Real x(start=1, fixed=true);", "der(x) = 1;\ninitial equation\n  x = 2;"),
        6,
        "initial equations",
        "fixed",
    ),
    "computed parameter": (
        model(
            "parameter Real a(fixed=false);Real x(start=1, fixed=true);",
            "der(x) = -a*x;\ninitial equation\n  der(x) = -2;",
        ),
        6,
        "initial equations",
        "",
    ),
    "subscript outside": (model("Real x[2] = {1.0, 2.0}, y;", "y = x[3];"), 4, "out of bounds", ""),
    "reinit of no state": (
        model("Real x;", "x = time;\n  when time > 1 then\n    reinit(x, 0);\n  end when;"), None, "not a state", ""
    ),
    "circular parameters": (model("parameter Real a = b;parameter Real b = a;Real x;", "x = a;"), 2, "cyclic", ""),
    "parameter without a value": (
        model("parameter Real a = 0;parameter Real b = 1/a;Real x;", "x = b;"), 2, "division by zero", ""
    ),
    "stream connectors alone": (
        model(
            "connector S\n Real p;flow Real m;stream Real h;\nend S;S a;Real h;",
            "h = inStream(a.h);\n  a.p = 1;a.m = 0;a.h = 1;",
        ),
        None,
        "unbalanced",
        "one equation",
    ),
    "cardinality": (
        model("connector C\n Real v;flow Real i;\nend C;C a;Real n;", "n = cardinality(a);\n  a.v = 1;"),
        None,
        "cardinality",
        "",
    ),
    "mod by a variable": (model("input Real a, b;output Real y;", "y = mod(a, b);"), 4, "quotient", "floor(a/b)"),
    "delay of an unknown time": (
        model("input Real u;output Real y;", "y = delay(u, u, 2.0);"), 4, "delay", ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name_and_place(name: str) -> None:
    code, line, message, hint = REFUSED[name]
    (found,) = refusal(code).diagnostics
    assert found.code in ("modelica-unsupported", "modelica-invalid")
    assert message in found.message
    assert hint in found.hint
    assert found.where is not None
    assert (found.where.layer, found.where.line) == ("inline.mo", line)
