"""Parts that overwrite what they read: the bits of a step are the same, whatever else the blocks are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.models.overwrite import overwriters, overwriting
from depthscope.models.preact import preact_resnet
from depthscope.models.shortcuts.joins import Add
from depthscope.study.catalog import CATALOG

FAMILIES: dict[str, Callable[..., nn.Module]] = {
    "cifar_resnet": partial(cifar_resnet, depth=8),
    "preact_resnet": partial(preact_resnet, depth=8),
    "bottleneck": partial(preact_resnet, depth=11, bottleneck=True),
}
SHORTCUTS = CATALOG["family"]["cifar_resnet"].accepts["shortcut"]
NORMS = CATALOG["family"]["cifar_resnet"].accepts["norm"]


def network(family: str, **given: Any) -> nn.Module:
    model, _ = build(lambda: FAMILIES[family](**{"width": 4, "num_classes": 7, **given}), seed=0)
    # None at its initial value: a branch that starts at zero would give the same whatever it computed.
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=draw))
    return model


def passes(model: nn.Module, size: int) -> list[Tensor]:
    """Output, gradients and buffers of a step, images last in memory as in training."""
    torch.manual_seed(3)  # of blocks that are dropped
    x = torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(1))
    logits = model.to(memory_format=torch.channels_last)(x)  # type: ignore[call-overload]
    logits.square().sum().backward()
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    return [logits.detach(), *grads, *model.buffers()]


def agree(family: str, *, size: int = 8, **given: Any) -> int:
    """How many parts overwrite; with and without, all bits are equal."""
    plain, other = network(family, **given), network(family, **given)
    parts = overwriters(other)
    with overwriting(parts):
        assert all(part.inplace for part in parts)
        found = passes(other, size)
    assert not any(part.inplace for part in parts)
    expected = passes(plain, size)
    assert len(found) == len(expected)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    return len(parts)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_bits_with_every_shortcut(family: str, shortcut: str) -> None:
    assert agree(family, shortcut=shortcut) >= 3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shortcut", ["none", "A"])
def test_bits_with_every_normaliser(family: str, norm: str, shortcut: str) -> None:
    assert agree(family, norm=norm, shortcut=shortcut) >= 3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shortcut", SHORTCUTS)
@pytest.mark.parametrize(("width", "size"), [(1, 8), (4, 4)])
def test_bits_where_several_strides_describe_the_same_memory(family: str, shortcut: str, width: int, size: int) -> None:
    """One channel, or one pixel in the last stage."""
    assert agree(family, shortcut=shortcut, width=width, size=size) >= 3


def test_bits_where_blocks_are_computed_again() -> None:
    assert agree("cifar_resnet", shortcut="A", checkpointing=True) == 10


def test_which_parts() -> None:
    """Of 3 blocks: two ReLUs and the addition each, and the stem's; in preact the one ReLU of the branch."""
    assert len(overwriters(network("cifar_resnet", shortcut="A"))) == 10
    assert len(overwriters(network("cifar_resnet", shortcut="none"))) == 7
    assert len(overwriters(network("preact_resnet", shortcut="A"))) == 6
    assert len(overwriters(network("bottleneck", shortcut="A"))) == 9
    # A tanh's gradient is read from its output, too, but torch has no module that writes it over its input.
    assert {type(each) for each in overwriters(network("cifar_resnet", shortcut="A", activation="tanh"))} == {Add}


def test_an_error_leaves_them_as_they_were() -> None:
    parts = overwriters(network("cifar_resnet", shortcut="A"))
    with pytest.raises(KeyboardInterrupt), overwriting(parts):
        raise KeyboardInterrupt
    assert not any(part.inplace for part in parts)
