"""DenseNet-BC on CIFAR (Huang et al. 2017, arXiv 1608.06993): every layer sees what all earlier ones have made.

Shape letters: B batch, C channels, H and W height and width, K classes.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.depth import densenet_layers_per_block
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point
from depthscope.models import stages
from depthscope.models.checkpoint import Blocks
from depthscope.models.layers.make import Layers, MakeActivation, MakeNorm
from depthscope.models.site import check_counts

WIDENING = 4
"""Channels of a layer's first convolution, in growths."""

DEFAULT_GROWTH = 4
"""What a run holds as option `growth` of shortcut `dense` where nothing was said; here `width` decides."""


def cifar_densenet(
    *,
    depth: int,
    width: int = 12,
    shortcut: str = "dense",
    norm: str | MakeNorm = "batch",
    activation: str | MakeActivation = "relu",
    num_inputs: int = 3,
    num_classes: int = 10,
    shortcut_options: Mapping[str, Any] = {},
    norm_options: Mapping[str, Any] = {},
    compression: float = 0.5,
    checkpointing: bool = False,
) -> DenseNet:
    """A DenseNet-BC, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    `width` is the growth k, the channels that each layer adds, and no layer's width: it is not matched in parameters
    with a network of another family at the same depth and width, so a comparison tells of both.

    Args:
        depth: weighted layers on the longest path: stem, two in each layer of three dense blocks, two transitions and
            the head; 6n+4 in the paper, and any even number from 10.
        width: the growth k. The stem has 2k channels.
        shortcut: `dense`, the only one.
        norm: normaliser, by name or a function of one's own (see `Layers`).
        activation: nonlinearity, likewise.
        num_inputs: channels of an input image.
        num_classes: outputs of the linear head.
        shortcut_options: none; `growth` is `width` here.
        norm_options: of `norm`.
        compression: theta: a transition keeps floor(theta C) of its C channels.
        checkpointing: keep few activations for the backward pass (see `checkpoint.Blocks`).

    Raises:
        UserError: no network of this `depth`, another shortcut, an unknown or impossible normaliser or activation, a
            count below 1.

    >>> with torch.device("meta"):
    ...     model = cifar_densenet(depth=100, width=12)
    >>> sum(parameter.numel() for parameter in model.parameters()), len(model.points())
    (769162, 100)
    """
    if shortcut != "dense":
        raise UserError(unknown_name("shortcut of densenet", shortcut, ("dense",)))
    if shortcut_options.get("growth", width) not in (width, DEFAULT_GROWTH):
        raise UserError(
            f"shortcut_options.growth: {shortcut_options['growth']} is given, but in densenet the growth is `width`. "
            "Leave it away."
        )
    if not 0 < compression <= 1:
        raise UserError(f"compression: wanted a number in (0, 1], got {compression}.")
    check_counts(width=width, num_inputs=num_inputs, num_classes=num_classes)
    return DenseNet(
        layers_per_block=densenet_layers_per_block(depth),
        growth=width,
        layers=Layers(norm=norm, activation=activation, depth=depth, norm_options=norm_options),
        num_inputs=num_inputs,
        num_classes=num_classes,
        compression=compression,
        checkpointing=checkpointing,
    )


class DenseLayer(nn.Module):
    """x_BCHW -> [x, F(x)] along the channels, C + k of them, with F = conv2(act2(norm2(conv1(act1(norm1(x)))))).

    conv1 is 1x1 with 4k channels, conv2 3x3 with k.
    """

    def __init__(self, num_in: int, growth: int, layers: Layers) -> None:
        super().__init__()
        self.norm1 = layers.normaliser(num_in)
        self.act1 = layers.act()
        self.conv1 = layers.weighted(num_in, WIDENING * growth, kernel=1)
        self.norm2 = layers.normaliser(WIDENING * growth)
        self.act2 = layers.act()
        self.conv2 = layers.weighted(WIDENING * growth, growth)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        out = self.conv1(self.act1(self.norm1(x_BCHW)))
        out = self.conv2(self.act2(self.norm2(out)))
        return torch.cat([x_BCHW, out], dim=1)


class Transition(nn.Module):
    """Between two dense blocks: x_BCHW -> pool(conv(act(norm(x)))) with a 1x1 convolution and 2x2 average pooling."""

    def __init__(self, num_in: int, num_out: int, layers: Layers) -> None:
        super().__init__()
        self.norm = layers.normaliser(num_in)
        self.act = layers.act()
        self.conv = layers.weighted(num_in, num_out, kernel=1)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        pooled: Tensor = self.pool(self.conv(self.act(self.norm(x_BCHW))))
        return pooled


class DenseNet(nn.Module):
    """See `cifar_densenet`. x_BCHW -> logits_BK; H and W of 4 or more, and a multiple of 4 as in the paper."""

    def __init__(
        self,
        *,
        layers_per_block: tuple[int, ...],
        growth: int,
        layers: Layers,
        num_inputs: int,
        num_classes: int,
        compression: float,
        checkpointing: bool,
    ) -> None:
        super().__init__()
        self.layers = layers
        num = 2 * growth
        self.stem = nn.Sequential(OrderedDict(conv=layers.weighted(num_inputs, num, activated=False)))
        blocks: list[nn.Module] = []
        for index, num_layers in enumerate(layers_per_block):
            if index > 0:
                # (rounded first: .29 * 100 is a little less than 29)
                kept = max(1, math.floor(round(compression * num, 6)))
                blocks.append(Transition(num, kept, layers))
                num = kept
            for _ in range(num_layers):
                blocks.append(DenseLayer(num, growth, layers))
                num += growth
        # One flat list of dense layers and transitions, which may be checkpointed anywhere.
        self.blocks = Blocks(*blocks, checkpointing=checkpointing)
        self.last = nn.Sequential(OrderedDict(norm=layers.normaliser(num), act=layers.act()))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = layers.head(num, num_classes)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        features_BC = self.pool(self.last(self.blocks(self.stem(x_BCHW)))).flatten(1)
        logits_BK: Tensor = self.head(features_BC)
        return logits_BK

    def points(self) -> tuple[Point, ...]:
        """The weighted layers in forward order, each with where its h is found.

        h of a layer's first convolution is what the second takes, activated; of all others, which several later
        layers take, what the convolution gives.
        """
        points = [stages.conv_point("stem.conv", "stem")]
        for index, block in enumerate(self.blocks):
            name = f"blocks.{index}"
            if isinstance(block, DenseLayer):
                points += [
                    stages.conv_point(f"{name}.conv1", f"{name}.act2"),
                    stages.conv_point(f"{name}.conv2", f"{name}.conv2"),
                ]
            else:
                points.append(stages.conv_point(f"{name}.conv", f"{name}.conv"))
        return (*points, Point(layer="head", kind="linear", weight="head.weight", output="head"))

    def additions(self) -> tuple[Addition, ...]:
        """None: what layers give is set side by side."""
        return ()

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """None."""
        return ()

    def derived(self) -> dict[str, float]:
        """What the depth decided."""
        return self.layers.derived()
