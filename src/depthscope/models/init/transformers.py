"""Initialisers of transformers: by what a weight does in its branch, which a model's `sublayers()` tells.

`sublayers()` names the weighted layers of each branch in forward order, whether the branch is added to anything or not:
with and without the plus sign a network starts from the same weights. The last of each branch is its projection.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import nn

from depthscope.core.depth import deepnorm, gpt2_scale
from depthscope.models.init.rules import Array, Weight
from depthscope.models.init.told import told
from depthscope.models.init.variance import gaussian, xavier
from depthscope.models.layers.attention import Stacked

GPT2_DEVIATION = 0.02
"""Of every weight and table of GPT-2, whatever its fans."""


def gpt2(weight: Weight, rng: np.random.Generator) -> Array:
    """N(0, (.02 gain)^2), tables too; biases 0.

    Source: Radford et al. 2018 (GPT-1), section 4.1, which GPT-2's and nanoGPT's code follow; GPT-2's own has .01 for
    positions, nanoGPT .02.
    """
    standard: Array = rng.standard_normal(weight.shape)
    standard *= GPT2_DEVIATION * weight.gain
    return standard


def depth_scaled(model: nn.Module) -> ByName:
    """`gpt2`, but the projection of each of L branches times 1/sqrt(L); two branches a block.

    Source: Radford et al. 2019 (GPT-2), section 2.3; nanoGPT has .02/sqrt(2 n_layer).
    """
    ends = _ends(model, "depth_scaled")
    return ByName(dict.fromkeys(ends, gpt2_scale(len(ends))))


def zero_projection(model: nn.Module) -> ByName:
    """`gpt2`, but the projection of each branch 0: with a plus sign the untrained block is the identity.

    Without one every block gives 0, and a gradient of 0 comes back: such a network shows nothing of the plus sign.

    Source: Goyal et al. 2017 (arXiv 1706.02677, section 5.1) of a branch's last scale; modded-nanogpt and microgpt have
    it of projections.
    """
    return ByName(dict.fromkeys(_ends(model, "zero_projection"), 0.0))


class ByName:
    """`gpt2` times a factor for the weights that are named.

    Args:
        factors: name of a weight -> factor; 1 for what is not named.
    """

    def __init__(self, factors: Mapping[str, float]) -> None:
        self.factors = factors

    def __call__(self, weight: Weight, rng: np.random.Generator) -> Array:
        """Draw one weight."""
        return gpt2(weight, rng) * self.factors.get(weight.name, 1.0)


class DeepNormInit:
    """Xavier's weights, times DeepNorm's beta in the feed-forward branch and in value and output projections.

    N(0, 2 beta^2/(fan_in + fan_out)) in every layer of a branch, but queries and keys: beta 1 there.

    Of a `Stacked` layer the last third, the values, has beta. Tables and heads are no part of a branch and have
    N(0, 1/fan_in).

    Source: Wang et al. 2022, arXiv 2203.00555, figure 2.
    """

    def __init__(self, model: nn.Module) -> None:
        branches = told(model, "sublayers", "branches' layers", "deepnorm")
        _, self.beta = deepnorm(max(1, len(branches) // 2))
        layers = [layer for branch in branches for layer in branch]
        self.stacked = {f"{each}.weight" for each in layers if isinstance(model.get_submodule(each), Stacked)}
        self.inside = {f"{each}.weight" for each in layers}

    def __call__(self, weight: Weight, rng: np.random.Generator) -> Array:
        """Draw one weight."""
        if weight.name not in self.inside:
            return gaussian(weight, rng)
        values = xavier(weight, rng)
        values[-weight.num_out if weight.name in self.stacked else 0 :] *= self.beta
        return values


def _ends(model: nn.Module, asker: str) -> tuple[str, ...]:
    return tuple(f"{branch[-1]}.weight" for branch in told(model, "sublayers", "branches' layers", asker))
