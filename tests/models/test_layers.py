"""The makers of layers: what each normaliser goes with, what was there before them, what they refuse."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from depthscope.core.depth import tat_end, tat_slope
from depthscope.core.errors import UserError
from depthscope.models.convnet import cifar_resnet
from depthscope.models.hints import ParamHint, hints_of
from depthscope.models.init import build
from depthscope.models.layers import weighted
from depthscope.models.layers.make import ACTIVATIONS, NORMS, Layers
from depthscope.study.catalog import CATALOG

WITH_GAMMA = ("batch", "layer", "group", "instance", "ws_group")


def test_every_name_of_the_catalogue_can_be_made() -> None:
    assert NORMS.keys() == CATALOG["norm"].keys()
    assert ACTIVATIONS.keys() == CATALOG["activation"].keys()


def test_batch_norm_and_relu_are_torchs_own_modules() -> None:
    layers = Layers()
    conv, norm, act = layers.weighted(3, 8, stride=2), layers.normaliser(8, ends_branch=True), layers.act()
    assert [type(each) for each in (conv, norm, act)] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
    assert repr(conv) == repr(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False))
    assert repr(norm) == repr(nn.BatchNorm2d(8))


@pytest.mark.parametrize("spatial", [True, False])
@pytest.mark.parametrize("norm", NORMS)
def test_a_layer_has_a_bias_where_nothing_else_shifts(norm: str, spatial: bool) -> None:
    layer: Any = Layers(norm=norm, spatial=spatial).weighted(4, 8)
    assert isinstance(layer, nn.Conv2d if spatial else nn.Linear)
    assert layer.weight.shape == ((8, 4, 3, 3) if spatial else (8, 4))
    assert (layer.bias is not None) == (norm in ("none", "ws", "scaled_ws", "rms"))
    assert layer(torch.zeros(2, 4, 5, 5) if spatial else torch.zeros(2, 4)).shape[:2] == (2, 8)


@pytest.mark.parametrize("norm", NORMS)
def test_the_head_is_a_plain_linear_layer_with_a_bias(norm: str) -> None:
    head = Layers(norm=norm).head(8, 3)
    assert head.bias is not None
    assert type(head) is (weighted.ShiftedLinear if norm == "fixup" else nn.Linear)
    end = Layers(norm=norm).branch_end(8)
    assert isinstance(end, nn.Identity) == (norm != "fixup")


@pytest.mark.parametrize("norm", WITH_GAMMA)
def test_zero_gamma_makes_every_branch_zero(norm: str) -> None:
    model, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="A", norm=norm), seed=0, zero_last_gamma=True)
    outputs: list[torch.Tensor] = []
    for addition in model.additions():
        model.get_submodule(addition.branch).register_forward_hook(lambda _m, _i, out: outputs.append(out))
    model(torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    assert len(outputs) == 3
    assert not any(each.any() for each in outputs)


@pytest.mark.parametrize("norm", [norm for norm in NORMS if norm not in ("scaled_ws", "rms")])
def test_layers_of_the_same_shape_start_from_the_same_weights(norm: str) -> None:
    _, plain = build(lambda: cifar_resnet(depth=8, width=4), seed=3)
    _, other = build(lambda: cifar_resnet(depth=8, width=4, norm=norm), seed=3)
    names = [name for name in plain if "conv" in name or name == "head.weight"]
    assert [other[name] for name in names] == [plain[name] for name in names]


def test_fixups_scalars_learn_slowly_and_start_at_the_identity() -> None:
    model, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="A", norm="fixup"), seed=0)
    scalars = {name: each for name, each in model.named_parameters() if name.endswith((".shift", ".multiplier"))}
    # Each of 7 convolutions and the head has one before it, the stem and each branch's first one after it; a branch's
    # end has two.
    assert len(scalars) == 7 + 1 + 1 + 3 + 2 * 3
    assert {name: each.item() for name, each in scalars.items()} == {
        name: float("multiplier" in name) for name in scalars
    }
    assert hints_of(model) == dict.fromkeys(scalars, ParamHint(lr_scale=0.1))


def test_gains_of_scaled_layers_start_at_1_and_do_not_decay() -> None:
    for layers in (Layers(norm="scaled_ws", spatial=spatial) for spatial in (True, False)):
        model, _ = build(partial(_alone, layers), seed=0)
        gain: Any = model[0].gain
        assert gain.tolist() == [1.0] * 8
        assert hints_of(model) == {"0.gain": ParamHint(weight_decay=False), "0.bias": ParamHint(weight_decay=False)}


def _alone(layers: Layers) -> nn.Sequential:
    return nn.Sequential(layers.weighted(4, 8))


@pytest.mark.parametrize("norm", ["ws", "scaled_ws"])
def test_an_all_zero_weight_has_a_finite_gradient(norm: str) -> None:
    layer: Any = Layers(norm=norm).weighted(4, 8)
    nn.init.zeros_(layer.weight)
    layer(torch.randn(2, 4, 5, 5, generator=torch.Generator().manual_seed(0))).square().sum().backward()
    assert layer.weight.grad.isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "bath"}, "unknown norm 'bath'. Did you mean 'batch'"),
        ({"activation": "rule"}, "unknown activation 'rule'"),
        ({"norm": "batch", "norm_options": {"groups": 2}}, "unknown option of norm 'batch' 'groups'"),
        ({"norm": "group", "norm_options": {"groups": 5}}, "groups 5 does not divide 12 channels"),
        ({"norm": "ws_group", "norm_options": {"groups": 0}}, "groups of 1 or more, got 0"),
        ({"norm": "group", "norm_options": {"groups": 12}, "spatial": False}, "leave each alone"),
        ({"norm": "instance", "spatial": False}, "a vector has no places"),
        ({"norm": "rms", "spatial": True}, "norm rms: is of vectors, and this family is of images"),
        ({"norm": "scaled_ws", "activation": "linear"}, "no scale for activation 'linear'. Known: gelu, relu"),
        ({"activation": "tat", "depth": 13}, "no slope exists at 13 weighted layers.*relu, or 14"),
    ],
)
def test_bad_layers(arguments: dict[str, Any], message: str) -> None:
    def make() -> None:
        layers = Layers(**arguments)
        layers.normaliser(12)
        layers.weighted(12, 12)
        layers.act()

    with pytest.raises(UserError, match=message):
        make()


def test_the_slope_of_tat_ends_at_a_cosine_of_point_9_at_every_depth() -> None:
    assert tat_end(0.0, 12) == pytest.approx(0.8971, abs=5e-5)
    for depth in (14, 20, 56, 110, 1001):
        assert tat_end(tat_slope(depth), depth - 1) == pytest.approx(0.9, abs=1e-12)
    assert Layers(activation="tat", depth=21).derived() == {"tat_slope": pytest.approx(0.18138, abs=1e-5)}
    assert Layers(activation="relu", depth=21).derived() == {}
