"""Where the shipped stages and programs are: in the checkout, else inside the installed package."""

from __future__ import annotations

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
