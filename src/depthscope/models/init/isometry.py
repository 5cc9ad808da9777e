"""Weights that keep lengths: orthogonal matrices, and kernels that are one at their centre.

An orthonormal weight has orthonormal columns where it has at least as many outputs as inputs, |W x| = |x|; where it
has fewer it has orthonormal rows: it cannot keep every length forward, and keeps those of gradients, |W^T g| = |g|.
Groups of a convolution and the projections of attention are drawn one by one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from depthscope.core import draws
from depthscope.core.errors import UserError
from depthscope.models.init.rules import Array, Weight


def orthogonal(weight: Weight, rng: np.random.Generator) -> Array:
    """Gain times an orthonormal matrix [out, in k k]: a kernel is read as a matrix over its window.

    A matrix of a linear layer is the laboratory's, number for number.

    Source: Saxe et al. 2014, arXiv 1312.6120, section 3.
    """
    taps = math.prod(weight.kernel)
    parts = [draws.orthogonal(weight.num_out, weight.num_in * taps, rng) for _ in range(weight.parts)]
    return np.concatenate(parts).reshape(weight.shape) * weight.gain


def delta_orthogonal(weight: Weight, rng: np.random.Generator) -> Array:
    """Zero but for the kernel's centre tap, which is gain times an orthonormal matrix [out, in].

    So it acts on each place by itself: with circular padding, or padding k // 2 with zeros, and stride 1 it keeps
    lengths as its matrix does. The paper has it for in <= out; where in > out the rows are orthonormal here.

    Source: Xiao et al. 2018, arXiv 1806.05393, algorithm 1.

    Raises:
        UserError: a kernel of even size has no centre.
    """
    return _at_centre(weight, [draws.orthogonal(weight.num_out, weight.num_in, rng) for _ in range(weight.parts)])


def identity(weight: Weight, rng: np.random.Generator) -> Array:
    """Gain times the identity, with no draw: W x = gain x; of an unequal width, cut off or followed by zeros.

    A kernel is the identity at its centre tap. Every seed starts alike.

    Source: Le et al. 2015, arXiv 1504.00941, section 2, for the square matrix of a recurrent network.

    Raises:
        UserError: a kernel of even size has no centre.
    """
    return _at_centre(weight, [np.eye(weight.num_out, weight.num_in)] * weight.parts)


def tat(weight: Weight, rng: np.random.Generator) -> Array:
    """`delta_orthogonal` times max(sqrt(out/in), 1): the mean square of a channel is kept where their number grows.

    With orthonormal columns |W x|^2 = |x|^2 is spread over `out` channels instead of `in`. Where their number falls
    the rows are orthonormal and keep the mean square of a channel on average over directions, without a factor.

    Source: Zhang et al. 2022, arXiv 2203.08120, appendix on weight initialisation; Martens et al. 2021, arXiv
    2110.01765.
    """
    return delta_orthogonal(weight, rng) * max(math.sqrt(weight.num_out / weight.num_in), 1.0)


def _at_centre(weight: Weight, parts: list[Array]) -> Array:
    """A kernel that is 0 but for its centre tap, gain times these matrices [out, in] one below the other."""
    if not all(size % 2 for size in weight.kernel):
        raise UserError(
            f"{weight.name}: a kernel of {' x '.join(map(str, weight.kernel))} has no centre tap; wanted an odd "
            "size. Use init = 'orthogonal'."
        )
    values: Array = np.zeros(weight.shape)
    centre: Any = (..., *(size // 2 for size in weight.kernel))
    values[centre] = np.concatenate(parts) * weight.gain
    return values
