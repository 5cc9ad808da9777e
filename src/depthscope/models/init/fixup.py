"""Fixup: residual networks without a normaliser, by the size of their branches' first weights."""

from __future__ import annotations

import numpy as np
from torch import nn

from depthscope.core.depth import fixup_scale
from depthscope.core.errors import UserError
from depthscope.models.init.rules import Array, Weight
from depthscope.models.init.told import ends_of, told
from depthscope.models.init.variance import he_fan_in


def fixup(model: nn.Module) -> Fixup:
    """Fixup's weights for a model whose `branches()` tells the layers of each residual branch.

    Raises:
        UserError: the model does not tell them, or has none; a branch has fewer than two layers.
    """
    branches = told(model, "branches", "residual branches' layers", "fixup")
    if not branches:
        raise UserError(
            "fixup: this network has no residual branch (shortcut none). Choose a shortcut with branches of two or "
            "more layers, or another init."
        )
    _, classifier = ends_of(model, "fixup")
    factors = {classifier: 0.0}
    for branch in branches:
        scale = fixup_scale(len(branches), len(branch))
        factors |= {f"{layer}.weight": scale for layer in branch[:-1]}
        factors[f"{branch[-1]}.weight"] = 0.0
    return Fixup(factors)


class Fixup:
    """He's weights (fan_in) times L^(-1/(2m-2)) inside of L branches of m layers; 0 at each branch's end and the head.

    Layers outside of branches, projections on shortcuts too, have He's. The scalars are the normaliser `fixup`.

    Source: Zhang et al. 2019, arXiv 1901.09321, section 3 (its rules 1 and 2).

    Args:
        factors: name of a weight -> factor on He's; 1 for what is not named.
    """

    def __init__(self, factors: dict[str, float]) -> None:
        self.factors = factors

    def __call__(self, weight: Weight, rng: np.random.Generator) -> Array:
        """Draw one weight."""
        factor = self.factors.get(weight.name, 1.0)
        return np.zeros(weight.shape) if factor == 0 else he_fan_in(weight, rng) * factor
