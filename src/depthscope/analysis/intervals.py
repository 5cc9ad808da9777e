"""Intervals that hold with few seeds: t, paired t, order statistics, Clopper-Pearson.

Each function returns an `Estimate`. A missing value (None) is left out and counted in the note; where
there can be no interval, the note says why and the values are there to be shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from depthscope.analysis.finding import Estimate

NO_SPREAD = "no interval: all {n} values are equal"
ONE_VALUE = "no interval: a single value"
NO_VALUE = "no value"
ONE_PAIR = "no interval: a single pair"


def t_interval(
    values: Sequence[float | None],
    *,
    level: float = 0.95,
    name: str = "mean",
    unit: str = "",
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Mean of independent values with Student's t interval, mean +- t_{n-1} s / sqrt(n).

    Args:
        values: one a seed; None where a run gave none.
        level: coverage, for normally distributed values.
        name: what is estimated.
        unit: of the values.
        bounds: where a mean can lie at all, such as (0, 1) for an accuracy. The interval is cut to them,
            which costs no coverage.

    >>> found = t_interval([1.0, 2.0, 3.0])
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (2.0, -0.4841, 4.4841)
    """
    kept = [float(value) for value in values if value is not None]
    notes = _left_out(len(values) - len(kept), len(values), "values")
    found = _t(kept, notes, level=level, name=name, unit=unit, method="t", single=ONE_VALUE)
    if found.low is None or found.high is None:
        return found
    return found.model_copy(update={"low": max(found.low, bounds[0]), "high": min(found.high, bounds[1])})


def bounds_of(metric: str) -> tuple[float, float]:
    """Where the mean of a metric can lie: an accuracy in 0 to 1, a loss above 0."""
    if "accuracy" in metric:
        return 0.0, 1.0
    return (0.0, math.inf) if "loss" in metric else (-math.inf, math.inf)


def paired_t_interval(
    a_by_seed: Mapping[int, float | None],
    b_by_seed: Mapping[int, float | None],
    *,
    level: float = 0.95,
    name: str = "mean difference",
    unit: str = "",
) -> Estimate:
    """Mean of a - b over the seeds that have both, with the t interval of the differences.

    Two arms share a seed's initial tensors, data and batch order, so that what a seed adds to both
    cancels in their difference.

    Args:
        a_by_seed: seed -> value; None, or no entry, where there is none.
        b_by_seed: likewise.
        level: coverage, for normally distributed differences.
        name: what is estimated.
        unit: of the values.

    >>> paired_t_interval({0: 1.0, 1: 5.0, 2: 9.0}, {0: 0.0, 1: 3.0, 2: 6.0}).values
    (1.0, 2.0, 3.0)
    """
    seeds = sorted({*a_by_seed, *b_by_seed})
    differences = []
    for seed in seeds:
        a, b = a_by_seed.get(seed), b_by_seed.get(seed)
        if a is not None and b is not None:
            differences.append(float(a) - float(b))
    notes = _left_out(len(seeds) - len(differences), len(seeds), "pairs")
    return _t(differences, notes, level=level, name=name, unit=unit, method="paired t", single=ONE_PAIR)


def median_interval(
    values: Sequence[float | None], *, level: float = 0.95, name: str = "median", unit: str = ""
) -> Estimate:
    """Median with the interval between two order statistics, of coverage `level` or more for any distribution.

    The number of values under the median is Binomial(n, 1/2), so [x_(k), x_(n+1-k)] covers it with
    probability 1 - 2 P(B < k); k is the largest that keeps this at or above `level`. At 95% there is
    none under 6 values.

    Args:
        values: one a seed; None where a run gave none. An infinite value (a run that went wrong without
            bound) takes its place in the order; an end or a median that would be infinite becomes None,
            and the note says so.
        level: least coverage.
        name: what is estimated.
        unit: of the values.

    >>> found = median_interval([float(value) for value in range(1, 11)])
    >>> found.value, found.low, found.high
    (5.5, 2.0, 9.0)
    """
    kept = sorted(float(value) for value in values if value is not None)
    n = len(kept)
    notes = _left_out(len(values) - n, len(values), "values")

    def finite(value: float | None, what: str) -> float | None:
        if value is None or np.isfinite(value):
            return value
        notes.append(f"the {what} lies among runs without a finite value")
        return None

    middle, bounds, method = None, None, None
    if n == 0:
        notes.insert(0, NO_VALUE)
    else:
        below, above = kept[(n - 1) // 2], kept[n // 2]
        middle = below if below == above else (below + above) / 2  # inf - inf has no mean
        bounds = median_ends(kept, level)
        if n == 1:
            notes.insert(0, ONE_VALUE)
        elif kept[0] == kept[-1]:
            notes.insert(0, NO_SPREAD.format(n=n))
            bounds = None
        elif bounds is None:
            notes.insert(0, f"no interval: {n} values cannot give {100 * level:g}% coverage of a median")
        else:
            method = "order statistics"
    low, high = bounds or (None, None)
    return Estimate(
        name=name,
        value=finite(middle, "median"),
        low=finite(low, "lower end"),
        high=finite(high, "upper end"),
        n=n,
        unit=unit,
        level=level,
        method=method,
        values=tuple(float(value) for value in values if value is not None and np.isfinite(value)),
        note=_joined(notes),
    )


def median_ends(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """The two order statistics of `median_interval`, which may be infinite; None where there is no interval.

    Two or more values that are all equal count as an interval of no width: they decide a claim.
    """
    kept = sorted(values)
    if len(kept) > 1 and kept[0] == kept[-1]:
        return kept[0], kept[-1]
    rank = order_rank(len(kept), level)
    return None if rank is None else (kept[rank - 1], kept[len(kept) - rank])


def order_rank(n: int, level: float = 0.95) -> int | None:
    """The largest k such that [x_(k), x_(n+1-k)] covers the median with probability `level`, or None.

    >>> [order_rank(n) for n in (5, 6, 8, 9, 10, 20)]
    [None, 1, 1, 2, 2, 6]
    """
    from scipy.stats import binom

    rank = 0
    while 1.0 - 2.0 * float(binom.cdf(rank, n, 0.5)) >= level:
        rank += 1
    return rank or None


def proportion_interval(
    k: int, n: int, *, level: float = 0.95, name: str = "fraction", unit: str = "fraction"
) -> Estimate:
    """The fraction k / n with the exact (Clopper-Pearson) interval, which holds for independent trials.

    The ends are Beta quantiles: low = B(a/2; k, n-k+1), high = B(1-a/2; k+1, n-k), a = 1 - level.

    Raises:
        ValueError: k outside 0 to n.

    >>> found = proportion_interval(10, 10)
    >>> found.value, round(found.low, 4), found.high
    (1.0, 0.6915, 1.0)
    """
    if not 0 <= k <= n:
        raise ValueError(f"k: wanted an integer from 0 to {n}, got {k}.")
    if n == 0:
        return Estimate(name=name, value=None, n=0, unit=unit, level=level, note=NO_VALUE)
    from scipy.stats import beta

    tail = (1.0 - level) / 2.0
    low = 0.0 if k == 0 else float(beta.ppf(tail, k, n - k + 1))
    high = 1.0 if k == n else float(beta.ppf(1.0 - tail, k + 1, n - k))
    return Estimate(name=name, value=k / n, low=low, high=high, n=n, unit=unit, level=level, method="Clopper-Pearson")


def has_no_spread(estimate: Estimate) -> bool:
    """Whether two values or more are behind the estimate and all are exactly equal."""
    return len(estimate.values) > 1 and len(estimate.values) == estimate.n and len(set(estimate.values)) == 1


def _t(
    kept: list[float], notes: list[str], *, level: float, name: str, unit: str, method: str, single: str
) -> Estimate:
    from scipy.stats import t

    n = len(kept)
    low = high = None
    # The first value plus the mean of what lies above it: equal values have exactly their own mean.
    value = kept[0] + float(np.mean(np.array(kept) - kept[0])) if kept else None
    if n == 0:
        notes.insert(0, NO_VALUE)
    elif n == 1:
        notes.insert(0, single)
    elif len(set(kept)) == 1:
        notes.insert(0, NO_SPREAD.format(n=n))
    else:
        assert value is not None
        half = float(t.ppf(0.5 + level / 2.0, n - 1)) * float(np.std(kept, ddof=1)) / float(np.sqrt(n))
        low, high = value - half, value + half
    return Estimate(
        name=name,
        value=value,
        low=low,
        high=high,
        n=n,
        unit=unit,
        level=level,
        method=None if low is None else method,
        values=tuple(kept),
        note=_joined(notes),
    )


def _left_out(count: int, total: int, what: str) -> list[str]:
    return [f"{count} of {total} {what} left out (no value)"] if count else []


def _joined(notes: list[str]) -> str | None:
    return "; ".join(notes) or None
