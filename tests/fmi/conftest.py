"""FMUs are extracted to a folder of the test run, whose name has a space in it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache with space"))
