"""DenseNet-BC: its published count, its points, and its forward pass against a naive NumPy twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.models.naive import Array, conv_naive, norm_naive
from torch import nn

from depthscope.core.errors import UserError
from depthscope.models.densenet import cifar_densenet
from depthscope.models.init import build
from depthscope.models.nfnet import cifar_nfnet


def forward_naive(x: Array, state: dict[str, Array], kinds: str, training: bool) -> Array:
    """`kinds`: D a dense layer, T a transition."""

    def activated(h: Array, name: str) -> Array:
        return np.maximum(norm_naive(h, state, name, training), 0)

    h = conv_naive(x, state["stem.conv.weight"], 1)
    for index, kind in enumerate(kinds):
        name = f"blocks.{index}"
        if kind == "T":
            out = conv_naive(activated(h, f"{name}.norm"), state[f"{name}.conv.weight"], 1)
            h = out.reshape(*out.shape[:2], out.shape[2] // 2, 2, out.shape[3] // 2, 2).mean(axis=(3, 5))
            continue
        out = conv_naive(activated(h, f"{name}.norm1"), state[f"{name}.conv1.weight"], 1)
        out = conv_naive(activated(out, f"{name}.norm2"), state[f"{name}.conv2.weight"], 1)
        h = np.concatenate([h, out], axis=1)
    pooled: Array = activated(h, "last.norm").mean(axis=(2, 3))
    return pooled @ state["head.weight"].T + state["head.bias"]


@pytest.mark.parametrize("training", [True, False])
def test_forward_equals_the_naive_twin(training: bool) -> None:
    rng = np.random.default_rng(0)
    model = cifar_densenet(depth=14, width=3, num_inputs=2, num_classes=4).double().train(training)
    state = {}
    for name, tensor in model.state_dict().items():
        value = rng.standard_normal(tensor.shape)
        state[name] = torch.from_numpy(np.abs(value) + 0.5 if name.endswith("running_var") else value).to(tensor.dtype)
    model.load_state_dict(state)
    x = rng.standard_normal((3, 2, 8, 8))
    arrays = {name: tensor.double().numpy() for name, tensor in state.items()}
    # 14 = stem + 2 (2 + 2 + 1) + 2 transitions + head; 6 -> 12 -> 6 -> 12 -> 6 -> 9 channels.
    wanted = forward_naive(x, arrays, "DDTDDTD", training)
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach().numpy(), wanted, rtol=1e-11, atol=1e-12)
    assert arrays["head.weight"].shape == (4, 9)


def test_points_are_the_weighted_layers_in_the_order_of_their_call() -> None:
    model = cifar_densenet(depth=16, width=2)
    called: list[str] = []
    for point in model.points():
        model.get_submodule(point.output).register_forward_hook(lambda *_, name=point.output: called.append(name))
    model(torch.zeros(2, 3, 8, 8))
    assert called == [point.output for point in model.points()]
    assert len(called) == 16
    weighted = {name for name, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)}
    assert {point.layer for point in model.points()} == weighted
    assert not model.additions()
    assert not model.branches()
    assert model.derived() == {}


@pytest.mark.parametrize(("compression", "kept"), [(0.5, 50), (1.0, 100), (0.29, 29), (0.299, 29), (0.001, 1)])
def test_a_transition_keeps_a_share_of_the_channels(compression: float, kept: int) -> None:
    with torch.device("meta"):
        blocks: Any = cifar_densenet(depth=22, width=20, compression=compression).blocks
    assert [tuple(blocks[0].conv1.weight.shape), tuple(blocks[0].conv2.weight.shape)] == [
        (80, 40, 1, 1),
        (20, 80, 3, 3),
    ]
    assert tuple(blocks[3].conv.weight.shape) == (kept, 100, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 21}, "depth 21 is odd.*Try 22"),
        ({"depth": 8}, "smallest are 10 and 12"),
        ({"depth": 22, "shortcut": "A"}, "unknown shortcut of densenet 'A'. Known: dense"),
        ({"depth": 22, "shortcut_options": {"growth": 7}}, "growth: 7 is given, but in densenet the growth is `width`"),
        ({"depth": 22, "compression": 0.0}, "compression: wanted"),
        ({"depth": 22, "width": 0}, "width: wanted 1 or more, got 0"),
        ({"depth": 22, "width": 3, "norm": "group", "norm_options": {"groups": 4}}, "groups 4 does not divide 6"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message), torch.device("meta"):
        cifar_densenet(**arguments)


@pytest.mark.parametrize("growth", [4, 12])
def test_the_shortcuts_own_default_growth_is_no_contradiction(growth: int) -> None:
    with torch.device("meta"):
        model = cifar_densenet(depth=22, width=12, shortcut_options={"growth": growth})
    assert sum(each.numel() for each in model.parameters()) == sum(
        each.numel() for each in cifar_densenet(depth=22, width=12).parameters()
    )


@pytest.mark.parametrize("family", [cifar_densenet, cifar_nfnet])
def test_checkpointing_changes_no_bit(family: Any) -> None:
    found = []
    for checkpointing in (False, True):
        model, _ = build(lambda on=checkpointing: family(depth=14, width=4, checkpointing=on), seed=0)  # type: ignore[misc]
        model(torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))).square().sum().backward()
        grads = [each.grad for each in model.parameters()]
        found.append([*grads, *model.buffers()])
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))
