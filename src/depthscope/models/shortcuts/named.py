"""The shortcuts: each public function makes the two modules of one block, and is found by its name.

A block with branch F computes `join(skip(x), F(x))`: `skip` brings x to the branch's shape, and `join` takes both.
Where the shape changes and a shortcut's paper does not say how, x is subsampled and padded without parameters
(`skips.unweighted`), so that the arms of a study differ in the shortcut alone.
"""

from __future__ import annotations

from torch import nn

from depthscope.core.errors import UserError
from depthscope.models.shortcuts import joins, skips, transformers
from depthscope.models.shortcuts.shortcut import Shortcut
from depthscope.models.site import Site


def none(site: Site) -> None:
    """Plain: the branch alone."""


def identity(site: Site) -> Shortcut:
    """The sum x + F(x), in a block that keeps its shape.

    Raises:
        UserError: the shape changes.
    """
    if not site.keeps_shape:
        raise UserError("shortcut identity: a block of this family changes its shape. Choose A, A_pool or B.")
    return Shortcut(skip=nn.Identity(), join=joins.Add())


def option_a(site: Site) -> Shortcut:
    """The identity; where the shape changes, subsampled and padded with zeros."""
    return Shortcut(skip=skips.subsampled(site), join=joins.Add())


def option_a_pool(site: Site) -> Shortcut:
    """The identity; where the shape changes, average-pooled and padded with zeros."""
    return Shortcut(skip=skips.pooled(site), join=joins.Add())


def option_b(site: Site) -> Shortcut:
    """The identity; where the shape changes, a projection. Under pre-activation it is He et al. 2016's own network."""
    return option_a(site) if site.keeps_shape else option_c(site)


def option_c(site: Site) -> Shortcut:
    """A projection in every block; under pre-activation, of the activated x."""
    return Shortcut(skip=skips.projection(site), join=joins.Add(), activated=site.pre_activation)


def constant_scaling(site: Site, *, skip: float = 0.5, branch: float = 0.5) -> Shortcut:
    """Two constants, on the skip and on the branch."""
    return Shortcut(skip=skips.unweighted(site), join=joins.ConstantScaling(skip=skip, branch=branch))


def exclusive_gate(site: Site, *, bias: float = -6.0) -> Shortcut:
    """A gate of a 1x1 convolution that shares 1 between skip and branch."""
    return Shortcut(
        skip=skips.unweighted(site), join=joins.ExclusiveGate(site.num_out, spatial=site.layers.spatial, bias=bias)
    )


def shortcut_gate(site: Site, *, bias: float = -6.0) -> Shortcut:
    """The same gate, on the skip alone."""
    return Shortcut(
        skip=skips.unweighted(site), join=joins.ShortcutGate(site.num_out, spatial=site.layers.spatial, bias=bias)
    )


def conv1x1(site: Site) -> Shortcut:
    """A 1x1 convolution of x in every block, without a normaliser (He et al. 2016, section 3.2)."""
    return Shortcut(skip=skips.pointwise(site), join=joins.Add())


def dropout(site: Site, *, rate: float = 0.5) -> Shortcut:
    """Dropout on the skip, of single values (He et al. 2016, section 3.2)."""
    return Shortcut(skip=nn.Sequential(skips.unweighted(site), nn.Dropout(rate)), join=joins.Add())


def highway(site: Site, *, bias: float = -2.0) -> Shortcut:
    """Carry and transform by a gate as large as a layer of the branch."""
    return Shortcut(
        skip=skips.unweighted(site), join=joins.Highway(site.num_out, spatial=site.layers.spatial, bias=bias)
    )


def scaled(site: Site) -> Shortcut:
    """The branch divided by sqrt(L)."""
    return Shortcut(skip=skips.unweighted(site), join=joins.Scaled(num_blocks=site.num_blocks))


def deepnorm(site: Site) -> Shortcut:
    """The skip times DeepNorm's alpha, in a network of L branches, two a layer."""
    return Shortcut(skip=skips.unweighted(site), join=transformers.DeepNorm(num_layers=max(1, site.num_blocks // 2)))


def rezero(site: Site) -> Shortcut:
    """The branch times a learned scalar that starts at 0 and does not decay."""
    return Shortcut(skip=skips.unweighted(site), join=joins.ReZero())


def skipinit(site: Site) -> Shortcut:
    """The branch times a learned scalar that starts at 0, in place of batch norm."""
    return Shortcut(skip=skips.unweighted(site), join=joins.SkipInit())


def stochastic_depth(site: Site, *, survival: float = 0.5) -> Shortcut:
    """The branch dropped at random, more often the deeper the block."""
    join = joins.StochasticDepth(block=site.block, num_blocks=site.num_blocks, survival=survival)
    return Shortcut(skip=skips.unweighted(site), join=join)
