"""The residual families of He et al.: what stands after the addition, and what an empty branch leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.conformance.case import Case
from torch import Tensor, nn

from depthscope.models import convnet, preact
from depthscope.models.convnet import cifar_resnet
from depthscope.models.preact import preact_resnet


def emptied(model: nn.Module, branches: tuple[tuple[str, ...], ...]) -> nn.Module:
    """The network whose branches' last layers are 0."""
    model.double().eval()
    with torch.no_grad():
        for branch in branches:
            model.get_parameter(f"{branch[-1]}.weight").zero_()
    return model


def after_the_sum() -> None:
    """He 2015: an activation follows the sum, so an empty block is max(0, x)."""
    model = cifar_resnet(depth=14, width=3, shortcut="A")
    emptied(model, model.branches())
    x = torch.randn(2, 3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(model.blocks[0](x), x.clamp(min=0))
    assert len(model.additions()) == 6


def nothing_after_the_sum(bottleneck: bool) -> Callable[[], None]:
    """He 2016: nothing follows the sum, so an empty block is the identity, on negative values too."""

    def check() -> None:
        model = preact_resnet(depth=20 if bottleneck else 14, width=4, bottleneck=bottleneck)
        emptied(model, model.branches())
        x = torch.randn(2, 16, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        block = model.blocks[1 if bottleneck else 5]
        assert torch.equal(block(x), x)
        with torch.device("meta"):
            large = preact_resnet(depth=164, bottleneck=True) if bottleneck else preact_resnet(depth=110)
        counts = (1_703_258, 54) if bottleneck else (1_730_522, 54)  # ORACLES section 1
        assert (sum(each.numel() for each in large.parameters()), len(large.additions())) == counts

    return check


def _activated(make: type[nn.Module]) -> Callable[[pytest.MonkeyPatch], None]:
    """A block with an activation after the sum."""
    before: Callable[[nn.Module, Tensor], Tensor] = make.forward
    return lambda monkeypatch: monkeypatch.setattr(make, "forward", lambda self, x: before(self, x).relu())


def _raw(self: convnet.Block, x: Tensor) -> Tensor:
    assert self.shortcut is not None
    total: Tensor = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x))))) + self.shortcut(x)
    return total


CASES = [
    Case(
        kind="family",
        name="cifar_resnet",
        check=after_the_sum,
        alter=lambda monkeypatch: monkeypatch.setattr(convnet.Block, "forward", _raw),
    ),
    Case(
        kind="family",
        name="preact_resnet",
        check=nothing_after_the_sum(bottleneck=False),
        alter=_activated(preact.BasicBlock),
    ),
    Case(
        kind="family",
        name="preact_resnet",
        check=nothing_after_the_sum(bottleneck=True),
        alter=_activated(preact.Bottleneck),
    ),
]
