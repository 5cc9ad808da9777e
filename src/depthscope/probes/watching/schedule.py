"""On which steps of a training everything is measured."""

from __future__ import annotations


def is_scheduled(step: int, every: int) -> bool:
    """Steps 0, 1, 2, 4, 8, ... below `every`, then each multiple of it.

    Dense at the start, where a network changes most: batch norm's explosion at initialisation is gone after one step.

    >>> [step for step in range(25) if is_scheduled(step, 10)]
    [0, 1, 2, 4, 8, 10, 20]
    """
    return step % every == 0 or (step < every and step & (step - 1) == 0)
