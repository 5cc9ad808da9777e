"""Random matrices that both engines draw: the same stream gives the laboratory and torch the same weights.

All are float64 and laid out as torch has a weight: [out, in, *kernel].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def gaussian(shape: tuple[int, ...], fan_in: int, rng: np.random.Generator) -> Array:
    """N(0, 1/fan_in), so that independent inputs of mean square 1 give outputs of mean square 1."""
    draw: Array = rng.normal(size=shape) / np.sqrt(fan_in)
    return draw


def orthogonal(num_out: int, num_in: int, rng: np.random.Generator) -> Array:
    """A matrix [out, in] with orthonormal columns (rows, where out < in), uniformly distributed.

    The QR decomposition of a Gaussian matrix, with the signs of R's diagonal moved into Q: without
    them the distribution depends on the library's sign convention (Mezzadri 2007, math-ph/0609050).

    >>> w = orthogonal(5, 3, np.random.default_rng(0))
    >>> bool(np.allclose(w.T @ w, np.eye(3)))
    True
    """
    tall = rng.normal(size=(max(num_out, num_in), min(num_out, num_in)))
    q, r = np.linalg.qr(tall)
    q *= np.where(np.diagonal(r) < 0, -1.0, 1.0)
    return np.ascontiguousarray(q if num_out >= num_in else q.T)
