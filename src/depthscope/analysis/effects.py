"""Effect sizes of paired differences: Hedges' g_z, with an interval by inversion of the noncentral t.

For differences D_1 .. D_n with mean m and standard deviation s,

    d_z = m / s,    g_z = J(n - 1) d_z,    J(v) = Gamma(v/2) / (sqrt(v/2) Gamma((v-1)/2)).

J takes out the bias of d_z in small samples (at n = 3 it is .564: d_z is nearly twice too large on
average). Source: Hedges 1981, Journal of Educational Statistics 6, equations 5 and 6e.

**The interval** is that of the population's mean over its standard deviation, delta. t = sqrt(n) d_z follows a
noncentral t of n - 1 degrees and noncentrality sqrt(n) delta, whose distribution falls as delta rises; so the
ends are the two deltas at which the observed t lies at its upper and at its lower tail. That is exact for
normal differences and is not multiplied by J, which would cost it its coverage. Source:
Goulet-Pelletier and Cousineau 2018, The Quantitative Methods for Psychology 14(4), doi 10.20982/tqmp.14.4.p242.

**What it is not.** The unit of g_z is the spread of the differences between seeds, which pairing makes small:
it says how regular a change is, not how large. It compares with no d between independent groups. Differences
without a spread have no effect size.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from depthscope.analysis.finding import EffectSize, Estimate
from depthscope.analysis.notes import note

Array = NDArray[np.float64]

LEAST = 3
"""Pairs under which there is no effect size: with two, d_z has no expectation that could be corrected."""


def with_effect(estimate: Estimate) -> Estimate:
    """The estimate of a mean paired difference with its effect size, or with the reason why it has none.

    An estimate without any pair stays as it is.
    """
    if estimate.n == 0:
        return estimate
    return estimate.model_copy(update={"effect": hedges_g(estimate.values, level=estimate.level)})


def hedges_g(differences: tuple[float, ...], *, level: float = 0.95) -> EffectSize:
    """Hedges' g_z of paired differences with its interval.

    Args:
        differences: one a pair, cleaned of rounding (see `rounding`): equal ones are exactly equal.
        level: coverage of the interval, for normally distributed differences.

    >>> found = hedges_g((1.0, 2.0, 3.0))
    >>> round(found.value, 4)
    1.1284
    >>> hedges_g((0.5, 0.5, 0.5)).note
    'no effect size: the differences have no spread'
    """
    n = len(differences)
    if n < LEAST or len(set(differences)) == 1:
        return EffectSize(level=level, note=note("effect_few" if n < LEAST else "effect_no_spread"))
    d = float(np.mean(differences)) / float(np.std(differences, ddof=1))
    low, high = noncentrality_interval(math.sqrt(n) * d, n - 1, level=level)
    return EffectSize(value=correction(n - 1) * d, low=low / math.sqrt(n), high=high / math.sqrt(n), level=level)


def correction(df: int) -> float:
    """Hedges' J: the expectation of J(df) d is the population's effect.

    >>> round(correction(2), 4), round(correction(9), 4)
    (0.5642, 0.9139)
    """
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def noncentrality_interval(t: float, df: int, *, level: float = 0.95) -> tuple[float, float]:
    """The noncentralities between which an observed t leaves (1 - level) / 2 in either tail.

    Args:
        t: the observed statistic.
        df: its degrees of freedom, at least 1.
        level: coverage.
    """
    if t < 0:
        low, high = noncentrality_interval(-t, df, level=level)
        return -high, -low
    tail = (1.0 - level) / 2.0
    # P(T <= t) lies between 1 and 0 at these: s = chi / sqrt(df) leaves them with probability 1e-12 only.
    s_low, s_high = np.sqrt(_chi_squared(np.array([1e-12, 1 - 1e-12]), df) / df)
    bracket = t * float(s_low) - 10.0, t * float(s_high) + 10.0
    return _end(t, df, 1.0 - tail, bracket), _end(t, df, tail, bracket)


def _end(t: float, df: int, at: float, bracket: tuple[float, float]) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda delta: _cdf(t, df, delta) - at, *bracket, xtol=1e-10, rtol=1e-12))


def _chi_squared(at: Array, df: int) -> Array:
    """Quantiles of chi^2: `scipy.stats.chi2.ppf` without loading all of scipy.stats."""
    from scipy.special import gammaincinv

    return np.asarray(2.0 * gammaincinv(df / 2.0, at))


def _cdf(t: float, df: int, delta: float) -> float:
    """P(T <= t) of a noncentral t at t >= 0, within about 1e-10.

    T = (Z + delta) / s with s = chi_df / sqrt(df). So the probability is the mean over s of Phi(t s - delta), by
    Gauss-Legendre on panels that are narrow where Phi is steep (s near delta / t, on the scale 1 / t) and where the
    density of s lies. Library routines lose this at the t of a thousand that three equal runs can give.
    """
    from scipy.special import ndtr

    s_panel = np.sqrt(_chi_squared(_TAILS, df) / df)
    if t > 0:
        s_panel = np.concatenate([s_panel, (delta + _STEPS) / t])
    edges = np.unique(np.clip(s_panel, s_panel[0], s_panel[len(_TAILS) - 1]))
    node, weight = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges) / 2
    s = ((edges[1:] + edges[:-1]) / 2)[:, None] + half[:, None] * node
    log_density = (
        math.log(2.0) + (df / 2) * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * np.log(s) - df * s * s / 2
    )
    return float(np.sum(half[:, None] * weight * np.exp(log_density) * ndtr(t * s - delta)))


_TAILS: Array = np.array(
    [1e-14, 1e-10, 1e-7, 1e-5, 1e-3, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 0.999, 1 - 1e-5, 1 - 1e-7, 1 - 1e-12]
)
_STEPS: Array = np.array([-9.0, -6.0, -4.0, -2.5, -1.2, 0.0, 1.2, 2.5, 4.0, 6.0, 9.0])
