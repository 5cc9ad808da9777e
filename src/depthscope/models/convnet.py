"""The CIFAR-10 family of He et al. 2015 (arXiv 1512.03385, section 4.2): plain and residual, depth 6n+2.

Shape letters: B batch, C channels, H and W height and width, K classes.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor, nn

from depthscope.core.depth import cifar_blocks_per_stage
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point
from depthscope.models.shortcuts.skips import SHORTCUTS


def cifar_resnet(
    *, depth: int, width: int = 16, shortcut: str = "none", num_inputs: int = 3, num_classes: int = 10
) -> CifarResNet:
    """A network of He et al.'s CIFAR-10 family, on the current default device.

    A plain network and option A have the same parameters, name by name and shape by shape, so A is
    the strict control; option B adds a projection (1x1 convolution and batch norm) in two blocks.

    Args:
        depth: number of weighted layers on the longest path, 6n+2.
        width: channels of the first stage; the second and third have twice and four times as many.
        shortcut: `none` (plain), `A` (zero-padded identity) or `B` (projection where the dimension changes).
        num_inputs: channels of an input image.
        num_classes: outputs of the linear head.

    Raises:
        UserError: `depth` is not 6n+2, `shortcut` is unknown, or a count is below 1.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = cifar_resnet(depth=56, shortcut="A")
    >>> sum(parameter.numel() for parameter in model.parameters())
    853018
    >>> len(model.points()), len(model.additions())
    (56, 27)
    """
    return CifarResNet(depth=depth, width=width, shortcut=shortcut, num_inputs=num_inputs, num_classes=num_classes)


class Block(nn.Module):
    """Two 3x3 convolutions, each with batch norm and its own ReLU; the second ReLU follows the addition.

    x_BCHW -> relu(F(x) + shortcut(x)) with F = bn2(conv2(relu1(bn1(conv1(x))))); without a shortcut, relu(F(x)).

    The ReLUs are two modules, not in place: a probe takes a module's output for the layer's h.
    """

    def __init__(self, num_in: int, num_out: int, stride: int, shortcut: str) -> None:
        super().__init__()
        self.conv1 = _conv3x3(num_in, num_out, stride)
        self.bn1 = nn.BatchNorm2d(num_out)
        self.relu1 = nn.ReLU()
        self.conv2 = _conv3x3(num_out, num_out, 1)
        self.bn2 = nn.BatchNorm2d(num_out)
        make = SHORTCUTS[shortcut]
        self.shortcut = None if make is None else make(num_in, num_out, stride)
        self.relu2 = nn.ReLU()

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        out = self.relu1(self.bn1(self.conv1(x_BCHW)))
        out = self.bn2(self.conv2(out))
        if self.shortcut is not None:
            out = out + self.shortcut(x_BCHW)
        activated: Tensor = self.relu2(out)
        return activated


class CifarResNet(nn.Module):
    """See `cifar_resnet`. x_BCHW -> logits_BK; H and W are free, and a multiple of 4 as in the paper."""

    def __init__(self, *, depth: int, width: int, shortcut: str, num_inputs: int, num_classes: int) -> None:
        super().__init__()
        blocks_per_stage = cifar_blocks_per_stage(depth)
        if shortcut not in SHORTCUTS:
            raise UserError(unknown_name("shortcut", shortcut, SHORTCUTS))
        for name, value in (("width", width), ("num_inputs", num_inputs), ("num_classes", num_classes)):
            if value < 1:
                raise UserError(f"{name}: wanted 1 or more, got {value}.")
        self.stem = nn.Sequential(
            OrderedDict(conv=_conv3x3(num_inputs, width, 1), bn=nn.BatchNorm2d(width), relu=nn.ReLU())
        )
        blocks = []
        num_in = width
        for stage in range(3):
            num_out = width * 2**stage
            for position in range(blocks_per_stage):
                stride = 2 if stage > 0 and position == 0 else 1
                blocks.append(Block(num_in, num_out, stride, shortcut))
                num_in = num_out
        # One flat list: `blocks.3` is the fourth block of every network, whatever its depth.
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(num_in, num_classes)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        features_BC = self.pool(self.blocks(self.stem(x_BCHW))).flatten(1)
        logits_BK: Tensor = self.head(features_BC)
        return logits_BK

    def points(self) -> tuple[Point, ...]:
        """The `depth` weighted layers in forward order, each with where its h is found.

        h of a block's second convolution is the block's output, after the addition where there is one:
        plain and residual arms so have the same positions. Option B's projections lie beside the path
        that depth counts, and are no points.
        """
        points = [_conv_point("stem.conv", "stem.relu")]
        for index in range(len(self.blocks)):
            points += [_conv_point(f"blocks.{index}.conv{each}", f"blocks.{index}.relu{each}") for each in (1, 2)]
        return (*points, Point(layer="head", kind="linear", weight="head.weight", output="head"))

    def additions(self) -> tuple[Addition, ...]:
        """The residual additions in forward order, one a block; none in a plain network."""
        return tuple(
            Addition(
                block=f"blocks.{index}",
                branch=f"blocks.{index}.bn2",
                skip=f"blocks.{index}.shortcut",
                layer=f"blocks.{index}.conv2",
            )
            for index, block in enumerate(self.blocks)
            if block.shortcut is not None
        )


def _conv3x3(num_in: int, num_out: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(num_in, num_out, kernel_size=3, stride=stride, padding=1, bias=False)


def _conv_point(layer: str, output: str) -> Point:
    return Point(layer=layer, kind="conv", weight=f"{layer}.weight", output=output)
