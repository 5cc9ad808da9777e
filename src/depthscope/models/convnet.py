"""The CIFAR-10 family of He et al. 2015 (arXiv 1512.03385, section 4.2): plain and residual, depth 6n+2.

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


def cifar_resnet(
    *,
    depth: int,
    width: int = 16,
    shortcut: str | MakeShortcut = "none",
    norm: str | MakeNorm = "batch",
    activation: str | MakeActivation = "relu",
    num_inputs: int = 3,
    num_classes: int = 10,
    shortcut_options: Mapping[str, Any] = {},
    norm_options: Mapping[str, Any] = {},
    checkpointing: bool = False,
) -> CifarResNet:
    """A network of He et al.'s CIFAR-10 family, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    A plain network and option A have the same parameters, name by name and shape by shape, so A is
    the strict control; option B adds a projection (1x1 convolution and batch norm) in two blocks.

    Args:
        depth: number of weighted layers on the longest path, 6n+2.
        width: channels of the first stage; the second and third have twice and four times as many.
        shortcut: a name of `models.shortcuts.make.SHORTCUTS`: `none` (plain), `A` (zero-padded identity), `B`
            (projection where the dimension changes), ...; or a function of one's own (see `make_shortcut`).
        norm: a name of `models.layers.make.NORMS`, or a function of one's own (see `Layers`).
        activation: a name of `models.layers.make.ACTIVATIONS`, or a function of one's own.
        num_inputs: channels of an input image.
        num_classes: outputs of the linear head.
        shortcut_options: of the shortcut.
        norm_options: of the normaliser.
        checkpointing: compute blocks again in the backward pass rather than keep what they hold.

    Raises:
        UserError: `depth` is not 6n+2, a name or an option is unknown, or a count is below 1.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = cifar_resnet(depth=56, shortcut="A")
    >>> sum(parameter.numel() for parameter in model.parameters())
    853018
    >>> len(model.points()), len(model.additions())
    (56, 27)
    """
    check_counts(width=width, num_inputs=num_inputs, num_classes=num_classes)
    blocks = family_blocks("cifar_resnet", depth)
    assert blocks is not None
    layers = Layers(norm=norm, activation=activation, depth=depth, norm_options=norm_options)
    widths = [width * 2**stage for stage in range(3)]
    sites = stages.stage_sites(blocks=blocks, widths=widths, num_in=width, layers=layers)
    return CifarResNet(
        [Block(site, shortcut, shortcut_options) for site in sites],
        layers=layers,
        num_inputs=num_inputs,
        width=width,
        num_classes=num_classes,
        checkpointing=checkpointing,
    )


class Block(nn.Module):
    """Two 3x3 convolutions, each with a normaliser and its own activation; the second one follows the addition.

    x_BCHW -> relu(join(shortcut(x), F(x))) with F = bn2(conv2(relu1(bn1(conv1(x))))); without a shortcut, relu(F(x)).

    The activations are two modules: a probe takes a module's output for the layer's h. Modules are called `bn` and
    `relu` whatever the normaliser and the activation, so that arms have the same names.
    """

    weighted = ("conv1", "conv2")
    outputs = ("relu1", "relu2")
    branch_end = "bn2"
    overwrites = ("relu1", "join", "relu2")
    folds = (("conv1", "bn1"), ("conv2", "bn2"))

    def __init__(self, site: Site, shortcut: str | MakeShortcut, options: Mapping[str, Any]) -> None:
        super().__init__()
        layers = site.layers
        self.conv1 = layers.weighted(site.num_in, site.num_out, stride=site.stride)
        self.bn1 = layers.normaliser(site.num_out)
        self.relu1 = layers.act()
        self.conv2 = layers.weighted(site.num_out, site.num_out)
        made = make_shortcut(shortcut, site, **options)
        self.bn2 = layers.normaliser(site.num_out, ends_branch=True)
        self.shortcut = made.skip if made else None
        self.join = made.join if made else None
        self.relu2 = layers.act()

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        out = self.relu1(self.bn1(self.conv1(x_BCHW)))
        out = self.bn2(self.conv2(out))
        if self.shortcut is not None and self.join is not None:
            out = self.join(self.shortcut(x_BCHW), out)
        activated: Tensor = self.relu2(out)
        return activated


class CifarResNet(nn.Module):
    """See `cifar_resnet`. x_BCHW -> logits_BK; H and W are free, and a multiple of 4 as in the paper."""

    overwrites = ("stem.relu",)
    folds = (("stem.conv", "stem.bn"),)

    def __init__(
        self,
        blocks: list[Block],
        *,
        layers: Layers,
        num_inputs: int,
        width: int,
        num_classes: int,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            OrderedDict(
                conv=layers.weighted(num_inputs, width, activated=False), bn=layers.normaliser(width), relu=layers.act()
            )
        )
        # One flat list: `blocks.3` is the fourth block of every network, whatever its depth.
        self.blocks = Blocks(*blocks, checkpointing=checkpointing)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = layers.head(4 * width, num_classes)
        self._layers = layers

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        features_BC = self.pool(self.blocks(self.stem(x_BCHW))).flatten(1)
        logits_BK: Tensor = self.head(features_BC)
        return logits_BK

    def points(self) -> tuple[Point, ...]:
        """The `depth` weighted layers in forward order, each with where its h is found."""
        return stages.points(self._blocks(), stem_output="stem.relu")

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
