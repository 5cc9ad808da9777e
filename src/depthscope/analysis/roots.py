"""Where a continuous function of one number is zero, without loading all of `scipy.optimize`, a third of a second."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import pairwise


def root(function: Callable[[float], float], low: float, high: float, *, within: float = 2e-12) -> float:
    """A zero between two ends at which the function has different signs.

    Each step looks at the middle of the bracket, and at the zero of the exponential that goes through its ends and
    middle once a straight line is taken off, which converges quadratically. Source: Ridders 1979, IEEE Transactions on
    Circuits and Systems 26(11), doi 10.1109/TCS.1979.1084580.

    Args:
        function: continuous.
        low: the lesser end.
        high: the greater.
        within: the error that is allowed, beside that of rounding.

    Raises:
        ValueError: the same sign at both ends.

    >>> round(root(lambda x: x * x - 2.0, 0.0, 2.0), 12)
    1.414213562373
    """
    f_low, f_high = function(low), function(high)
    if f_low == 0.0 or f_high == 0.0:
        return low if f_low == 0.0 else high
    if not (f_low < 0.0 < f_high or f_high < 0.0 < f_low):
        raise ValueError(f"root: wanted different signs at the ends, got {f_low} at {low} and {f_high} at {high}.")
    found = math.inf
    while True:
        middle = low + 0.5 * (high - low)
        f_middle = function(middle)
        if f_middle == 0.0:
            return middle
        before = found
        scale = math.hypot(f_middle, math.sqrt(abs(f_low)) * math.sqrt(abs(f_high)))
        found = middle + (middle - low) * math.copysign(f_middle / scale, f_low * f_middle)
        f_found = function(found)
        near = within + 4.0 * sys.float_info.epsilon * abs(found)
        if f_found == 0.0 or abs(found - before) <= near:
            return found
        # Of the four points the two neighbours with different signs are the next bracket.
        points = sorted([(low, f_low), (middle, f_middle), (found, f_found), (high, f_high)])
        (low, f_low), (high, f_high) = next((a, b) for a, b in pairwise(points) if (a[1] < 0) != (b[1] < 0))
        if high - low <= near:
            return low + 0.5 * (high - low)
