"""Any field of a run can be an axis of a part."""

from __future__ import annotations

from typing import Any

import pytest
import tomli_w

from depthscope.study.check import RUN_FIELDS
from depthscope.study.claims import located_selects
from depthscope.study.expand import expand, matching
from depthscope.study.toml import dump, parse

Document = dict[str, Any]

LAB_AXES: dict[str, list[Any]] = {
    "depth": [2, 4],
    "width": [4, 8],
    "shortcut": ["none", "identity"],
    "norm": ["none", "batch"],
    "activation": ["tanh", "relu"],
    "init": ["gaussian", "orthogonal"],
    "gain": [1, 0.5],
    "stem_gain": [0.1, 1.0],
    "precision": ["float32", "float64"],
    "optimizer": ["sgd", "adam"],
    "optimizer_options.momentum": [0.0, 0.9],
    "optimizer_options": [{"momentum": 0.5}, {"momentum": 0.6}],
    "lr": [0.1, 0.01],
    "steps": [0, 5],
    "schedule": ["constant", "step"],
    "warmup_steps": [0, 3],
    "stop_loss": [0.1, 0.2],
    "data_options.points_per_arm": [10, 20],
    "data_options": [{"noise": 0.1}, {"noise": 0.2, "arms": 4}],
    "measures": [[], ["layers"]],
    "measure_steps": [[], [3]],
}
OF_THE_PROFILE = ("measures", "measure_steps")
"""Fields that are no part of a run's identity: cells that differ in them alone are one run, measured as all ask."""

TORCH_AXES: dict[str, list[Any]] = {
    "shortcut": ["none", "A", "B"],
    "init": ["he_fan_in", "he_fan_out", "mine.draws:my_init"],
    "precision": ["float32", "bfloat16"],
    "data": ["images", "cifar10", "mine.data:make"],
    "data_options.num_train": [64, 128],
    "augment": ["none", "crop_flip"],
    "padding": [0, 1],
    "epochs": [1, 2],
    "batch_size": [32, 64],
    "optimizer_options.weight_decay": [0.0, 1e-4],
    "family": ["cifar_resnet", "mine.models:net"],
    "model_options.heads": [1, 2],
    "zero_last_gamma": [False, True],
    "shortcut_options.bias": [-2.0, -1.0],
    "norm_options.groups": [2, 4],
    "init_options.examples": [16, 32],
    "clip": ["none", "norm", "agc"],
    "clip_options.factor": [0.01, 0.1],
    "backend": ["torch"],
}


@pytest.mark.parametrize(
    ("backend", "axis"), [("numpy", axis) for axis in LAB_AXES] + [("torch", axis) for axis in TORCH_AXES]
)
def test_any_field_can_be_an_axis(lab: Document, torch_run: Document, backend: str, axis: str) -> None:
    base, values = (lab, LAB_AXES[axis]) if backend == "numpy" else (torch_run, TORCH_AXES[axis])
    more: dict[str, Document] = {
        "model_options.heads": {"family": "mine.models:net"},
        "zero_last_gamma": {"shortcut": "A"},
        "shortcut_options.bias": {"shortcut": "highway"},
        "norm_options.groups": {"norm": "group"},
        "init_options.examples": {"init": "lsuv"},
        "clip_options.factor": {"clip": "agc"},
        "measure_steps": {"measures": ["layers"]},
    }
    text = tomli_w.dumps(
        {
            "name": "mine",
            "title": {"en": "Mine"},
            "seeds": 2,
            "base": {**base, **more.get(axis, {})},
            "parts": {"main": {"axes": {axis: values}, "arms": [{"name": "plain"}]}},
            "claims": [
                {
                    "name": f"c{at}",
                    "text": {"en": "a sentence"},
                    "kind": "level",
                    "part": "main",
                    "metric": "train_loss",
                    "cells": [{"arm": "plain", "where": {axis: value}}],
                    "statistic": "median",
                    "expect": "at_most",
                    "than": 1.0,
                }
                for at, value in enumerate(values)
            ],
        }
    )
    study = parse(text, source="mine.toml")
    assert parse(dump(study), source="again") == study
    made = expand(study)
    assert len(made.runs) == (2 if axis in OF_THE_PROFILE else 2 * len(values))
    for claim, value in zip(study.claims, values, strict=True):
        [(_, select)] = located_selects(claim)
        found = matching(made.cells, "main", select)
        assert [(cell.axes[axis], cell.seed) for cell in found] == [(value, 0), (value, 1)]
        head, dot, tail = axis.partition(".")
        held = getattr(made.runs[found[0].run_id], head)
        if axis in OF_THE_PROFILE:
            assert set(value) <= set(held)
        elif isinstance(value, dict):
            assert held.items() >= value.items()
        else:
            assert (held[tail] if dot else held) == value


def test_every_field_was_tried_as_an_axis() -> None:
    assert {axis.partition(".")[0] for axis in {**LAB_AXES, **TORCH_AXES}} | {"schedule_options"} == set(RUN_FIELDS)
