"""Where in a network a block stands: all that a shortcut, a layer or an initialiser may depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from depthscope.core.errors import UserError
from depthscope.core.profile import Addition, Point
from depthscope.models.layers.make import Layers


@dataclass(frozen=True, kw_only=True)
class Site:
    """One block's place.

    Attributes:
        num_in: channels (units) that come in.
        num_out: channels (units) that go out.
        stride: of the block.
        block: index of the block, from 0.
        num_blocks: L, the blocks of the network.
        layers: how the network's layers are made; `layers.spatial` tells images from vectors.
        pre_activation: whether the block normalises and activates before each weighted layer, not after.
    """

    num_in: int
    num_out: int
    stride: int = 1
    block: int = 0
    num_blocks: int = 1
    layers: Layers = field(default_factory=Layers)
    pre_activation: bool = False

    @property
    def keeps_shape(self) -> bool:
        """Whether what goes out has the shape of what comes in."""
        return self.num_in == self.num_out and self.stride == 1


class Deep(Protocol):
    """What every family of ours tells of itself; initialisers, probes and training go by it."""

    def points(self) -> tuple[Point, ...]:
        """The weighted layers of the longest path in forward order, from the stem to the head."""

    def additions(self) -> tuple[Addition, ...]:
        """The residual additions in forward order."""

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """Names of the weighted layers in each residual branch, in forward order; empty without shortcuts."""

    def derived(self) -> dict[str, float]:
        """What the depth decided, by name; mostly nothing."""


def check_counts(**counts: int) -> None:
    """Refuse what must be 1 or more, and is not: widths, channels, classes.

    Raises:
        UserError: a count below 1.
    """
    for name, value in counts.items():
        if value < 1:
            raise UserError(f"{name}: wanted 1 or more, got {value}.")
