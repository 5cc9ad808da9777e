"""Residual networks for images: He et al. 2015 (ImageNet and CIFAR layouts) and 2016 (pre-activation)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

LAYERS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
ADDITIONS = {18: 8, 34: 16, 50: 16, 101: 33, 152: 50}


def _conv(inside: int, out: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, out, size, stride, padding=size // 2, bias=False)


class Unit(nn.Module):
    """Basic (two 3x3) or bottleneck (1x1, 3x3, 1x1) unit, in-place as torchvision's: `out += identity`."""

    def __init__(self, inside: int, width: int, out: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        if bottleneck:
            layers = [(inside, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        else:
            layers = [(inside, width, 3, stride), (width, out, 3, 1)]
        parts: list[nn.Module] = []
        for each in layers:
            parts += [_conv(each[0], each[1], each[2], each[3]), nn.BatchNorm2d(each[1]), nn.ReLU(inplace=True)]
        self.branch = nn.Sequential(*parts[:-1])
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inside != out:
            self.downsample = nn.Sequential(_conv(inside, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.branch(x)
        out += identity
        activated: Tensor = self.relu(out)
        return activated


def resnet(depth: int, width: int = 4, classes: int = 5) -> nn.Sequential:
    """ResNet-18 to -152: 8, 16, 16, 33, 50 additions (torchvision's layout at a small width)."""
    bottleneck = depth >= 50
    stem = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    net = nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1))
    inside = width
    for stage, units in enumerate(LAYERS[depth]):
        inner = width * 2**stage
        out = inner * (4 if bottleneck else 1)
        for unit in range(units):
            net.append(Unit(inside, inner, out, 2 if stage and unit == 0 else 1, bottleneck=bottleneck))
            inside = out
    return net.append(nn.AdaptiveAvgPool2d(1)).append(nn.Flatten()).append(nn.Linear(inside, classes))


class CifarUnit(nn.Module):
    """Two 3x3 convolutions; shortcut `plain`, `A` (every other pixel and zero channels) or `B` (1x1 convolution)."""

    def __init__(self, inside: int, out: int, stride: int, shortcut: str) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inside, out, 3, stride), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = _conv(out, out), nn.BatchNorm2d(out)
        self.shortcut, self.more = shortcut, out - inside
        self.project = None
        if shortcut == "B" and inside != out:
            self.project = nn.Sequential(_conv(inside, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.shortcut == "A":
            half = self.more // 2
            out = out + (functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, half)) if self.more else x)
        elif self.shortcut == "B":
            out = out + (self.project(x) if self.project is not None else x)
        return functional.relu(out)


def cifar_resnet(depth: int, shortcut: str, width: int = 4) -> nn.Sequential:
    """He 2015's CIFAR layout: (depth - 2) / 2 additions, or none where plain."""
    net = nn.Sequential(_conv(3, width), nn.BatchNorm2d(width), nn.ReLU())
    inside = width
    for stage in range(3):
        for unit in range((depth - 2) // 6):
            out = width * 2**stage
            net.append(CifarUnit(inside, out, 2 if stage and unit == 0 else 1, shortcut))
            inside = out
    return net.append(nn.AdaptiveAvgPool2d(1)).append(nn.Flatten()).append(nn.Linear(inside, 10))


class PreActivationUnit(nn.Module):
    """He 2016: BN-ReLU-conv twice; where the shape changes a 1x1 shortcut is fed by the shared first BN-ReLU."""

    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inside), _conv(inside, out, 3, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(out), _conv(out, out)
        self.project = _conv(inside, out, 1, stride) if inside != out else None

    def forward(self, x: Tensor) -> Tensor:
        active = functional.relu(self.bn1(x))
        skip = x if self.project is None else self.project(active)
        out: Tensor = skip + self.conv2(functional.relu(self.bn2(self.conv1(active))))
        return out


def preactivation_resnet(units: int, width: int = 4) -> nn.Sequential:
    """Three stages of `units` units: 3 * units additions."""
    net = nn.Sequential(_conv(3, width))
    inside = width
    for stage in range(3):
        for unit in range(units):
            out = width * 2**stage
            net.append(PreActivationUnit(inside, out, 2 if stage and unit == 0 else 1))
            inside = out
    tail = [nn.BatchNorm2d(inside), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10)]
    return net.extend(tail)
