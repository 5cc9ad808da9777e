"""A study of a second: small NumPy runs of every kind. And what stands in a folder, to be compared."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from depthscope.execute.driver import drive
from depthscope.execute.order import Settings
from depthscope.execute.remaining import remaining
from depthscope.record.folder import run_folder
from depthscope.study.expand import Plan, expand
from depthscope.study.toml import parse
from depthscope.train.build import Context

TINY = """
name = "tiny"
title = { en = "Tiny" }
seeds = 3
[base]
backend = "numpy"
family = "mlp"
activation = "tanh"
width = 4
init = "gaussian"
data = "spiral"
data_options = { points_per_arm = 8 }
optimizer = "adam"
lr = 0.01
steps = 30
measures = ["layers"]
[parts.main]
axes = { depth = [2, 4] }
[[parts.main.arms]]
name = "plain"
[[parts.main.arms]]
name = "residual"
set = { shortcut = "identity" }
"""

TINY_TORCH = """
name = "tiny-torch"
title = { en = "Tiny, in torch" }
seeds = 2
[base]
backend = "torch"
family = "cifar_resnet"
depth = 8
width = 4
shortcut = "A"
norm = "batch"
activation = "relu"
init = "he_fan_in"
data = "images"
data_options = { num_train = 48, num_test = 16 }
augment = "crop_flip"
padding = 1
batch_size = 16
epochs = 12
optimizer_options = { momentum = 0.9 }
lr = 0.02
measures = ["layers", "weights"]
[parts.main]
[[parts.main.arms]]
name = "A"
"""

Contents = dict[str, object]


@pytest.fixture
def tiny_text() -> str:
    return TINY


@pytest.fixture(scope="session")
def text_of() -> Callable[[str], str]:
    """The text of a study whose runs take a second or two when each of their steps is saved."""

    def text(engine: str) -> str:
        if engine == "torch" and importlib.util.find_spec("torch") is None:
            pytest.skip("torch is not installed")
        numpy = TINY.replace("seeds = 3", "seeds = 1").replace("steps = 30", "steps = 400")
        return {"numpy": numpy, "torch": TINY_TORCH}[engine]

    return text


@pytest.fixture
def tiny(tiny_text: str) -> Plan:
    return expand(parse(tiny_text, source="tiny.toml"))


@pytest.fixture(scope="session")
def contents() -> Callable[[Plan, Path], Contents]:
    return _contents


def _contents(plan: Plan, folder: Path) -> Contents:
    """All that must be equal, however the runs came about: bytes of tables and weights, outcomes, summaries.

    Each run has its record, and nothing is left in its folder of leases, checkpoints or files half written.
    """
    found: Contents = {}
    left, records, damaged = remaining(plan, folder)
    assert (left, damaged) == ([], ())
    assert set(records) == set(plan.runs)
    for run_id, record in records.items():
        at = run_folder(folder, run_id)
        found[run_id] = (record.outcome, record.summary, record.digests, record.layers, record.parameters)
        kept = [*at.glob("*.parquet"), *at.glob("*.safetensors")]
        found.update({f"{run_id}/{path.name}": path.read_bytes() for path in kept})
        names = {path.name for path in at.iterdir() if not path.name.startswith(".")}
        assert names == {"run.json", "log.txt", *(f"{table}.parquet" for table in record.tables), *record.weights}
    return found


@pytest.fixture(scope="session")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Plan, Contents]]:
    """The plan of a study's text, and its contents from an undisturbed run in this process; made once a text."""
    made: dict[str, tuple[Plan, Contents]] = {}

    def make(text: str) -> tuple[Plan, Contents]:
        if text not in made:
            plan = expand(parse(text, source="study.toml"))
            folder = tmp_path_factory.mktemp("serial")
            drive(remaining(plan, folder)[0], folder, Context(), settings=Settings(checkpoint_s=1e9, min_gap_s=1e9))
            made[text] = plan, _contents(plan, folder)
        return made[text]

    return make
