"""The Modelica compiler: cold and from the cache."""

from __future__ import annotations

import os
import statistics
import tempfile
import time

from cosim.modelica import build_fmu
from cosim.resource import programs_folder


def measure() -> dict[str, float]:
    """Seconds per program of the library, cold, and the ratio of a warm call to it."""
    before = os.environ.get("COSIM_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COSIM_CACHE_DIR"] = folder
        try:
            cold, warm = [], []
            for program in sorted(programs_folder().glob("*.mo")):
                for times in (cold, warm):
                    began = time.perf_counter()
                    build_fmu(program)
                    times.append(time.perf_counter() - began)
        finally:
            if before is None:
                del os.environ["COSIM_CACHE_DIR"]
            else:
                os.environ["COSIM_CACHE_DIR"] = before
    return {
        "a program of the library, cold [s], median": statistics.median(cold),
        "the same from the cache [s], median": statistics.median(warm),
        "cold over cached": statistics.median(cold) / statistics.median(warm),
    }
