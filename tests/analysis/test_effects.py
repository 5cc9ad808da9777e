"""Effect sizes against closed forms, scipy's noncentral t by root finding, and their own distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from depthscope.analysis.effects import correction, hedges_g, noncentrality_interval, with_effect
from depthscope.analysis.finding import Finding
from depthscope.analysis.intervals import paired_t_interval
from depthscope.study.claims import DifferenceClaim, Select

# Student's sleep data (1908): ten paired differences of mean 1.58 and standard deviation 1.2300.
SLEEP = (1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4)


def by_scipy(t: float, df: int, level: float) -> tuple[float, float]:
    tail = (1 - level) / 2

    def end(at: float) -> float:
        return float(optimize.brentq(lambda nc: stats.nct.cdf(t, df, nc) - at, -5.0, 6.0 + 2.5 * t))

    return end(1 - tail), end(tail)


def test_g_on_students_sleep_data() -> None:
    found = hedges_g(SLEEP)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    d = 1.58 / float(np.std(SLEEP, ddof=1))
    assert d == pytest.approx(1.2846, abs=1e-4)
    assert found.value == pytest.approx(0.9139 * d, abs=1e-4)  # J(9) of Hedges' table 1: .9139
    low, high = by_scipy(math.sqrt(10) * d, 9, 0.95)
    assert (found.low, found.high) == pytest.approx((low / math.sqrt(10), high / math.sqrt(10)), abs=1e-7)
    assert found.low < found.value < found.high


def test_the_correction_in_closed_form() -> None:
    # J(2) = Gamma(1) / (1 Gamma(1/2)); J(4) = Gamma(2) / (sqrt(2) Gamma(3/2)) = sqrt(2 / pi).
    assert correction(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-14)
    assert correction(4) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-14)
    for df in (3, 9, 40):
        assert correction(df) == pytest.approx(special.poch((df - 1) / 2, 0.5) / math.sqrt(df / 2), rel=1e-12)
        assert correction(df) == pytest.approx(1 - 3 / (4 * df - 1), abs=0.7 / df**2)  # the usual approximation


@pytest.mark.parametrize("t", [0.0, 0.4, 2.0, 7.5, -3.0])
@pytest.mark.parametrize(("df", "level"), [(2, 0.95), (4, 0.9875), (9, 0.95), (60, 0.9)])
def test_the_interval_against_scipys_noncentral_t(t: float, df: int, level: float) -> None:
    low, high = by_scipy(abs(t), df, level)
    expected = (low, high) if t >= 0 else (-high, -low)
    assert noncentrality_interval(t, df, level=level) == pytest.approx(expected, abs=2e-6)


def test_at_t_0_the_ends_are_normal_quantiles() -> None:
    # P(T <= 0) = Phi(-delta), whatever the degrees of freedom.
    for df in (2, 7, 100):
        assert noncentrality_interval(0.0, df) == pytest.approx((-1.959964, 1.959964), abs=1e-6)


def test_at_a_huge_t_the_ends_are_chi_quantiles() -> None:
    # Z is nothing beside delta: P(T <= t) = P(s >= delta / t) with s^2 = chi^2_2 / 2, so that P(s >= x) = exp(-x^2).
    low, high = noncentrality_interval(1e9, 2)
    assert (low / 1e9, high / 1e9) == pytest.approx(
        (math.sqrt(-math.log(0.975)), math.sqrt(-math.log(0.025))), rel=1e-6
    )


def test_the_interval_covers_and_g_has_no_bias() -> None:
    """Normal differences of effect .8, n = 4."""
    n, delta, draws = 4, 0.8, 40_000
    values = np.random.default_rng(5).normal(delta, 1.0, size=(draws, n))
    d = values.mean(1) / values.std(1, ddof=1)
    assert np.mean(correction(n - 1) * d) == pytest.approx(delta, abs=4 * np.std(d) / math.sqrt(draws))
    # delta lies within the interval exactly where t lies within the quantiles at delta.
    t_low, t_high = stats.nct.ppf([0.025, 0.975], n - 1, math.sqrt(n) * delta)
    t = math.sqrt(n) * d
    covered = np.array([low / 2 <= delta <= high / 2 for low, high in (noncentrality_interval(x, 3) for x in t[:100])])
    assert (covered == ((t[:100] >= t_low) & (t[:100] <= t_high))).all()


def test_without_a_spread_or_with_two_pairs_there_is_none_and_it_says_so() -> None:
    for values, why in (((0.5,) * 6, "no spread"), ((0.1, 0.2), "fewer than three"), ((0.1,), "fewer than three")):
        found = hedges_g(values)
        assert (found.value, found.low, found.high) == (None, None, None)
        assert why in (found.note or "")
    # Equal up to rounding is equal: .3 - .2, .4 - .3, .8 - .7 would have a g of millions.
    pairs = paired_t_interval({0: 0.3, 1: 0.4, 2: 0.8}, {0: 0.2, 1: 0.3, 2: 0.7})
    assert with_effect(pairs).effect == hedges_g((0.1,) * 3)
    assert with_effect(paired_t_interval({}, {})).effect is None


def test_a_finding_has_it_at_the_coverage_of_its_interval(found: Any) -> None:
    claim = DifferenceClaim(
        name="c",
        text={"en": "x"},
        part="main",
        metric="train_loss",
        kind="difference",
        a=Select(arm="plain", where={"depth": 8}),
        b=Select(arm="plain", where={"depth": 2}),
        expect="at_least",
        than=0.0,
    )
    finding: Finding = found(claim, {("plain", 8): [2.0, 3.0, 4.0], ("plain", 2): [1.0] * 3}, "train_loss")
    judged, *made_from = finding.estimates
    assert judged.effect == hedges_g((1.0, 2.0, 3.0))
    assert all(each.effect is None for each in made_from)  # a level is no paired difference
    assert finding.model_dump(mode="json")["estimates"][0]["effect"]["value"] == pytest.approx(2 / math.sqrt(math.pi))
