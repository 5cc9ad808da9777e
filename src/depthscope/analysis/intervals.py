"""Intervals that hold with few seeds: t, paired t, order statistics, Clopper-Pearson.

Each function returns an `Estimate`. A missing value (None) is left out and counted in the note; where
there can be no interval, the note says why and the values are there to be shown.

**Values that are all equal** have no spread to make a t interval of; a width of 0 would be a
pretence, for few draws of a discrete figure (an accuracy of N examples) are often equal by chance. What
they do have is the interval of their median between order statistics, which holds for any
distribution, discrete ones too: from 6 values on at 95%, it is that one value. Under that: none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np

from depthscope.analysis.finding import Estimate
from depthscope.analysis.notes import joined, note
from depthscope.analysis.rounding import cleaned, same, scale_of_operands


def t_interval(
    values: Sequence[float | None],
    *,
    level: float = 0.95,
    name: str = "mean",
    unit: str = "",
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Mean of independent values with Student's t interval, mean +- t_{n-1} s / sqrt(n).

    Where all values are equal, the interval is that of their median (method `order statistics`), or none.

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
    notes = _left_out(len(values) - len(kept), len(values), "values_left_out")
    found = _t(kept, notes, size=scale_of_operands(kept), level=level, name=name, unit=unit, paired=False)
    if found.low is None or found.high is None:
        return found
    return found.model_copy(update={"low": max(found.low, bounds[0]), "high": min(found.high, bounds[1])})


def bounds_of(metric: str) -> tuple[float, float]:
    """Where the mean of a metric can lie: an accuracy in 0 to 1, a loss above 0, a change of either anywhere.

    >>> bounds_of("train_accuracy"), bounds_of("lesion_accuracy_change")
    ((0.0, 1.0), (-inf, inf))
    """
    if metric.endswith("_change"):
        return -math.inf, math.inf
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
    scale: float = 0.0,
) -> Estimate:
    """Mean of a - b over the seeds that have both, with the t interval of the differences.

    Two arms share a seed's initial tensors, data and batch order, so that what a seed adds to both
    cancels in their difference. Where all differences are equal, the interval is that of the median
    difference (method `order statistics`), or none.

    Args:
        a_by_seed: seed -> value; None, or no entry, where there is none.
        b_by_seed: likewise.
        level: coverage, for normally distributed differences.
        name: what is estimated.
        unit: of the values.
        scale: the largest number that the values were themselves made from, where they are differences. Each
            difference is rounded by this or the values' own scale, the larger of the two (see `rounding`).

    >>> paired_t_interval({0: 1.0, 1: 5.0, 2: 9.0}, {0: 0.0, 1: 3.0, 2: 6.0}).values
    (1.0, 2.0, 3.0)
    """
    seeds = sorted({*a_by_seed, *b_by_seed})
    columns = [(a_by_seed.get(seed), b_by_seed.get(seed)) for seed in seeds]
    pairs = [(float(a), float(b)) for a, b in columns if a is not None and b is not None]
    # One scale for all pairs: equal differences must round to the same number.
    size = max(scale, scale_of_operands(value for pair in pairs for value in pair))
    differences = [cleaned(a - b, size) for a, b in pairs]
    notes = _left_out(len(seeds) - len(differences), len(seeds), "pairs_left_out")
    return _t(differences, notes, size=size, level=level, name=name, unit=unit, paired=True)


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
    notes = _left_out(len(values) - n, len(values), "values_left_out")

    def finite(value: float | None, what: str) -> float | None:
        if value is None or np.isfinite(value):
            return value
        notes.append(note(what))
        return None

    middle, bounds = None, median_ends(kept, level)
    if n == 0:
        notes.insert(0, note("no_value"))
    else:
        below, above = kept[(n - 1) // 2], kept[n // 2]
        middle = below if below == above else (below + above) / 2  # inf - inf has no mean
        equal = below == above == kept[0] == kept[-1] and math.isfinite(below)
        if n == 1:
            notes.insert(0, note("one_value"))
        elif equal:
            notes.insert(0, _equal(n, level, "equal_values"))
        elif bounds is None:
            notes.insert(0, note("few", n=n, level=100 * level))
    low, high = bounds or (None, None)
    return Estimate(
        name=name,
        value=finite(middle, "median_infinite"),
        low=finite(low, "low_infinite"),
        high=finite(high, "high_infinite"),
        n=n,
        unit=unit,
        level=level,
        method=None if bounds is None else "order statistics",
        values=tuple(float(value) for value in values if value is not None and np.isfinite(value)),
        note=joined(notes),
    )


def median_ends(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """The two order statistics of `median_interval`, which may be infinite; None where there is no interval.

    That values are equal gives them no interval which their number does not.

    >>> median_ends([0.5] * 5), median_ends([0.5] * 6)
    (None, (0.5, 0.5))
    """
    kept = sorted(values)
    rank = order_rank(len(kept), level)
    return None if rank is None else (kept[rank - 1], kept[len(kept) - rank])


def order_rank(n: int, level: float = 0.95) -> int | None:
    """The largest k such that [x_(k), x_(n+1-k)] covers the median with probability `level`, or None.

    >>> [order_rank(n) for n in (5, 6, 8, 9, 10, 20)]
    [None, 1, 1, 2, 2, 6]
    """
    # Of the 2^n equally likely ways in which n values lie about the median: with exactly and at most `rank` above it.
    rank, exactly, at_most = 0, 1, 1
    while 1.0 - 2.0 * (at_most / 2**n) >= level:
        rank += 1
        exactly = exactly * (n - rank + 1) // rank
        at_most += exactly
    return rank or None


def least_equal(level: float = 0.95) -> int:
    """How many values that are all equal have an interval, that of their median, at this level.

    >>> least_equal(), least_equal(0.975)
    (6, 7)
    """
    return next(n for n in count(1) if order_rank(n, level) is not None)


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
        return Estimate(name=name, value=None, n=0, unit=unit, level=level, note=note("no_value"))
    from scipy.stats import beta

    tail = (1.0 - level) / 2.0
    low = 0.0 if k == 0 else float(beta.ppf(tail, k, n - k + 1))
    high = 1.0 if k == n else float(beta.ppf(1.0 - tail, k + 1, n - k))
    return Estimate(name=name, value=k / n, low=low, high=high, n=n, unit=unit, level=level, method="Clopper-Pearson")


def has_no_spread(estimate: Estimate) -> bool:
    """Whether two values or more are behind the estimate and all are exactly equal."""
    return len(estimate.values) > 1 and len(estimate.values) == estimate.n and len(set(estimate.values)) == 1


def _t(
    kept: list[float], notes: list[str], *, size: float, level: float, name: str, unit: str, paired: bool
) -> Estimate:
    """`size` is the largest number that the values were made from: the scale of their rounding."""
    from scipy.special import stdtrit  # `scipy.stats.t.ppf` without loading all of scipy.stats, half a second

    n = len(kept)
    low = high = method = None
    if n and same(max(kept), min(kept), size):
        kept = [kept[0]] * n
    # The first value plus the mean of what lies above it: equal values have exactly their own mean.
    value = kept[0] + float(np.mean(np.array(kept) - kept[0])) if kept else None
    if n == 0:
        notes.insert(0, note("no_value"))
    elif n == 1:
        notes.insert(0, note("one_pair" if paired else "one_value"))
    elif len(set(kept)) == 1:
        notes.insert(0, _equal(n, level, "equal_pairs" if paired else "equal_values"))
        if order_rank(n, level) is not None:
            low, high, method = value, value, "order statistics"
    else:
        assert value is not None
        half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * float(np.std(kept, ddof=1)) / float(np.sqrt(n))
        low, high, method = value - half, value + half, "paired t" if paired else "t"
    return Estimate(
        name=name,
        value=value,
        low=low,
        high=high,
        n=n,
        unit=unit,
        level=level,
        method=method,
        values=tuple(kept),
        note=joined(notes),
    )


def _equal(n: int, level: float, key: str) -> str:
    """What to say of n equal values: that they have the median's interval, or that they are too few for it."""
    return note("equal_few", n=n, level=100 * level) if order_rank(n, level) is None else note(key, n=n)


def _left_out(count: int, total: int, key: str) -> list[str]:
    return [note(key, k=count, n=total)] if count else []
