"""Experiments that come with an FMU are found, run and compared; what cannot be honoured is refused by name."""

from __future__ import annotations

import hashlib
import zipfile

import numpy as np
import pytest

from cosim.case import find_cases
from cosim.cli import main
from cosim.diagnostic import UsageError
from cosim.ls_ref import MANIFEST, embedded_experiments, read_experiments
from cosim.modelica import build_fmu
from cosim.regression import run_case

CODE = """model Gain
  parameter Real k = 2;
  input Real u;
  output Real y;
  output Real z;
equation
  y = k*u;
  z = 3*time;
end Gain;"""
FOLDER = MANIFEST.rpartition("/")[0]
HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<fmiReferences xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"'
    ' fmi-ls:fmi-ls-name="org.fmi-standard.fmi-ls-ref" fmi-ls:fmi-ls-version="1.0.0-alpha.1">\n'
)
TIME = np.arange(11) / 10


def table(**columns):
    """A CSV file; an input is held over a step, so an output sees the input of the step before."""
    rows = zip(TIME.tolist(), *(np.asarray(c, float).tolist() for c in columns.values()), strict=True)
    lines = [",".join(["time", *columns]), *(",".join(map(repr, row)) for row in rows)]
    return "\n".join(lines) + "\n"


INPUT = table(u=TIME)
HELD = np.concatenate([[0.0], TIME[:-1]])
SSV = (
    '<ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" version="1.0" name="p">'
    '<ssv:Parameters><ssv:Parameter name="k"><ssv:Real value="%s"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet>'
)
EXPERIMENTS = """<Experiments name="all">
  <Experiment name="plain" startTime="0" stopTime="1" stepSize="0.1" tolerance="1e-8">
    <Stimuli source="in.csv"/>
    <References source="plain.csv"/>
  </Experiment>
  <Experiment name="five">
    <TransientSimulation startTime="0" stopTime="1" stepSize="0.1"/>
    <Parameters source="five.ssv"/>
    <Stimuli source="in.csv" type="text/csv"/>
    <References source="five.csv"/>
  </Experiment>
</Experiments>
"""
FILES = {
    "in.csv": INPUT,
    "plain.csv": table(y=2 * HELD),
    "five.csv": table(y=5 * HELD, z=3 * TIME),
    "five.ssv": SSV % "5.0",
    "all.exp": EXPERIMENTS,
}


@pytest.fixture
def fmu(tmp_path):
    """Pack an FMU with files of the layered standard."""

    def pack(manifest, files=FILES, name="Gain"):
        path = tmp_path / f"{name}.fmu"
        build_fmu(None, code=CODE, output=path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(MANIFEST, HEAD + manifest + "</fmiReferences>\n")
            for file, text in files.items():
                archive.writestr(f"{FOLDER}/{file}", text)
        return path

    return pack


RELATED = '<Related type="application/xml" source="all.exp" role="experiment/smoke-test"/>\n'


def test_experiments_of_a_manifest_are_cases(fmu):
    path = fmu(RELATED)
    for found in (find_cases([path]), find_cases([path.parent])):
        assert [c.name for c in found] == ["Gain.fmu#five", "Gain.fmu#plain"]
    outcomes = [run_case(c) for c in found]
    assert all(o.passed for o in outcomes), [o.explain() for o in outcomes]
    assert [len(o.comparison.columns) for o in outcomes] == [2, 1]
    assert outcomes[0].metadata["step_size"] == "1/10"


def test_a_wrong_reference_inside_is_caught(fmu):
    files = {**FILES, "five.csv": table(y=5.2 * HELD, z=3 * TIME)}
    outcomes = [run_case(c) for c in find_cases([fmu(RELATED, files)])]
    assert [o.status for o in outcomes] == ["failed", "passed"]
    assert outcomes[0].origin == "y"


def test_result_files_are_references_of_the_default_experiment(fmu):
    manifest = (
        '<Related type="text/csv" source="Gain_out.csv" role="result" description="default"/>\n'
        '<Related type="text/modelica" source="Gain.mo" role="model"/>\n'
        '<Related type="application/x-hdf5" source="other.h5" role="result"/>\n'
        '<Related type="application/xml" source="gone.exp" role="experiment/uncertainty-analysis"/>\n'
    )
    cases = find_cases([fmu(manifest, {"Gain_out.csv": table(z=3 * TIME)})])
    assert [c.name for c in cases] == ["Gain.fmu#Gain_out"]
    assert run_case(cases[0]).passed
    with_input = {"Gain_out.csv": table(y=2 * HELD), "Gain_in.csv": INPUT}
    assert run_case(find_cases([fmu(manifest, with_input, name="Other")])[0]).passed


def test_experiments_inside_the_manifest_as_older_drafts_had_them(fmu):
    inner = EXPERIMENTS.replace('<Experiments name="all">', "").replace("</Experiments>", "")
    assert [run_case(c).status for c in find_cases([fmu(inner)])] == ["passed", "passed"]


def test_files_beside_and_inside_are_both_cases(fmu):
    path = fmu(RELATED)
    (path.parent / "Gain_ref.csv").write_text(table(z=3 * TIME))
    cases = find_cases([path])
    assert [c.name for c in cases] == ["Gain.fmu", "Gain.fmu#five", "Gain.fmu#plain"]
    assert all(run_case(c).passed for c in cases)


def test_exp_file_beside_an_fmu(fmu, tmp_path):
    path = fmu("")
    (tmp_path / "Gain.exp").write_text(EXPERIMENTS)
    for name in ("in.csv", "plain.csv", "five.csv", "five.ssv"):
        (tmp_path / name).write_text(FILES[name])
    for place in (tmp_path / "Gain.exp", path, tmp_path):
        cases = find_cases([place])
        assert [c.name for c in cases] == ["Gain.fmu#five", "Gain.fmu#plain"]
    assert all(run_case(c).passed for c in cases)
    path.unlink()
    with pytest.raises(UsageError, match=r"Gain\.fmu, which is not beside it"):
        find_cases([tmp_path / "Gain.exp"])


def test_the_command_runs_them_and_does_not_change_them(fmu, capsys):
    path = fmu(RELATED, {**FILES, "five.csv": table(y=5.2 * HELD)})
    assert main(["test", str(path), "--jobs", "1"]) == 1
    said = capsys.readouterr()
    assert "Gain.fmu#five" in said.out and "1 passed, 1 failed" in said.out
    before = path.read_bytes()
    assert main(["test", str(path), "--jobs", "1", "--update", "--reason", "it is better"]) == 1
    assert "case-reference-embedded" in capsys.readouterr().err
    assert path.read_bytes() == before


CHECKSUM = hashlib.sha3_256(EXPERIMENTS.encode()).hexdigest()


def test_checksums_are_verified(fmu):
    good = RELATED.replace("role=", f'checksum="{CHECKSUM.upper()}" role=')
    assert all(run_case(c).passed for c in find_cases([fmu(good)]))
    sha2 = hashlib.sha256(EXPERIMENTS.encode()).hexdigest()
    other = RELATED.replace("role=", f'checksum="{sha2}" checksumType="SHA-256" role=')
    assert all(run_case(c).passed for c in find_cases([fmu(other)]))


ONE = '<Experiments name="x"><Experiment name="e"{a}>{b}<References source="plain.csv"/></Experiment></Experiments>'


@pytest.mark.parametrize(
    ("manifest", "files", "words"),
    [
        ('<Related source="gone.exp" role="experiment"/>', {}, "'gone.exp' is not there"),
        ('<Related source="../../modelDescription.xml" role="experiment"/>', {}, "no Experiment"),
        ('<Related source="../../../x.exp" role="experiment"/>', {}, "leaves the folder"),
        ('<Related source="http://example.org/x.exp" role="experiment"/>', {}, "no relative path"),
        ('<Related source="" role="experiment"/>', {}, "no relative path"),
        (RELATED.replace("role=", f'checksum="{"0" * 64}" role='), {}, "checksum"),
        (RELATED.replace("role=", 'checksum="0" checksumType="CRC" role='), {}, "CRC"),
        ("<Related", {}, "not well-formed"),
        (RELATED, {"all.exp": "<Experiments/>"}, "no Experiment"),
        (RELATED, {"all.exp": "<!DOCTYPE x [<!ENTITY a 'b'>]><Experiments/>"}, "document type"),
        (RELATED, {"all.exp": ONE.format(a="", b="<Linearization/>")}, "Linearization"),
        (RELATED, {"all.exp": ONE.format(a=' stopTime="soon"', b="")}, "stopTime is 'soon'"),
        (RELATED, {"all.exp": ONE.format(a=' stopTime="nan"', b="")}, "stopTime"),
        (RELATED, {"all.exp": ONE.format(a="", b='<Stimuli source="in.csv" type="application/hdf5"/>')}, "hdf5"),
        (RELATED, {"all.exp": ONE.format(a="", b='<Stimuli source="in.csv" mapping="m.ssm"/>')}, "mapping"),
        (RELATED, {"all.exp": ONE.format(a="", b='<Stimuli source="in.csv"/>' * 2)}, "2 Stimuli"),
        (RELATED, {"all.exp": ONE.format(a="", b='<Parameters source="five.ssv"/>'), "five.ssv": SSV % "x"}, "'x'"),
        (
            RELATED,
            {"all.exp": ONE.format(a="", b='<Parameters source="five.ssv"/>'), "five.ssv": SSV.replace("value=", "v=")},
            "'k' has no value",
        ),
        (RELATED, {"all.exp": '<Experiments><Experiment name="e"/></Experiments>'}, "0 References"),
    ],
)
def test_what_cannot_be_honoured_fails_by_name(fmu, manifest, files, words):
    path = fmu(manifest, {**FILES, **files})
    cases = find_cases([path.parent])
    assert len(cases) == 1
    outcome = run_case(cases[0])
    assert outcome.status == "error"
    assert outcome.errors[0].code == "experiment-invalid"
    assert words in outcome.explain()


def test_no_manifest_no_experiments(tmp_path):
    assert embedded_experiments(tmp_path) == ()
    path = tmp_path / "Broken.fmu"
    path.write_text("no archive")
    with pytest.raises(UsageError, match="case-not-found"):
        find_cases([tmp_path])
    (tmp_path / "x.exp").write_text(ONE.format(a="", b=""))
    with pytest.raises(UsageError, match=r"x\.exp:1"):
        read_experiments(tmp_path / "x.exp")


def test_values_of_all_types(fmu, tmp_path):
    values = (
        '<ParameterSet><Parameters><Parameter name="a"><Integer value="3"/></Parameter>'
        '<Parameter name="b"><Boolean value="true"/></Parameter><Parameter name="c"><String value="x y"/></Parameter>'
        '<Parameter name="d"><Float64 value="2.5"/></Parameter></Parameters></ParameterSet>'
    )
    (tmp_path / "p.ssv").write_text(values)
    (tmp_path / "plain.csv").write_text(FILES["plain.csv"])
    (tmp_path / "x.exp").write_text(ONE.format(a="", b='<Parameters source="p.ssv"/>'))
    found = read_experiments(tmp_path / "x.exp")[0]
    assert found.start_values == (("a", 3.0), ("b", 1.0), ("c", "x y"), ("d", 2.5))
