"""Which weights of a run are kept, and how they are told."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from depthscope.record.events import Weights
from depthscope.train.torch_state import state_arrays

WEIGHTS = "weights"
"""The measure's name."""

MAX_EPOCHS = 50
"""Ends of epochs at which weights are kept, at most."""


def kept_steps(num_steps: int, steps_per_epoch: int, further: Iterable[int] = ()) -> frozenset[int]:
    """The steps whose weights are kept: the first, the last, ends of epochs, equally spaced, and those asked for.

    >>> sorted(kept_steps(12, 4, further=(3, 20)))
    [0, 3, 4, 8, 12]
    >>> sorted(kept_steps(130, 1))[:4], len(kept_steps(130, 1))
    ([0, 3, 6, 9], 45)
    """
    stride = steps_per_epoch * max(1, -(-num_steps // (steps_per_epoch * MAX_EPOCHS)))
    asked = (step for step in further if step <= num_steps)
    return frozenset({0, num_steps, *range(stride, num_steps + 1, stride), *asked})


def weights_of(run_id: str, step: int, model: nn.Module) -> Weights:
    """Copies of a model's weights and buffers after `step` updates."""
    return Weights(run_id=run_id, step=step, tensors=state_arrays(model))
