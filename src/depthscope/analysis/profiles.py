"""A quantity of one layer over several seeds, in three numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class MedianRange:
    """The middle and the ends of what the seeds gave.

    Attributes:
        median: the middle value, or the mean of the two in the middle.
        low: least value.
        high: greatest value.
    """

    median: float
    low: float
    high: float


def median_and_range(values: Sequence[float]) -> MedianRange:
    """Median and range over seeds.

    The range is that of the values seen; it is no interval of confidence and widens with more seeds.
    A median, because norms of a layer scatter over decades, where one seed would carry a mean.

    Args:
        values: one a seed, in any order.

    Raises:
        ValueError: no value, or one that is not finite (it has no place in an order).

    >>> median_and_range([1.0, 100.0, 4.0])
    MedianRange(median=4.0, low=1.0, high=100.0)
    """
    if not values:
        raise ValueError("values: wanted one or more, got none.")
    strange = [value for value in values if not math.isfinite(value)]
    if strange:
        raise ValueError(f"values: wanted finite numbers, got {strange[0]}.")
    middle = float(median(values))
    if math.isinf(middle):  # the sum of the two in the middle, and not they
        middle = 2 * float(median([each / 2 for each in values]))
    return MedianRange(median=middle, low=float(min(values)), high=float(max(values)))


@dataclass(frozen=True, kw_only=True)
class MediansRanges:
    """`MedianRange` of many groups: columns of one length.

    Attributes:
        group: numbers of the groups, ascending.
        median: of each.
        low: least value of each.
        high: greatest value of each.
    """

    group: NDArray[np.int64]
    median: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def medians_and_ranges(group: NDArray[np.int64], values: NDArray[np.float64]) -> MediansRanges:
    """`median_and_range` of each of many groups at once, to the last bit.

    Args:
        group: of which group each value is, [N]; in any order.
        values: [N].

    Raises:
        ValueError: as for one group.

    >>> found = medians_and_ranges(np.array([7, 2, 7, 7]), np.array([1.0, 5.0, 100.0, 4.0]))
    >>> found.group.tolist(), found.median.tolist(), found.high.tolist()
    ([2, 7], [5.0, 4.0], [5.0, 100.0])
    """
    if not len(values):
        raise ValueError("values: wanted one or more, got none.")
    strange = values[~np.isfinite(values)]
    if len(strange):
        raise ValueError(f"values: wanted finite numbers, got {strange[0]}.")
    order = np.lexsort((values, group))
    group, values = group[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    counts = np.diff(starts, append=len(group))
    lower, upper = values[starts + (counts - 1) // 2], values[starts + counts // 2]
    with np.errstate(over="ignore"):
        median = np.where(counts % 2, lower, (lower + upper) / 2)
    median = np.where(np.isinf(median), lower / 2 + upper / 2, median)
    return MediansRanges(group=group[starts], median=median, low=values[starts], high=values[starts + counts - 1])
