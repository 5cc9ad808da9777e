"""Further stand-ins: mixers, encoders and decoders of images, residual networks without norms, a graph network."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class ConvNeXtBlock(nn.Module):
    """Liu et al. 2022: depthwise 7x7, norm, two 1x1, a scale by a vector."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.spatial(x).permute(0, 2, 3, 1))
        out: Tensor = x + (self.scale * self.down(functional.gelu(self.up(h)))).permute(0, 3, 1, 2)
        return out


def convnext(width: int = 8, blocks: int = 4) -> nn.Sequential:
    """A patch stem and so many blocks of one stage."""
    net = nn.Sequential(nn.Conv2d(3, width, 4, 4), *(ConvNeXtBlock(width) for _ in range(blocks)))
    return net.append(nn.AdaptiveAvgPool2d(1)).append(nn.Flatten()).append(nn.Linear(width, 5))


class MixerLayer(nn.Module):
    """Tolstikhin et al. 2021: an MLP over patches, an MLP over channels, each behind a norm."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.patches = nn.Sequential(nn.Linear(patches, 8), nn.GELU(), nn.Linear(8, patches))
        self.channels = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        out: Tensor = x + self.channels(self.norm2(x))
        return out


class Mixer(nn.Module):
    """MLP-Mixer on images of 32 pixels."""

    def __init__(self, layers: int = 3, width: int = 12) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, width, 8, 8), nn.Linear(width, 5)
        self.layers = nn.Sequential(*(MixerLayer(16, width) for _ in range(layers)), nn.LayerNorm(width))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.layers(self.stem(x).flatten(2).transpose(1, 2)).mean(1))
        return out


def _double(inside: int, out: int) -> nn.Sequential:
    convs = [nn.Conv2d(inside, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
    return nn.Sequential(*convs, nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Ronneberger et al. 2015: on the way up each level is concatenated with that of the way down."""

    def __init__(self, levels: int = 3, width: int = 4) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels + 1)]
        self.down = nn.ModuleList(_double(*pair) for pair in zip([3, *widths], widths, strict=False))
        pairs = list(zip(widths[::-1], widths[-2::-1], strict=False))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(wide, out, 2, 2) for wide, out in pairs)
        self.up = nn.ModuleList(_double(wide, out) for wide, out in pairs)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for at, down in enumerate(self.down):
            x = down(functional.max_pool2d(x, 2) if at else x)
            kept.append(x)
        for grow, up, skip in zip(self.grow, self.up, kept[-2::-1], strict=True):
            x = up(torch.cat([skip, grow(x)], 1))
        out: Tensor = self.head(x)
        return out


def generator(width: int = 4) -> nn.Sequential:
    """DCGAN's (Radford et al. 2016): transposed convolutions from 8 random numbers to 32 x 32 pixels."""
    net = nn.Sequential(nn.Unflatten(1, (8, 1, 1)), nn.ConvTranspose2d(8, 4 * width, 4), nn.BatchNorm2d(4 * width))
    net.append(nn.ReLU(inplace=True))
    for inside, out in ((4 * width, 2 * width), (2 * width, width)):
        net.extend([nn.ConvTranspose2d(inside, out, 4, 2, 1), nn.BatchNorm2d(out), nn.ReLU(inplace=True)])
    return net.extend([nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh()])


def autoencoder(width: int = 16, bottleneck: int = 2) -> nn.Sequential:
    """Dense, through 2 numbers."""
    sizes = [width, width, width // 2, bottleneck, width // 2, width]
    net = nn.Sequential()
    for inside, out in pairwise(sizes):
        net.extend([nn.Linear(inside, out), nn.Tanh()])
    return net.append(nn.Linear(width, width))


class ReZero(nn.Module):
    """Bachlechner et al. 2020: x + a F(x), a = 0."""

    def __init__(self, blocks: int = 4, width: int = 8) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(4, width), nn.Linear(width, 2)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.scales = nn.Parameter(torch.zeros(blocks))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for scale, block in zip(self.scales, self.blocks, strict=True):
            x = x + scale * functional.relu(block(x))
        out: Tensor = self.head(x)
        return out


class FixupUnit(nn.Module):
    """Zhang et al. 2019: scalar biases and one multiplier; where the shape changes, pooled and joined by zeros."""

    def __init__(self, inside: int, out: int, stride: int, branches: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        nn.init.normal_(self.conv1.weight, std=(2 / (9 * out)) ** 0.5 * branches**-0.5)
        nn.init.zeros_(self.conv2.weight)
        self.biases, self.scale = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.ones(()))
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.conv1(x + self.biases[0]) + self.biases[1])
        h = self.conv2(h + self.biases[2]) * self.scale + self.biases[3]
        if self.stride > 1:
            x = functional.avg_pool2d(x, self.stride)
            x = torch.cat([x, torch.zeros_like(x)], 1)
        return functional.relu(h + x)


def fixup(units: int = 2, width: int = 4) -> nn.Sequential:
    """Two stages of `units` units, no norm; the classifier is 0."""
    net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.ReLU())
    for stage in range(2):
        for unit in range(units):
            first = stage == 1 and unit == 0
            out = width * 2**stage
            net.append(FixupUnit(out // 2 if first else out, out, 2 if first else 1, 2 * units))
    head = nn.Linear(2 * width, 5)
    nn.init.zeros_(head.weight)
    return net.append(nn.AdaptiveAvgPool2d(1)).append(nn.Flatten()).append(head)


class RevNet(nn.Module):
    """Gomez et al. 2017: the stream in halves; y1 = x1 + F(x2), y2 = x2 + G(y1)."""

    def __init__(self, blocks: int = 3, width: int = 8) -> None:
        super().__init__()
        half = width // 2

        def branch() -> nn.Sequential:
            return nn.Sequential(nn.Linear(half, width), nn.ReLU(), nn.Linear(width, half))

        self.stem, self.head = nn.Linear(4, width), nn.Linear(width, 2)
        self.f, self.g = (nn.ModuleList(branch() for _ in range(blocks)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.stem(x).chunk(2, -1)
        for f, g in zip(self.f, self.g, strict=True):
            left = left + f(right)
            right = right + g(left)
        out: Tensor = self.head(torch.cat([left, right], -1))
        return out


class NormFreeUnit(nn.Module):
    """Brock et al. 2021: x + .2 s f(act(x) / std), standardised weights, s = 0 at the start."""

    def __init__(self, width: int, std: float) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.gains = nn.ParameterList(torch.ones(width, 1, 1, 1) for _ in range(2))
        self.scale, self.std = nn.Parameter(torch.zeros(())), std

    def forward(self, x: Tensor) -> Tensor:
        h = x / self.std
        for conv, gain in zip((self.conv1, self.conv2), self.gains, strict=True):
            variance, mean = torch.var_mean(conv.weight, (1, 2, 3), keepdim=True, unbiased=False)
            fan_in = conv.weight[0].numel()
            weight = gain * (conv.weight - mean) * torch.rsqrt((variance * fan_in).clamp_min(1e-4))
            h = functional.conv2d(functional.relu(h) * 1.7139588594, weight, conv.bias, padding=1)
        return x + 0.2 * self.scale * h


def norm_free(units: int = 3, width: int = 4) -> nn.Sequential:
    """One stage of a normaliser-free network: the variance grows by .04 a unit."""
    net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1))
    net.extend(NormFreeUnit(width, (1 + 0.04 * unit) ** 0.5) for unit in range(units))
    return net.append(nn.ReLU()).append(nn.AdaptiveAvgPool2d(1)).append(nn.Flatten()).append(nn.Linear(width, 5))


class GraphNet(nn.Module):
    """Kipf and Welling 2017 with residual connections: x + relu(A x W) on a ring of 6 nodes."""

    def __init__(self, layers: int = 3, width: int = 8) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(3, width), nn.Linear(width, 2)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        ring = torch.eye(6) + torch.eye(6).roll(1, 0) + torch.eye(6).roll(-1, 0)
        self.register_buffer("ring", ring / 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = x + functional.relu(self.ring @ layer(x))
        out: Tensor = self.head(x)
        return out


class Recurrent(nn.Module):
    """Two layers of torch's own recurrence and a head at the last step."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cells, self.head = kind(3, 6, num_layers=2, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.cells(x)[0][:, -1])
        return out


class Sequence(nn.Module):
    """torch's own `nn.Transformer`."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Transformer(8, 2, 2, 3, 16, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        out: Tensor = self.body(source, target)
        return out


def plain(layers: int = 8, width: int = 8) -> nn.Sequential:
    """Linear and ReLU, torch's own initialiser."""
    net = nn.Sequential(nn.Linear(4, width), nn.ReLU())
    for _ in range(layers):
        net.extend([nn.Linear(width, width), nn.ReLU()])
    return net.append(nn.Linear(width, 2))
