"""Opening a stage: named asset roots, and everything USD complains about as diagnostics.

usd-core's Python offers no asset resolver of one's own, so asset paths with a scheme
such as `@lunco://scenes/base.usda@` are mapped on the way in: every layer that needs it
is copied into memory with absolute paths, and the user's files stay untouched. The
reader keeps the names of the original layers for its messages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pxr import Sdf, Tf, Usd, UsdUtils

from cosim.diagnostic import DiagnosticLog, SourceLocation, StageError, UsageError
from cosim.usd.reader import StageReader

SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(.*)$")
_LAYER_SUFFIXES = (".usda", ".usd", ".usdc", ".usdz")
_PARSE_ERROR = re.compile(r"'?([^'\n]*?):(\d+)(?::(\d+))?(?:\))?: (.*?)'?\s*$", re.MULTILINE)
_OPEN_FAILURE = re.compile(
    r"^In <(?P<prim>[^>]*)>: Could not open asset @(?P<asset>.*?)@ for (?P<arc>\w+) "
    r"introduced by @(?P<layer>.*?)@(?:<[^>]*>)?\.?(?: -- (?P<detail>.*))?$",
    re.DOTALL,
)
_SUBLAYER_FAILURE = re.compile(
    r"^Could not load sublayer @(?P<asset>.*?)@ of layer @(?P<layer>.*?)@(?: -- (?P<detail>.*?))?; skipping",
    re.DOTALL,
)
_OTHER_FAILURE = re.compile(r"^In <(?P<prim>[^>]*)>: (?P<detail>.*)$", re.DOTALL)


def open_stage(path: Path | str, *, asset_roots: Mapping[str, Path] | None = None, log: DiagnosticLog) -> StageReader:
    """Open and compose a stage.

    Args:
        path: the root layer.
        asset_roots: scheme → folder; `lunco` → DIR makes `@lunco://x@` mean `DIR/x`.
        log: gets composition errors and USD's own warnings.

    Raises:
        UsageError: the file or the folder of an asset root does not exist.
        StageError: the file is not USD, or does not parse.
    """
    file = Path(path)
    if not file.is_file():
        what = "is a folder, not a stage" if file.is_dir() else "does not exist"
        raise UsageError.of("stage-not-found", f"{file} {what}", hint="give a .usda, .usd, .usdc or .usdz file")
    _check_roots(asset_roots or {})
    with _captured_warnings() as captured:
        mapping = _LayerMapping(asset_roots or {})
        try:
            root = mapping.root(file)
            stage = Usd.Stage.Open(root)
        except Tf.ErrorException as error:
            raise _open_error(file, str(error)) from None
    reader = StageReader(stage, log, mapping.names)
    for message in captured:
        _report_warning(message, mapping.names, log)
    return reader


def layer_hashes(reader: StageReader) -> tuple[tuple[str, str], ...]:
    """Every layer of the stage that is a file, by the user's name, with the SHA-256 of its bytes."""
    found: dict[str, str] = {}
    for layer in reader.stage.GetUsedLayers():
        name = reader.layer_name(layer)
        source = Path(name)
        if source.is_file():
            found[_short(name)] = hashlib.sha256(source.read_bytes()).hexdigest()
    return tuple(sorted(found.items()))


def _check_roots(roots: Mapping[str, Path]) -> None:
    for name, folder in sorted(roots.items()):
        if not Path(folder).is_dir():
            raise UsageError.of(
                "asset-root-not-found",
                f"asset root {name!r} is {folder}, which is not a folder",
                hint=f"give an existing folder: --asset-root {name}=DIR",
            )


def _short(name: str) -> str:
    """A layer file relative to the working folder where that is shorter."""
    try:
        return str(Path(name).relative_to(Path.cwd()))
    except ValueError:
        return name


class _LayerMapping:
    """Copies in memory of the layers that use asset schemes, directly or through others."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = {name: Path(folder).resolve() for name, folder in roots.items()}
        self.names: dict[str, str] = {}
        self._copies: dict[str, Sdf.Layer] = {}

    def root(self, file: Path) -> Sdf.Layer:
        """The root layer, or its copy."""
        layer = Sdf.Layer.FindOrOpen(str(file))
        if layer is None:
            raise StageError.of("stage-not-usd", f"{file} is not a USD layer", SourceLocation(str(file)))
        layers = self._reachable(layer)
        needed = self._needing_copy(layers)
        for identifier in needed:
            original = layers[identifier]
            copy = Sdf.Layer.CreateAnonymous(Path(identifier).name)
            self._copies[identifier] = copy
            self.names[copy.identifier] = _short(original.realPath)
        for identifier in needed:
            original, copy = layers[identifier], self._copies[identifier]
            copy.TransferContent(original)
            UsdUtils.ModifyAssetPaths(copy, lambda asset, at=original: self._mapped(asset, at))
        for layer_id, plain in layers.items():
            if layer_id not in self._copies:
                self.names[plain.identifier] = _short(plain.realPath)
        return self._copies.get(layer.identifier, layer)

    def _reachable(self, root: Sdf.Layer) -> dict[str, Sdf.Layer]:
        """Layers that the root reaches through composition arcs, by identifier, breadth first."""
        found = {root.identifier: root}
        queue = [root]
        while queue:
            layer = queue.pop(0)
            if not layer.dirty:
                layer.Reload()  # USD caches layers per process; a notebook loads again after an edit
            for asset in sorted(layer.GetCompositionAssetDependencies()):
                target = self._file(asset, layer)
                if not target.endswith(_LAYER_SUFFIXES) or not Path(target).is_file():
                    continue
                try:
                    other = Sdf.Layer.FindOrOpen(target)
                except Tf.ErrorException:
                    continue  # composition meets the same layer and reports it with the arc
                if other is not None and other.identifier not in found:
                    found[other.identifier] = other
                    queue.append(other)
        return found

    def _needing_copy(self, layers: Mapping[str, Sdf.Layer]) -> list[str]:
        """Layers with scheme paths, and those that reach one (their paths must lead to the copy)."""
        if not self._roots:
            return []
        needed = {
            identifier
            for identifier, layer in layers.items()
            if any(SCHEME.match(asset) for asset in _asset_paths(layer))
        }
        while True:
            more = {
                identifier
                for identifier, layer in layers.items()
                if identifier not in needed
                and any(self._file(asset, layer) in needed for asset in layer.GetCompositionAssetDependencies())
            }
            if not more:
                return sorted(needed)
            needed |= more

    def _file(self, asset: str, layer: Sdf.Layer) -> str:
        """The absolute file that an asset path means; a path of an unknown scheme is left as it is."""
        match = SCHEME.match(asset)
        if match is None:
            return str(layer.ComputeAbsolutePath(asset))
        folder = self._roots.get(match[1])
        return str(folder / match[2]) if folder else asset

    def _mapped(self, asset: str, layer: Sdf.Layer) -> str:
        target = self._file(asset, layer)
        copy = self._copies.get(target)
        return str(copy.identifier) if copy is not None else target


def _asset_paths(layer: Sdf.Layer) -> list[str]:
    """Every asset path that a layer holds, in arcs, attributes and metadata."""
    found: list[str] = []
    scratch = Sdf.Layer.CreateAnonymous()
    scratch.TransferContent(layer)

    def collect(asset: str) -> str:
        found.append(asset)
        return asset

    UsdUtils.ModifyAssetPaths(scratch, collect)
    return found


@contextmanager
def _captured_warnings() -> Iterator[list[str]]:
    """Collect USD's warnings, which it would print to stderr."""
    captured: list[str] = []
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield captured
    finally:
        captured += [str(item.commentary) for item in delegate.TakeUncoalescedDiagnostics()]
        del delegate


def _open_error(file: Path, text: str) -> StageError:
    """A Tf error of opening the root layer, with the position that its text holds."""
    for match in _PARSE_ERROR.finditer(text):
        name, line, column, message = match.groups()
        if name.strip().endswith(_LAYER_SUFFIXES):
            where = SourceLocation(_short(name.strip()), line=int(line), column=int(column) if column else None)
            return StageError.of("stage-syntax", f"the layer does not parse: {message.strip()}", where)
    if "Cannot determine file format" in text:
        return StageError.of(
            "stage-not-usd",
            f"{file} is not a USD layer",
            SourceLocation(str(file)),
            hint="give a .usda, .usd, .usdc or .usdz file",
        )
    causes = re.findall(r": '(.*?)'\s*$", text, re.MULTILINE | re.DOTALL)
    return StageError.of(
        "stage-not-usd", f"USD cannot open {file}: {'; '.join(causes) or text.strip()}", SourceLocation(str(file))
    )


def _report_warning(text: str, names: Mapping[str, str], log: DiagnosticLog) -> None:
    """One of USD's composition messages as a diagnostic."""
    text = re.sub(r",?@anon:[^@]*-session\.usda@", "", text)
    text = re.sub(r" \((?:instantiating|recomposing) stage on stage .*$", "", text, flags=re.DOTALL).strip()
    for identifier, name in names.items():
        text = text.replace(identifier, name)
    sublayer, asset = _SUBLAYER_FAILURE.match(text), _OPEN_FAILURE.match(text)
    if sublayer:
        _report_missing(sublayer["asset"], "sublayer", sublayer["detail"], SourceLocation(sublayer["layer"]), log)
    elif asset:
        where = SourceLocation(asset["layer"], asset["prim"])
        _report_missing(asset["asset"], asset["arc"], asset["detail"], where, log)
    elif other := _OTHER_FAILURE.match(text):
        log.error("composition-error", " ".join(other["detail"].split()), SourceLocation("", other["prim"]))
    else:
        log.warning("usd-warning", " ".join(text.split()))


def _report_missing(asset: str, arc: str, detail: str | None, where: SourceLocation, log: DiagnosticLog) -> None:
    scheme = SCHEME.match(asset)
    if detail:
        parse = _PARSE_ERROR.search(detail)
        place = (SourceLocation(_short(parse[1]), line=int(parse[2])),) if parse else ()
        log.error(
            "composition-layer-broken",
            f"the {arc} @{asset}@ does not parse: {parse[4] if parse else detail.strip()}",
            where,
            related=place,
        )
    elif scheme and not Path(asset).is_absolute():
        log.error(
            "asset-root-unknown",
            f"the {arc} @{scheme[1]}://{scheme[2].lstrip('/')}@ needs the asset root {scheme[1]!r}, which is not given",
            where,
            hint=f"give its folder: --asset-root {scheme[1]}=DIR",
        )
    else:
        log.error(
            "composition-asset-missing",
            f"the {arc} @{_short(asset)}@ cannot be opened: no such file",
            where,
            hint="correct the asset path, or give an asset root with --asset-root NAME=DIR",
        )
