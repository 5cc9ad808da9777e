"""What theory expects of a run of the laboratory: the gradient's factor a layer, at step 0.

The run is an `mlp` (a stem, D square layers of width w, a linear head). x_0 is the stem's output and
x_D the last square layer's; g_l = dL/dx_l over all N examples. The metric `dh_factor_first` is
(|g_0| / |g_D|)^(1/D), Frobenius norms.

**One example.** Through layer l the squared norm of its gradient grows by g^2 |phi'(z_l) v|^2 / |v|^2,
which is chi_l = g^2 E[phi'(sqrt(q_l) z)^2] in the wide limit, with q_l = g^2 m_{l-1}, m_l = E[phi(sqrt(q_l) z)^2].
The stem sets q_0: the spiral's point at radius r has |x|^2 = r^2 exactly, so that Gaussian weights of
variance g_s^2/2 give q_0 = g_s^2 r^2 / 2; orthonormal columns [w, 2] keep the norm and spread it over w
units, q_0 = g_s^2 r^2 / w.

**Finite width.** For Gaussian W [w, w] of variance g^2/w, |W^T v|^2 = g^2 |v|^2 X / w with X chi-squared of
w degrees. A product of such factors is judged by its median, which follows exp(E ln): E ln(X/w) =
psi(w/2) + ln(2/w) = ln f, under 0. So a plain layer has chi_l f, and on its way forward the typical q_l
shrinks by f likewise. An orthogonal W keeps norms exactly: f = 1. Beside a skip the fluctuation is
second order in chi/w and differs between examples; it is left out (about 1% at width 16).

**All examples.** At step 0 every |g_D| of an example is nearly the same (the softmax is nearly flat), so
|g_0|^2 / |g_D|^2 is the mean over examples of the product of their chi_l: over the radii.

Against simulation (`tests/analysis/test_expected.py`; medians of 12 seeds, widths 16 and 48, depths 8 to
40, gains .5 to 2) this holds within 3%.

**Far outside that.** A tanh layer whose pre-activations have a variance above 1e6 has no closed form here:
under one unit in a thousand is not saturated, so that a network of any usual width has none of the units
that carry the average. A profile that leaves the range of floats is none either; the factor a layer does not.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from depthscope.analysis.averages import averages_of
from depthscope.study.run import RunSpec

Array = NDArray[np.float64]

_LOG_TINY, _LOG_HUGE = math.log(np.finfo(np.float64).tiny), math.log(np.finfo(np.float64).max)
_LARGEST_Q = 1e6
"""Variance of a tanh layer's pre-activations above which it is saturated. See the module."""
_MAX_FACTORS = 4_000_000
"""Layers times radii that are held at once; of more radii than fit, as many at equal steps stand for all."""


def expected(spec: RunSpec, metric: str) -> float | None:
    """The closed form of a metric for this run, or None where there is none.

    `dh_factor_first` of family `mlp` has one for: no norm with tanh (on the spiral) or linear
    layers, plain or with `identity`, Gaussian or orthogonal; and plain ReLU with batch norm, where it
    is sqrt(pi/(pi-1)) whatever the initialiser's scale (wide limit, large batch, deep: on 150 points of
    the plane the first layers and width 16 bring it above that by a few percent).

    Everything else has none here. Plain ReLU without a norm: its finite-width correction depends on how
    many examples share a mask. Batch norm with tanh: on inputs of two dimensions the fixed point lies
    deeper than any depth of interest.
    """
    if metric != "dh_factor_first" or spec.family != "mlp":
        return None
    profile = _log_profile(spec)
    return None if profile is None else math.exp(float(profile[0]) / spec.depth)


def gradient_profile(spec: RunSpec) -> tuple[float, ...] | None:
    """|dL/dx_l| / |dL/dx_D| at step 0, for l = 0 to D; None where `expected` has no closed form.

    Returns:
        D + 1 values, from the stem's output to the last square layer's, which is 1. None too where a value
        would leave the range of floats.
    """
    profile = _log_profile(spec)
    if profile is None or not (profile.min() > _LOG_TINY and profile.max() < _LOG_HUGE):
        return None
    return tuple(float(value) for value in np.exp(profile))


def _log_profile(spec: RunSpec) -> Array | None:
    """The logarithm of `gradient_profile`, [D + 1]; None where there is no closed form."""
    if spec.family != "mlp":
        return None
    if spec.norm == "batch":
        if spec.shortcut != "none" or spec.activation != "relu":
            return None
        return np.asarray(0.5 * math.log(math.pi / (math.pi - 1.0)) * np.arange(spec.depth, -1.0, -1.0))
    if spec.norm != "none" or spec.shortcut not in ("none", "identity") or spec.activation not in ("tanh", "linear"):
        return None
    if spec.init not in ("gaussian", "orthogonal"):
        return None
    radii = _radii(spec)
    if radii is None:
        if spec.activation != "linear":
            return None
        radii = np.ones(1)  # a linear layer's slope is 1 at any input
    log_chi_DK = _log_chi(spec, radii)
    if log_chi_DK is None:
        return None
    # Row l: the product over the layers after l, one column an example.
    after = np.vstack([np.cumsum(log_chi_DK[::-1], axis=0)[::-1], np.zeros(log_chi_DK.shape[1])])
    top = after.max(axis=1)  # products of hundreds of factors would leave the floats' range
    with np.errstate(under="ignore"):
        return np.asarray(0.5 * (top + np.log(np.mean(np.exp(after - top[:, None]), axis=1))))


def _radii(spec: RunSpec) -> Array | None:
    """|x| of the training examples; None where it is not known in advance."""
    if spec.data != "spiral":
        return None
    start, points = spec.data_options["start_radius"], spec.data_options["points_per_arm"]
    assert isinstance(start, float)
    assert isinstance(points, int)
    return np.linspace(start, 1.0, min(points, max(40, min(1000, _MAX_FACTORS // spec.depth))))


def _log_chi(spec: RunSpec, radii: Array) -> Array | None:
    """The logarithm of each layer's factor on |dL/dh|^2, [D, K], from the stem on; None where it saturates."""
    gain, width = spec.gain, spec.width
    stem_gain = gain if spec.stem_gain is None else spec.stem_gain
    gaussian, skip = spec.init == "gaussian", spec.shortcut == "identity"
    log_f = _log_chi_squared(width) if gaussian and not skip else 0.0
    log_gain = 2.0 * math.log(gain)  # the square of a tiny gain would be 0, and its logarithm none
    if spec.activation == "linear":  # the slope is 1 at any signal, which itself may leave the floats' range
        return np.full((spec.depth, len(radii)), math.log1p(gain**2) if skip else log_gain + log_f)
    q = stem_gain**2 * radii**2 / (2.0 if gaussian else width)
    second = averages_of(spec.activation, q)[1]
    rows: list[Array] = []
    while len(rows) < spec.depth:
        q = gain**2 * second * math.exp(log_f)
        if q.max() > _LARGEST_Q:
            return None
        out, slope = _layer(spec.activation, q.tobytes())
        rows.append(np.log1p(gain**2 * slope) if skip else log_gain + np.log(slope) + log_f)
        if not skip and np.allclose(out, second, rtol=1e-15, atol=0.0):
            rows += [rows[-1]] * (spec.depth - len(rows))  # a fixed point: nothing changes from here on
        second = second + out if skip else out
    return np.array(rows)


@lru_cache(maxsize=1024)
def _layer(activation: str, q: bytes) -> tuple[Array, Array]:
    """(E[phi^2], E[slope^2]) at these variances. Networks that differ in depth alone share their first layers."""
    _, second, slope = averages_of(activation, np.frombuffer(q, dtype=np.float64))
    return second, slope


def _log_chi_squared(width: int) -> float:
    """E ln(X / w) of a chi-squared X of w degrees: psi(w/2) + ln(2/w)."""
    from scipy.special import digamma

    return float(digamma(width / 2.0)) + math.log(2.0 / width)
