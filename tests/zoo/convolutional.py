"""Convolutional networks without residual additions: VGG, DenseNet, Inception-v3."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VGG_16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
"""Channels of the convolutions; 0 for a pooling."""
DENSENET_121 = (6, 12, 24, 16)


def vgg(channels: tuple[int, ...] = VGG_16, shrink: int = 16) -> nn.Sequential:
    """VGG-16 (Simonyan and Zisserman 2014): 13 convolutions and 3 linear layers."""
    net, inside = nn.Sequential(), 3
    for each in channels:
        if not each:
            net.append(nn.MaxPool2d(2))
            continue
        net.extend([nn.Conv2d(inside, each // shrink, 3, padding=1), nn.ReLU(inplace=True)])
        inside = each // shrink
    head = [nn.Linear(inside, 8), nn.ReLU(True), nn.Dropout(), nn.Linear(8, 8), nn.ReLU(True), nn.Dropout()]
    return net.append(nn.AdaptiveAvgPool2d(1)).append(nn.Flatten()).extend([*head, nn.Linear(8, 5)])


class DenseLayer(nn.Module):
    """BN-ReLU-1x1-BN-ReLU-3x3 on the concatenation of all earlier features."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(inside),
            nn.ReLU(inplace=True),
            nn.Conv2d(inside, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.layers(x)], 1)


def densenet(blocks: tuple[int, ...] = DENSENET_121, growth: int = 2) -> nn.Sequential:
    """DenseNet-121 (Huang et al. 2017): 58 dense layers, each of which concatenates once."""
    inside = 2 * growth
    net = nn.Sequential(nn.Conv2d(3, inside, 7, 2, 3, bias=False), nn.BatchNorm2d(inside), nn.ReLU(inplace=True))
    for index, layers in enumerate(blocks):
        for _ in range(layers):
            net.append(DenseLayer(inside, growth))
            inside += growth
        if index < len(blocks) - 1:
            half = inside // 2
            net.extend([nn.BatchNorm2d(inside), nn.ReLU(True), nn.Conv2d(inside, half, 1, bias=False), nn.AvgPool2d(2)])
            inside = half
    return net.extend(
        [nn.BatchNorm2d(inside), nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 5)]
    )


class Convs(nn.Sequential):
    """Convolution-BN-ReLU for each (channels, kernel height, kernel width)."""

    def __init__(self, inside: int, *layers: tuple[int, int, int], stride: int = 1) -> None:
        super().__init__()
        for at, (out, high, wide) in enumerate(layers):
            step = stride if at == len(layers) - 1 else 1
            padding = (high // 2, wide // 2) if step == 1 else 0
            conv = nn.Conv2d(inside, out, (high, wide), step, padding, bias=False)
            self.extend([conv, nn.BatchNorm2d(out), nn.ReLU(inplace=True)])
            inside = out


class Parallel(nn.Module):
    """Branches side by side, concatenated; `pool` is a pooling before the last."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class InceptionV3(nn.Module):
    """Inception-v3 (Szegedy et al. 2015) at width 1/16, with its auxiliary head in train mode.

    11 modules, each with a concatenation at its end; the two with expanded filter banks have two more inside: 15.
    """

    def __init__(self, classes: int = 5) -> None:
        super().__init__()

        def pooled(inside: int, out: int) -> nn.Sequential:
            return nn.Sequential(nn.AvgPool2d(3, 1, 1), Convs(inside, (out, 1, 1)))

        def square(inside: int) -> Parallel:
            return Parallel(
                Convs(inside, (4, 1, 1)),
                Convs(inside, (3, 1, 1), (4, 5, 5)),
                Convs(inside, (4, 1, 1), (6, 3, 3), (6, 3, 3)),
                pooled(inside, 2),
            )

        def long(inside: int) -> Parallel:
            return Parallel(
                Convs(inside, (12, 1, 1)),
                Convs(inside, (8, 1, 1), (8, 1, 7), (12, 7, 1)),
                Convs(inside, (8, 1, 1), (8, 7, 1), (8, 1, 7), (8, 7, 1), (12, 1, 7)),
                pooled(inside, 12),
            )

        def spread(inside: int) -> Parallel:
            fork = Parallel(Convs(24, (24, 1, 3)), Convs(24, (24, 3, 1)))
            other = Parallel(Convs(24, (24, 1, 3)), Convs(24, (24, 3, 1)))
            return Parallel(
                Convs(inside, (20, 1, 1)),
                nn.Sequential(Convs(inside, (24, 1, 1)), fork),
                nn.Sequential(Convs(inside, (28, 1, 1), (24, 3, 3)), other),
                pooled(inside, 12),
            )

        self.stem = nn.Sequential(
            Convs(3, (2, 3, 3), stride=2),
            Convs(2, (2, 3, 3), (4, 3, 3)),
            nn.MaxPool2d(3, 2),
            Convs(4, (5, 1, 1), (12, 3, 3)),
            nn.MaxPool2d(3, 2),
        )
        self.mixed = nn.Sequential(
            square(12),
            square(16),
            square(16),
            Parallel(
                Convs(16, (24, 3, 3), stride=2),
                Convs(16, (4, 1, 1), (6, 3, 3), (6, 3, 3), stride=2),
                nn.MaxPool2d(3, 2),
            ),
            *(long(each) for each in (46, 48, 48, 48)),
        )
        self.aux = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, classes))
        self.top = nn.Sequential(
            Parallel(
                Convs(48, (12, 1, 1), (20, 3, 3), stride=2),
                Convs(48, (12, 1, 1), (12, 1, 7), (12, 7, 1), (12, 3, 3), stride=2),
                nn.MaxPool2d(3, 2),
            ),
            spread(80),
            spread(128),
        )
        self.fc = nn.Linear(128, classes)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        middle = self.mixed(self.stem(x))
        out = {"aux_logits": self.aux(middle)} if self.training else {}
        pooled = functional.adaptive_avg_pool2d(self.top(middle), 1).flatten(1)
        out["logits"] = self.fc(functional.dropout(pooled, training=self.training))
        return out
