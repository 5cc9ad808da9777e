"""All pairs of several arms compared at once, seed by seed: which are surely better than which.

**The problem.** Eighteen arms make 153 pairs, and three seeds leave each paired difference two degrees of freedom. A t
interval of its own, corrected for 153 chances, is 32 standard deviations wide on either side: right, and blind.
Pooling one variance over all arms (analysis of variance and Tukey's range) is sharp, and wrong here: a network that
sometimes collapses scatters ten or a hundred times as much as one that trains, and the pooled rule then calls equal
arms different in several times the promised 5% of experiments.

**What is done.** The variances are moderated (Smyth 2004, Statistical Applications in Genetics and Molecular Biology
3): the variance of the differences of each pair, s^2 with d = n - 1 degrees, is taken as drawn from a scaled inverse
chi-square of d0 degrees around s0^2, both estimated from the variances of all pairs by the mean and the variance of
their logarithms, and

    s~^2 = max(s^2, (d0 s0^2 + d s^2) / (d0 + d)),    t = sqrt(n) mean / s~ on d0 + d degrees of freedom.

Pairs that scatter alike lend one another degrees of freedom; where scatter differs, d0 falls to 0 and each pair stands
alone. Two restraints keep what that promises from few arms: d0 is at most (arms - 2) / 4 (the pairs' variances are
made from the arms', and are not independent; this was the most that kept 5% in all simulations), and no variance is
made smaller.

**Zero variances** (differences that are equal on all seeds, as of two networks that fit everything) are few draws of a
discrete figure: they enter no estimate of the prior, and get at least the geometric mean of the other pairs' variances.
Without three pairs that have a variance, they decide nothing.

**The family.** For each pair "a is no better than b" and "b is no better than a" are hypotheses, 2m in all; Holm's
procedure over their one-sided p values calls any of the true ones false in at most 5% of experiments, the direction
included. That it holds with moderated variances is no theorem; `docs/statistics.md` has the simulated rates, for equal
arms of equal and of unequal scatter, and of other distributions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from depthscope.analysis.intervals import has_no_spread, paired_t_interval

Array = NDArray[np.float64]
Columns = Mapping[str, Mapping[int, float | None]]
"""arm -> seed -> figure, None where a run gave none."""

ARMS_A_DEGREE = 4
"""Arms, beyond two, that the prior must have for each degree of freedom that it lends."""
LEAST_PAIRS = 3
"""Pairs with a variance, under which there is no prior."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What the variances of all pairs say of any one of them.

    Attributes:
        df: d0, degrees of freedom that it is worth; 0 without a prior.
        variance: s0^2.
        typical: geometric mean of the pairs' variances; None without a prior.
    """

    df: float
    variance: float
    typical: float | None


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """All pairs, tried together.

    Attributes:
        above: (a, b) of the pairs in which the figure of a is surely above that of b.
        num_pairs: pairs that were tried.
        prior: of their variances.
    """

    above: frozenset[tuple[str, str]]
    num_pairs: int
    prior: Prior


def compare_all(columns: Columns, *, level: float = 0.95) -> Comparisons:
    """Which figures are surely above which, over all pairs of arms, with the family's error at most 1 - level.

    Args:
        columns: the figures; a pair of arms is compared over the seeds that both have, if there are two or more.
        level: probability that no pair is called different wrongly, for normally distributed differences.

    >>> near = {0: 0.90, 1: 0.91, 2: 0.92}
    >>> found = compare_all({"a": near, "b": {0: 0.91, 1: 0.90, 2: 0.92}, "c": {0: 0.40, 1: 0.42, 2: 0.41}})
    >>> sorted(found.above)
    [('a', 'c'), ('b', 'c')]
    """
    from scipy.special import stdtr  # `scipy.stats.t` without loading all of scipy.stats

    pairs, means, variances, dfs = [], [], [], []
    for a, b in combinations(columns, 2):
        made = paired_t_interval(columns[a], columns[b])
        if made.value is not None and made.n > 1:
            pairs.append((a, b))
            means.append(made.value)
            # Of equal differences, whose mean may be rounded, the sum of squares need not come out as 0.
            variances.append(0.0 if has_no_spread(made) else float(np.var(made.values, ddof=1)))
            dfs.append(made.n - 1)
    s2, df = np.array(variances), np.array(dfs, dtype=np.float64)
    prior = prior_of(s2, df, num_arms=len(columns))
    p_values: dict[tuple[str, str], float] = {}
    for (a, b), mean, variance, own in zip(pairs, means, moderated(s2, df, prior), df, strict=True):
        if variance > 0:
            p = float(stdtr(prior.df + own, -math.sqrt((own + 1) / variance) * mean))
            p_values |= {(a, b): p, (b, a): 1.0 - p}
    return Comparisons(above=_holm(p_values, 2 * len(pairs), 1.0 - level), num_pairs=len(pairs), prior=prior)


def prior_of(s2: Array, df: Array, *, num_arms: int) -> Prior:
    """The prior of the pairs' variances, by the moments of their logarithms.

    log s^2 - digamma(d/2) + log(d/2) has the mean log s0^2 - digamma(d0/2) + log(d0/2) and the variance
    trigamma(d/2) + trigamma(d0/2) (Smyth 2004, section 6.2).

    Args:
        s2: variance of each pair's differences, [P].
        df: its degrees of freedom, [P].
        num_arms: arms that the pairs are made of.
    """
    from scipy.special import digamma, polygamma

    has = s2 > 0
    if has.sum() < LEAST_PAIRS:
        return Prior(df=0.0, variance=0.0, typical=None)
    half = df[has] / 2
    centred = np.log(s2[has]) - digamma(half) + np.log(half)
    mean, excess = float(centred.mean()), float(centred.var(ddof=1) - polygamma(1, half).mean())
    typical = math.exp(float(np.log(s2[has]).mean()))
    most = (num_arms - 2) / ARMS_A_DEGREE
    if excess <= 0:  # they scatter no more than equal variances would
        return Prior(df=most, variance=math.exp(mean), typical=typical)
    d0 = 2 * inverse_trigamma(excess)
    variance = math.exp(mean + float(digamma(d0 / 2)) - math.log(d0 / 2))
    return Prior(df=min(d0, most), variance=variance, typical=typical)


def moderated(s2: Array, df: Array, prior: Prior) -> Array:
    """The variances with what the prior lends, [P]; 0 where nothing is known of one."""
    lent = np.maximum(s2, (prior.df * prior.variance + df * s2) / (prior.df + df))
    return np.where(s2 > 0, lent, 0.0 if prior.typical is None else np.maximum(lent, prior.typical))


def inverse_trigamma(value: float) -> float:
    """The x at which trigamma(x) is this positive value, by bisection in log x; trigamma falls with x.

    >>> from math import pi
    >>> round(inverse_trigamma(pi**2 / 6), 9)
    1.0
    """
    from scipy.optimize import brentq
    from scipy.special import polygamma

    # 1/x < trigamma(x) < 1/x + 1/x^2 bounds the root between 1/value and the positive root of the upper bound.
    low = math.log(1.0 / value) - 1e-9
    high = math.log((1.0 + math.sqrt(1.0 + 4.0 * value)) / (2.0 * value)) + 1e-9
    return math.exp(brentq(lambda at: math.log(float(polygamma(1, math.exp(at)))) - math.log(value), low, high))


def _holm(p_values: Mapping[tuple[str, str], float], num: int, error: float) -> frozenset[tuple[str, str]]:
    """The hypotheses that Holm's procedure rejects; of `num` in all, those without a p value are never rejected."""
    rejected: list[tuple[str, str]] = []
    order: Sequence[tuple[str, str]] = sorted(p_values, key=lambda pair: p_values[pair])
    for at, pair in enumerate(order):
        if p_values[pair] > error / (num - at):
            break
        rejected.append(pair)
    return frozenset(rejected)
