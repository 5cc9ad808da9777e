from __future__ import annotations

import json
from typing import Any

import pytest

LAB: dict[str, Any] = {
    "backend": "numpy",
    "family": "mlp",
    "depth": 4,
    "width": 8,
    "activation": "tanh",
    "init": "gaussian",
    "data": "spiral",
    "steps": 10,
}
TORCH: dict[str, Any] = {
    "backend": "torch",
    "family": "cifar_resnet",
    "depth": 8,
    "width": 4,
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    "data": "images",
    "epochs": 1,
    "batch_size": 64,
}


@pytest.fixture
def lab() -> dict[str, Any]:
    """Fields of the smallest run of the laboratory."""
    return dict(LAB)


@pytest.fixture
def torch_run() -> dict[str, Any]:
    """Fields of the smallest run in torch."""
    return dict(TORCH)


@pytest.fixture
def document() -> dict[str, Any]:
    """A study file as a document: two parts, two sizes, one claim of each kind."""
    return study_document()


def study_document() -> dict[str, Any]:
    """What `document` gives."""
    plain = {"arm": "plain", "where": {"depth": "max"}}
    shallow = {"arm": "plain", "where": {"depth": "min"}}
    common = {"text": {"en": "a sentence"}, "part": "main", "metric": "train_loss"}
    study = {
        "name": "mine",
        "title": {"en": "Mine", "zh": "我的"},
        "seeds": 2,
        "base": LAB,
        "parts": {
            "main": {
                "axes": {"depth": [4, 8]},
                "baseline": "plain",
                "arms": [{"name": "plain", "set": {}}, {"name": "skip", "set": {"shortcut": "identity"}}],
            },
            "flow": {"base": {"steps": 0, "measures": ["layers"]}, "seeds": [0, 3], "arms": [{"name": "plain"}]},
        },
        "claims": [
            {**common, "name": "one", "kind": "difference", "a": plain, "b": shallow, "expect": "at_most", "than": 0.5},
            {
                **common,
                "name": "two",
                "kind": "difference_in_differences",
                "first": [plain, shallow],
                "second": [{"arm": "skip", "where": {"depth": "max"}}, {"arm": "skip", "where": {"depth": "min"}}],
                "expect": "at_least",
                "than": 0.0,
                "confirmatory": ["small"],
            },
            {
                **common,
                "name": "three",
                "kind": "level",
                "cells": [{"arm": "skip"}],
                "statistic": "median",
                "expect": "at_most",
                "than": 1,
                "sizes": ["large"],
            },
            {
                **common,
                "name": "four",
                "kind": "theory_ratio",
                "part": "flow",
                "cell": {"arm": "plain"},
                "tolerance": 0.1,
            },
            {**common, "name": "five", "kind": "no_degradation", "a": plain, "b": shallow, "margin": 0.1},
            {**common, "name": "six", "kind": "monotone", "arm": "plain", "direction": "increasing"},
            {
                **common,
                "name": "seven",
                "kind": "some_difference",
                "a": [plain, {"arm": "skip", "where": {"depth": "max"}}],
                "b": shallow,
                "expect": "at_most",
                "than": 0.5,
            },
        ],
        "sizes": {"small": {"base": {"steps": 5}}, "large": {"seeds": 4}},
    }
    return json.loads(json.dumps(study))  # type: ignore[no-any-return]  # no two places share a table
