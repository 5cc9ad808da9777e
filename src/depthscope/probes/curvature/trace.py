"""The trace of a symmetric matrix by random vectors, with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from depthscope.core.errors import UserError
from depthscope.probes.curvature.symmetric import Array, Counted, Symmetric, dense, normal

SAMPLES = 60
SPLIT = 12
"""Products from which on a part of them is spent on the directions that stand out."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """An estimate of a trace.

    Attributes:
        value: of the trace; nan where the matrix is not finite.
        standard_error: of `value`, from the spread between its random vectors; 0 where exact.
        samples: products that it took.
        exact: every diagonal entry was computed.
    """

    value: float
    standard_error: float
    samples: int
    exact: bool = False


def trace(hessian: Symmetric, *, samples: int = SAMPLES, seed: int = 0) -> Trace:
    """The sum of the eigenvalues, without bias, by Hutch++ (Meyer et al. 2021, arXiv 2010.09649).

    Of `samples` products a third finds an orthonormal basis Q of what stands out in the range of H, a third gives
    tr(Q^T H Q) exactly, and a third estimates what is left by the mean of r u^T H u, u uniform on the unit sphere of
    the r dimensions that are orthogonal to Q. The spread of those, which are independent given Q, is the standard
    error. A network's Hessian has few eigenvalues that stand out; they would make an estimate by random vectors alone
    noisy, as it is below `SPLIT` products. A matrix of no more rows than `samples` is summed exactly.

    Args:
        hessian: the matrix.
        samples: products, at most.
        seed: of the random vectors.

    Raises:
        UserError: fewer than 2 samples.

    >>> class Trap:
    ...     size = 2
    ...     def matvec(self, v):
    ...         return np.array([-3.0, 1.0]) * v
    >>> trace(Trap())
    Trace(value=-2.0, standard_error=0.0, samples=2, exact=True)
    """
    if samples < 2:
        raise UserError(f"curvature: samples: wanted 2 or more, got {samples}.")
    counted = Counted(hessian)
    if counted.size <= samples:
        return Trace(value=float(np.trace(dense(counted))), standard_error=0.0, samples=counted.size, exact=True)
    found = 0.0
    basis: Array = np.zeros((counted.size, 0))
    if samples >= SPLIT:
        third = samples // 3
        sketch = np.stack(
            [counted.matvec(normal(seed, "trace", "sketch", at, size=counted.size)) for at in range(third)], axis=1
        )
        if not np.isfinite(sketch).all():
            return Trace(value=math.nan, standard_error=math.nan, samples=counted.num_products)
        # Of a matrix of lower rank the last columns are any that are orthogonal: no harm, as Q stays orthonormal.
        basis = qr(sketch, mode="economic")[0]
        found = float(sum(column @ counted.matvec(column) for column in basis.T))
    rest = []
    for at in range(samples - counted.num_products):
        g = normal(seed, "trace", at, size=counted.size)
        g -= basis @ (basis.T @ g)
        g /= np.linalg.norm(g)
        rest.append((counted.size - basis.shape[1]) * float(g @ counted.matvec(g)))
    return Trace(
        value=found + float(np.mean(rest)),
        standard_error=float(np.std(rest, ddof=1) / math.sqrt(len(rest))),
        samples=counted.num_products,
    )
