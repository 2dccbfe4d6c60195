from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cosim.diagnostic import DiagnosticLog, StageError, UsageError
from cosim.usd.stage import layer_hashes, open_stage


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#usda 1.0\n" + text)
    return path


def test_missing_file_and_folder_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"stage-not-found.*nope\.usda does not exist"):
        open_stage(tmp_path / "nope.usda", log=DiagnosticLog())
    with pytest.raises(UsageError, match="is a folder"):
        open_stage(tmp_path, log=DiagnosticLog())


def test_a_file_that_is_not_usd(tmp_path: Path) -> None:
    for name, content in (("a.toml", "x = 1\n"), ("a.usda", "hello\n"), ("b.usdc", "hello\n"), ("e.usda", "")):
        (tmp_path / name).write_text(content)
        with pytest.raises(StageError, match=name) as caught:
            open_stage(tmp_path / name, log=DiagnosticLog())
        assert caught.value.diagnostics[0].code in ("stage-not-usd", "stage-syntax")


def test_a_syntax_error_has_file_line_and_column(tmp_path: Path) -> None:
    stage = write(tmp_path / "broken.usda", 'def Xform "A" {\n    double x = \n}\n')
    with pytest.raises(StageError) as caught:
        open_stage(stage, log=DiagnosticLog())
    (finding,) = caught.value.diagnostics
    assert finding.code == "stage-syntax"
    assert finding.where is not None and finding.where.layer.endswith("broken.usda")
    assert finding.where.line == 3


def test_missing_reference_payload_and_sublayer_are_errors_with_layer_and_prim(tmp_path: Path) -> None:
    stage = write(
        tmp_path / "s.usda",
        '(subLayers = [@./no1.usda@])\ndef "A" (references = @./no2.usda@) {}\ndef "B" (payload = @./no3.usda@) {}\n',
    )
    log = DiagnosticLog()
    open_stage(stage, log=log)
    assert [d.code for d in log] == ["composition-asset-missing"] * 3
    text = "\n".join(str(d) for d in log)
    assert all(f"no{i}.usda" in text for i in (1, 2, 3)) and "</A>" in text and "s.usda" in text


def test_a_referenced_layer_that_does_not_parse_names_both_places(tmp_path: Path) -> None:
    write(tmp_path / "bad.usda", "def {\n")
    stage = write(tmp_path / "s.usda", 'def "A" (references = @./bad.usda@) {}\n')
    log = DiagnosticLog()
    open_stage(stage, log=log)
    (finding,) = log.errors
    assert finding.code == "composition-layer-broken"
    assert finding.related[0].layer.endswith("bad.usda") and finding.related[0].line == 2


def test_cycles_and_unresolved_prims_are_composition_errors(tmp_path: Path) -> None:
    write(tmp_path / "ok.usda", 'def "X" {}\n')
    stage = write(tmp_path / "s.usda", 'def "C" (references = @./ok.usda@</Nope>) {}\ndef "E" (references = </E>) {}\n')
    log = DiagnosticLog()
    open_stage(stage, log=log)
    assert sorted(d.code for d in log.errors) == ["composition-error", "composition-error"]
    assert not any("anon:" in d.message for d in log)


@pytest.fixture
def rooted(tmp_path: Path) -> Path:
    """A stage that reaches a chain of layers through `lib://`, with assets relative to each layer."""
    write(tmp_path / "lib/parts/base.usda", '(defaultPrim = "Base")\ndef "Base" {\n asset tex = @./t.png@\n}\n')
    (tmp_path / "lib/parts/t.png").write_bytes(b"")
    write(
        tmp_path / "lib/mid.usda",
        '(defaultPrim = "Mid")\ndef "Mid" (references = @lib://parts/base.usda@)'
        " {\n uniform asset info:sourceAsset = @lib://m/X.mo@\n}\n",
    )
    write(tmp_path / "s.usda", 'def "Top" (references = @lib://mid.usda@) {}\n')
    return tmp_path


def test_named_asset_roots_reach_through_layers_and_leave_the_files_alone(rooted: Path) -> None:
    before = {p: p.read_bytes() for p in rooted.rglob("*.usda")}
    log = DiagnosticLog()
    reader = open_stage(rooted / "s.usda", asset_roots={"lib": rooted / "lib"}, log=log)
    prim = reader.stage.GetPrimAtPath("/Top")
    assert not log.items
    assert Path(prim.GetAttribute("info:sourceAsset").Get().path) == rooted / "lib/m/X.mo"
    assert Path(prim.GetAttribute("tex").Get().resolvedPath) == rooted / "lib/parts/t.png"
    assert {p: p.read_bytes() for p in rooted.rglob("*.usda")} == before


def test_locations_name_the_users_layer_not_its_copy_in_memory(rooted: Path) -> None:
    reader = open_stage(rooted / "s.usda", asset_roots={"lib": rooted / "lib"}, log=DiagnosticLog())
    prim = reader.stage.GetPrimAtPath("/Top")
    assert reader.locate(prim, "tex").layer.endswith("lib/parts/base.usda")
    assert reader.locate(prim).layer.endswith("s.usda")
    hashes = dict(layer_hashes(reader))
    assert len(hashes) == 3
    for name, digest in hashes.items():
        assert digest == hashlib.sha256(Path(name).read_bytes()).hexdigest()


def test_an_unknown_asset_root_names_the_option(rooted: Path) -> None:
    log = DiagnosticLog()
    open_stage(rooted / "s.usda", log=log)
    (finding,) = log.errors
    assert finding.code == "asset-root-unknown"
    assert "@lib://mid.usda@" in finding.message and "--asset-root lib=DIR" in finding.hint
    with pytest.raises(UsageError, match="asset-root-not-found"):
        open_stage(rooted / "s.usda", asset_roots={"lib": rooted / "none"}, log=log)


def test_layers_that_reference_each_other_through_roots_do_not_loop(tmp_path: Path) -> None:
    write(tmp_path / "a.usda", 'def "A" (references = @rr://b.usda@</B>) {}\ndef "A2" {}\n')
    write(tmp_path / "b.usda", 'def "B" (references = @rr://a.usda@</A2>) {}\n')
    log = DiagnosticLog()
    reader = open_stage(tmp_path / "a.usda", asset_roots={"rr": tmp_path}, log=log)
    assert not log.items and reader.stage.GetPrimAtPath("/A")


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    stage = write(tmp_path / "s.usda", 'def "A" {}\n')
    open_stage(stage, log=DiagnosticLog())
    write(stage, 'def "B" {}\n')
    assert open_stage(stage, log=DiagnosticLog()).stage.GetPrimAtPath("/B")


@pytest.mark.parametrize(
    "line", ["metersPerUnit = 0", "metersPerUnit = -1", "metersPerUnit = nan", "metersPerUnit = inf", 'upAxis = "W"']
)
def test_metadata_of_the_stage_that_cannot_be_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "stage.usda"
    path.write_text(f'#usda 1.0\n(\n    {line}\n)\ndef Xform "A"\n{{\n}}\n')
    log = DiagnosticLog()
    reader = open_stage(path, log=log)
    assert [d.code for d in log.errors] == ["stage-metadata-invalid"]
    assert line.split()[0] in log.errors[0].message
    assert reader.metres == (0.01 if line.startswith("upAxis") else 1.0), "0.01 is USD's own fallback"
    assert reader.up_axis == "Y"
