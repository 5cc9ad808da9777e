"""Figures have the names and units of the runs that they are of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from depthscope.record.schema import SUMMARY
from depthscope.report.named import metric_of
from depthscope.report.words import Words
from depthscope.study.run import RunSpec


def row(data: str, **fields: Any) -> Any:
    base = {"backend": "torch", "family": "mlp", "depth": 4, "width": 8, "activation": "tanh", "init": "gaussian"}
    return SimpleNamespace(spec=RunSpec.model_validate({**base, "steps": 1, "data": data, **fields}), record=None)


@pytest.mark.parametrize(
    ("data", "english", "chinese"),
    [
        ("spiral", "train loss, last epoch (nats)", "最后一轮的训练损失（nats）"),
        ("identity_task", "train loss, last epoch", "最后一轮的训练损失"),
    ],
)
def test_nats_stand_behind_the_loss_of_classes_alone(data: str, english: str, chinese: str) -> None:
    assert metric_of([row(data)], "train_loss_running", Words("en")) == english
    assert metric_of([row(data)], "train_loss_running", Words("zh")) == chinese


def test_no_figure_of_a_regression_is_in_nats() -> None:
    for lang in ("en", "zh"):
        assert not [key for key in SUMMARY if "nats" in metric_of([row("identity_task")], key, Words(lang))]
        assert [key for key in SUMMARY if "nats" in metric_of([row("spiral")], key, Words(lang))] == [
            key for key in SUMMARY if "loss" in key
        ]


def test_without_runs_a_name_says_what_the_key_does() -> None:
    assert metric_of((), "train_loss", Words("en")) == "train loss (nats)"
    assert metric_of((), "dh_factor_first", Words("en")) == "|dL/dh| factor per layer, step 0"


def test_where_depth_is_time_a_factor_is_of_a_step() -> None:
    rows = [row("adding", family="recurrent")]
    assert metric_of(rows, "dh_factor_first", Words("en")) == "|dL/dh| factor per step in time, step 0"
    assert metric_of([row("spiral")], "dh_factor_first", Words("en")) == "|dL/dh| factor per layer, step 0"
