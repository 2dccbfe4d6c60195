from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from cosim.component import LinearTransformation
from cosim.diagnostic import DiagnosticLog
from cosim.system import ProgramKind
from cosim.usd.stage import open_stage
from cosim.usd.wiring import Wiring, read_wiring

PROGRAM = '(prepend apiSchemas = ["LunCoProgramAPI"])'


@pytest.fixture
def wiring(tmp_path: Path):
    def read(text: str) -> tuple[Wiring, DiagnosticLog]:
        path = tmp_path / "s.usda"
        path.write_text("#usda 1.0\n" + text)
        log = DiagnosticLog()
        return read_wiring(open_stage(path, log=log)), log

    return read


def test_programs_by_extension_class_period_and_aliases(wiring, tmp_path: Path) -> None:
    found, log = wiring(
        f"""def Scope "A" {PROGRAM} {{
    uniform asset info:sourceAsset = @./imu.fmu@
    double lunco:program:communicationPeriod = 0.016666666666666666
    uniform string cosim:variable:rate = "imu.gyro[1]"
}}
def Scope "B" {PROGRAM} {{
    uniform token info:implementationSource = "sourceAsset"
    uniform asset info:sourceAsset = @./Lib.mo@
    uniform token info:sourceAsset:subIdentifier = "Lib.Pid"
}}
def Scope "C" {PROGRAM} {{
    uniform token info:implementationSource = "sourceCode"
    string info:sourceCode = "model C output Real y; equation y = time; end C;"
}}
"""
    )
    a, b, c = found.programs
    assert (a.kind, a.source, a.period) == (ProgramKind.FMU, str(tmp_path / "imu.fmu"), Fraction(1, 60))
    assert a.variables == (("rate", "imu.gyro[1]"),)
    assert (b.kind, b.class_name, b.period) == (ProgramKind.MODELICA, "Lib.Pid", None)
    assert c.code is not None and c.code.startswith("model C") and c.source == ""
    assert not log.items


@pytest.mark.parametrize(
    "body",
    [
        "uniform asset info:sourceAsset = @./x.rhai@",
        "uniform asset info:sourceAsset = @./x.py@",
        'uniform token info:implementationSource = "id"\n uniform token info:id = "range_beam"',
        "",
    ],
)
def test_what_nothing_here_can_run_is_reported_and_not_fatal(wiring, body: str) -> None:
    found, log = wiring(f'def Scope "A" {PROGRAM} {{\n{body}\n}}\n')
    assert found.programs == [] and found.unsupported == ["/A"]
    assert [d.code for d in log] == ["program-unsupported"] and not log.errors


@pytest.mark.parametrize("period", ["0", "-1", "nan", "inf"])
def test_a_period_must_be_positive_and_finite(wiring, period: str) -> None:
    _, log = wiring(
        f'def Scope "A" {PROGRAM} {{\nuniform asset info:sourceAsset = @./a.fmu@\n'
        f"double lunco:program:communicationPeriod = {period}\n}}\n"
    )
    assert [d.code for d in log] == ["period-invalid"]
    assert log.errors[0].where.property == "lunco:program:communicationPeriod"


def test_sources_are_resolved_by_path_not_by_declared_attribute(wiring) -> None:
    found, log = wiring(
        'def Xform "Box" {}\ndef Scope "P" {\n float inputs:a.connect = </Box.outputs:acceleration_x>\n'
        " float inputs:b.connect = </P.inputs:a>\n}\n"
    )
    assert [(str(c.source), str(c.target)) for c in found.connections] == [
        ("/Box.outputs:acceleration_x", "/P.inputs:a"),
        ("/P.inputs:a", "/P.inputs:b"),
    ]
    assert not log.items


def test_factor_and_offset_are_per_sink_and_the_offset_counts_once(wiring) -> None:
    found, _ = wiring(
        'def "A" {}\ndef "B" {}\ndef "P" {\n float inputs:u.connect = [</B.outputs:y>, </A.outputs:y>]\n'
        " float lunco:factor:u = -2\n double lunco:offset:u = 0.5\n}\n"
    )
    assert [(c.source.path, c.transformation) for c in found.connections] == [
        ("/A", LinearTransformation(-2.0, 0.5)),
        ("/B", LinearTransformation(-2.0, 0.0)),
    ]


def test_forwards_values_and_declarations(wiring) -> None:
    found, _ = wiring(
        'def "A" {\n float outputs:x.connect = </B.outputs:y>\n float inputs:gain = 2.5\n bool inputs:on = 1\n'
        ' string inputs:mode = "fast"\n float outputs:only\n}\ndef "B" {}\n'
    )
    assert [(str(c.target), str(c.source)) for c in found.forwards] == [("/A.outputs:x", "/B.outputs:y")]
    assert {v.ref.name: v.value for v in found.values} == {"gain": 2.5, "on": 1.0, "mode": "fast"}
    assert {d.ref.name for d in found.declared} == {"x", "gain", "on", "mode", "only"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("float inputs:u.connect = </Nope.outputs:y>", "connection-dangling"),
        ("float inputs:u.connect = </B.size>", "connection-source-invalid"),
        ("float inputs:u.connect = </A.inputs:u>", "connection-source-invalid"),
        ("float connectors:flange.connect = </B.connectors:flange>", "connector-unsupported"),
        ("float3 inputs:u = (1, 2, 3)", "value-type"),
        ("float inputs:u = nan", "value-not-finite"),
        ("float inputs:u.connect = </B.outputs:y>\n float lunco:factor:u = inf", "value-not-finite"),
    ],
)
def test_bad_wires_and_values_have_a_code_and_a_location(wiring, body: str, code: str) -> None:
    _, log = wiring(f'def "A" {{\n {body}\n}}\ndef Cube "B" {{}}\n')
    assert [d.code for d in log] == [code]
    assert log.items[0].where.prim == "/A" and log.items[0].where.layer.endswith("s.usda")


def test_inputs_of_shaders_and_lights_are_not_ports(wiring) -> None:
    found, log = wiring(
        """def Material "M" {
    token outputs:surface.connect = </M/S.outputs:surface>
    def Shader "S" {
        float inputs:roughness = 1
        token outputs:surface
    }
}
def DistantLight "Sun" {
    float inputs:intensity = 3
}
"""
    )
    assert not found.values and not found.connections and not found.forwards and not log.items


def test_lunco_sample_stage_reads_completely(lunco: Path) -> None:
    log = DiagnosticLog()
    found = read_wiring(open_stage(lunco / "scenes/tests/sensor.usda", asset_roots={"lunco": lunco}, log=log))
    assert [p.path for p in found.programs] == ["/SandboxScene/Box/Altimeter/Model", "/SandboxScene/Box/IMU"]
    assert len(found.connections) == 18
    assert not log.errors


@pytest.mark.parametrize(
    "line",
    [
        'uniform string info:sourceAsset = "x.mo"',
        "uniform double[] info:sourceAsset = []",
        "int info:sourceCode = 3",
        'string info:sourceCode = "model M end M;"\n    double3 lunco:program:communicationPeriod = (1, 2, 3)',
    ],
)
def test_program_attributes_of_another_type_are_findings(tmp_path: Path, line: str) -> None:
    path = tmp_path / "stage.usda"
    path.write_text(
        '#usda 1.0\ndef Scope "P" (prepend apiSchemas = ["LunCoProgramAPI"])\n{\n' + f"    {line}\n" + "}\n"
    )
    log = DiagnosticLog()
    read_wiring(open_stage(path, log=log))
    assert "program-attribute-invalid" in [d.code for d in log.errors]
