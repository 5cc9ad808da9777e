"""Activations and their averages over a Gaussian: the constants that mean-field theory is made of.

All averages are E[f(sqrt(q) z)] with z ~ N(0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError, unknown_name

Array = NDArray[np.float64]
_Function = Callable[[Array], Array]
_Slope = Callable[[Array, Array], Array]
"""Of x and of the function there, of which many a slope is made."""

# SELU's constants, Klambauer et al. 2017, arXiv 1706.02515, equation 14; they make E[phi^2] = 1 at q = 1.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
_LEAK = 0.2


def _sigmoid(x: Array) -> Array:
    # The tanh form overflows nowhere, while exp(-x) does for very negative x.
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def _normal_cdf(x: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(x), dtype=np.float64)


def _normal_pdf(x: Array) -> Array:
    return np.asarray(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


def _delu(x: Array) -> Array:
    return np.where(x > 0, 1.0, np.exp(np.minimum(x, 0.0)))


def _selu(x: Array) -> Array:
    return _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(np.minimum(x, 0.0)))


def _dselu(x: Array) -> Array:
    return _SELU_SCALE * np.where(x > 0, 1.0, _SELU_ALPHA * np.exp(np.minimum(x, 0.0)))


def _dsilu(x: Array) -> Array:
    s = _sigmoid(x)
    return s * (1.0 + x * (1.0 - s))


_FUNCTIONS: Mapping[str, tuple[_Function, _Slope]] = MappingProxyType(
    {
        "linear": (lambda x: x, lambda x, y: np.ones_like(x)),
        "relu": (lambda x: np.maximum(x, 0.0), lambda x, y: np.where(x > 0, 1.0, 0.0)),
        "leaky_relu": (lambda x: np.where(x > 0, x, _LEAK * x), lambda x, y: np.where(x > 0, 1.0, _LEAK)),
        "tanh": (np.tanh, lambda x, y: 1.0 - y**2),
        "sigmoid": (_sigmoid, lambda x, y: y * (1.0 - y)),
        "gelu": (lambda x: x * _normal_cdf(x), lambda x, y: _normal_cdf(x) + x * _normal_pdf(x)),
        "silu": (lambda x: x * _sigmoid(x), lambda x, y: _dsilu(x)),
        "elu": (_elu, lambda x, y: _delu(x)),
        "selu": (_selu, lambda x, y: _dselu(x)),
        "softplus": (lambda x: np.logaddexp(0.0, x), lambda x, y: _sigmoid(x)),
    }
)

ACTIVATIONS = tuple(_FUNCTIONS)
"""Names that the theory knows: gelu is the erf form, elu has alpha 1, leaky_relu slope 0.2."""


@dataclass(frozen=True, kw_only=True)
class Averages:
    """Gaussian averages of one activation at one variance.

    Attributes:
        mean: E[phi].
        second: E[phi^2].
        slope: E[phi'^2].
    """

    mean: float
    second: float
    slope: float

    @property
    def variance(self) -> float:
        """Var[phi]."""
        return self.second - self.mean**2


@lru_cache(maxsize=100_000)
def averages(activation: str, q: float = 1.0) -> Averages:
    """E[phi], E[phi^2] and E[phi'^2] at pre-activations N(0, q).

    Args:
        activation: one of `ACTIVATIONS`.
        q: variance of the pre-activation, at least 0.

    Raises:
        UserError: an unknown activation, or a negative q.

    >>> round(averages("relu").second, 12), round(averages("tanh").slope, 6)
    (0.5, 0.464403)
    """
    mean, second, slope = averages_of(activation, np.array([q]))
    return Averages(mean=float(mean[0]), second=float(second[0]), slope=float(slope[0]))


def averages_of(activation: str, q: Array) -> tuple[Array, Array, Array]:
    """(E[phi], E[phi^2], E[phi'^2]) at each of several variances, each of the shape of `q`, [K].

    Gauss-Legendre on panels that end at 0: the kink of ReLU and its kin lies at 0, where a rule of
    one piece (such as Gauss-Hermite) would lose its exponential convergence.

    Raises:
        UserError: see `averages`.
    """
    if activation not in _FUNCTIONS:
        raise UserError(unknown_name("activation", activation, ACTIVATIONS))
    if not (q >= 0).all():
        raise UserError(f"q: wanted variances of at least 0, got {q.tolist()}.")
    phi, slope = _FUNCTIONS[activation]
    z, weight = _rule()
    # At q = 0 a kinked activation takes its average slope as q -> 0, so that scale invariance holds.
    x = np.sqrt(np.maximum(q, 1e-300))[:, None] * z
    value = phi(x)
    return value @ weight, value**2 @ weight, slope(x, value) ** 2 @ weight


@lru_cache(maxsize=10_000)
def shared_second(activation: str, q: float, c: float) -> float:
    """E_u[(E_v phi(sqrt(c) u + sqrt(q - c) v))^2]: E[phi phi'] of two pre-activations of variance q, covariance c.

    By the rule of `averages_of` in both u and v. Its panels do not end at the kink of the inner average, which costs
    ReLU 1e-4 (it has a closed form, Cho and Saul 2009) and smooth activations nothing.

    Raises:
        UserError: see `averages`.

    >>> round(shared_second("tanh", 1.0, 1.0), 6), round(shared_second("linear", 2.0, 0.5), 5)
    (0.394294, 0.5)
    """
    if activation not in _FUNCTIONS:
        raise UserError(unknown_name("activation", activation, ACTIVATIONS))
    node, weight = _rule()
    phi = _FUNCTIONS[activation][0](math.sqrt(c) * node[:, None] + math.sqrt(max(q - c, 0.0)) * node[None, :])
    return float((phi @ weight) ** 2 @ weight)


@cache
def _rule() -> tuple[Array, Array]:
    """Nodes z and weights (the density included), z in [-10, 10]; what lies outside weighs 1.5e-23."""
    node, weight = np.polynomial.legendre.leggauss(24)
    # Narrow panels near 0 resolve saturating activations, whose slope is a peak of width 1/sqrt(q).
    edges: Any = [0.0, 0.01, 0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
    low, high = np.array(edges[:-1]), np.array(edges[1:])
    half = (high - low) / 2
    z = ((low + high) / 2)[:, None] + half[:, None] * node
    w = half[:, None] * weight * _normal_pdf(z)
    z, w = z.ravel(), w.ravel()
    return np.concatenate([-z[::-1], z]), np.concatenate([w[::-1], w])
