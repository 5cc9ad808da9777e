"""The rate at which the gradient changes with depth, and a cliff told from a slope.

d_l = ln |dL/dx_{l-1}| - ln |dL/dx_l|, the logarithm of a block's multiplier, toward the input. If every block did the
same to the gradient, ln |dL/dx_l| were a straight line in l.

**Rate**: exp(mean d), with the t interval of the mean. Assumed: the d_l scatter independently about one mean. That
they add up to the total exactly makes the mean the natural fit (least squares through the line's ends weighs the middle
blocks more, for no reason that random weights give). Where d drifts with depth, as in Pre-LN, the interval says how
well a mean stands for it, no more.

**Cliff**: one block does what the others do not. Its d lies further from the others' median than `Cliff.least` (a
factor), further than 6 of their robust standard deviations (1.4826 MAD, Rousseeuw and Croux 1993), and is the
farthest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

from depthscope.analysis.intervals import t_interval
from depthscope.study.run import Frozen

ROBUST = 1.4826
"""Standard deviations in a median absolute deviation, of normal values."""
NUM_SIGMAS = 6.0


class Rate(Frozen):
    """What a block does to the norm of the gradient toward the input, on geometric average.

    Attributes:
        value: factor a block.
        low: lower end of the 95% interval; None under 3 blocks or where all are equal.
        high: upper end.
        num_blocks: blocks it is fitted to.
        total_log10: log10 of the product of all multipliers.
    """

    value: float
    low: float | None
    high: float | None
    num_blocks: int
    total_log10: float


class Cliff(Frozen):
    """A block that stands out.

    Attributes:
        name: of the block.
        factor: its multiplier over the median of the others'.
        median: that median.
        share: its part of the sum of |ln m| over all blocks.
    """

    name: str
    factor: float
    median: float
    share: float


def rate_of(multipliers: Mapping[str, float]) -> Rate | None:
    """The rate of a body; None where no block has a finite multiplier above 0.

    >>> found = rate_of({"a": 0.5, "b": 0.5, "c": 0.5})
    >>> found.value, found.num_blocks, round(found.total_log10, 3)
    (0.5, 3, -0.903)
    """
    logs = [math.log(each) for each in multipliers.values() if math.isfinite(each) and each > 0]
    if not logs:
        return None
    estimate = t_interval(logs, name="mean ln multiplier") if len(logs) > 2 else None
    low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
    mean = math.fsum(logs) / len(logs)
    return Rate(
        value=math.exp(mean),
        low=None if low is None else _exp(low),
        high=None if high is None else _exp(high),
        num_blocks=len(logs),
        total_log10=math.fsum(logs) / math.log(10),
    )


def cliff_of(multipliers: Mapping[str, float], *, least: float) -> Cliff | None:
    """The block whose multiplier stands out by a factor of `least` or more, or None.

    >>> cliff_of({"a": 1.0, "b": 1.1, "c": 0.01, "d": 0.9, "e": 1.0}, least=5).name
    'c'
    """
    logs = {name: math.log(each) for name, each in multipliers.items() if math.isfinite(each) and each > 0}
    found: Cliff | None = None
    for name, own in logs.items():
        others = [each for other, each in logs.items() if other != name]
        if len(others) < 2:
            return None
        centre = median(others)
        spread = ROBUST * median(abs(each - centre) for each in others)
        apart = own - centre
        if abs(apart) < math.log(least) or abs(apart) < NUM_SIGMAS * spread:
            continue
        if found is None or abs(apart) > abs(math.log(found.factor)):
            total = math.fsum(abs(each) for each in logs.values())
            share = abs(own) / total if total else 0.0
            found = Cliff(name=name, factor=_exp(apart), median=_exp(centre), share=share)
    return found


def _exp(value: float) -> float:
    return math.exp(max(-700.0, min(700.0, value)))
