"""Unpack an FMU safely, once per content.

An FMU is a zip file from anywhere. Every entry is judged before the first byte is
written: names that leave the folder, links, encrypted entries, and archives that grow
out of proportion are refused. What passes is extracted beside its final place and
renamed into it, so that parallel processes never see half an FMU.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cosim.diagnostic import FmuError, SourceLocation
from cosim.native.toolchain import cache_folder

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What an FMU may unpack to.

    Attributes:
        total_size: bytes of all entries together.
        ratio: unpacked over packed size, judged above `ratio_from` bytes.
        ratio_from: total size [bytes] below which the ratio does not matter.
        entries: number of entries.
    """

    total_size: int = 2 << 30
    ratio: float = 200.0
    ratio_from: int = 64 << 20
    entries: int = 50_000


def content_hash(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal text.

    Raises:
        FmuError: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise FmuError.of(
            "fmu-unreadable", f"the FMU cannot be read: {error.strerror or error}", SourceLocation(layer=str(path))
        ) from None
    return digest.hexdigest()


def extract(path: Path, sha256: str, *, limits: ArchiveLimits | None = None) -> Path:
    """The folder that holds the content of an FMU, extracting it if it is not there yet.

    Args:
        path: the `.fmu` file.
        sha256: its content hash, which names the folder.
        limits: caps on what it may unpack to.

    Raises:
        FmuError: not a zip archive, or an entry is refused; nothing is written then.
    """
    root = cache_folder() / "fmu"
    folder = root / sha256[:32]
    if (folder / "modelDescription.xml").is_file():
        return folder
    where = SourceLocation(layer=str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _judge(archive, limits or ArchiveLimits(), where)
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{sha256[:8]}-", dir=root, ignore_cleanup_errors=True) as made:
                content = Path(made) / "content"
                content.mkdir()
                for info, name in entries:
                    _write(archive, info, content / name)
                _move(content, folder)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise FmuError.of(
            "fmu-not-an-archive", f"{path.name} is not a readable zip archive: {error}", where, "an FMU is a zip file"
        ) from None
    return folder


def _judge(
    archive: zipfile.ZipFile, limits: ArchiveLimits, where: SourceLocation
) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """The entries with their safe relative names; refuses the archive if one is not safe."""
    infos = archive.infolist()
    _judge_size(infos, limits, where)
    found: list[tuple[zipfile.ZipInfo, PurePosixPath]] = []
    for info in infos:
        name = info.orig_filename
        fault = _fault(info)
        if fault:
            raise FmuError.of(
                "fmu-entry-refused",
                f"the archive entry {name[:200]!r} {fault}; nothing was written",
                where,
                hint="pack the FMU again, with forward slashes and plain files only",
            )
        relative = PurePosixPath(*(part for part in name.split("/") if part not in ("", ".")))
        if relative.parts:
            found.append((info, relative))
    if not any(str(name) == "modelDescription.xml" for _, name in found):
        raise FmuError.of("fmu-description-missing", "the archive has no modelDescription.xml at its top", where)
    return found


def _judge_size(infos: list[zipfile.ZipInfo], limits: ArchiveLimits, where: SourceLocation) -> None:
    total = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    fault = ""
    if len(infos) > limits.entries:
        fault = f"has {len(infos)} entries; the cap is {limits.entries}"
    elif total > limits.total_size:
        fault = f"unpacks to {total / 2**20:.0f} MiB; the cap is {limits.total_size / 2**20:.0f} MiB"
    elif total > limits.ratio_from and total > limits.ratio * max(packed, 1):
        fault = f"unpacks to {total / max(packed, 1):.0f} times its size; the cap is {limits.ratio:.0f} times"
    if fault:
        raise FmuError.of(
            "fmu-archive-too-large", f"the archive {fault}", where, "pass larger ArchiveLimits if it is right"
        )


def _fault(info: zipfile.ZipInfo) -> str:
    name = info.orig_filename
    if "\\" in name:
        return "contains a backslash"
    if "\0" in name:
        return "contains a zero byte"
    if name.startswith("/"):
        return "is an absolute path"
    if ":" in name.split("/")[0]:
        return "names a drive"
    if ".." in name.split("/"):
        return "leads out of the archive"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a symbolic link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a special file"
    if info.flag_bits & 0x1:
        return "is encrypted"
    return ""


def _write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    if info.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # ZipExtFile never yields more than the size that was judged, and checks the CRC.
    with archive.open(info) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, _CHUNK)
    if "binaries" in target.parts:
        # Executables that an FMU starts lose their permission in many zip writers.
        target.chmod(0o755)


def _move(content: Path, folder: Path) -> None:
    if folder.exists():
        if (folder / "modelDescription.xml").is_file():
            return  # another process was faster
        shutil.rmtree(folder, ignore_errors=True)
    try:
        content.rename(folder)
    except OSError:
        if not (folder / "modelDescription.xml").is_file():
            raise
