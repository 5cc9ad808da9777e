"""Independent normal weights: initialisers that choose a variance by the layer's fans."""

from __future__ import annotations

import math

import numpy as np

from depthscope.core import draws
from depthscope.models.init.rules import Array, Weight


def gaussian(weight: Weight, rng: np.random.Generator) -> Array:
    """N(0, gain^2/fan_in), as the laboratory draws it."""
    return draws.gaussian(weight.shape, weight.fan_in, rng) * weight.gain


def he_fan_in(weight: Weight, rng: np.random.Generator) -> Array:
    """N(0, 2 gain^2/fan_in): E[h^2] is kept forward through a ReLU.

    Source: He et al. 2015, arXiv 1502.01852, equation 10.
    """
    return _normal(weight, 2 / weight.fan_in, rng)


def he_fan_out(weight: Weight, rng: np.random.Generator) -> Array:
    """N(0, 2 gain^2/fan_out): E[g^2] is kept backward through a ReLU.

    A classifier with K outputs has fan_out K, so its weights are larger than those of `he_fan_in`.

    Source: He et al. 2015, arXiv 1502.01852, equation 14.
    """
    return _normal(weight, 2 / weight.fan_out, rng)


def xavier(weight: Weight, rng: np.random.Generator) -> Array:
    """N(0, 2 gain^2/(fan_in + fan_out)): a compromise between forward and backward, for linear units.

    Source: Glorot & Bengio 2010, equation 12 (whose uniform draw, equation 16, has the same variance).
    """
    return _normal(weight, 2 / (weight.fan_in + weight.fan_out), rng)


def _normal(weight: Weight, variance: float, rng: np.random.Generator) -> Array:
    standard: Array = rng.standard_normal(weight.shape)
    standard *= weight.gain * math.sqrt(variance)
    return standard
