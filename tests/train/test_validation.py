"""The validation split in both engines: held out of training, measured at the end, and the test set left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.train.short import LAB, NET

from depthscope.data.synthetic import spiral
from depthscope.lab.fit import fit
from depthscope.lab.judge import evaluate
from depthscope.lab.optimizers import Adam
from depthscope.lab.stacks import Stack, init_params
from depthscope.record.events import Ended, Rows
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.start import run_task

NUMPY: dict[str, Any] = {**LAB, "width": 8, "data_options": {}, "steps": 30}
TORCH: dict[str, Any] = {**NET, "batch_size": 32, "epochs": 1}


def events(*specs: dict[str, Any]) -> list[Any]:
    return list(run_task(Task(tuple(RunSpec.model_validate(spec) for spec in specs)), Context()))


def summaries(*specs: dict[str, Any]) -> list[Mapping[str, float]]:
    return [event.summary for event in events(*specs) if isinstance(event, Ended)]


def test_the_laboratory_measures_it_as_one_would_by_hand() -> None:
    held = {"validation": 30, "without_test": True}
    found = summaries(*({**NUMPY, "seed": seed, "data_options": held} for seed in (0, 4)))
    for seed, summary in zip((0, 4), found, strict=True):
        data = spiral(seed, validation=30)
        assert data.validation is not None
        stack = Stack(depth=3, width=8, num_inputs=2, num_classes=3, shortcut="none", activation="tanh", norm="none")
        params = init_params(stack, [seed], init="gaussian", gain=1.0, stem_gain=None, dtype=np.dtype("float32"))
        x, y = data.train.x[None], data.train.y[None]
        *_, last = fit(stack, params, x, y, optimizer=Adam(), lr=[0.01] * 30, num_steps=30)
        trained = {name: value.copy() for name, value in last.params.items()}
        loss, accuracy = evaluate(stack, trained, data.validation.x[None], data.validation.y[None])
        assert summary["validation_loss"] == pytest.approx(float(loss[0]), rel=1e-12)
        assert summary["validation_accuracy"] == float(accuracy[0])
        assert not [name for name in summary if name.startswith("test")]


@pytest.mark.parametrize("spec", [NUMPY, TORCH], ids=["numpy", "torch"])
def test_only_what_is_asked_for_is_opened(spec: dict[str, Any]) -> None:
    if spec is TORCH:
        pytest.importorskip("torch")
    untested = {"without_test": True} if spec is NUMPY else {"num_test": 0}
    for options, splits in (
        ({}, {"train", "test"}),
        ({"validation": 30}, {"train", "validation", "test"}),
        ({"validation": 30, **untested}, {"train", "validation"}),
        (untested, {"train"}),
    ):
        heard = events({**spec, "data_options": options})
        rows = [event for event in heard if isinstance(event, Rows) and event.table == "metrics"]
        assert {split for event in rows for split in event.columns["split"]} - {"train_running", "schedule"} == splits
        [ended] = [event for event in heard if isinstance(event, Ended)]
        assert {f"{split}_accuracy" for split in splits} <= set(ended.summary)
        assert {name.partition("_")[0] for name in ended.summary} == splits


def test_leaving_the_test_set_away_changes_no_training() -> None:
    with_test, without = summaries(NUMPY)[0], summaries({**NUMPY, "data_options": {"without_test": True}})[0]
    assert with_test["train_loss"] == without["train_loss"]
