"""Learning rates as functions of the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec
from depthscope.train.build import resolve

Factor = Callable[[int], float]
"""Update number, from 0 -> factor on the peak learning rate."""


def constant(num_steps: int) -> Factor:
    """Always 1."""
    del num_steps
    return lambda step: 1.0


def step(num_steps: int, *, milestones: Sequence[float], factor: float) -> Factor:
    """`factor` to the power of the milestones passed; a milestone is a fraction of the run.

    >>> rate = step(10, milestones=[0.5, 0.75], factor=0.1)
    >>> [round(rate(at), 2) for at in (0, 4, 5, 7, 8)]
    [1.0, 1.0, 0.1, 0.1, 0.01]
    """
    # Rounded first: 0.7 * 400 is 279.99999999999994 and must still mean step 280.
    edges = [math.ceil(round(milestone * num_steps, 6)) for milestone in milestones]
    return lambda at: factor ** sum(at >= edge for edge in edges)


def linear(num_steps: int) -> Factor:
    """From 1 in a straight line to 0: update t has 1 - t / num_steps, so that the last one is the first above 0.

    >>> [linear(4)(at) for at in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    """
    return lambda at: 1 - at / num_steps


def cosine(num_steps: int, *, final: float) -> Factor:
    """From 1 by half a cosine to `final`, which update `num_steps` would have.

    Source: Loshchilov & Hutter 2017, arXiv 1608.03983, equation 5, without restarts.

    >>> rate = cosine(4, final=0.5)
    >>> [round(rate(at), 3) for at in range(4)]
    [1.0, 0.927, 0.75, 0.573]
    """
    return lambda at: final + (1 - final) * (1 + math.cos(math.pi * at / num_steps)) / 2


def learning_rates(spec: RunSpec, num_steps: int) -> list[float]:
    """The learning rate of each update of a run.

    In warm-up, update t of `warmup_steps` has (t + 1) / warmup_steps of the peak, on top of the schedule. A constructed
    run with `at_last_lr` has the last of these rates throughout: its shallower network went through the others.
    """
    make = resolve(CATALOG["schedule"][spec.schedule].targets[spec.backend])
    factor: Factor = make(num_steps, **spec.schedule_options)
    warm = spec.warmup_steps
    rates = [spec.lr * factor(at) * (min(1.0, (at + 1) / warm) if warm else 1.0) for at in range(num_steps)]
    return rates[-1:] * num_steps if spec.init_options.get("at_last_lr") else rates
