"""The largest and the smallest eigenvalue of a symmetric matrix, by their values and not by their sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from depthscope.core.errors import UserError
from depthscope.probes.curvature.symmetric import EXACT, Array, Counted, Symmetric, dense, normal

BASES = ((1e-2, 8), (1e-4, 12), (0.0, 20))
"""By tolerance, the Lanczos vectors between restarts. ARPACK looks at its result at restarts alone, so that many make a
rough figure dear, and few a fine one; of those tried on small networks these took the fewest products."""


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """Both ends of a spectrum. All nan where the matrix is not finite.

    Attributes:
        largest: eigenvalue, v^T H v of the unit vector v that was found. The least negative one where all are negative.
        smallest: likewise; the most negative one where one is negative.
        residual_largest: |H v - lambda v|. Some eigenvalue lies within it of `largest`.
        residual_smallest: likewise.
        num_products: products that it took.
        exact: the matrix was written out, so that no eigenvalue can have been missed.
        largest_vector: v, [size].
        smallest_vector: likewise.
    """

    largest: float
    smallest: float
    residual_largest: float
    residual_smallest: float
    num_products: int
    exact: bool = False
    largest_vector: Array | None = field(default=None, repr=False, compare=False)
    smallest_vector: Array | None = field(default=None, repr=False, compare=False)


def extremes(hessian: Symmetric, *, tol: float = 1e-6, seed: int = 0, max_products: int = 4_000) -> Extremes:
    """Largest and smallest eigenvalue of a symmetric matrix by SciPy's `eigsh` (ARPACK), with their residuals.

    One run finds the eigenvalue m of greatest size, whatever its sign. It is one end of the spectrum; which one, its
    sign says. The other end is, of H - m I, the eigenvalue of greatest size, found by a second run from the same start.
    So both runs look for what stands out: an end near 0, of a convex loss, would be slow to find otherwise, and never
    found to a precision relative to itself. With `EXACT` rows or fewer the matrix is written out.

    Args:
        hessian: the matrix.
        tol: of each eigenvalue, relative to the greatest size and to the spread of the spectrum.
        seed: of the start, a standard normal vector.
        max_products: of each run, about.

    Raises:
        UserError: not found within `max_products`; bad arguments.

    >>> class Trap:
    ...     size = 2
    ...     def matvec(self, v):
    ...         return np.array([-3.0, 1.0]) * v
    >>> ends = extremes(Trap())
    >>> round(ends.largest, 9), round(ends.smallest, 9)
    (1.0, -3.0)
    """
    if not 0 < tol < 1:
        raise UserError(f"curvature: tol: wanted a number above 0 and below 1, got {tol}.")
    counted = Counted(hessian)
    if counted.size <= EXACT:
        return _of_matrix(dense(counted))
    # Of a normal vector, which has a share of every eigenvector: one of H's range would never find an eigenvalue 0.
    start = normal(seed, "extremes", size=counted.size)
    first = counted.matvec(start)
    scale = float(np.linalg.norm(first) / np.linalg.norm(start))
    if not math.isfinite(scale):
        return _nowhere(1)
    if scale == 0:  # H is 0: a normal vector lies in the null space of no other matrix
        pair = (0.0, 0.0, start / np.linalg.norm(start))
        return _ends([pair, pair], 1)

    def run(shift: float, which: str) -> Array:
        # Divided by its size: ARPACK takes eigenvalues below 1e-11 for zeros.
        operator = LinearOperator(
            (counted.size, counted.size),
            matvec=lambda v: (counted.matvec(v.ravel()) - shift * v.ravel()) / scale,
            dtype=np.float64,
        )
        basis = next(basis for least, basis in BASES if tol >= least)
        restarts = max(max_products // (basis - 1), 1)
        try:
            _, vectors = eigsh(operator, k=1, which=which, v0=start, tol=tol, ncv=basis, maxiter=restarts)
        except ArpackNoConvergence as error:
            raise UserError(
                f"curvature: the eigenvalues did not settle to tol {tol:g} within {counted.num_products} products. "
                "Give a greater tol, or a greater max_products."
            ) from error
        found: Array = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
        return found

    ends = [_pair(counted, run(0.0, "LM"))]
    great = ends[0][0]
    if np.linalg.norm(first - great * start) <= 1e-13 * abs(great) * np.linalg.norm(start):
        ends.append(ends[0])  # H is m I
    else:
        ends.append(_pair(counted, run(great, "SA" if great > 0 else "LA")))
    return _ends(sorted(ends, key=lambda pair: pair[0]), counted.num_products)


Pair = tuple[float, float, Array]
"""Eigenvalue, residual, unit vector."""


def _pair(matrix: Counted, vector: Array) -> Pair:
    product = matrix.matvec(vector)
    value = float(vector @ product)
    return value, float(np.linalg.norm(product - value * vector)), vector


def _of_matrix(matrix: Array) -> Extremes:
    size = len(matrix)
    if not np.isfinite(matrix).all():
        return _nowhere(size)
    values, vectors = eigh((matrix + matrix.T) / 2)
    pairs: list[Pair] = []
    for at in (0, -1):
        value, vector = float(values[at]), vectors[:, at]
        pairs.append((value, float(np.linalg.norm(matrix @ vector - value * vector)), vector))
    return _ends(pairs, size, exact=True)


def _nowhere(num_products: int) -> Extremes:
    nan = math.nan
    return Extremes(largest=nan, smallest=nan, residual_largest=nan, residual_smallest=nan, num_products=num_products)


def _ends(pairs: list[Pair], num_products: int, *, exact: bool = False) -> Extremes:
    low, high = pairs
    return Extremes(
        largest=high[0],
        smallest=low[0],
        residual_largest=high[1],
        residual_smallest=low[1],
        num_products=num_products,
        exact=exact,
        largest_vector=high[2],
        smallest_vector=low[2],
    )
