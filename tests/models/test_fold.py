"""Batch norms folded into convolutions: the same function in evaluation mode."""

from __future__ import annotations

import pytest
import torch
from tests.models.test_overwrite import FAMILIES, NORMS, network
from torch import nn

from depthscope.models.fold import folded
from depthscope.models.overwrite import overwriters, overwriting

NUM_NORMS = {"cifar_resnet": (7, 0), "preact_resnet": (7, 4), "bottleneck": (10, 4)}
"""Of the plain networks of the families: batch norms, and those that follow no convolution, but a block."""


def trained(model: nn.Module) -> nn.Module:
    """With running statistics that are not the initial ones."""
    draw = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.copy_(torch.randn(module.num_features, generator=draw))
            module.running_var.copy_(torch.rand(module.num_features, generator=draw) + 0.1)
    return model.eval()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("norm", NORMS)
@torch.no_grad()
def test_the_same_outputs(family: str, norm: str) -> None:
    model = trained(network(family, norm=norm, shortcut="A").double())
    x = torch.randn(5, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    before = {name: each.clone() for name, each in model.state_dict().items()}
    expected, quick = model(x), folded(model)
    with overwriting(overwriters(quick)):
        assert (quick(x) - expected).abs().max() < 1e-12 * expected.abs().max()
    assert torch.equal(model(x), expected)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_which_are_folded(family: str) -> None:
    def norms(model: nn.Module) -> int:
        return sum(isinstance(each, nn.BatchNorm2d) for each in model.modules())

    model = network(family, shortcut="none")
    assert (norms(model), norms(folded(model))) == NUM_NORMS[family]
    # Somebody listens to the norm of the first block's last convolution: it stays.
    model.get_submodule("blocks.0.bn2").register_forward_hook(lambda *_: None)
    assert norms(folded(model)) == NUM_NORMS[family][1] + 1
