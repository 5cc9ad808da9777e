"""Many seeds in a few numbers: curves, layers, gradient checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthscope.analysis.checks import MedianError, median_error
from depthscope.analysis.curves import mean_curve
from depthscope.analysis.profiles import median_and_range, medians_and_ranges


def test_mean_curve_by_hand() -> None:
    curves = {7: {0: 4.0, 10: 2.0, 20: 1.0}, 3: {20: 2.0, 0: 5.0, 10: 4.0}, 5: {0: 6.0, 10: 3.0, 20: 6.0}}
    found = mean_curve(curves)
    assert list(found.items()) == [(0, 5.0), (10, 3.0), (20, 3.0)]  # ascending, whatever the order of a seed


def test_mean_curve_ends_with_the_first_early_stop() -> None:
    """Past step 15 only the slow seed is left; a mean of it alone would jump from 1.5 to 3."""
    fast, slow = {5: 2.0, 10: 1.0, 12: 0.1}, {5: 4.0, 10: 2.0, 15: 3.0, 20: 3.0}
    assert mean_curve({0: fast, 1: slow}) == {5: 3.0, 10: 1.5}


def test_mean_curve_of_what_shares_nothing() -> None:
    assert mean_curve({}) == {}
    assert mean_curve({0: {1: 1.0}, 1: {}}) == {}
    assert mean_curve({0: {1: 1.0}, 1: {2: 1.0}}) == {}
    assert mean_curve({4: {1: 0.5, 2: 0.25}}) == {1: 0.5, 2: 0.25}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0], (3.0, 3.0, 3.0)),
        ([5.0, -1.0], (2.0, -1.0, 5.0)),
        ([9.0, 1.0, 2.0], (2.0, 1.0, 9.0)),
        ([1e-9, 1.0, 1e-3, 1e-6], (0.5005e-3, 1e-9, 1.0)),  # decades apart: the mean would be .25
    ],
)
def test_median_and_range(values: list[float], expected: tuple[float, float, float]) -> None:
    found = median_and_range(values)
    assert (found.median, found.low, found.high) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_has_no_order_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="wanted"):
        median_and_range(values)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(st.integers(-3, 3), finite), min_size=1, max_size=40))
def test_many_groups_give_what_each_gives_alone(pairs: list[tuple[int, float]]) -> None:
    """To the last bit, also where the sum of two in the middle leaves the range of floats."""
    found = medians_and_ranges(*(np.array(column) for column in zip(*pairs, strict=True)))
    numbers = sorted({number for number, _ in pairs})
    alone = [median_and_range([value for number, value in pairs if number == each]) for each in numbers]
    assert found.group.tolist() == numbers
    assert found.median.tolist() == [each.median for each in alone]
    assert found.low.tolist() == [each.low for each in alone]
    assert found.high.tolist() == [each.high for each in alone]


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_has_no_order_is_refused_in_any_group(values: list[float]) -> None:
    with pytest.raises(ValueError, match="wanted"):
        medians_and_ranges(np.zeros(len(values), dtype=np.int64), np.array(values))


def test_median_error_counts_exact_zeros_and_absent_ones() -> None:
    assert median_error([3e-16, 1e-16, 2e-16]) == MedianError(median=2e-16, n=3, num_exact=0, num_absent=0)
    # Zeros take their place in the order: of 0, 0, 4 the middle is 0, not 4.
    assert median_error([0.0, 4e-16, 0.0]).median == 0.0
    assert median_error([0.0, 4e-16, 2e-16, 6e-16]) == MedianError(median=3e-16, n=4, num_exact=1, num_absent=0)
    assert median_error([None, math.nan, math.inf, 1e-8]) == MedianError(median=1e-8, n=1, num_exact=0, num_absent=3)
    assert median_error([]) == MedianError(median=None, n=0, num_exact=0, num_absent=0)
    with pytest.raises(ValueError, match="0 or above"):
        median_error([-1e-9])
