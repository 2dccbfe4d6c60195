"""Programs, authored values and attribute connections of a stage.

Connections are native USD attribute connections, authored on the consumer. Their source
is usually not a declared attribute (`</Box.outputs:acceleration_x>` on a prim that
declares none), so sources are resolved by path, never by looking the attribute up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from pxr import Sdf, Usd, UsdShade

from cosim.component import Connection, Direction, LinearTransformation, PortRef
from cosim.system import AuthoredValue, DeclaredPort, Program, ProgramKind
from cosim.usd.reader import StageReader, as_written

PROGRAM_SCHEMA = "LunCoProgramAPI"
_KINDS = {".fmu": ProgramKind.FMU, ".mo": ProgramKind.MODELICA, ".ssp": ProgramKind.SSP}
_PREFIXES = {"inputs:": Direction.INPUT, "outputs:": Direction.OUTPUT}


class Wiring:
    """What `read_wiring` finds: the fields of `SystemDescription` with the same names."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.unsupported: list[str] = []
        self.connections: list[Connection] = []
        self.forwards: list[Connection] = []
        self.values: list[AuthoredValue] = []
        self.declared: list[DeclaredPort] = []


def read_wiring(reader: StageReader) -> Wiring:
    """Read every program, connection and authored input value of the stage."""
    found = Wiring()
    for prim in reader.prims():
        if _is_shading(prim):
            continue
        if reader.has_schema(prim, PROGRAM_SCHEMA):
            _read_program(prim, reader, found)
        _read_ports(prim, reader, found)
    found.programs.sort(key=lambda p: p.path)
    found.unsupported.sort()
    found.connections.sort(key=lambda c: (c.target, c.source))
    found.forwards.sort(key=lambda c: (c.target, c.source))
    found.values.sort(key=lambda v: v.ref)
    found.declared.sort(key=lambda d: d.ref)
    return found


def _is_shading(prim: Usd.Prim) -> bool:
    """UsdShade prims have `inputs:` and `outputs:` of their own, which are not ports."""
    return bool(prim.IsA(UsdShade.NodeGraph) or prim.IsA(UsdShade.Shader))


# ---- programs


def _read_program(prim: Usd.Prim, reader: StageReader, found: Wiring) -> None:
    path = str(prim.GetPath())
    implementation = _typed(prim, reader, "info:implementationSource", str)
    code = _typed(prim, reader, "info:sourceCode", str)
    asset = _typed(prim, reader, "info:sourceAsset", Sdf.AssetPath)
    class_name = str(reader.get_authored(prim, "info:sourceAsset:subIdentifier") or "")
    identifier = reader.get_authored(prim, "info:id")
    reader.consume(prim, "lunco:program:communicationPeriod")
    if implementation is None:
        implementation = "sourceAsset" if asset else "sourceCode" if code else "id"
    where = reader.locate(prim, "info:sourceAsset" if asset else "")
    kind, source, authored = None, "", ""
    if implementation == "sourceAsset" and asset:
        authored = asset.authoredPath or asset.path
        source = _absolute(asset, prim)
        kind = _KINDS.get(Path(asset.path).suffix.lower())
    elif implementation == "sourceCode" and code:
        kind = ProgramKind.MODELICA
    if kind is None:
        what = authored or (f"info:id = {identifier}" if identifier else "no source")
        _declare_parameters_inert(prim, reader)
        found.unsupported.append(path)
        reader.log.warning(
            "program-unsupported",
            f"program {path} binds {what}, which cosim does not run; it has no ports here",
            where,
            hint="a program is a .fmu, .mo or .ssp file, or inline Modelica in info:sourceCode",
        )
        return
    found.programs.append(
        Program(
            path=path,
            kind=kind,
            source=source,
            authored_source=authored,
            class_name=class_name,
            code=str(code) if kind is ProgramKind.MODELICA and not source else None,
            period=_period(prim, reader),
            variables=_variables(prim, reader),
            where=where,
        )
    )


def _typed(prim: Usd.Prim, reader: StageReader, name: str, kind: Any) -> Any:
    """An authored value of the type that it must have; None, with a finding, for another one."""
    value = reader.get_authored(prim, name)
    if value is None or isinstance(value, kind):
        return value
    reader.log.error(
        "program-attribute-invalid",
        f"{name} of {prim.GetPath()} is authored with the type {prim.GetAttribute(name).GetTypeName()}",
        reader.locate(prim, name),
        hint="author a token or string, an asset path, or a number, as the attribute is",
    )
    return None


def _absolute(asset: Sdf.AssetPath, prim: Usd.Prim) -> str:
    """The file that an asset path means, whether or not it exists."""
    if asset.resolvedPath:
        return str(asset.resolvedPath)
    attribute = prim.GetAttribute("info:sourceAsset")
    for spec in attribute.GetPropertyStack(Usd.TimeCode.Default()):
        if "://" not in asset.path:
            return str(spec.layer.ComputeAbsolutePath(asset.path))
    return str(asset.path)


def _declare_parameters_inert(prim: Usd.Prim, reader: StageReader) -> None:
    """`lunco:param:` belongs to LunCoSim's own programs, which are reported as a whole."""
    reader.consume(prim, *(name for name in reader.authored_names(prim) if name.startswith("lunco:param:")))


def _period(prim: Usd.Prim, reader: StageReader) -> Fraction | None:
    value = _typed(prim, reader, "lunco:program:communicationPeriod", (int, float))
    if value is None:
        return None
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        reader.log.error(
            "period-invalid",
            f"the communication period is {number}; it must be a positive number of seconds",
            reader.locate(prim, "lunco:program:communicationPeriod"),
        )
        return None
    # Authored as a double: 0.016666666666666666 means 1/60.
    near = Fraction(number).limit_denominator(1_000_000)
    return near if abs(float(near) - number) <= 1e-8 * number else Fraction(number)


def _variables(prim: Usd.Prim, reader: StageReader) -> tuple[tuple[str, str], ...]:
    prefix = "cosim:variable:"
    names = sorted(name for name in reader.authored_names(prim) if name.startswith(prefix))
    return tuple((name.removeprefix(prefix), str(reader.get(prim, name))) for name in names)


# ---- ports


def _read_ports(prim: Usd.Prim, reader: StageReader, found: Wiring) -> None:
    path = str(prim.GetPath())
    for attribute in prim.GetAuthoredAttributes():
        name = attribute.GetName()
        if name.startswith("connectors:"):
            reader.log.warning(
                "connector-unsupported",
                f"{path}.{name} is an acausal connector, which a co-simulation cannot couple",
                reader.locate(prim, name),
                hint="connect inputs: to outputs: instead",
            )
        prefix = next((p for p in _PREFIXES if name.startswith(p)), None)
        if prefix is None:
            continue
        ref = PortRef(path, _PREFIXES[prefix], name.removeprefix(prefix))
        sources = attribute.GetConnections()
        if not sources and prim.GetPrimDefinition().GetSchemaPropertySpec(name):
            continue  # a light's own inputs:intensity is not a port
        where = reader.locate(prim, name)
        found.declared.append(DeclaredPort(ref, where))
        if sources:
            _read_connection(prim, reader, found, ref, sources)
        elif ref.direction is Direction.INPUT and attribute.HasAuthoredValue():
            _read_value(reader, found, ref, attribute)


def _read_value(reader: StageReader, found: Wiring, ref: PortRef, attribute: Usd.Attribute) -> None:
    value = as_written(attribute)
    where = reader.locate(attribute.GetPrim(), attribute.GetName())
    converted = _scalar(value)
    if converted is None:
        reader.log.error(
            "value-type",
            f"{ref} has the type {attribute.GetTypeName()}; a port takes one number, Boolean or string",
            where,
            hint="author one scalar attribute per component: _x, _y, _z",
        )
    elif isinstance(converted, float) and not math.isfinite(converted):
        reader.log.error("value-not-finite", f"the value of {ref} is {converted}", where)
    else:
        found.values.append(AuthoredValue(ref, converted, where))


def _scalar(value: Any) -> float | str | None:
    if isinstance(value, bool | int | float):
        return float(value)
    return value if isinstance(value, str) else None


def _read_connection(prim: Usd.Prim, reader: StageReader, found: Wiring, ref: PortRef, paths: list[Sdf.Path]) -> None:
    where = reader.locate(prim, f"{ref.direction.value}:{ref.name}")
    factor = _coefficient(prim, reader, f"lunco:factor:{ref.name}", 1.0)
    offset = _coefficient(prim, reader, f"lunco:offset:{ref.name}", 0.0)
    sources: list[PortRef] = []
    for path in sorted(set(paths)):
        source = _source(path)
        if source is None:
            reader.log.error(
                "connection-source-invalid",
                f"{ref} is connected to <{path}>, which is neither inputs: nor outputs:",
                where,
                hint="connect to <PRIM.outputs:NAME>",
            )
        elif not reader.stage.GetPrimAtPath(path.GetPrimPath()):
            reader.log.warning(
                "connection-dangling",
                f"{ref} is connected to <{path}>, and there is no such prim: the wire is dropped",
                where,
                hint="correct the path of the connection",
            )
        elif source == ref:
            reader.log.error("connection-source-invalid", f"{ref} is connected to itself", where)
        else:
            sources.append(source)
    for index, source in enumerate(sorted(sources)):
        # value = factor * (sum of the sources) + offset: the offset counts once per sink.
        transformation = LinearTransformation(factor, offset if index == 0 else 0.0)
        wire = Connection(source, ref, transformation, where)
        (found.connections if ref.direction is Direction.INPUT else found.forwards).append(wire)


def _source(path: Sdf.Path) -> PortRef | None:
    for prefix, direction in _PREFIXES.items():
        if path.IsPropertyPath() and path.name.startswith(prefix):
            return PortRef(str(path.GetPrimPath()), direction, path.name.removeprefix(prefix))
    return None


def _coefficient(prim: Usd.Prim, reader: StageReader, name: str, default: float) -> float:
    value = reader.get_authored(prim, name)
    if value is None:
        return default
    number = _scalar(value)
    if not isinstance(number, float) or not math.isfinite(number):
        reader.log.error(
            "value-not-finite", f"{name} is {value}; it must be a finite number", reader.locate(prim, name)
        )
        return default
    return number
