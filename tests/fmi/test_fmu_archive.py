"""Archives and descriptions from anywhere: what is dangerous is refused, what is odd is reported."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cosim.component import PortType
from cosim.diagnostic import DiagnosticLog, FmuError
from cosim.fmi import open_fmu
from cosim.fmi.alias import element_name, port_name
from cosim.fmi.archive import ArchiveLimits
from tests.fmi.fmi_zoo import REAL_2, VARIABLES_2, Bench, build, describe, entries, pack


def _refused(path: Path, code: str, **options: object) -> str:
    with pytest.raises(FmuError) as error:
        open_fmu(path, log=DiagnosticLog(), **options)  # type: ignore[arg-type]
    assert error.value.diagnostics[0].code == code
    assert error.value.diagnostics[0].where is not None
    return str(error.value)


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


@pytest.fixture
def good() -> dict[str, str | bytes]:
    return entries("2.0")


@pytest.mark.parametrize(
    "name",
    ["../escaped", "a/../../escaped", "/escaped", "..\\escaped", "a\\b", "C:/escaped", "binaries/../../escaped"],
)
def test_entries_that_leave_the_folder(tmp_path: Path, good: dict[str, str | bytes], name: str) -> None:
    path = pack(tmp_path / "bad.fmu", {**good, name: "x"})
    cache = Path(os.environ["COSIM_CACHE_DIR"])
    before = _files(cache)
    assert repr(name) in _refused(path, "fmu-entry-refused")
    assert _files(cache) == before
    assert _files(tmp_path) == {"bad.fmu"}


def test_links_are_refused(tmp_path: Path, good: dict[str, str | bytes]) -> None:
    path = pack(tmp_path / "bad.fmu", good, links={"resources": "../.."})
    assert "symbolic link" in _refused(path, "fmu-entry-refused")


def test_an_entry_with_a_plain_dot_is_the_same_file(tmp_path: Path, good: dict[str, str | bytes]) -> None:
    path = pack(tmp_path / "dot.fmu", {f"./{name}": data for name, data in good.items()})
    assert open_fmu(path, log=DiagnosticLog()).description.model_name == "Zoo"


def test_bombs(tmp_path: Path, good: dict[str, str | bytes]) -> None:
    path = pack(tmp_path / "bomb.fmu", {**good, "resources/big": bytes(100 << 20)})
    assert "times its size" in _refused(path, "fmu-archive-too-large")
    assert "MiB" in _refused(path, "fmu-archive-too-large", limits=ArchiveLimits(total_size=1 << 20))
    assert "entries" in _refused(path, "fmu-archive-too-large", limits=ArchiveLimits(entries=2))
    assert open_fmu(path, log=DiagnosticLog(), limits=ArchiveLimits(ratio=1e6)).resources.is_dir()


def test_no_archive(tmp_path: Path, good: dict[str, str | bytes]) -> None:
    (tmp_path / "text.fmu").write_text("not a zip")
    _refused(tmp_path / "text.fmu", "fmu-not-an-archive")
    _refused(tmp_path / "absent.fmu", "fmu-unreadable")
    _refused(tmp_path, "fmu-unreadable")
    path = pack(tmp_path / "cut.fmu", good)
    path.write_bytes(path.read_bytes()[:-400])
    _refused(path, "fmu-not-an-archive")
    damaged = pack(tmp_path / "damaged.fmu", good)
    content = bytearray(damaged.read_bytes())
    content[200:220] = bytes(20)
    damaged.write_bytes(content)
    _refused(damaged, "fmu-not-an-archive")
    _refused(pack(tmp_path / "empty.fmu", {"x": "y"}), "fmu-description-missing")


def test_a_content_is_extracted_and_read_once(tmp_path: Path) -> None:
    first = open_fmu(build(tmp_path, name="a"), log=DiagnosticLog())
    second = open_fmu(build(tmp_path, name="b"), log=DiagnosticLog())
    assert first.folder == second.folder
    assert first.description is second.description
    assert first.path != second.path
    assert not [p for p in first.folder.parent.iterdir() if p.name.startswith(".")]


# ---- descriptions


def _with(tmp_path: Path, xml: str | bytes) -> Path:
    return pack(tmp_path / "x.fmu", {**entries("2.0"), "modelDescription.xml": xml})


def test_entities_are_refused_at_once(tmp_path: Path) -> None:
    bomb = "<!DOCTYPE b [<!ENTITY l0 'lol'>" + "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 10))
    outside = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    started = time.perf_counter()
    for before in (bomb + "]>", outside, "<!DOCTYPE fmiModelDescription>"):
        xml = describe("2.0", REAL_2, before=before).replace('"Zoo"', '"&l9;"')
        assert "DOCTYPE" in _refused(_with(tmp_path, xml), "fmu-description-invalid")
        _refused(_with(tmp_path, xml.replace("UTF-8", "UTF-16").encode("utf-16")), "fmu-description-invalid")
    assert time.perf_counter() - started < 10.0


def test_broken_xml_names_the_line(tmp_path: Path) -> None:
    xml = describe("2.0", REAL_2).replace("</ModelVariables>", "</ModelVariable>")
    assert "modelDescription.xml:" in _refused(_with(tmp_path, xml), "fmu-description-invalid")
    _refused(_with(tmp_path, ""), "fmu-description-invalid")


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "a b", "1a", "ü", "zoo\n"])
def test_an_identifier_that_is_none(tmp_path: Path, name: str) -> None:
    _refused(_with(tmp_path, describe("2.0", REAL_2, identifier=name)), "fmu-identifier-invalid")


def test_versions(tmp_path: Path) -> None:
    for version in ("4.0", "", "x"):
        xml = describe("2.0", REAL_2).replace('fmiVersion="2.0"', f'fmiVersion="{version}"')
        _refused(_with(tmp_path, xml), "fmu-version-unsupported")
    _refused(_with(tmp_path, "<ssd/>"), "fmu-version-unsupported")


def test_what_cannot_run_here(tmp_path: Path) -> None:
    _refused(_with(tmp_path, describe("2.0", REAL_2, attributes='needsExecutionTool="true"')), "fmu-needs-tool")
    xml = describe("2.0", REAL_2).replace("<CoSimulation", "<Nothing")
    _refused(_with(tmp_path, xml), "fmu-interface-missing")
    path = pack(
        tmp_path / "other.fmu",
        {"modelDescription.xml": describe("2.0", REAL_2), "binaries/vax64/zoo.so": b"", "binaries/c64/zoo.prg": b""},
    )
    text = _refused(path, "fmu-platform-missing")
    assert "vax64 (zoo.so)" in text
    assert "c64 (zoo.prg)" in text


def test_a_library_that_is_none(tmp_path: Path) -> None:
    content = {name: (b"junk" if name.startswith("binaries") else data) for name, data in entries("2.0").items()}
    with (
        Bench(pack(tmp_path / "junk.fmu", content), [], []) as bench,
        pytest.raises(FmuError, match="fmu-library-unloadable"),
    ):
        bench.start()


def test_odd_descriptions_run_with_findings(tmp_path: Path) -> None:
    good = describe("2.0", REAL_2)
    rows = [*VARIABLES_2, VARIABLES_2[0]]
    odd = {
        "fmu-name-duplicate": describe("2.0", rows),
        "fmu-name-too-long": good.replace('"imu.x[1,2]"', f'"{"a" * 100_000}"'),
        "fmu-structure-invalid": good.replace('index="4"', 'index="99"'),
        "fmu-structure-missing": describe("2.0", REAL_2, structure=""),
        "fmu-start-out-of-range": good.replace('start="0" unit', 'start="2e6" unit'),
        "fmu-unit-unknown": good.replace('unit="rpm_own"', 'unit="furlong"', 1),
        "fmu-value-invalid": good.replace('start="1"', 'start="one"'),
        "fmu-variable-invalid": good.replace('valueReference="5"', 'valueReference="-1"'),
    }
    for code, xml in odd.items():
        with Bench(_with(tmp_path, xml), ["u"], ["y"]) as bench:
            found = [d.code for d in bench.log]
            assert code in found, (code, found)
            assert not bench.log.errors
            bench.start()
            bench.set(u=3.0)
            assert bench.get() == {"y": 3.0}


def test_an_output_without_known_dependencies_depends_on_everything(tmp_path: Path) -> None:
    for xml in (describe("2.0", REAL_2, structure=""), describe("2.0", REAL_2).replace(' dependencies="1"', "")):
        bench = Bench(_with(tmp_path, xml))
        assert bench.component.dependencies(bench.port("y", "outputs").ref) is None


def test_a_byte_order_mark_is_harmless(tmp_path: Path) -> None:
    xml = "\ufeff" + describe("2.0", REAL_2)
    assert open_fmu(_with(tmp_path, xml), log=DiagnosticLog()).description.token == "{zoo}"


def test_a_value_reference_that_the_binary_does_not_know(tmp_path: Path) -> None:
    from cosim.diagnostic import StepError

    xml = describe("2.0", REAL_2).replace('valueReference="3"', 'valueReference="4294967295"')
    with Bench(_with(tmp_path, xml), ["u"], ["y"]) as bench:
        bench.start()
        with pytest.raises(StepError, match="fmi2GetReal was answered with Error"):
            bench.get()


def test_declared_types_are_inherited(tmp_path: Path) -> None:
    types = (
        '<TypeDefinitions><SimpleType name="Speed"><Real unit="m/s" min="-3" nominal="2"/></SimpleType>'
        '<SimpleType name="Mode"><Enumeration><Item name="off" value="1"/></Enumeration></SimpleType></TypeDefinitions>'
    )
    xml = (
        describe("2.0", VARIABLES_2)
        .replace("<LogCategories>", types + "<LogCategories>")
        .replace('<Real start="1"/>', '<Real start="1" min="0" declaredType="Speed" relativeQuantity="true"/>')
        .replace('<Integer start="0"/>', '<Enumeration start="1" declaredType="Mode"/>')
    )
    bench = Bench(_with(tmp_path, xml))
    gain = bench.port("gain")
    assert (gain.unit_name, gain.minimum, gain.nominal, gain.relative) == ("m/s", 0.0, 2.0, True)
    assert bench.port("i_in").type is PortType.ENUMERATION


def test_clocks_have_no_ports_and_are_named(tmp_path: Path) -> None:
    from tests.fmi.fmi_zoo import REAL_3

    rows = [*REAL_3, ("tick", 40, "input", "discrete", "Clock", 'intervalVariability="triggered"', None)]
    bench = Bench(build(tmp_path, "3.0", variables=rows))
    (found,) = [d for d in bench.log if d.code == "fmu-clock-unsupported"]
    assert "tick" in found.message
    assert ("inputs", "tick") not in bench.ports


def test_a_local_loses_its_name_to_an_output(tmp_path: Path) -> None:
    rows = [("u", *REAL_2[0][1:]), *REAL_2[1:5], ("y", *REAL_2[5][1:])]
    rows[3] = ("y", *REAL_2[3][1:])
    rows[5] = ("y ", *REAL_2[5][1:])
    rows[3] = ("y_", *REAL_2[3][1:])
    bench = Bench(build(tmp_path, variables=rows))
    assert bench.port("y_", "outputs").causality == "output"
    assert [d.code for d in bench.log] == ["fmu-local-hidden"]


def test_internals_of_a_huge_fmu_are_found_but_not_listed(tmp_path: Path) -> None:
    rows = [*REAL_2, *((f"inner.v{k}", 5, "local", "continuous", "Real", "", None) for k in range(15_000))]
    started = time.perf_counter()
    bench = Bench(build(tmp_path, variables=rows))
    assert time.perf_counter() - started < 20.0
    assert len(bench.ports) == 5
    from tests.fmi.fmi_zoo import ref

    found = bench.component.find(ref("inner:v14999", "outputs"))
    assert found is not None
    assert found.variable == "inner.v14999"


# ---- names


@pytest.mark.parametrize(
    ("variable", "port"),
    [
        ("imu.gyro[1]", "imu:gyro_1"),
        ("q[1,2]", "q_1_2"),
        ("q[ 1 , 2 ].x", "q_1_2:x"),
        ("der(x)", "der_x_"),
        ("'a b'.c", "_a_b_:c"),
        ("a..b", "a:_:b"),
        ("1.2", "_1:_2"),
        ("größe", "größe"),
        ("a[b]", "a_b_"),
        ("", "_"),
    ],
)
def test_s3_alias_rule(variable: str, port: str) -> None:
    assert port_name(variable) == port


def test_element_names() -> None:
    assert element_name("q", (1, 2)) == "q[1,2]"
