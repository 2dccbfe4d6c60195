"""Importing pybullet, which greets everyone on stderr and is missing on some platforms."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from cosim.diagnostic import StageError


@cache
def import_pybullet() -> Any:
    """The module.

    Raises:
        StageError: it is not installed.
    """
    try:
        with _quiet_stderr():
            import pybullet
    except ImportError as error:
        here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
        raise StageError.of(
            "core-missing",
            f"the rigid-body core needs pybullet, which is not installed for {here} ({error})",
            hint="wheels exist for CPython 3.11 to 3.13 on x86_64 Linux and ARM macOS (`pip install usd-cosim` takes "
            "them); elsewhere `pip install pybullet` builds it from source, which takes a C++ compiler and a "
            "quarter of an hour",
        ) from None
    return pybullet


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """pybullet prints its build time from C when it is imported."""
    try:
        sys.stderr.flush()
        kept = os.dup(2)
    except (OSError, ValueError, AttributeError):
        yield
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(kept, 2)
        for descriptor in (sink, kept):
            with suppress(OSError):
                os.close(descriptor)
