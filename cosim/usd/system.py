"""The one door from a stage file to a `SystemDescription`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cosim.diagnostic import DiagnosticLog
from cosim.system import SystemDescription
from cosim.usd.physics import read_mechanism
from cosim.usd.reader import StageReader
from cosim.usd.stage import layer_hashes, open_stage
from cosim.usd.wiring import read_wiring


def read_system(
    path: Path | str, *, asset_roots: Mapping[str, Path] | None = None, log: DiagnosticLog
) -> SystemDescription:
    """Read a stage.

    Args:
        path: the root layer.
        asset_roots: scheme → folder for asset paths such as `@lunco://x@`.
        log: gets every finding; errors in it mean that the description must not be run.

    Raises:
        StageError: the stage cannot be opened at all.
    """
    reader = open_stage(path, asset_roots=asset_roots, log=log)
    mechanism = read_mechanism(reader)
    wiring = read_wiring(reader)
    reader.report_unrealised()
    return SystemDescription(
        stage=str(path),
        mechanism=mechanism,
        programs=tuple(wiring.programs),
        unsupported=tuple(wiring.unsupported),
        connections=tuple(wiring.connections),
        forwards=tuple(wiring.forwards),
        values=tuple(wiring.values),
        declared=tuple(wiring.declared),
        summary=_summary(reader),
        layers=layer_hashes(reader),
        metres_per_unit=reader.metres,
        kilograms_per_unit=reader.kilograms,
        up_axis=reader.up_axis,
    )


def _summary(reader: StageReader) -> tuple[str, ...]:
    """`customLayerData = {string[] "cosim:summary" = [...]}` of the root layer."""
    found = reader.stage.GetRootLayer().customLayerData.get("cosim:summary", ())
    return (found,) if isinstance(found, str) else tuple(str(name) for name in found)
