"""Small FMUs of our own, compiled when a test needs them: models that behave, and models that do not."""

from __future__ import annotations

import ctypes
import functools
import io
import zipfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cosim.component import Experiment, Port, PortRef
from cosim.diagnostic import DiagnosticLog
from cosim.fmi import Fmu, FmuComponent, open_fmu
from cosim.fmi.library import platform_folders
from cosim.native.toolchain import compile_shared, library_suffix

HERE = Path(__file__).resolve().parent
UNITS = (
    '<UnitDefinitions><Unit name="rpm_own"><BaseUnit rad="1" s="-1" factor="0.104719755119660"/></Unit>'
    '<Unit name="degC"><BaseUnit K="1" offset="273.15"/></Unit></UnitDefinitions>'
)

# (name, reference, causality, variability, type, attributes of the type, ports that it depends on)
VARIABLES_2 = (
    ("u", 0, "input", "continuous", "Real", 'start="0" unit="rpm_own" min="-1e6" max="1e6" nominal="10"', None),
    ("gain", 1, "parameter", "tunable", "Real", 'start="1"', None),
    ("offset", 2, "parameter", "fixed", "Real", 'start="0"', None),
    ("y", 3, "output", "continuous", "Real", 'unit="rpm_own"', "1"),
    ("imu.x[1,2]", 4, "output", "continuous", "Real", "", ""),
    ("clock time", 5, "local", "continuous", "Real", "", None),
    ("i_in", 0, "input", "discrete", "Integer", 'start="0"', None),
    ("i_out", 1, "output", "discrete", "Integer", "", "7"),
    ("b_in", 0, "input", "discrete", "Boolean", 'start="false"', None),
    ("b_out", 1, "output", "discrete", "Boolean", "", "9"),
    ("s_in", 0, "input", "discrete", "String", 'start="a"', None),
    ("s_out", 1, "output", "discrete", "String", "", "11"),
    ("h", 6, "local", "discrete", "Real", "", None),
)
REAL_2 = VARIABLES_2[:6]
_WHOLE = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
VARIABLES_3 = (
    ("time", 999, "independent", "continuous", "Float64", "", None),
    ("u", 0, "input", "continuous", "Float64", 'start="0" unit="rpm_own"', None),
    ("gain", 1, "parameter", "tunable", "Float64", 'start="1"', None),
    ("offset", 2, "parameter", "fixed", "Float64", 'start="0"', None),
    ("y", 3, "output", "continuous", "Float64", 'unit="rpm_own"', "0"),
    ("imu.x[1,2]", 4, "output", "continuous", "Float64", "", ""),
    ("clock time", 5, "local", "continuous", "Float64", "", None),
    ("q", 10, "input", "continuous", "Float64", 'start="1 2 3"', None, (3,)),
    ("r", 11, "output", "continuous", "Float64", "", "10", (3,)),
    ("m", 12, "output", "continuous", "Float64", "", "10", (2, 2)),
    *(
        row
        for kind in ("Float32", *_WHOLE)
        for row in (
            (f"{kind}_in", 20, "input", "discrete", kind, 'start="0"', None),
            (f"{kind}_out", 21, "output", "discrete", kind, "", None),
        )
    ),
    ("b_in", 20, "input", "discrete", "Boolean", 'start="false"', None),
    ("b_out", 21, "output", "discrete", "Boolean", "", None),
    ("s_in", 20, "input", "discrete", "String", "", None),
    ("s_out", 21, "output", "discrete", "String", "", None),
    ("d_in", 20, "input", "discrete", "Binary", "", None),
    ("d_out", 21, "output", "discrete", "Binary", "", None),
)
REAL_3 = VARIABLES_3[:10]


def describe(
    version: str,
    variables: Sequence[tuple[Any, ...]],
    *,
    token: str = "{zoo}",
    attributes: str = "",
    identifier: str = "zoo",
    structure: str | None = None,
    before: str = "",
) -> str:
    """A modelDescription.xml."""
    state = "canGetAndSetFMUstate" if version == "2.0" else "canGetAndSetFMUState"
    if "canGetAndSet" not in attributes:
        attributes += f' {state}="true"'
    guid = "guid" if version == "2.0" else "instantiationToken"
    body = "".join((_scalar2 if version == "2.0" else _variable3)(*row) for row in variables)
    if structure is None:
        structure = (_structure2 if version == "2.0" else _structure3)(variables)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{before}\n'
        f'<fmiModelDescription fmiVersion="{version}" modelName="Zoo" {guid}="{token}" generationTool="tests">\n'
        f'<CoSimulation modelIdentifier="{identifier}" canHandleVariableCommunicationStepSize="true" {attributes}/>\n'
        f'{UNITS}<LogCategories><Category name="logStatusError"/></LogCategories>\n'
        '<DefaultExperiment startTime="0" stopTime="1" stepSize="0.1"/>\n'
        f"<ModelVariables>\n{body}</ModelVariables>\n{structure}\n</fmiModelDescription>\n"
    )


def _scalar2(name: str, reference: int, causality: str, variability: str, kind: str, attributes: str, _: Any) -> str:
    initial = (
        ' initial="exact"' if causality == "parameter" else ' initial="calculated"' if causality == "output" else ""
    )
    return (
        f'<ScalarVariable name="{name}" valueReference="{reference}" causality="{causality}" '
        f'variability="{variability}"{initial}><{kind} {attributes}/></ScalarVariable>\n'
    )


def _variable3(
    name: str, reference: int, causality: str, variability: str, kind: str, attributes: str, _: Any, shape: Any = ()
) -> str:
    inner = "".join(f'<Dimension start="{n}"/>' for n in shape)
    return (
        f'<{kind} name="{name}" valueReference="{reference}" causality="{causality}" variability="{variability}" '
        f"{attributes}>{inner}</{kind}>\n"
    )


def _dependencies(row: tuple[Any, ...]) -> str:
    return "" if row[6] is None else f' dependencies="{row[6]}"'


def _structure2(variables: Sequence[tuple[Any, ...]]) -> str:
    rows = "".join(
        f'<Unknown index="{k}"{_dependencies(row)}/>' for k, row in enumerate(variables, 1) if row[2] == "output"
    )
    return f"<ModelStructure><Outputs>{rows}</Outputs></ModelStructure>"


def _structure3(variables: Sequence[tuple[Any, ...]]) -> str:
    outputs = [row for row in variables if row[2] == "output" and row[1] != 21]
    rows = "".join(f'<Output valueReference="{row[1]}"{_dependencies(row)}/>' for row in outputs)
    return f"<ModelStructure>{rows}</ModelStructure>"


@functools.cache
def library(source: str, defines: tuple[str, ...]) -> bytes:
    """A compiled shared library, as bytes."""
    pairs = dict(([*d.split("=", 1), ""])[:2] for d in defines)
    return compile_shared([HERE / source], name=Path(source).stem, defines=pairs, flags=["-O1"]).read_bytes()


def pack(file: Path, entries: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> Path:
    """A zip archive, also with entries that nobody should write."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr, info.create_system = 0o120777 << 16, 3
            archive.writestr(info, target)
    file.write_bytes(content.getvalue())
    return file


# (name, reference, causality, variability, attributes, what it is the derivative of)
_EXCHANGE = (
    ("h", 0, "output", "continuous", "", None),
    ("v", 1, "output", "continuous", "", None),
    ("x", 2, "output", "continuous", "", None),
    ("der(h)", 3, "local", "continuous", "", 0),
    ("der(v)", 4, "local", "continuous", "", 1),
    ("der(x)", 5, "local", "continuous", "", 2),
    ("u", 6, "input", "continuous", 'start="0"', None),
    ("rate", 7, "parameter", "fixed", 'start="1"', None),
    ("ticks", 8, "output", "discrete", "", None),
    ("bounces", 9, "output", "discrete", "", None),
)


def build_exchange(folder: Path, version: str, *defines: str, name: str = "me") -> Path:
    """A model exchange FMU: a bouncing ball, a lag of `u`, and a clock that ticks each 0.25 s."""
    second = version == "2.0"
    rows = []
    for variable, reference, causality, variability, start, of in _EXCHANGE:
        head = f'name="{variable}" valueReference="{reference}" causality="{causality}" variability="{variability}"'
        if second:
            derivative = "" if of is None else f'derivative="{of + 1}"'
            rows.append(f"<ScalarVariable {head}><Real {start} {derivative}/></ScalarVariable>")
        else:
            derivative = "" if of is None else f'derivative="{of}"'
            rows.append(f"<Float64 {head} {start} {derivative}/>")
    derivatives = [row for row in _EXCHANGE if row[5] is not None]
    if second:
        structure = (
            "<Outputs/><Derivatives>"
            + "".join(f'<Unknown index="{r[1] + 1}"/>' for r in derivatives)
            + "</Derivatives>"
        )
    else:
        structure = "".join(f'<ContinuousStateDerivative valueReference="{r[1]}"/>' for r in derivatives)
        structure += '<EventIndicator valueReference="0"/>'
    state = "canGetAndSetFMUstate" if second else 'needsCompletedIntegratorStep="true" canGetAndSetFMUState'
    token = 'guid="{ball}" numberOfEventIndicators="1"' if second else 'instantiationToken="{ball}"'
    xml = (
        f'<fmiModelDescription fmiVersion="{version}" modelName="Ball" {token}>'
        f'<ModelExchange modelIdentifier="ball" {state}="true"/>'
        f"<ModelVariables>{''.join(rows)}</ModelVariables><ModelStructure>{structure}</ModelStructure>"
        "</fmiModelDescription>"
    )
    binary = f"binaries/{platform_folders(int(version[0]))[0]}/ball{library_suffix()}"
    content = library("ball.c", (f"FMI={version[0]}", *defines))
    return pack(folder / f"{name}{version[0]}.fmu", {"modelDescription.xml": xml, binary: content})


def entries(version: str, *defines: str, xml: str | None = None, **options: Any) -> dict[str, str | bytes]:
    """The content of a good FMU."""
    major = int(version[0])
    only_real = "ONLY_REAL" in defines
    variables = (
        options.pop("variables", None)
        or ({2: REAL_2, 3: REAL_3} if only_real else {2: VARIABLES_2, 3: VARIABLES_3})[major]
    )
    binary = f"binaries/{platform_folders(major)[0]}/zoo{library_suffix()}"
    return {
        "modelDescription.xml": xml or describe(version, variables, **options),
        binary: library(f"zoo{major}.c", tuple(defines)),
    }


def build(folder: Path, version: str = "2.0", *defines: str, name: str = "zoo", **options: Any) -> Path:
    """An FMU file; `defines` choose what it does wrong, `options` go to `describe`."""
    return pack(folder / f"{name}.fmu", entries(version, *defines, **options))


class Bench:
    """A component with bound ports, driven by hand.

    Args:
        path: the FMU.
        inputs: names of the inputs to bind, all of them by default.
        outputs: names of the outputs to bind, all causality `output` by default.
    """

    def __init__(
        self,
        path: Path,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        step: str = "1/10",
        stop: str | None = None,
        kind: Any = FmuComponent,
        **options: Any,
    ) -> None:
        self.log = DiagnosticLog()
        self.fmu: Fmu = open_fmu(path, log=self.log)
        self.component: Any = kind(self.fmu, "/P", log=self.log, **options)
        by_name = {(p.ref.direction.value, p.ref.name): p for p in self.component.ports()}
        self.ports = by_name
        self.inputs = self._choose("inputs", inputs, "input")
        self.outputs = self._choose("outputs", outputs, "output")
        self.component.bind(self.inputs, self.outputs)
        self.numeric_in = [p for p in self.inputs if p.type.is_numeric]
        self.numeric_out = [p for p in self.outputs if p.type.is_numeric]
        self.experiment = Experiment(step=Fraction(step), stop=None if stop is None else Fraction(stop))
        self.tick = 0

    def _choose(self, side: str, names: Sequence[str] | None, causality: str) -> list[Port]:
        if names is not None:
            return [self.ports[side, n] for n in names]
        return [p for p in self.component.ports() if p.causality == causality and p.ref.direction == side]

    def port(self, name: str, side: str = "inputs") -> Port:
        """A port by name."""
        return self.ports[side, name]

    def start(self, **values: Any) -> Bench:
        """Initialize with start values by port name."""
        self.component.enter_initialization(self.experiment, [(self.port(n), v) for n, v in values.items()])
        self.component.exit_initialization()
        return self

    def set(self, **values: float) -> None:
        """Write inputs; those not named are NaN: not driven."""
        array = np.full(len(self.numeric_in), np.nan)
        for name, value in values.items():
            array[[p.ref.name for p in self.numeric_in].index(name)] = value
        self.component.set_inputs(array)

    def step(self, ticks: int = 1) -> None:
        """Advance."""
        self.component.step(self.tick, ticks)
        self.tick += ticks

    def get(self) -> dict[str, float]:
        """The bound numeric outputs by name."""
        array = np.full(len(self.numeric_out), np.nan)
        self.component.get_outputs(array)
        return {p.ref.name: float(v) for p, v in zip(self.numeric_out, array, strict=True)}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.component.close()


def live(fmu: Fmu) -> int:
    """Instances that were made and not freed, plus 1000 per state; the FMU itself counts."""
    from cosim.fmi import library as loaded

    keys = [k for k in loaded._libraries if k[0] == fmu.sha256]
    return ctypes.c_int.in_dll(loaded._libraries[keys[0]]._library, "zoo_live").value


def ref(name: str, side: str = "inputs") -> PortRef:
    """An address of the component under test."""
    return PortRef.parse(f"/P.{side}:{name}")
