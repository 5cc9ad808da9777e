"""Intervals against textbook numbers, scipy's own tests, and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import (
    bounds_of,
    has_no_spread,
    median_ends,
    median_interval,
    order_rank,
    paired_t_interval,
    proportion_interval,
    t_interval,
)

# Student's own data (Biometrika 1908): additional hours of sleep by two drugs on ten patients.
# The paired difference has mean 1.58, standard deviation 1.23 and the 95% interval 0.70 to 2.46.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def by_seed(values: list[float]) -> dict[int, float | None]:
    return dict(enumerate(values))


def test_paired_t_on_students_sleep_data() -> None:
    found = paired_t_interval(by_seed(DRUG_2), by_seed(DRUG_1))
    assert found.value == pytest.approx(1.58)
    assert (found.low, found.high) == pytest.approx((0.7001, 2.4599), abs=1e-4)
    assert (found.n, found.method, found.level) == (10, "paired t", 0.95)


def test_t_by_hand_with_the_tables_quantile() -> None:
    # t_{2, .975} = 4.3027; mean 10, s 2, n 3: half width 4.3027 * 2 / sqrt(3) = 4.9683.
    found = t_interval([8.0, 10.0, 12.0], name="x", unit="nats")
    assert (found.value, found.low, found.high) == pytest.approx((10.0, 5.0317, 14.9683), abs=1e-4)
    assert (found.name, found.unit, found.values) == ("x", "nats", (8.0, 10.0, 12.0))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_t_agrees_with_scipy(level: float) -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, size=7)
    found = t_interval(list(values), level=level)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((float(expected.low), float(expected.high)), rel=1e-12)


def test_pairing_is_by_seed_and_not_by_position_or_pooled() -> None:
    # The seeds differ by far more than the arms; only pairs see the constant gain of about 1.
    a = {2: 31.1, 0: 11.0, 1: 20.9}
    b = {0: 10.0, 1: 20.0, 2: 30.0}
    found = paired_t_interval(a, b)
    assert found.values == pytest.approx((1.0, 0.9, 1.1))
    assert found.low is not None
    assert found.low > 0.7
    unpaired = stats.ttest_ind(list(a.values()), list(b.values())).confidence_interval()
    assert float(unpaired.low) < 0 < float(unpaired.high)


def test_dropped_pairs_are_counted() -> None:
    found = paired_t_interval({0: 1.0, 1: None, 2: 3.5, 3: 1.0}, {0: 0.0, 1: 0.0, 2: 1.0})
    assert (found.n, found.values) == (2, (1.0, 2.5))
    assert found.note == "2 of 4 pairs left out (no value)"


@pytest.mark.parametrize("interval", [t_interval, median_interval])
def test_what_has_no_interval_says_why(interval: Callable[[list[float | None]], Estimate]) -> None:
    one, equal, none = interval([2.0]), interval([0.1] * 5), interval([None, None])
    assert (one.value, one.low, one.high, one.n) == (2.0, None, None, 1)
    assert "single value" in (one.note or "")
    assert (equal.value, equal.low, equal.n, equal.values) == (0.1, None, 5, (0.1,) * 5)
    assert "no interval: all 5 values are equal" in (equal.note or "")
    assert has_no_spread(equal)
    assert not has_no_spread(one)
    assert (none.value, none.n) == (None, 0)
    assert none.note == "no value; 2 of 2 values left out (no value)"
    assert "1 of 3 values left out (no value)" in (interval([1.0, None, 2.0]).note or "")


@pytest.mark.parametrize("interval", [t_interval, median_interval])
@pytest.mark.parametrize(("level", "least"), [(0.95, 6), (0.975, 7), (0.99, 8)])
def test_equal_values_have_the_medians_interval(interval: Any, level: float, least: int) -> None:
    """2^(1-n) is the chance that all values lie on one side of the median: .031 at 6, .0156 at 7, .0078 at 8."""
    few, enough = interval([0.1] * (least - 1), level=level), interval([0.1] * least, level=level)
    assert (few.low, few.high, few.method) == (None, None, None)
    assert f"too few for {100 * level:g}% coverage of a median" in few.note
    assert (enough.value, enough.low, enough.high, enough.method) == (0.1, 0.1, 0.1, "order statistics")
    assert enough.note == f"no interval: all {least} values are equal, and enough to decide by their median"
    assert has_no_spread(enough)


def test_discrete_values_decide_wrongly_as_rarely_as_promised() -> None:
    """A figure that is 0 four times of five, with mean .2 and median 0: equal draws are common.

    An interval of width 0 at n = 2 would miss the mean in .68 of all studies and claim to be sure.
    """
    rng = np.random.default_rng(5)
    for n in (2, 5, 6):
        draws = rng.binomial(1, 0.2, size=(600, n)).astype(float)
        equal = [found for row in draws if (found := t_interval(list(row))) and has_no_spread(found)]
        assert equal
        assert all((found.low is None) == (n < 6) for found in equal)
        if n == 6:  # what is left speaks of the median, and misses it when all six lie on the rare side
            missed = sum(found.low != 0.0 for found in equal)
            assert missed / 600 <= 0.05


def test_an_interval_is_cut_to_where_a_mean_can_lie() -> None:
    values: list[float | None] = [1.0, 1.0, 0.9]
    whole, cut = t_interval(values), t_interval(values, bounds=bounds_of("train_accuracy"))
    assert whole.high is not None
    assert whole.high > 1.0
    assert (cut.low, cut.high) == (whole.low, 1.0)
    assert bounds_of("test_loss") == (0.0, math.inf)
    assert bounds_of("dh_factor_first") == (-math.inf, math.inf)


def test_one_pair_and_equal_differences() -> None:
    assert "single pair" in (paired_t_interval({0: 1.0}, {0: 0.5}).note or "")
    equal = paired_t_interval({0: 1.0, 1: 2.0}, {0: 0.5, 1: 1.5})
    assert (equal.value, equal.low, has_no_spread(equal)) == (0.5, None, True)


@pytest.mark.parametrize(
    ("n", "rank"), [(2, None), (5, None), (6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10)]
)
def test_ranks_of_the_sign_test(n: int, rank: int | None) -> None:
    """Table values (Conover, Practical Nonparametric Statistics; k - 1 = critical value of the sign test)."""
    assert order_rank(n) == rank
    if rank is not None:
        assert 1 - 2 * float(stats.binom.cdf(rank - 1, n, 0.5)) >= 0.95
        assert 1 - 2 * float(stats.binom.cdf(rank, n, 0.5)) < 0.95


def test_median_by_order_statistics() -> None:
    found = median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 6.0])
    assert (found.value, found.low, found.high, found.method) == (3.5, 1.0, 6.0, "order statistics")
    assert found.values == (5.0, 1.0, 4.0, 2.0, 3.0, 6.0)  # by seed, not sorted
    few = median_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (few.value, few.low) == (3.0, None)
    assert "5 values cannot give 95%" in (few.note or "")


def test_median_among_runs_that_went_wrong() -> None:
    found = median_interval([-math.inf, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert found.value == pytest.approx(0.65)
    assert (found.low, found.high) == (None, 0.9)
    assert found.values == (0.5, 0.6, 0.7, 0.8, 0.9)
    assert "lower end" in (found.note or "")
    assert median_ends([-math.inf, 0.5, 0.6, 0.7, 0.8, 0.9]) == (-math.inf, 0.9)
    lost = median_interval([-math.inf] * 3)
    assert (lost.value, lost.low, lost.n) == (None, None, 3)
    assert not has_no_spread(lost)


def test_proportions_against_tables_and_scipy() -> None:
    # The rule of three's exact form: 10 of 10 has the lower end .025^(1/10) = .6915.
    full = proportion_interval(10, 10)
    assert (full.low, full.high) == pytest.approx((0.025 ** (1 / 10), 1.0))
    none = proportion_interval(0, 10)
    assert (none.low, none.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)))
    for k, n in ((3, 10), (15, 40), (1, 2)):
        exact = stats.binomtest(k, n).proportion_ci(method="exact")
        found = proportion_interval(k, n)
        assert (found.low, found.high) == pytest.approx((float(exact.low), float(exact.high)))
    assert proportion_interval(0, 0).value is None
    with pytest.raises(ValueError, match="from 0 to 3"):
        proportion_interval(4, 3)


@pytest.mark.parametrize("n", [3, 5])
def test_calibration_of_the_paired_t(n: int) -> None:
    """4,000 draws: seeds that scatter tenfold more than the arms differ; the truth is a difference of 1."""
    rng = np.random.default_rng(20260101 + n)
    draws = 4_000
    seeds = rng.normal(0.0, 10.0, size=(draws, n))
    a = seeds + 1.0 + rng.normal(size=(draws, n))
    b = seeds + rng.normal(size=(draws, n))
    covered = 0
    for left, right in zip(a, b, strict=True):
        found = paired_t_interval(by_seed(list(left)), by_seed(list(right)))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert 0.94 <= covered / draws <= 0.96


def test_calibration_of_the_median_holds_for_a_skewed_distribution() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for values in rng.exponential(size=(1_000, 10)):
        low, high = median_ends(list(values)) or (math.nan, math.nan)
        covered += low <= math.log(2.0) <= high
    assert covered / 1_000 >= 0.96  # exactly .9785 in the long run; scipy's binomial says so
