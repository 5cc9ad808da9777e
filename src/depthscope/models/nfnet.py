"""A normaliser-free residual network in the CIFAR layout: its variance is predicted, and divided out, block by block.

Source: Brock et al. 2021, arXiv 2101.08692 (NF-ResNet: blocks, scaled weight standardisation) and 2102.06171 (NFNet).

Shape letters: B batch, C channels, H and W height and width, K classes.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from depthscope.core.depth import cifar_blocks_per_stage
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point
from depthscope.models import stages
from depthscope.models.checkpoint import Blocks
from depthscope.models.hints import ParamHint
from depthscope.models.layers.make import Layers
from depthscope.models.shortcuts.joins import Join
from depthscope.models.site import Site, check_counts

ALPHA = 0.2
"""What a branch is multiplied by, beside its learned gain."""


def cifar_nfnet(
    *,
    depth: int,
    width: int = 16,
    shortcut: str = "nfnet",
    norm: str = "scaled_ws",
    activation: str = "relu",
    num_inputs: int = 3,
    num_classes: int = 10,
    shortcut_options: Mapping[str, Any] = {},
    norm_options: Mapping[str, Any] = {},
    checkpointing: bool = False,
) -> NFNet:
    """A normaliser-free network of He et al.'s CIFAR layout, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    The gains of its units, one a layer and output channel, and its biases are more than a plain network has.

    Args:
        depth: weighted layers on the longest path, 6n+2.
        width: channels of the first stage; the second and third have twice and four times as many.
        shortcut: `nfnet`, the only one.
        norm: `scaled_ws`, the only one.
        activation: one whose scale NFNet gives: relu, gelu, silu, tanh.
        num_inputs: channels of an input image.
        num_classes: outputs of the linear head, whose weight is a plain one.
        shortcut_options: `alpha`, the factor on each branch beside its learned gain.
        norm_options: none.
        checkpointing: keep few activations for the backward pass (see `checkpoint.Blocks`).

    Raises:
        UserError: `depth` is not 6n+2, another shortcut, normaliser or activation, a count below 1, alpha not above 0.

    >>> with torch.device("meta"):
    ...     model = cifar_nfnet(depth=20)
    >>> [round(each, 2) for each in model.predicted_variances()]
    [1.04, 1.08, 1.12, 1.04, 1.08, 1.12, 1.04, 1.08, 1.12]
    """
    for kind, name, only in (("shortcut", shortcut, "nfnet"), ("norm", norm, "scaled_ws")):
        if name != only:
            raise UserError(unknown_name(f"{kind} of nfnet", name, (only,)))
    alpha = shortcut_options.get("alpha", ALPHA)
    if not (math.isfinite(alpha) and alpha > 0):
        raise UserError(f"shortcut_options.alpha: wanted a number above 0, got {alpha}.")
    check_counts(width=width, num_inputs=num_inputs, num_classes=num_classes)
    return NFNet(
        blocks_per_stage=cifar_blocks_per_stage(depth),
        width=width,
        alpha=alpha,
        layers=Layers(norm=norm, activation=activation, depth=depth, norm_options=norm_options),
        num_inputs=num_inputs,
        num_classes=num_classes,
        checkpointing=checkpointing,
    )


class GainedAdd(Join):
    """y = s + alpha g f with one learned gain g that starts at 0, and has no weight decay."""

    added = MappingProxyType({"branch": "scaled_branch"})
    initial: ClassVar[Mapping[str, float]] = MappingProxyType({"gain": 0.0})
    hints: ClassVar[Mapping[str, ParamHint]] = MappingProxyType({"gain": ParamHint(weight_decay=False)})

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha
        self.gain = nn.Parameter(torch.zeros(1))
        self.scaled_branch = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = self.scaled_branch(self.alpha * self.gain * f) + s
        return total

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"alpha={self.alpha:g}"


class Block(nn.Module):
    """x_BCHW -> skip + alpha g conv2(act2(conv1(h))) with h = act1(x)/deviation.

    The skip is x; where the dimension changes, a strided 1x1 convolution of h, as in the code of NF-ResNet. (That of
    NFNet averages 2x2 pixels of h before it. White noise loses 3/4 of its variance there, and the 1 that both predict
    after it would not be measured at initialisation.)
    """

    weighted: tuple[str, ...] = ("conv1", "conv2")
    outputs: tuple[str, ...] = ("act2", "")
    branch_end = "conv2"

    def __init__(self, site: Site, *, deviation: float, alpha: float) -> None:
        super().__init__()
        layers = site.layers
        self.deviation = deviation
        self.act1 = layers.act()
        self.conv1 = layers.weighted(site.num_in, site.num_out, stride=site.stride)
        self.act2 = layers.act()
        self.conv2 = layers.weighted(site.num_out, site.num_out)
        self.keeps_shape = site.keeps_shape
        self.shortcut: nn.Module = (
            nn.Identity()
            if site.keeps_shape
            else layers.weighted(site.num_in, site.num_out, kernel=1, stride=site.stride)
        )
        self.join = GainedAdd(alpha)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        h_BCHW = self.act1(x_BCHW) / self.deviation
        branch = self.conv2(self.act2(self.conv1(h_BCHW)))
        joined: Tensor = self.join(self.shortcut(x_BCHW if self.keeps_shape else h_BCHW), branch)
        return joined

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"deviation={self.deviation:.6g}"


class NFNet(nn.Module):
    """See `cifar_nfnet`. x_BCHW -> logits_BK; H and W are free, and a multiple of 4 as in the paper."""

    def __init__(
        self,
        *,
        blocks_per_stage: int,
        width: int,
        alpha: float,
        layers: Layers,
        num_inputs: int,
        num_classes: int,
        checkpointing: bool,
    ) -> None:
        super().__init__()
        self.layers = layers
        self.variances = predicted_variances(blocks_per_stage, alpha)
        self.stem = nn.Sequential(OrderedDict(conv=layers.weighted(num_inputs, width, activated=False)))
        widths = [width, 2 * width, 4 * width]
        sites = stages.stage_sites(
            blocks=(blocks_per_stage,) * 3, widths=widths, num_in=width, layers=layers, pre_activation=True
        )
        # A block divides by what its input was predicted to have: the first of a stage by its predecessor's.
        before = (1.0, *self.variances[:-1])
        self.blocks = Blocks(
            *[
                Block(site, deviation=math.sqrt(variance), alpha=alpha)
                for site, variance in zip(sites, before, strict=True)
            ],
            checkpointing=checkpointing,
        )
        self.act = layers.act()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = layers.head(widths[-1], num_classes)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        features_BC = self.pool(self.act(self.blocks(self.stem(x_BCHW)))).flatten(1)
        logits_BK: Tensor = self.head(features_BC)
        return logits_BK

    def predicted_variances(self) -> tuple[float, ...]:
        """After each block, of inputs of variance 1 and gains of 1; see the function of this name."""
        return self.variances

    def points(self) -> tuple[Point, ...]:
        """The `depth` weighted layers in forward order; h of a block's second convolution is the block's output."""
        return stages.points(self._blocks(), stem_output="stem")

    def additions(self) -> tuple[Addition, ...]:
        """The residual additions in forward order, one a block."""
        return stages.additions(self._blocks())

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """The two convolutions of each block."""
        return stages.branches(self._blocks())

    def derived(self) -> dict[str, float]:
        """What the depth decided: the variance that is expected after the last block, were its gains 1."""
        return {**stages.derived(self._blocks(), self.layers), "expected_variance": self.variances[-1]}

    def _blocks(self) -> list[stages.Block]:
        return list(self.blocks)  # type: ignore[arg-type]


def predicted_variances(blocks_per_stage: int, alpha: float) -> tuple[float, ...]:
    """After each block of three stages: a branch of unit variance adds alpha^2.

    A stage's first block begins anew: its skip is a layer of an input that was brought to variance 1, so it ends at
    1 + alpha^2. (In the first stage the skip is the stem's output, whose variance is 1 as well.)
    """
    return (*[1 + alpha**2 * (position + 1) for position in range(blocks_per_stage)],) * 3
