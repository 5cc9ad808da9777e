"""Looks-linear weights: a ReLU network that starts as a linear one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import nn

from depthscope.core.errors import UserError
from depthscope.models.init.isometry import delta_orthogonal
from depthscope.models.init.rules import Array, Weight
from depthscope.models.init.told import ends_of


def looks_linear(model: nn.Module) -> LooksLinear:
    """Mirrored weights for a model whose `points()` tells its stem and its head."""
    stem, head = ends_of(model, "looks_linear")
    return LooksLinear(stem, head)


class LooksLinear:
    """[W; -W] in the stem, [[W, -W], [-W, W]] in each layer, [W, -W] in the head; W is delta-orthogonal.

    Units i and i + n/2 are a pair. Where a layer's output is (z, -z), the ReLU gives (relu(z), relu(-z)), and since
    relu(z) - relu(-z) = z the next mirrored layer gives (W z, -W z), and the head W z: the network is the product of
    its W, whatever the input. So it is for each activation whose phi(z) - phi(-z) is linear in z (leaky ReLU, GELU and
    SiLU too); for tanh it is not.

    What else a network has decides how far this holds at the start:

    - Batch norm keeps a pair opposite (their means are opposite, their variances equal): linear at the statistics of
      the batch, but for a shift. Weight standardisation treats a row and its opposite alike: linear. Layer and group
      norm keep pairs too, and scale each example by its own size: not linear.
    - A shortcut around a layer and its ReLU (He 2015) adds relu(z), which is no pair of opposites: not linear. In
      pre-activation blocks that keep the width, x is one: linear. Zero padding moves the halves.

    Source: Balduzzi et al. 2017, arXiv 1702.08591, section 4.
    """

    def __init__(self, stem: str, head: str) -> None:
        self.stem = stem
        self.head = head

    def __call__(self, weight: Weight, rng: np.random.Generator) -> Array:
        """Draw one weight.

        Raises:
            UserError: an odd number of units, which has no halves; groups, which would part the pairs.
        """
        if weight.parts > 1:
            raise UserError(f"{weight.name}: looks_linear has no mirrored form of a weight of {weight.parts} parts.")
        num_out, num_in, *kernel = weight.shape
        for count, mirrored, side in (
            (num_out, weight.name != self.head, "outputs"),
            (num_in, weight.name != self.stem, "inputs"),
        ):
            if mirrored and count % 2:
                raise UserError(
                    f"{weight.name}: looks_linear mirrors half of a layer in its other half, and {count} {side} have "
                    "no half. Choose an even width."
                )
        out_of, into = (1 if weight.name == end else 2 for end in (self.head, self.stem))
        half = replace(weight, shape=(num_out // out_of, num_in // into, *kernel))
        values = delta_orthogonal(half, rng)
        for axis, copies in ((1, into), (0, out_of)):
            if copies == 2:
                values = np.concatenate([values, -values], axis=axis)
        return values
