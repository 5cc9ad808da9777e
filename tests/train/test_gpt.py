"""GPTs in training: what a record keeps of their first gradients and of what their depth decided."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.train.tasks import letters

pytest.importorskip("torch")

import torch
from torch.nn.functional import cross_entropy

from depthscope.data.dataset import IGNORED
from depthscope.models.gpt import gpt
from depthscope.models.init import build
from depthscope.record.events import Ended, Rows, Started
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.study.toml import load
from depthscope.train.build import Context
from depthscope.train.start import run_task

TINY: dict[str, Any] = {
    "backend": "torch",
    "family": "gpt",
    "depth": 3,
    "width": 8,
    "shortcut": "identity",
    "norm": "layer",
    "activation": "gelu",
    "init": "gaussian",
    "data": "tests.train.tasks:letters",
    "optimizer": "adam",
    "lr": 0.01,
    "batch_size": 8,
    "steps": 4,
    "measures": ["layers"],
}


def ran(**changes: Any) -> tuple[Started, Ended, list[Rows]]:
    found = list(run_task(Task((RunSpec.model_validate({**TINY, **changes}),)), Context()))
    (start,) = [each for each in found if isinstance(each, Started)]
    (end,) = [each for each in found if isinstance(each, Ended)]
    return start, end, [each for each in found if isinstance(each, Rows) and each.table == "layers"]


def test_the_last_feed_forward_layer_s_gradient_is_kept() -> None:
    for placement in ("pre", "post"):
        _, end, _ = ran(model_options={"placement": placement})
        make = lambda p=placement: gpt(depth=3, width=8, num_inputs=4, num_classes=4, length=6, placement=p)  # noqa: E731
        model, _ = build(make, seed=0, init="gaussian", dtype=torch.float32)
        data = letters(0).train
        logits = model.double()(torch.from_numpy(data.x))
        loss = cross_entropy(logits.flatten(0, 1), torch.from_numpy(data.y).flatten(), ignore_index=IGNORED)
        (gradient,) = torch.autograd.grad(loss, [model.get_parameter("blocks.2.mlp.down.weight")])
        assert end.summary["dw_end_log_first"] == pytest.approx(math.log(float(gradient.norm())), rel=1e-9)


def test_it_is_the_transformer_s_alone() -> None:
    spec = {**TINY, "family": "mlp", "data": "spiral", "activation": "tanh", "norm": "none", "batch_size": None}
    assert "dw_end_log_first" not in ran(**spec)[1].summary


def test_nothing_is_kept_of_a_gradient_of_0() -> None:
    _, end, _ = ran(shortcut="none", init="zero_projection")
    assert "dw_end_log_first" not in end.summary


@pytest.mark.parametrize(
    ("changes", "derived"),
    [
        ({}, {}),
        ({"init": "depth_scaled"}, {"projection_scale": 6**-0.5}),
        ({"init": "depth_scaled", "shortcut": "none"}, {"projection_scale": 6**-0.5}),
        (
            {"init": "deepnorm", "shortcut": "deepnorm", "model_options": {"placement": "post"}},
            {"deepnorm_alpha": 6**0.25, "deepnorm_beta": 24**-0.25},
        ),
    ],
)
def test_what_the_depth_decided_is_told(changes: dict[str, Any], derived: dict[str, float]) -> None:
    assert ran(**changes, steps=0)[0].derived == pytest.approx(derived)


def test_layers_are_those_of_every_arm() -> None:
    found = {
        tuple(dict.fromkeys(rows[0].columns["name"]))
        for shortcut in ("identity", "none")
        for *_, rows in [ran(shortcut=shortcut, steps=1)]
    }
    assert len(found) == 1
    assert [*found.pop()][:3] == ["tokens", "blocks.0.attention.proj", "blocks.0.mlp.down"]


def test_a_bundled_arm_without_the_plus_sign_is_otherwise_the_one_with_it() -> None:
    """What `transformer` compares: `none` and `plus` differ in the shortcut alone, at each initialiser."""
    arms = {arm.name: arm.set for arm in load("transformer", size="smoke").parts["pre"].arms}
    for ending in ("", "-gpt2", "-scaled"):
        plus, none = arms[f"plus{ending}"], arms[f"none{ending}"]
        assert {**plus, "shortcut": "none"} == none


def test_rezero_and_projections_of_0_are_refused() -> None:
    with pytest.raises(ValueError, match="starts at 0 too; a branch with both has no gradient"):
        RunSpec.model_validate({**TINY, "shortcut": "rezero", "init": "zero_projection"})
