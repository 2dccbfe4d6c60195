"""Sources in packages, classes from elsewhere, and inputs with a default that are driven too."""

from __future__ import annotations

from pathlib import Path

import pytest
from modelica_harness import Fmu, build

from cosim.diagnostic import DiagnosticLog, ModelicaError
from cosim.modelica import BuiltFmu, build_fmu
from cosim.modelica.defaults import defaults_to_starts
from cosim.modelica.library import compose, model_names

FILES = {
    "package.mo": """within;
package Robots "a library"
  constant Real g = 9.81;
  annotation(Documentation(info = "end Robots; is not the end"));
end Robots;
""",
    "Parts/package.mo": "within Robots;\npackage Parts\nend Parts;\n",
    "Parts/Weight.mo": """within Robots.Parts;
// m·g
model Weight
  input Real mass = 1.0 "kg";
  output Real force;
equation
  force = mass*g;
end Weight;
""",
    "Arm.mo": """within Robots;
model Arm
  input Real load = 2.0;
  output Real total, idle;
  Parts.Weight driven;
  Parts.Weight left;
equation
  driven.mass = load;
  total = driven.force;
  idle = left.force;
end Arm;
""",
}


@pytest.fixture
def robots(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "Robots" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "Robots"


def _outputs(built: BuiltFmu, **inputs: float) -> dict[str, float]:
    fmu = Fmu.of(built)
    with fmu:
        for name, value in inputs.items():
            fmu[name] = value
        return {name: fmu[name] for name in built.outputs}


def test_a_member_of_a_package_is_compiled_with_it(robots: Path) -> None:
    log = DiagnosticLog()
    built = build_fmu(robots / "Arm.mo", log=log)
    assert (built.class_name, built.inputs) == ("Robots.Arm", ("load",))
    # Driven: the default is a start value. Left alone: it is the value.
    assert _outputs(built) == {"total": pytest.approx(2 * 9.81), "idle": pytest.approx(9.81)}
    assert _outputs(built, load=5.0) == {"total": pytest.approx(5 * 9.81), "idle": pytest.approx(9.81)}
    assert [d.code for d in log.items] == ["modelica-default-is-start"]


def test_changes_beside_the_source_are_noticed(robots: Path) -> None:
    assert not build_fmu(robots / "Arm.mo").cached
    assert build_fmu(robots / "Arm.mo").cached
    (robots / "Parts" / "Weight.mo").write_text(FILES["Parts/Weight.mo"].replace("mass*g", "2*mass*g"))
    built = build_fmu(robots / "Arm.mo")
    assert not built.cached
    assert _outputs(built)["idle"] == pytest.approx(2 * 9.81)


def test_packages_of_the_library_path_and_modelicapath(robots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
model User
  output Real y;
  Robots.Parts.Weight w(mass=3);
equation
  y = w.force;
end User;
"""
    with pytest.raises(ModelicaError) as error:
        build(code)
    assert "Robots" in error.value.diagnostics[0].message
    assert _outputs(build(code, library_path=[robots.parent])) == {"y": pytest.approx(3 * 9.81)}
    monkeypatch.setenv("MODELICAPATH", str(robots.parent))
    assert _outputs(build(code)) == {"y": pytest.approx(3 * 9.81)}


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "code"),
    [
        ("Arm.mo", "driven.mass = load;", "driven.mass = lod;", 8, "modelica-invalid"),
        ("Arm.mo", "output Real total", "output Rea total", 4, "modelica-invalid"),
        ("Arm.mo", "idle = left.force;", "idle = ;", 10, "modelica-syntax"),
        ("Parts/Weight.mo", "force = mass*g;", "force = mass**g;", 7, "modelica-syntax"),
        ("Parts/package.mo", "package Parts\n", "package Parts\n Real ;\n", 3, "modelica-syntax"),
    ],
)
def test_mistakes_are_placed_in_their_own_file(
    robots: Path, file: str, old: str, new: str, line: int, code: str
) -> None:
    path = robots / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ModelicaError) as error:
        build_fmu(robots / "Arm.mo")
    (found,) = error.value.diagnostics
    assert found.code == code
    assert found.where is not None
    assert (found.where.layer, found.where.line) == (str(path), line)


def test_refusals_are_placed_in_their_own_file(robots: Path) -> None:
    path = robots / "Parts" / "Weight.mo"
    text = FILES["Parts/Weight.mo"].replace("output Real force;", "output Real force;\n  output String label;")
    path.write_text(text.replace("force = mass*g;", "force = mass*g;\n  label = String(mass);"))
    with pytest.raises(ModelicaError) as error:
        build_fmu(robots / "Arm.mo")
    (found,) = error.value.diagnostics
    assert found.code == "modelica-unsupported"
    assert found.where is not None
    assert (found.where.layer, found.where.line) == (str(path), 9)


def test_programs_keep_lines(robots: Path) -> None:
    program = compose(FILES["Arm.mo"], "shown.mo", robots / "Arm.mo")
    lines = program.text.splitlines()
    for number, line in enumerate(lines, start=1):
        if line.strip() == "driven.mass = load;":
            assert str(program.place(number, 3)) == "shown.mo:8:3"
        if line.strip() == "force = mass*g;":
            assert str(program.place(number, 3)) == f"{robots / 'Parts' / 'Weight.mo'}:7:3"
        if "constant Real g" in line:
            assert program.place(number).line == 3


def test_the_standard_library_is_asked_for() -> None:
    code = "model M\n  Modelica.Blocks.Math.Gain g(k=2);\nend M;\n"
    with pytest.raises(ModelicaError) as error:
        build(code)
    assert "MODELICAPATH" in error.value.diagnostics[0].hint


DRIVEN = """
package P
  partial block Base
    input Real u(unit="1") = 4 "with unit";
    input Real w(start = 7, unit="1") = 1.5;
    output Real y;
  end Base;
  block A
    extends Base;
    input Real v = 0.5;
  equation
    y = u + 10*v + 100*w;
  end A;
  block B
    extends Base;
    input Real z;
  equation
    y = u + w + z;
  end B;
  model Top
    input Real s = 2;
    output Real a, b, c;
    A one;
    A two(v = 3) "keeps its own";
    B three(z = 1);
  equation
    one.u = s;
    connect(one.y, three.w);
    a = one.y;
    b = two.y;
    c = three.y;
  end Top;
end P;
"""


def test_defaults_of_driven_inputs_are_starts_and_others_stay() -> None:
    with Fmu(DRIVEN) as fmu:
        assert fmu["a"] == 2 + 10 * 0.5 + 100 * 1.5
        assert fmu["b"] == 4 + 10 * 3 + 100 * 1.5
        assert fmu["c"] == 4 + fmu["a"] + 1


def test_rewriting_touches_only_driven_inputs_and_no_line() -> None:
    text = defaults_to_starts(DRIVEN)
    assert text.count("\n") == DRIVEN.count("\n")
    assert 'input Real u(start = 4, unit="1") "with unit"' in text
    assert 'input Real w(start = 7, unit="1");' in text
    assert "input Real v = 0.5;" in text
    assert "input Real s = 2;" in text
    assert "A one(w = 1.5);" in text
    assert "A two(w = 1.5, u = 4, v = 3)" in text or "A two(u = 4, w = 1.5, v = 3)" in text
    assert "B three(u = 4, z = 1);" in text


def test_names_of_models() -> None:
    text = 'within A.B;\nmodel X "end X;"\nend X;\n// model Y end Y;\npartial model Z\nend Z;\ntype T = Real;\n'
    assert model_names(text) == ["A.B.X"]
