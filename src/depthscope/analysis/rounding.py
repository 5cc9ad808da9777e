"""Differences of decimals as decimals: the one place that knows what rounding does to them.

.3 - .2 is 0.09999999999999998 and .9 - .7 is not .8 - .6. Left so, rounding would decide a claim at its
bound, and a change that is the same on every seed would have a spread. What lies within `TOLERANCE` of
the largest number that a difference was made from is rounding: figures are no better than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

TOLERANCE = 1e-12
"""Part of the operands' scale under which two numbers are equal."""


def scale_of_operands(values: Iterable[float | None]) -> float:
    """The largest size among finite numbers; 0 without any.

    >>> scale_of_operands([0.5, None, -2.0])
    2.0
    """
    return max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)


def cleaned(value: float, scale: float) -> float:
    """A difference of numbers up to `scale`, rounded to 13 significant digits of that scale; no negative zero.

    >>> cleaned(0.3 - 0.2, 0.3), cleaned((0.3 - 0.2) - (0.4 - 0.3), 0.4)
    (0.1, 0.0)
    """
    if not math.isfinite(value) or not 0 < scale < 1e300:
        return value
    return round(value, 12 - math.floor(math.log10(scale))) + 0.0


def same(a: float, b: float, scale: float) -> bool:
    """Whether two numbers made from operands up to `scale` differ by rounding alone.

    >>> same(0.9 - 0.7, 0.8 - 0.6, 0.9), same(0.2, 0.2001, 0.9)
    (True, False)
    """
    return a == b or abs(a - b) <= TOLERANCE * scale
