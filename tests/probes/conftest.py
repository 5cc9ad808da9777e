"""Models of many kinds that every probe must measure right and leave alone, as fixtures."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.profile import Addition, Point
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build


@dataclass(frozen=True, kw_only=True)
class Case:
    model: nn.Module
    loss_fn: Callable[[Tensor, Tensor], Tensor]
    inputs: Tensor
    targets: Tensor
    points: tuple[Point, ...]
    additions: tuple[Addition, ...] = ()


class ResidualBlock(nn.Module):
    """Conv-BN-ReLU-conv-BN; `out += x` and the ReLUs in place where asked."""

    def __init__(self, channels: int, in_place: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU(inplace=in_place)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.skip = nn.Identity()
        self.relu2 = nn.ReLU(inplace=in_place)
        self.in_place = in_place

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        if self.in_place:
            out += self.skip(x)
        else:
            out = out + self.skip(x)
        activated: Tensor = self.relu2(out)
        return activated


def conv_point(layer: str, output: str) -> Point:
    return Point(layer=layer, kind="conv", weight=f"{layer}.weight", output=output)


def linear_point(layer: str, output: str) -> Point:
    return Point(layer=layer, kind="linear", weight=f"{layer}.weight", output=output)


def residual(in_place: bool = False, blocks: int = 3) -> Case:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(ResidualBlock(4, in_place) for _ in range(blocks)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    points = [conv_point(f"{i}.conv{k}", f"{i}.relu{k}") for i in range(blocks) for k in (1, 2)]
    additions = (Addition(block=f"{i}", branch=f"{i}.bn2", skip=f"{i}.skip", layer=f"{i}.conv2") for i in range(blocks))
    return Case(
        model=model,
        loss_fn=F.cross_entropy,
        inputs=torch.randn(6, 4, 5, 5),
        targets=torch.arange(6) % 3,
        points=(*points, linear_point(f"{blocks + 2}", f"{blocks + 2}")),
        additions=tuple(additions),
    )


def perceptron(in_place: bool = False, frozen: tuple[int, ...] = ()) -> Case:
    """Linear-ReLU three times and a head, squared error against floating-point targets."""
    torch.manual_seed(1)
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(5, 5), nn.ReLU(inplace=in_place)]
    model = nn.Sequential(*layers, nn.Linear(5, 2))
    for index in frozen:
        model[index].weight.requires_grad_(False)
    return Case(
        model=model,
        loss_fn=F.mse_loss,
        inputs=torch.randn(7, 5),
        targets=torch.randn(7, 2),
        points=(*(linear_point(f"{i}", f"{i + 1}") for i in (0, 2, 4)), linear_point("6", "6")),
    )


def cifar(
    shortcut: str, depth: int = 8, width: int = 4, size: int = 8, batch: int = 6, zero_last_gamma: bool = False
) -> Case:
    model, _ = build(
        lambda: cifar_resnet(depth=depth, width=width, shortcut=shortcut), seed=0, zero_last_gamma=zero_last_gamma
    )
    generator = torch.Generator().manual_seed(2)
    return Case(
        model=model,
        loss_fn=F.cross_entropy,
        inputs=torch.randn(batch, 3, size, size, generator=generator),
        targets=torch.randint(10, (batch,), generator=generator),
        points=model.points(),
        additions=model.additions(),
    )


class Restless(nn.Module):
    """Draws from every global generator in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        scale = 1 + random.random() + float(np.random.rand())  # noqa: NPY002
        out: Tensor = F.dropout(self.linear(x), 0.5, self.training) * scale
        return out


def restless() -> Case:
    torch.manual_seed(3)
    return Case(
        model=nn.Sequential(Restless(), nn.Dropout(0.3), nn.BatchNorm1d(3)),
        loss_fn=F.mse_loss,
        inputs=torch.randn(5, 3),
        targets=torch.randn(5, 3),
        points=(linear_point("0.linear", "0"),),
    )


CASES: dict[str, Callable[[], Case]] = {
    "residual": residual,
    "residual, in place": lambda: residual(in_place=True),
    "perceptron": perceptron,
    "perceptron, in place": lambda: perceptron(in_place=True),
    "perceptron, frozen": lambda: perceptron(frozen=(0, 4)),
    "cifar plain": lambda: cifar("none"),
    "cifar A": lambda: cifar("A"),
    "cifar B": lambda: cifar("B"),
    "cifar zero-gamma": lambda: cifar("A", zero_last_gamma=True),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each case whose measurement is a function of its model and batch."""
    return CASES[request.param]()


@pytest.fixture(params=[*CASES, "restless"])
def any_case(request: pytest.FixtureRequest) -> Case:
    """These, and one that draws as it goes."""
    return restless() if request.param == "restless" else CASES[request.param]()


@pytest.fixture
def make_cifar() -> Callable[..., Case]:
    return cifar


@pytest.fixture
def make_residual() -> Callable[..., Case]:
    return residual


@pytest.fixture
def make_perceptron() -> Callable[..., Case]:
    return perceptron


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
