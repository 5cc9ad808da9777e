"""Numbers of tiny runs, pinned: if a change of code moves them, count up `MATHEMATICS` in study/run.py, then pin anew.

They were made by this code and prove no more than that it is unchanged. The tolerance lets another BLAS
or another processor pass; a change of an initialiser, an order, a rate or a rule does not.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.train.short import LAB, TRAINED

from depthscope.record.events import Ended
from depthscope.study.expand import Task
from depthscope.study.run import MATHEMATICS, RunSpec
from depthscope.train.build import Context
from depthscope.train.start import run_task

TORCH: dict[str, Any] = {**TRAINED, "lr": 0.02, "schedule": "step", "warmup_steps": 2}
NUMPY: dict[str, Any] = {**LAB, "depth": 6, "width": 8, "data_options": {}, "steps": 40}
PINNED: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    ("plain", {**TORCH, "shortcut": "none"}, {"train_loss_running": 2.325409, "train_loss": 2.299668}),
    (
        "B, fan out",
        {**TORCH, "shortcut": "B", "init": "he_fan_out"},
        {"train_loss_running": 2.573292, "train_loss": 2.276763},
    ),
    (
        "A from zero",
        {**TORCH, "shortcut": "A", "zero_last_gamma": True},
        {"train_loss_running": 2.368589, "train_loss": 2.344397},
    ),
    ("lab plain", NUMPY, {"train_loss": 0.393024, "test_loss": 0.399903}),
    (
        "lab residual, batch norm",
        {**NUMPY, "shortcut": "identity", "activation": "relu", "norm": "batch", "optimizer": "sgd"},
        {"train_loss": 0.148035, "test_loss": 0.152998},
    ),
    (
        "lab two-layer branch, orthogonal",
        {**NUMPY, "shortcut": "identity_2", "init": "orthogonal"},
        {"train_loss": 0.426074, "test_loss": 0.443576},
    ),
]


@pytest.mark.parametrize(("name", "spec", "pinned"), PINNED, ids=[name for name, _, _ in PINNED])
def test_the_mathematics_is_unchanged(name: str, spec: dict[str, Any], pinned: dict[str, float]) -> None:
    if spec["backend"] == "torch":
        pytest.importorskip("torch")
    assert MATHEMATICS == 1
    (ended,) = [
        event for event in run_task(Task((RunSpec.model_validate(spec),)), Context()) if isinstance(event, Ended)
    ]
    assert {key: ended.summary[key] for key in pinned} == pytest.approx(pinned, rel=1e-3)
