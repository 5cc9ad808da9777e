"""Estimates of a Jacobian's spectrum from products with it.

Let the map take B examples of n numbers each to B examples of m numbers each. Where it treats each example by
itself, the batch's Jacobian is block-diagonal and one product with it serves all examples at once. Where examples
mix (batch norm in train mode), no example has a Jacobian of its own; then the one of the whole batch, [B m, B n], is
taken. For the mean squared singular value and the distance to the identity that is the same definition in both
cases, since squares of Frobenius norms add over diagonal blocks; only the largest singular value is another one,
and `Spectrum.per_example` says which.

Shape letters: G groups (examples, or 1 for a batch that mixes), N inputs and M outputs of a group, K probes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from depthscope.core.errors import words_of
from depthscope.core.streams import stream
from depthscope.probes.demand.linearise import Anchor, Linearised

EXACT = 128
"""Outputs of a group up to which the Jacobian is formed row by row: as many products as the estimates take."""

EXACT_BYTES = 2**28
"""What the rows may take."""


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Of a map's Jacobian at one point.

    Attributes:
        largest: largest singular value: mean over examples where each has its own Jacobian, else that of the batch's;
            None where it could not be had.
        largest_bound: but for rounding, a singular value lies within this of each example's estimate (the greatest
            such bound); 0 where exact.
        mean_square: sum of the squared singular values over their number, min(inputs, outputs), zeros counted.
        mean_square_error: standard error of it over the probes; 0 where exact.
        identity_distance: |J - I| / |I| by Frobenius norms; None where input and output differ in shape.
        identity_distance_error: its standard error, likewise.
        exact: the Jacobian was formed row by row.
        num_probes: random vectors of the estimates; 0 where exact.
        num_iterations: of the largest singular value; 0 where exact.
        per_example: each example has a Jacobian of its own.
        missing: why there is no largest singular value; empty where there is one.
    """

    largest: float | None
    largest_bound: float = 0.0
    mean_square: float
    mean_square_error: float = 0.0
    identity_distance: float | None
    identity_distance_error: float = 0.0
    exact: bool
    num_probes: int = 0
    num_iterations: int = 0
    per_example: bool
    missing: str = ""


def spectrum_of(
    map_: Linearised, *, num_probes: int, max_iterations: int, tolerance: float, seed: int, name: str = ""
) -> Spectrum:
    """Measure a linearised map.

    Args:
        map_: see there.
        num_probes: random vectors for the mean square and the distance to the identity, where not exact.
        max_iterations: of Golub, Kahan and Lanczos.
        tolerance: the largest singular value may be this much off, relative to it.
        seed: of the draws.
        name: of the map: its draws come from `stream(seed, "probe", "jacobian", name, ...)`.
    """
    per_example = not mixes(map_, seed=seed, name=name)
    groups = map_.y.shape[0] if per_example else 1
    num_outputs = math.prod(map_.y.shape) // groups
    num_inputs = math.prod(map_.x.shape) // groups
    square = map_.y.shape == map_.x.shape
    if num_outputs <= EXACT and 8 * groups * num_outputs * num_inputs <= EXACT_BYTES:
        return _exact(map_, groups, square, per_example)
    mean_square, distance = _hutchinson(map_, groups, square, num_probes, seed, name)
    missing, largest, bound, num_iterations = "", None, 0.0, 0
    try:
        largest, bound, num_iterations = _largest(map_, groups, max_iterations, tolerance, seed, name)
    except RuntimeError as error:  # autograd has no word of its own for "no derivative of a derivative"
        missing = f"no backward pass through its backward pass: {words_of(error)}"
    root, root_error = (None, 0.0) if distance is None else _root(*distance)
    return Spectrum(
        largest=largest,
        largest_bound=bound,
        mean_square=mean_square[0],
        mean_square_error=mean_square[1],
        identity_distance=root,
        identity_distance_error=root_error,
        exact=False,
        num_probes=num_probes,
        num_iterations=num_iterations,
        per_example=per_example,
        missing=missing,
    )


def mixes(map_: Linearised, *, seed: int, name: str) -> bool:
    """Whether an output of one example depends on an input of another, at this point.

    J^T v with v on every second example alone must be exactly 0 on the others, and the other way round: a matrix
    product of rows of zeros gives zeros.
    """
    if not map_.y.shape or not map_.x.shape or map_.y.shape[0] != map_.x.shape[0]:
        return True
    if map_.y.shape[0] == 1:
        return False
    v = normal(map_.y, seed, name, "mixing")
    for start in (0, 1):
        kept = torch.zeros_like(v)
        kept[start::2] = v[start::2]
        if bool((map_.vjp(kept)[1 - start :: 2] != 0).any()):
            return True
    return False


def _exact(map_: Linearised, groups: int, square: bool, per_example: bool) -> Spectrum:
    rows = []
    basis_GM = map_.y.zeros().reshape(groups, -1)
    for column in range(basis_GM.shape[1]):
        basis_GM[:, column] = 1
        # A copy: the identity hands back the vector itself.
        rows.append(map_.vjp(basis_GM.reshape(map_.y.shape)).reshape(groups, -1).clone())
        basis_GM[:, column] = 0
    jacobian_GMN = torch.stack(rows, dim=1).cpu().double()
    squares = jacobian_GMN.square().sum()
    singular_G = (
        torch.linalg.matrix_norm(jacobian_GMN, ord=2)
        if bool(jacobian_GMN.isfinite().all())
        else torch.full((groups,), math.nan)
    )
    distance = None
    if square:
        size = jacobian_GMN.shape[1]
        away = (jacobian_GMN - torch.eye(size, dtype=torch.float64)).square().sum()
        distance = math.sqrt(float(away) / (groups * size))
    return Spectrum(
        largest=float(singular_G.mean()),
        mean_square=float(squares) / (groups * min(jacobian_GMN.shape[1:])),
        identity_distance=distance,
        exact=True,
        per_example=per_example,
    )


def _hutchinson(
    map_: Linearised, groups: int, square: bool, num_probes: int, seed: int, name: str
) -> tuple[tuple[float, float], tuple[float, float] | None]:
    """E|J^T v|^2 = |J|^2 for v of independent signs (Hutchinson 1990), and |(J - I)^T v|^2 likewise.

    Returns:
        Mean and standard error over the probes of |J|^2 a singular value, and of |J - I|^2 / |I|^2.
    """
    squares, aways = [], []
    for probe in range(num_probes):
        signs = stream(seed, "probe", "jacobian", name, "sign", probe).integers(0, 2, size=map_.y.shape)
        v = torch.from_numpy(2 * signs - 1).to(device=map_.y.device, dtype=map_.y.dtype)
        product = wide(map_.vjp(v))
        squares.append(product.square().sum())
        if square:
            aways.append((product - wide(v)).square().sum())
    number = groups * min(math.prod(map_.y.shape) // groups, math.prod(map_.x.shape) // groups)
    return _mean_and_error(squares, number), _mean_and_error(aways, number) if square else None


def _mean_and_error(values: list[Tensor], number: int) -> tuple[float, float]:
    values_K = np.asarray(torch.stack(values).tolist()) / number
    error = float(values_K.std(ddof=1)) / math.sqrt(len(values_K)) if len(values_K) > 1 else math.nan
    return float(values_K.mean()), error


def _root(value: float, error: float) -> tuple[float, float]:
    root = math.sqrt(value) if value >= 0 else math.nan
    return root, error / (2 * root) if root > 0 else 0.0


def _largest(
    map_: Linearised, groups: int, max_iterations: int, tolerance: float, seed: int, name: str
) -> tuple[float, float, int]:
    """Mean over groups of the largest singular value, by Golub and Kahan's bidiagonalisation (1965).

    The power iteration on J^T J, whose iterates span the same space, needs about the square of the iterations.
    J V = U C with C upper bidiagonal (alphas on the diagonal, betas above); the largest singular value s of C, with
    left vector p, has |J^T U p - s V q| = beta_k |p_k|, so that a singular value of J lies within that of s.
    Without reorthogonalisation converged values come again as copies, which the largest does not mind.
    """
    _check_adjoint(map_, groups, seed, name)
    v_GN = wide(normal(map_.x, seed, name, "start")).reshape(groups, -1)
    v_GN = v_GN / torch.linalg.vector_norm(v_GN, dim=1, keepdim=True)
    u_GM = torch.zeros((), dtype=v_GN.dtype, device=v_GN.device)
    alphas: list[Tensor] = []
    betas: list[Tensor] = []
    largest_G = bound_G = torch.zeros(groups, dtype=torch.float64)
    for _ in range(max_iterations):
        p_GM = wide(map_.jvp(v_GN.reshape(map_.x.shape))).reshape(groups, -1)
        if betas:
            p_GM = p_GM - betas[-1] * u_GM
        alpha, u_GM = _normalised(p_GM)
        w_GN = wide(map_.vjp(u_GM.reshape(map_.y.shape))).reshape(groups, -1) - alpha * v_GN
        beta, v_GN = _normalised(w_GN)
        alphas.append(alpha)
        betas.append(beta)
        largest_G, bound_G = _of_bidiagonal(alphas, betas)
        if not bool((bound_G > tolerance * largest_G).any()):
            break
    return float(largest_G.mean()), float(bound_G.max()), len(alphas)


def _check_adjoint(map_: Linearised, groups: int, seed: int, name: str) -> None:
    """<J u, v> = <u, J^T v> at random u and v.

    A function with a backward pass of its own that may be differentiated only once cuts the graph without an error
    where nothing else asks for it, and its part of J u is missing.

    Raises:
        RuntimeError: they differ by more than rounding.
    """
    u, v = normal(map_.x, seed, name, "right"), normal(map_.y, seed, name, "left")
    right, left = wide(map_.jvp(u)), wide(map_.vjp(v))
    products = wide(v) * right, wide(u) * left
    sums = [each.reshape(groups, -1).sum(1) for each in products]
    # What a sum of so many products of random signs would have as its size.
    sizes = [each.reshape(groups, -1).square().sum(1).sqrt() for each in products]
    dtypes = [map_.x.dtype, map_.y.dtype]
    if torch.is_autocast_enabled(map_.y.device.type):
        dtypes.append(torch.get_autocast_dtype(map_.y.device.type))
    tolerance = 4 * math.sqrt(max(torch.finfo(each).eps for each in dtypes))
    if bool(((sums[0] - sums[1]).abs() > tolerance * (sizes[0] + sizes[1])).any()):
        raise RuntimeError("products with it and with its transpose do not agree")


def _of_bidiagonal(alphas: list[Tensor], betas: list[Tensor]) -> tuple[Tensor, Tensor]:
    alphas_GK = torch.cat(alphas, dim=1).cpu().double()
    betas_GK = torch.cat(betas, dim=1).cpu().double()
    small_GKK = torch.diag_embed(alphas_GK) + torch.diag_embed(betas_GK[:, :-1], offset=1)
    if not bool(small_GKK.isfinite().all() & betas_GK.isfinite().all()):
        return torch.full((len(small_GKK),), math.nan), torch.full((len(small_GKK),), math.nan)
    left_GKK, values_GK, _ = torch.linalg.svd(small_GKK)
    return values_GK[:, 0], betas_GK[:, -1] * left_GKK[:, -1, 0].abs()


def _normalised(vectors: Tensor) -> tuple[Tensor, Tensor]:
    norms = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return norms, vectors / torch.where(norms > 0, norms, torch.ones_like(norms))


def normal(like: Anchor, seed: int, name: str, purpose: str) -> Tensor:
    """Standard normal numbers in the shape, dtype and place of a tensor, from a stream of their own."""
    drawn = stream(seed, "probe", "jacobian", name, purpose).standard_normal(like.shape)
    return torch.from_numpy(np.asarray(drawn)).to(like.dtype).to(like.device)


def wide(tensor: Tensor) -> Tensor:
    """In float64; in float32 on MPS, which has none."""
    return tensor.to(torch.float32 if tensor.device.type == "mps" else torch.float64)
