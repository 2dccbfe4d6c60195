"""Run the benchmarks: python -m benchmarks [NAME …] [--json]."""

from __future__ import annotations

import json
import sys

from benchmarks import compiler, exchange, scenario

BENCHMARKS = {"scenario": scenario.measure, "exchange": exchange.measure, "compiler": compiler.measure}


def main() -> int:
    """Measure and print."""
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or list(BENCHMARKS)
    found = {name: BENCHMARKS[name]() for name in names}
    if "--json" in sys.argv:
        print(json.dumps(found, indent=2))
        return 0
    for name, rows in found.items():
        print(name)
        for label, value in rows.items():
            print(f"  {label:<58} {value:>10.4g}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
