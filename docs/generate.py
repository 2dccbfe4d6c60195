"""Write docs/ports.md and docs/diagnostics.md from the tables that the code itself uses.

Usage: python docs/generate.py [--check]
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from cosim.component import Direction
from cosim.rigid.port_table import KINDS, PortSpec

HERE = Path(__file__).resolve().parent
CODES = HERE.parent / "cosim" / "codes"


def ports() -> str:
    """The port reference."""
    lines = [
        "# Ports of the rigid-body core",
        "",
        "Made by `docs/generate.py` from `cosim/rigid/port_table.py`. SI units and radians at every port, whatever the",
        "stage's units and up axis are. The world frame is Y-up: a Z-up stage is turned by −90° about x on the way in.",
        "Ports of programs are those of their FMUs: `cosim ports STAGE` lists all of them.",
        "",
    ]
    for kind in KINDS:
        lines += [
            f"## {kind.title[0].upper()}{kind.title[1:]}",
            "",
            "| port | unit | frame | what it is |",
            "|---|---|---|---|",
        ]
        lines += [_row(spec) for spec in kind.specs]
        lines.append("")
    return "\n".join(lines)


def _row(spec: PortSpec) -> str:
    notes = []
    if spec.direction is Direction.INPUT and spec.accumulate:
        notes.append("sources sum; cleared each step")
    if spec.minimum is not None and spec.maximum is not None:
        notes.append(f"{spec.minimum:g} … {spec.maximum:g}")
    text = spec.description + (f" ({'; '.join(notes)})" if notes else "")
    return f"| `{spec.direction.value}:{spec.name}` | {spec.unit or '–'} | {spec.frame or '–'} | {text} |"


def diagnostics() -> str:
    """The table of codes."""
    lines = [
        "# Diagnostic codes",
        "",
        "Made by `docs/generate.py` from `cosim/codes/*.toml`; `cosim check --explain CODE` prints one of them.",
        "",
    ]
    for path in sorted(CODES.glob("*.toml")):
        lines += [f"## {path.stem}", "", "| code | severity | what it means | what to do |", "|---|---|---|---|"]
        for code, row in sorted(tomllib.loads(path.read_text(encoding="utf-8")).items()):
            lines.append(f"| `{code}` | {row['severity']} | {row['meaning']} | {row['cure']} |")
        lines.append("")
    return "\n".join(lines)


PAGES = {"ports.md": ports, "diagnostics.md": diagnostics}


def main() -> int:
    """Write the pages, or compare them with what is there."""
    stale = 0
    for name, make in PAGES.items():
        path, text = HERE / name, make()
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"docs/{name} is stale: run python docs/generate.py", file=sys.stderr)
                stale = 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    raise SystemExit(main())
