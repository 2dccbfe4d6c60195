"""Where the shipped stages and programs are: in the checkout, else inside the installed package."""

from __future__ import annotations

import tomllib
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    checkout = _PACKAGE.parent / name
    is_checkout = (_PACKAGE.parent / "pyproject.toml").is_file() and checkout.is_dir()
    return checkout if is_checkout else _PACKAGE / "shipped" / name


def programs_folder() -> Path:
    """The program library `fmus/`."""
    return _folder("fmus")


def stages_folder() -> Path:
    """The sample stages `stages/`."""
    return _folder("stages")


def find_stage(path: Path) -> Path:
    """The stage file: as given, else a shipped stage of this name (`stages/lander.usda` or `lander`)."""
    if path.exists():
        return path
    for name in (path.name, f"{path.name}.usda"):
        shipped = stages_folder() / name
        if shipped.is_file() and (path.parent.name in ("", "stages")):
            return shipped
    return path


def codes() -> dict[str, dict[str, str]]:
    """Every diagnostic code with its severity, meaning and cure."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((_PACKAGE / "codes").glob("*.toml")):
        found.update(tomllib.loads(path.read_text(encoding="utf-8")))
    return found


def explain(code: str) -> str | None:
    """What a diagnostic code means, as text; None if there is no such code."""
    row = codes().get(code)
    return None if row is None else f"{code} ({row['severity']})\n  {row['meaning']}\n  cure: {row['cure']}"
