"""Normalisers, and Fixup's scalars in their place: each function makes one module of `num` channels or units.

All take the same arguments, so that `make.Layers` calls them by name: `spatial` tells images [B, C, H, W] from vectors
[B, C], and `ends_branch` whether the module is the last of a residual branch. Each normaliser has a scale `weight` (1)
and a shift `bias` (0) a channel, which is what `zero_last_gamma` sets; `rms` has no shift. Sequences [B, T, C] are
vectors to those that average over the last dimension, `layer` and `rms`: each position by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.hints import ParamHint
from depthscope.models.layers.weighted import SLOW_SCALAR


def none(num: int, *, spatial: bool, ends_branch: bool) -> nn.Module:
    """No normaliser: the identity."""
    return nn.Identity()


def batch(num: int, *, spatial: bool, ends_branch: bool) -> nn.Module:
    """Batch normalisation: a channel over the batch (and places).

    On images running averages take the batch's place in evaluation, as in the paper. Vectors are normalised by the
    batch at hand in evaluation too: the one family of them is the laboratory's twin, which keeps no running averages.

    Source: Ioffe & Szegedy 2015, arXiv 1502.03167.
    """
    return nn.BatchNorm2d(num) if spatial else nn.BatchNorm1d(num, track_running_stats=False)


def layer(num: int, *, spatial: bool, ends_branch: bool) -> nn.Module:
    """Layer normalisation: of one example, over all its channels and places.

    On images it is group normalisation with one group (Wu & He 2018, section 3.1): scale and shift are one a channel,
    not one a place, so that they do not depend on the image's size.

    Source: Ba et al. 2016, arXiv 1607.06450.
    """
    return nn.GroupNorm(1, num) if spatial else nn.LayerNorm(num)


def group(num: int, *, spatial: bool, ends_branch: bool, groups: int = 4) -> nn.Module:
    """Group normalisation: of one example, over num/groups channels and their places.

    Source: Wu & He 2018, arXiv 1803.08494.

    Raises:
        UserError: `groups` is below 1, does not divide the channels, or would leave one unit of a vector to itself.
    """
    if groups < 1:
        raise UserError(f"norm group: wanted groups of 1 or more, got {groups}.")
    if num % groups:
        raise UserError(
            f"norm group: groups {groups} does not divide {num} channels. Choose a divisor of {num} for groups, or a "
            f"width that {groups} divides."
        )
    if not spatial and num == groups and num > 1:
        raise UserError(
            f"norm group: {groups} groups of {num} units leave each alone, and normalised it is 0. Choose fewer groups."
        )
    return nn.GroupNorm(groups, num)


def instance(num: int, *, spatial: bool, ends_branch: bool) -> nn.Module:
    """Instance normalisation: of one example, over the places of one channel, with scale and shift.

    Source: Ulyanov et al. 2016, arXiv 1607.08022.

    Raises:
        UserError: vectors have no places.
    """
    if not spatial:
        raise UserError(
            "norm instance: a vector has no places to average over. Choose layer or batch, or a family for images."
        )
    return nn.InstanceNorm2d(num, affine=True)


def rms(num: int, *, spatial: bool, ends_branch: bool, scale: bool = True) -> nn.Module:
    """Root-mean-square normalisation: x / sqrt(mean(x^2) + 1e-5) over the units of one example (of one position).

    It takes no mean away and has no shift. Without `scale` it has no parameter at all, as in microgpt.

    Source: Zhang & Sennrich 2019, arXiv 1910.07467, section 4.

    Raises:
        UserError: images, of which its paper says nothing.
    """
    if spatial:
        raise UserError("norm rms: is of vectors, and this family is of images. Choose layer or group.")
    return nn.RMSNorm(num, eps=1e-5, elementwise_affine=scale)


def fixup(num: int, *, spatial: bool, ends_branch: bool) -> nn.Module:
    """What Fixup has where a normaliser would stand: a scalar bias; at a branch's end a multiplier before it.

    The scalar before each weighted layer is that layer's own (`weighted.ShiftedConv2d`).

    Source: Zhang et al. 2019, arXiv 1901.09321, section 3.
    """
    return ScaleShift() if ends_branch else Shift()


class Shift(nn.Module):
    """x + b with one learned scalar b that starts at 0."""

    initial: ClassVar[Mapping[str, float]] = {"shift": 0.0}
    hints: ClassVar[Mapping[str, ParamHint]] = {"shift": SLOW_SCALAR}

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        return x + self.shift


class ScaleShift(nn.Module):
    """a x + b with two learned scalars, a from 1 and b from 0."""

    initial: ClassVar[Mapping[str, float]] = {"multiplier": 1.0, "shift": 0.0}
    hints: ClassVar[Mapping[str, ParamHint]] = {"multiplier": SLOW_SCALAR, "shift": SLOW_SCALAR}

    def __init__(self) -> None:
        super().__init__()
        self.multiplier = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        return self.multiplier * x + self.shift
