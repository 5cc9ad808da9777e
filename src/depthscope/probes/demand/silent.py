"""Silent units that chance alone gives: what a freshly initialised ReLU network has, by depth and number of examples.

A unit of the first layer is 0 on N independent inputs with probability 2^-N. Deeper, the examples grow alike with
each layer and so do their signs at a unit: of a healthy net of 30 layers a quarter to a half of the units never
fires. A verdict on dead units is judged against this.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.streams import stream

MAX_WIDTH = 256
"""Wider networks are simulated at this width: the mean is that of the wide limit already (see `expected_silent`)."""

MAX_EXAMPLES = 1024
"""Likewise: it falls slowly with N."""

NUM_SEEDS = 12


def expected_silent(depth: int, num_examples: int, width: int = MAX_WIDTH) -> tuple[float, float]:
    """Fraction of units that are 0 on every example, in the last of `depth` ReLU layers, simulated and cached.

    The network: width -> width at each layer, W ~ N(0, 2/width), no bias, standard normal independent inputs; over 12
    fixed seeds. The mean is a function of depth and N alone once the network is wide, since then the pre-activations
    of the N examples at a unit are Gaussian with the correlations that the depth gives. Inputs that are alike to
    begin with, as images of one kind are, leave more units silent.

    Args:
        depth: ReLU layers, at least 1.
        num_examples: N, at least 1; above 1024 as at 1024.
        width: units of a layer; above 256 as at 256.

    Returns:
        Mean over networks, and the standard deviation from one network to another, which falls with the width.

    Raises:
        UserError: an argument below 1.

    >>> abs(expected_silent(1, 4)[0] - 2**-4) < 0.01
    True
    """
    for name, value in (("depth", depth), ("num_examples", num_examples), ("width", width)):
        if value < 1:
            raise UserError(f"expected_silent: {name}: wanted 1 or more, got {value}.")
    return _simulated(min(num_examples, MAX_EXAMPLES), min(width, MAX_WIDTH)).to_depth(depth)


class _Simulation:
    """Networks that are grown as deep as they are asked for."""

    def __init__(self, num_examples: int, width: int) -> None:
        self._width = width
        self._activations = [_normal(seed, "input", (num_examples, width)) for seed in range(NUM_SEEDS)]
        self._silent: list[tuple[float, float]] = []

    def to_depth(self, depth: int) -> tuple[float, float]:
        while len(self._silent) < depth:
            layer = len(self._silent)
            fractions = []
            for seed in range(NUM_SEEDS):
                self._activations[seed] = self._next(self._activations[seed], seed, layer)
                fractions.append(float((self._activations[seed] == 0).all(axis=0).mean()))
            self._silent.append((float(np.mean(fractions)), float(np.std(fractions, ddof=1))))
        return self._silent[depth - 1]

    def _next(self, activations: NDArray[np.float32], seed: int, layer: int) -> NDArray[np.float32]:
        weight = _normal(seed, layer, (self._width, self._width))
        following: NDArray[np.float32] = np.maximum(activations @ weight * math.sqrt(2 / self._width), 0)
        return following


def _normal(seed: int, name: str | int, shape: tuple[int, int]) -> NDArray[np.float32]:
    return stream(seed, "probe", "silent", name).standard_normal(shape, dtype=np.float32)


@lru_cache(maxsize=8)
def _simulated(num_examples: int, width: int) -> _Simulation:
    return _Simulation(num_examples, width)
