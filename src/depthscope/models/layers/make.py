"""How the layers of one network are made, in its normaliser and its activation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn


@dataclass(frozen=True, kw_only=True)
class Layers:
    """The makers of one network's layers.

    Attributes:
        norm: a name of the catalogue's kind `norm`.
        activation: a name of the catalogue's kind `activation`.
        spatial: images (convolutions) or vectors (linear layers).
        depth: weighted layers of the network, which the slope of `tat` depends on.
        norm_options: options of `norm`.
    """

    norm: str = "batch"
    activation: str = "relu"
    spatial: bool = True
    depth: int = 0
    norm_options: Mapping[str, Any] = field(default_factory=dict)

    def weighted(self, num_in: int, num_out: int, *, kernel: int = 3, stride: int = 1) -> nn.Module:
        """A convolution with padding kernel // 2, or a linear layer, as the normaliser wants it.

        It has a bias where no normaliser with a shift of its own follows.
        """
        raise NotImplementedError

    def normaliser(self, num: int, *, ends_branch: bool = False) -> nn.Module:
        """What follows a weighted layer: a normaliser, or what stands in for one; `nn.Identity` without.

        Args:
            num: its channels.
            ends_branch: it is the last module of a residual branch (where Fixup has its multiplier).
        """
        raise NotImplementedError

    def act(self) -> nn.Module:
        """A new module of the activation, not in place."""
        raise NotImplementedError
