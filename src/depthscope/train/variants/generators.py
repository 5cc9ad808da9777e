"""The global generators that code of the user's draws from, put where a named stream says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from depthscope.core.streams import stream


def seed_all(seed: int, *name: str | int) -> None:
    """Put torch's generators (of every device), NumPy's and Python's at the start of a named stream."""
    drawn = stream(seed, *name).integers(2**32, size=3)
    torch.manual_seed(int(drawn[0]))
    np.random.seed(int(drawn[1]))  # noqa: NPY002 - other people's data sets and models draw from it
    random.seed(int(drawn[2]))


class Side:
    """A course of draws beside another: what is drawn inside `drawing` goes on where it stopped the last time.

    The order of a loader that is asked for one batch at a time must not depend on what models draw in between.
    """

    def __init__(self, seed: int, *name: str | int) -> None:
        self._seed, self._name = seed, name
        self._states: tuple[Any, ...] | None = None

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Draw from this course."""
        outside = _states()
        if self._states is None:
            seed_all(self._seed, *self._name)
        else:
            _put(self._states)
        try:
            yield
        finally:
            self._states = _states()
            _put(outside)


def _states() -> tuple[Any, ...]:
    return torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002 - see above


def _put(states: tuple[Any, ...]) -> None:
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])  # noqa: NPY002 - see above
    random.setstate(states[2])
