"""How a symmetric matrix's eigenvalues are spread, by stochastic Lanczos quadrature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal

from depthscope.core.errors import UserError
from depthscope.probes.curvature.symmetric import EXACT, Array, Counted, Symmetric, dense, normal


@dataclass(frozen=True, kw_only=True)
class Density:
    """A spectrum as masses: a share of `weights[i]` of all eigenvalues lies about at `values[i]`.

    Attributes:
        values: ascending, [num_masses].
        weights: their sum is 1.
        num_products: products that it took.
        exact: the values are the eigenvalues, of equal weights.
    """

    values: Array
    weights: Array
    num_products: int
    exact: bool = False

    @property
    def mean(self) -> float:
        """Of the eigenvalues: the trace by the number of rows."""
        return float(self.weights @ self.values)

    def share(self, low: float = -np.inf, high: float = np.inf) -> float:
        """Of the eigenvalues that lie from `low` to `high`, both among them."""
        return float(self.weights[(self.values >= low) & (self.values <= high)].sum())

    def smoothed(self, *, points: int = 512, width: float | None = None) -> tuple[Array, Array]:
        """The masses as normal curves on a grid, [points] each: eigenvalue, and density, whose integral is 1.

        Args:
            points: of the grid, which goes 4 widths beyond the outermost masses.
            width: standard deviation of each curve; None for 1/100 of the spectrum's spread.

        Raises:
            UserError: a width that is not above 0.
        """
        low, high = float(self.values[0]), float(self.values[-1])
        width = ((high - low) / 100 or abs(high) / 100 or 1.0) if width is None else width
        if not width > 0:
            raise UserError(f"curvature: width: wanted a number above 0, got {width}.")
        grid = np.linspace(low - 4 * width, high + 4 * width, points)
        heights = np.exp(-0.5 * ((grid[:, None] - self.values) / width) ** 2) / (width * np.sqrt(2 * np.pi))
        return grid, heights @ self.weights


def density(hessian: Symmetric, *, vectors: int = 4, steps: int = 64, seed: int = 0) -> Density:
    """The density of the eigenvalues (Ubaru et al. 2017; of networks: Ghorbani et al. 2019, arXiv 1901.10159).

    From each of some random unit vectors v, Lanczos' iteration gives a tridiagonal matrix T; its eigenvalues, weighed
    by the squares of its eigenvectors' first entries, integrate every polynomial of degree 2 * steps - 1 as the
    spectrum does that v sees. Every new Lanczos vector is made orthogonal to all before it, twice: rounding would
    else show an eigenvalue that stands out again and again. A matrix of `EXACT` rows or fewer is written out.

    Args:
        hessian: the matrix.
        vectors: random starts, whose quadratures are averaged.
        steps: of Lanczos; so many vectors are kept at a time.
        seed: of the starts.

    Raises:
        UserError: fewer than one vector or two steps; the matrix is not finite.
    """
    if vectors < 1 or steps < 2:
        raise UserError(f"curvature: wanted vectors of 1 or more and steps of 2 or more, got {vectors} and {steps}.")
    counted = Counted(hessian)
    if counted.size <= EXACT:
        matrix = _finite(dense(counted))
        values = eigh((matrix + matrix.T) / 2, eigvals_only=True)
        weights = np.full(counted.size, 1 / counted.size)
        return Density(values=values, weights=weights, num_products=counted.num_products, exact=True)
    nodes, weighed = [], []
    for at in range(vectors):
        start = normal(seed, "density", at, size=counted.size)
        diagonal, beside = _lanczos(counted, start / np.linalg.norm(start), min(steps, counted.size))
        values, rotations = eigh_tridiagonal(diagonal, beside)
        nodes.append(values)
        weighed.append(rotations[0] ** 2 / vectors)
    found, weights = np.concatenate(nodes), np.concatenate(weighed)
    order = np.argsort(found, kind="stable")
    return Density(values=found[order], weights=weights[order] / weights.sum(), num_products=counted.num_products)


def _lanczos(matrix: Counted, start: Array, steps: int) -> tuple[Array, Array]:
    """Diagonal and off-diagonal of T; shorter where the vectors before span a space that the matrix does not leave."""
    basis = np.empty((steps, matrix.size))
    basis[0] = start
    diagonal: list[float] = []
    beside: list[float] = []
    scale = 0.0
    while True:
        num = len(diagonal) + 1
        product = _finite(matrix.matvec(basis[num - 1]))
        diagonal.append(float(basis[num - 1] @ product))
        scale = max(scale, float(np.linalg.norm(product)))
        for _ in range(2):
            product = product - basis[:num].T @ (basis[:num] @ product)
        length = float(np.linalg.norm(product))
        if num == steps or length <= 1e-12 * scale:
            return np.array(diagonal), np.array(beside)
        beside.append(length)
        basis[num] = product / length


def _finite(found: Array) -> Array:
    if not np.isfinite(found).all():
        raise UserError("curvature: the Hessian is not finite here, so that it has no spectrum. Is the loss finite?")
    return found
