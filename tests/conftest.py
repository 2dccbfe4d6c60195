"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the checkout."""
    return PROJECT


@pytest.fixture(scope="session")
def lunco() -> Path:
    """LunCoSim's sample stages; conformance tests skip where they are absent."""
    folder = Path(os.environ.get("COSIM_SHARED", PROJECT.parent / "shared")) / "data" / "lunco"
    if not folder.is_dir():
        pytest.skip("the conformance stages are not here")
    return folder
