"""Shared by all rooms' tests: where the real data lies, and one thread for everything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that holds the real CIFAR-10; skips where there is none."""
    named = os.environ.get("DEPTHSCOPE_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real CIFAR-10 is not here: set DEPTHSCOPE_DATA to the folder that holds it")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or fills the user's cache, and none sees the user's settings."""
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("DEPTHSCOPE_DATA", raising=False)
