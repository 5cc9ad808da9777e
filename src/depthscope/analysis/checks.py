"""Errors of a gradient check over several seeds, as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, kw_only=True)
class MedianError:
    """The error of one method at one step size, over seeds.

    Attributes:
        median: of all finite errors, those of exactly 0 among them; None without any.
        n: number of finite errors.
        num_exact: how many of them are exactly 0. A median of 0 has no place on a log axis.
        num_absent: errors that are missing or not finite.
    """

    median: float | None
    n: int
    num_exact: int
    num_absent: int


def median_error(errors: Sequence[float | None]) -> MedianError:
    """The median over seeds of an error that is 0 or above.

    An error of exactly 0 counts: without it the median would be that of the runs that erred, and
    a check that is exact on most seeds would look as bad as its worst ones.

    Args:
        errors: one a seed; None where a run gave none.

    Raises:
        ValueError: an error under 0.

    >>> median_error([2e-16, 0.0, 0.0, None])
    MedianError(median=0.0, n=3, num_exact=2, num_absent=1)
    """
    known = [float(error) for error in errors if error is not None and math.isfinite(error)]
    if any(error < 0 for error in known):
        raise ValueError(f"errors: wanted 0 or above, got {min(known)}.")
    return MedianError(
        median=median(known) if known else None,
        n=len(known),
        num_exact=known.count(0.0),
        num_absent=len(errors) - len(known),
    )
