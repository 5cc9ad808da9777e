"""A symmetric matrix that is known by its products with vectors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.streams import stream

Array = NDArray[np.float64]

EXACT = 64
"""Rows at most of a matrix that is written out, column by column, in place of an iteration."""


class Symmetric(Protocol):
    """What `extremes`, `trace` and `density` take; `Hessian` is one."""

    @property
    def size(self) -> int:
        """Rows, and columns."""

    def matvec(self, v: Array) -> Array:
        """The product with a vector, [size]."""


class Counted:
    """The same matrix, with a count of its products."""

    def __init__(self, matrix: Symmetric) -> None:
        if matrix.size < 1:
            raise UserError("curvature: the matrix has no row.")
        self._matrix = matrix
        self.size = matrix.size
        self.num_products = 0

    def matvec(self, v: Array) -> Array:
        """The product with a vector, [size]."""
        self.num_products += 1
        return self._matrix.matvec(v)


def dense(matrix: Symmetric) -> Array:
    """All of it, [size, size], by as many products, as they come: symmetric up to rounding."""
    return np.stack([matrix.matvec(unit) for unit in np.eye(matrix.size)], axis=1)


def normal(seed: int, *name: str | int, size: int) -> Array:
    """A standard normal vector of a named stream."""
    return stream(seed, "probe", "curvature", *name).standard_normal(size)
