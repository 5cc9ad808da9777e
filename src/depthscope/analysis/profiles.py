"""A quantity of one layer over several seeds, in three numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


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
    return MedianRange(median=float(median(values)), low=float(min(values)), high=float(max(values)))
