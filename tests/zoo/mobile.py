"""MobileNetV2 (Sandler et al. 2018) and EfficientNet-B0 (Tan and Le 2019): inverted residual units."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, units, stride; a unit has a shortcut where stride is 1 and the channels stay: 10."""
EFFICIENTNET_B0 = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""The same and the kernel: 9."""


def _conv_bn(inside: int, out: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inside, out, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]


class SqueezeExcite(nn.Module):
    """x * sigmoid(W2 silu(W1 mean(x))): a gate."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), nn.SiLU(), nn.Conv2d(inner, width, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        scaled: Tensor = x * self.fc(x)
        return scaled


class Inverted(nn.Module):
    """1x1 expansion, depthwise, (squeeze-and-excitation,) 1x1 projection; stochastic depth on the branch."""

    def __init__(
        self, inside: int, out: int, expand: int, stride: int, size: int, act: type[nn.Module], *, se: bool, drop: float
    ) -> None:
        super().__init__()
        inner = inside * expand
        layers: list[nn.Module] = [*_conv_bn(inside, inner, 1), act()] if expand > 1 else []
        layers += [*_conv_bn(inner, inner, size, stride, inner), act()]
        if se:
            layers.append(SqueezeExcite(inner, max(1, inside // 4)))
        self.branch = nn.Sequential(*layers, *_conv_bn(inner, out, 1))
        self.skip, self.drop = stride == 1 and inside == out, drop

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.branch(x)
        if not self.skip:
            return out
        if self.training and self.drop:
            keep = 1 - self.drop
            out = out * out.new_empty(len(out), 1, 1, 1).bernoulli_(keep).div_(keep)
        return x + out


def _net(stem: int, units: list[nn.Module], last: int, act: type[nn.Module], shrink: int) -> nn.Sequential:
    top = 1280 // shrink
    tail = [*_conv_bn(last, top, 1), act(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(top, 5)]
    return nn.Sequential(*_conv_bn(3, stem, 3, 2), act(), *units, *tail)


def mobilenet_v2(shrink: int = 8) -> nn.Sequential:
    """10 additions."""
    inside = 32 // shrink
    stem, units = inside, list[nn.Module]()
    for expand, channels, count, stride in MOBILENET_V2:
        for unit in range(count):
            out = channels // shrink
            units.append(Inverted(inside, out, expand, 1 if unit else stride, 3, nn.ReLU6, se=False, drop=0.0))
            inside = out
    return _net(stem, units, inside, nn.ReLU6, shrink)


def efficientnet_b0(shrink: int = 8, drop: float = 0.2) -> nn.Sequential:
    """9 additions, 16 squeeze-and-excitation gates."""
    inside = 32 // shrink
    stem, units = inside, list[nn.Module]()
    for expand, channels, count, stride, size in EFFICIENTNET_B0:
        for unit in range(count):
            out = channels // shrink
            units.append(Inverted(inside, out, expand, 1 if unit else stride, size, nn.SiLU, se=True, drop=drop))
            inside = out
    return _net(stem, units, inside, nn.SiLU, shrink)


def images(size: int = 32, batch: int = 2) -> Tensor:
    """A batch of images drawn from a generator of its own."""
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0))
