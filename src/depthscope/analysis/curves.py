"""Curves of training over several seeds, as one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def mean_curve(curves_by_seed: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
    """The mean over seeds at the steps that all of them have.

    Where seeds stopped early, at different steps, the mean ends with the first of them: past it, it
    would be a mean of the slower seeds alone and jump upward by the choice of seeds, with nothing learned
    or lost. So the end of this curve says nothing about the runs that went on; their own curves do.
    A step that one seed did not log, such as its own last, is left out for all.

    Args:
        curves_by_seed: seed -> step -> value. A value that is not finite is the caller's to leave out;
            it would make the mean so.

    Returns:
        step -> mean, ascending; empty where the seeds share no step, or there are none.

    >>> mean_curve({0: {1: 4.0, 2: 2.0, 3: 1.0}, 1: {1: 2.0, 2: 1.0}})
    {1: 3.0, 2: 1.5}
    """
    curves = list(curves_by_seed.values())
    if not curves:
        return {}
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    return {step: float(np.mean([curve[step] for curve in curves])) for step in shared}
