"""Batch norms folded into convolutions: the same function in evaluation mode."""

from __future__ import annotations

import pytest
import torch
from tests.models.test_overwrite import FAMILIES, NORMS, network
from torch import nn

from depthscope.models.fold import folding
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
    modules, expected = dict(model.named_modules()), model(x)
    drawn = torch.get_rng_state()
    with folding(model), overwriting(overwriters(model)):
        assert (model(x) - expected).abs().max() < 1e-12 * expected.abs().max()
    assert torch.equal(torch.get_rng_state(), drawn)
    assert torch.equal(model(x), expected)
    assert dict(model.named_modules()) == modules
    assert {name: each.shape for name, each in model.state_dict().items()} == {n: e.shape for n, e in before.items()}
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


def norms(model: nn.Module) -> int:
    """How many there are while they are folded."""
    with folding(model):
        return sum(isinstance(each, nn.BatchNorm2d) for each in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_which_are_folded(family: str) -> None:
    model = network(family, shortcut="none").eval()
    assert sum(isinstance(each, nn.BatchNorm2d) for each in model.modules()) == NUM_NORMS[family][0]
    assert norms(model) == NUM_NORMS[family][1]
    # Somebody listens to the norm of the first block's last convolution: it stays.
    model.get_submodule("blocks.0.bn2").register_forward_hook(lambda *_: None)
    assert norms(model) == NUM_NORMS[family][1] + 1
    assert norms(model.train()) == NUM_NORMS[family][0]


def test_an_error_gives_the_model_its_own_parts_back() -> None:
    model = trained(network("cifar_resnet", shortcut="A"))
    modules = dict(model.named_modules())
    with pytest.raises(KeyboardInterrupt), folding(model):
        raise KeyboardInterrupt
    assert dict(model.named_modules()) == modules


class Theirs(nn.Module):
    """Of somebody else, with attributes that are called like ours."""

    folds, overwrites = 4, ("relu",)

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.last: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = self.relu(x)  # which cannot be copied once it has a history
        return self.last


def test_parts_of_somebody_else_are_let_alone() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), Theirs())
    model(torch.randn(2, 3, 8, 8))
    assert overwriters(model) == ()
    with folding(model):
        model(torch.randn(2, 3, 8, 8))
