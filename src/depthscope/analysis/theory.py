"""Mean-field theory of signals and gradients in networks at initialisation.

Conventions: a layer is z = W h + b, h' = phi(z), W ~ N(0, sw2 / fan_in), b ~ N(0, sb2), wide limit.
q is the variance of z. chi is the factor, a layer and TOWARD THE INPUT, of the SQUARED norm of
dL/dh; sqrt(chi) is that of the norm. Source: Poole et al. 2016 (arXiv 1606.05340), Schoenholz et
al. 2017 (arXiv 1611.01232). What holds for a run of a study at finite width stands in `expected`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from depthscope.analysis.averages import averages
from depthscope.analysis.expected import expected as expected
from depthscope.analysis.expected import gradient_profile as gradient_profile
from depthscope.core.errors import UserError, unknown_name

_SMALLEST, _LARGEST = 1e-10, 1e10


def next_q(activation: str, q: float, sw2: float, sb2: float = 0.0) -> float:
    """The variance one layer on: sw2 E[phi(sqrt(q) z)^2] + sb2."""
    return sw2 * averages(activation, q).second + sb2


def fixed_point_q(activation: str, sw2: float, sb2: float = 0.0) -> float:
    """The variance q that a layer maps to itself, sought from q = 1 in the direction in which q moves.

    Args:
        activation: one of `averages.ACTIVATIONS`.
        sw2: variance of the weights times fan_in.
        sb2: variance of the biases.

    Returns:
        q; 0 where the signal dies out (a q under 1e-10 counts as 0); 1 where every q is a fixed point
        (ReLU, sw2 = 2, sb2 = 0).

    Raises:
        UserError: the variance grows without bound.

    >>> round(fixed_point_q("tanh", 1.0, 0.05), 6)
    0.193593
    """

    def moves(q: float) -> float:
        return next_q(activation, q, sw2, sb2) - q

    start = moves(1.0)
    if abs(start) < 1e-13:
        return 1.0
    near, far = 1.0, 1.0
    while moves(far) * start > 0:
        near, far = far, far * (2.0 if start > 0 else 0.5)
        if far > _LARGEST:
            raise UserError(
                f"no fixed point: with sw2={sw2} and sb2={sb2} the variance of {activation} grows for ever."
            )
        if far < _SMALLEST:
            return 0.0
    return _root(moves, near, far)


def chi(activation: str, sw2: float, sb2: float = 0.0, *, q: float | None = None) -> float:
    """sw2 E[phi'(sqrt(q) z)^2]: the factor a layer of |dL/dh|^2 toward the input.

    Args:
        activation: one of `averages.ACTIVATIONS`.
        sw2: variance of the weights times fan_in.
        sb2: variance of the biases.
        q: variance of the pre-activation; the fixed point by default.

    >>> round(chi("relu", 2.0), 12), round(chi("tanh", 1.0, 0.05), 6)
    (1.0, 0.759032)
    """
    return sw2 * averages(activation, fixed_point_q(activation, sw2, sb2) if q is None else q).slope


def critical_sw2(activation: str, sb2: float = 0.0) -> float:
    """The sw2 at which chi = 1 at its own fixed point.

    At chi = 1, sw2 = 1 / E[phi'^2], which leaves one equation for q: q = E[phi^2] / E[phi'^2] + sb2.

    Raises:
        UserError: no such point, as for ReLU with biases.

    >>> round(critical_sw2("tanh", 0.05), 6), round(critical_sw2("relu"), 12)
    (1.760955, 2.0)
    """

    def gap(q: float) -> float:
        found = averages(activation, q)
        return q - found.second / found.slope - sb2

    low = high = _SMALLEST
    if abs(gap(low)) <= 1e-6 * low:
        return 1.0 / averages(activation, low).slope
    while gap(high) <= 0:
        low, high = high, 2.0 * high
        if high > _LARGEST:
            raise UserError(f"{activation} with sb2={sb2} has no critical point: chi = 1 at no fixed point.")
    return 1.0 / averages(activation, _root(gap, low, high)).slope


def normalised_chi(activation: str, norm: Literal["batch", "layer"]) -> float:
    """The chi of a plain network with normalisation before the activation; the initialiser's scale cancels.

    Batch norm divides by the spread over the batch, where the mean of phi is common to all examples
    and drops out: E[phi'^2] / Var[phi]. Layer norm divides by the spread over units, where the mean of
    phi feeds every unit with a weight of its own and stays: E[phi'^2] / E[phi^2]. Wide limit, large
    batch, inputs in general position, step 0. Source: Yang et al. 2019, arXiv 1902.08129.

    >>> round(normalised_chi("relu", "batch"), 6), round(normalised_chi("relu", "layer"), 6)
    (1.466942, 1.0)
    """
    found = averages(activation)
    return found.slope / (found.variance if norm == "batch" else found.second)


@dataclass(frozen=True, kw_only=True)
class BlockTheory:
    """What a residual block x + F(x) does at initialisation.

    Attributes:
        chi: factor of |dL/dx|^2 over the block, toward the input.
        f_over_x: |F| / |x|.
    """

    chi: float
    f_over_x: float


Branch = Literal["unit", "relu_first", "batch_norm_first", "pre_layer_norm", "zero"]
BRANCHES: tuple[Branch, ...] = ("unit", "relu_first", "batch_norm_first", "pre_layer_norm", "zero")


def residual_block(branch: Branch, *, block: int = 0, scale: float = 1.0) -> BlockTheory:
    """Closed forms for residual networks at initialisation, wide limit, x_0 of unit variance an entry.

    W is drawn apart from x, so that x and F(x) are orthogonal on average and squares add:
    chi = 1 + chi of the branch. The branches, with their weights' variance over fan_in:

    - `unit`: W2 relu(W1 x) with 1 and 2: keeps the variance both ways. chi 2, |F|/|x| 1.
    - `relu_first`: W relu(x) with 1: forward and backward half. At the FIRST block only where x is
      symmetric; the sum of relu branches stays symmetric, because W is.
    - `batch_norm_first`: W relu(BN(x)) with 2. Each block adds second moment 1, of which 2 (E relu)^2 =
      1/pi is common to the batch: the batch variance of x_l is 1 + (1 - 1/pi) l, and BN divides by it.
    - `pre_layer_norm`: a branch of unit output after LN: E x_l^2 = l + 1, and LN divides by it.
    - `zero`: ReZero, SkipInit, Fixup, zero gamma: the block is the identity.

    Args:
        branch: one of `BRANCHES`.
        block: l, from 0; only the normalised branches depend on it.
        scale: factor on the branch; only for those without normalisation. chi = 1 + scale^2 (chi - 1).

    Raises:
        UserError: an unknown branch, or a scale where normalisation makes later blocks depend on it.

    >>> residual_block("unit", scale=0.5)
    BlockTheory(chi=1.25, f_over_x=0.5)
    """
    if branch not in BRANCHES:
        raise UserError(unknown_name("branch", branch, BRANCHES))
    if branch in ("batch_norm_first", "pre_layer_norm") and scale != 1.0:
        raise UserError(f"scale: a {branch} branch has closed forms at scale 1 only, got {scale}.")
    f_over_x = math.sqrt(1.0 / (block + 1))
    match branch:
        case "unit":
            return BlockTheory(chi=1.0 + scale**2, f_over_x=scale)
        case "relu_first":
            return BlockTheory(chi=1.0 + scale**2 / 2, f_over_x=scale * math.sqrt(0.5))
        case "batch_norm_first":
            return BlockTheory(chi=1.0 + 1.0 / (1.0 + (1.0 - 1.0 / math.pi) * block), f_over_x=f_over_x)
        case "pre_layer_norm":
            return BlockTheory(chi=1.0 + 1.0 / (block + 1), f_over_x=f_over_x)
        case "zero":
            return BlockTheory(chi=1.0, f_over_x=0.0)


def residual_product(branch: Branch, num_blocks: int, *, scale: float = 1.0) -> float:
    """The product of chi over the blocks of a residual network.

    >>> round(residual_product("pre_layer_norm", 32), 9), round(residual_product("unit", 16, scale=0.25), 3)
    (33.0, 2.638)
    """
    return math.prod(residual_block(branch, block=at, scale=scale).chi for at in range(num_blocks))


def _root(function: Callable[[float], float], a: float, b: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, a, b, xtol=1e-15, rtol=1e-14))
