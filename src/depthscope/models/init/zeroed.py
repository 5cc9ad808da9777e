"""Residual networks that start as their skips: the last layer of each branch is 0."""

from __future__ import annotations

import numpy as np
from torch import nn

from depthscope.core.errors import UserError
from depthscope.models.init.rules import Array, Weight
from depthscope.models.init.told import told
from depthscope.models.init.variance import gaussian


def zero_branch(model: nn.Module) -> ZeroBranch:
    """`gaussian`, with zeros for a model whose `branches()` tells the layers of each residual branch.

    Raises:
        UserError: the model does not tell them, or has none.
    """
    branches = told(model, "branches", "residual branches' layers", "zero_branch")
    if not branches:
        raise UserError(
            "zero_branch: this network has no residual branch (shortcut none), and zeros would make it constant. "
            "Choose a shortcut, or another init."
        )
    return ZeroBranch(frozenset(f"{branch[-1]}.weight" for branch in branches))


class ZeroBranch:
    """N(0, gain^2/fan_in), but 0 in the last layer of each branch: each block gives what came in, exactly.

    What is learned differs from `gaussian` in these weights alone. Their gradient is not 0 where an activation before
    them is not; the other layers of a branch have one from the second update on.

    Source: Goyal et al. 2017, arXiv 1706.02677, section 5.1, which zeroes a branch's last scale; Zhang et al. 2019,
    arXiv 1901.09321, section 3, its last layer.

    Args:
        zeros: names of the weights that are 0.
    """

    def __init__(self, zeros: frozenset[str]) -> None:
        self.zeros = zeros

    def __call__(self, weight: Weight, rng: np.random.Generator) -> Array:
        """Draw one weight."""
        return np.zeros(weight.shape) if weight.name in self.zeros else gaussian(weight, rng)
