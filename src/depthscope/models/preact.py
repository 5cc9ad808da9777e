"""Pre-activation networks of He et al. 2016 (arXiv 1603.05027), in the CIFAR layout: depth 6n+2, bottleneck 9n+2.

Shape letters: B batch, C channels, H and W height and width, K classes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from depthscope.core.depth import family_blocks
from depthscope.core.profile import Addition, Point
from depthscope.models import stages
from depthscope.models.checkpoint import Blocks
from depthscope.models.layers.make import Layers, MakeActivation, MakeNorm
from depthscope.models.shortcuts.make import MakeShortcut, make_shortcut
from depthscope.models.site import Site, check_counts


def preact_resnet(
    *,
    depth: int,
    width: int = 16,
    shortcut: str | MakeShortcut = "B",
    norm: str | MakeNorm = "batch",
    activation: str | MakeActivation = "relu",
    num_inputs: int = 3,
    num_classes: int = 10,
    shortcut_options: Mapping[str, Any] = {},
    norm_options: Mapping[str, Any] = {},
    bottleneck: bool = False,
    checkpointing: bool = False,
) -> PreactResNet:
    """A pre-activation network, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    Shortcut `B` is the paper's own network: where the shape changes, a 1x1 convolution without a normaliser takes the
    normalised and activated x that the branch takes as well; everywhere else the identity takes x. `C` has that
    convolution in every block. All others take x as it came: `A` pads it and has the plain network's tensors, so A
    and `none` are the strict control.

    Args:
        depth: number of weighted layers on the longest path: 6n+2, or 9n+2 with `bottleneck`.
        width: channels of the stem. The stages have 1, 2 and 4 times as many; with `bottleneck` 4, 8 and 16 times.
        shortcut: a name of `models.shortcuts.make.SHORTCUTS`, or a function of one's own (see `make_shortcut`).
        norm: a name of `models.layers.make.NORMS`, or a function of one's own (see `Layers`).
        activation: a name of `models.layers.make.ACTIVATIONS`, or a function of one's own.
        num_inputs: channels of an input image.
        num_classes: outputs of the linear head.
        shortcut_options: of the shortcut.
        norm_options: of the normaliser.
        bottleneck: branches of 1x1, 3x3 and 1x1 convolutions, inside a quarter as wide as the block.
        checkpointing: compute blocks again in the backward pass rather than keep what they hold.

    Raises:
        UserError: the family has no network of this depth, a name or an option is unknown, or a count is below 1.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = preact_resnet(depth=1001, bottleneck=True)
    >>> sum(parameter.numel() for parameter in model.parameters())
    10327706
    >>> len(model.points()), len(model.additions())
    (1001, 333)
    """
    check_counts(width=width, num_inputs=num_inputs, num_classes=num_classes)
    blocks = family_blocks("preact_resnet", depth, bottleneck=bottleneck)
    assert blocks is not None
    layers = Layers(norm=norm, activation=activation, depth=depth, norm_options=norm_options)
    widths = [width * (4 if bottleneck else 1) * 2**stage for stage in range(3)]
    sites = stages.stage_sites(blocks=blocks, widths=widths, num_in=width, layers=layers, pre_activation=True)
    make: type[BasicBlock] | type[Bottleneck] = Bottleneck if bottleneck else BasicBlock
    return PreactResNet(
        [make(site, shortcut, shortcut_options) for site in sites],
        layers=layers,
        num_inputs=num_inputs,
        width=width,
        num_features=widths[-1],
        num_classes=num_classes,
        checkpointing=checkpointing,
    )


class _Block(nn.Module):
    """What follows a branch's last convolution, and the shortcut around it."""

    branch_end = "end"

    def _close(self, site: Site, shortcut: str | MakeShortcut, options: Mapping[str, Any]) -> None:
        made = make_shortcut(shortcut, site, **options)
        self.end = site.layers.branch_end(site.num_out)
        self.shortcut = made.skip if made else None
        self.join = made.join if made else None
        self.shortcut_activated = made is not None and made.activated

    def _joined(self, x_BCHW: Tensor, activated: Tensor, out: Tensor) -> Tensor:
        f: Tensor = self.end(out)
        if self.shortcut is None or self.join is None:
            return f
        joined: Tensor = self.join(self.shortcut(activated if self.shortcut_activated else x_BCHW), f)
        return joined


class BasicBlock(_Block):
    """x_BCHW -> join(shortcut(x), F(x)), F = conv2(relu2(bn2(conv1(relu1(bn1(x)))))), and nothing after the join.

    F closes with `end`, the identity but under Fixup, whose branches have a multiplier there. A plain block gives F(x).
    """

    weighted = ("conv1", "conv2")
    outputs = ("relu2", "")
    overwrites = ("relu2", "join")  # without a normaliser, relu1 reads what the shortcut reads too
    folds = (("conv1", "bn2"),)

    def __init__(self, site: Site, shortcut: str | MakeShortcut, options: Mapping[str, Any]) -> None:
        super().__init__()
        layers = site.layers
        self.bn1 = layers.normaliser(site.num_in)
        self.relu1 = layers.act()
        self.conv1 = layers.weighted(site.num_in, site.num_out, stride=site.stride)
        self.bn2 = layers.normaliser(site.num_out)
        self.relu2 = layers.act()
        self.conv2 = layers.weighted(site.num_out, site.num_out)
        self._close(site, shortcut, options)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        activated = self.relu1(self.bn1(x_BCHW))
        out = self.conv2(self.relu2(self.bn2(self.conv1(activated))))
        return self._joined(x_BCHW, activated, out)


class Bottleneck(_Block):
    """`BasicBlock` with a branch of three: 1x1 (with the stride) to a quarter of the channels, 3x3, 1x1."""

    weighted = ("conv1", "conv2", "conv3")
    outputs = ("relu2", "relu3", "")
    overwrites = ("relu2", "relu3", "join")
    folds = (("conv1", "bn2"), ("conv2", "bn3"))

    def __init__(self, site: Site, shortcut: str | MakeShortcut, options: Mapping[str, Any]) -> None:
        super().__init__()
        layers = site.layers
        num_inner = site.num_out // 4
        self.bn1 = layers.normaliser(site.num_in)
        self.relu1 = layers.act()
        self.conv1 = layers.weighted(site.num_in, num_inner, kernel=1, stride=site.stride)
        self.bn2 = layers.normaliser(num_inner)
        self.relu2 = layers.act()
        self.conv2 = layers.weighted(num_inner, num_inner)
        self.bn3 = layers.normaliser(num_inner)
        self.relu3 = layers.act()
        self.conv3 = layers.weighted(num_inner, site.num_out, kernel=1)
        self._close(site, shortcut, options)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See `BasicBlock`."""
        activated = self.relu1(self.bn1(x_BCHW))
        out = self.conv2(self.relu2(self.bn2(self.conv1(activated))))
        out = self.conv3(self.relu3(self.bn3(out)))
        return self._joined(x_BCHW, activated, out)


class PreactResNet(nn.Module):
    """See `preact_resnet`. x_BCHW -> logits_BK; H and W are free, and a multiple of 4 as in the paper."""

    def __init__(
        self,
        blocks: list[BasicBlock | Bottleneck],
        *,
        layers: Layers,
        num_inputs: int,
        width: int,
        num_features: int,
        num_classes: int,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(OrderedDict(conv=layers.weighted(num_inputs, width, activated=False)))
        self.blocks = Blocks(*blocks, checkpointing=checkpointing)
        self.last = nn.Sequential(OrderedDict(bn=layers.normaliser(num_features), relu=layers.act()))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = layers.head(num_features, num_classes)
        self._layers = layers

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        features_BC = self.pool(self.last(self.blocks(self.stem(x_BCHW)))).flatten(1)
        logits_BK: Tensor = self.head(features_BC)
        return logits_BK

    def points(self) -> tuple[Point, ...]:
        """The `depth` weighted layers in forward order; h of a block's last one is the block's output."""
        return stages.points(self._blocks(), stem_output="stem")

    def additions(self) -> tuple[Addition, ...]:
        """The residual additions in forward order, one a block; none in a plain network."""
        return stages.additions(self._blocks())

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """Names of the weighted layers in each residual branch; empty in a plain network."""
        return stages.branches(self._blocks())

    def derived(self) -> dict[str, float]:
        """What the depth decided, by name."""
        return stages.derived(self._blocks(), self._layers)

    def _blocks(self) -> list[stages.Block]:
        return list(self.blocks)  # type: ignore[arg-type]
