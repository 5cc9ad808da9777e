"""Shared by all rooms' tests: where the real data lies, one finished study, and one thread for everything."""

from __future__ import annotations

import os

# Before NumPy and torch are loaded, here and in what is started from here. The suite has a worker a core, and threads
# on the small matrices of the tests would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parents[1]

# The same examples each time, and no time measured: a busy machine is no fault.
settings.register_profile("depthscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("depthscope")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that holds the real CIFAR-10; skips where there is none."""
    named = os.environ.get("DEPTHSCOPE_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real CIFAR-10 is not here: set DEPTHSCOPE_DATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of this run, one for all its workers: images are decoded once."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, session_cache: Path) -> None:
    """No test reads or fills the user's cache, and none sees the user's settings."""
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(session_cache))
    monkeypatch.delenv("DEPTHSCOPE_DATA", raising=False)


@pytest.fixture(scope="session")
def _smoke_spiral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import depthscope

    folder = tmp_path_factory.mktemp("smoke") / "spiral"
    depthscope.run("spiral", size="smoke", out=folder, workers=1)
    return folder


@pytest.fixture(scope="session")
def copy_of_spiral(_smoke_spiral: Path) -> Callable[[Path], Path]:
    """A function that puts a copy of the finished smoke spiral, which was run once, at a path and returns it."""

    def copy(to: Path) -> Path:
        shutil.copytree(_smoke_spiral, to)
        return to

    return copy
