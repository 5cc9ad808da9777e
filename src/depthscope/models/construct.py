"""Make somebody's model and tell which of its tensors its constructor sets, and which it draws."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError

M = TypeVar("M", bound=nn.Module)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run a block with every global generator of the CPU at `seed`; put them back after it."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - other people's constructors may draw from it
    torch_state = torch.get_rng_state()
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - see above
        # Not torch.manual_seed: that would move the generators of GPUs too.
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002 - see above
        torch.set_rng_state(torch_state)


def construct(factory: Callable[[], M]) -> tuple[M, frozenset[str]]:
    """(the model on the CPU, names of the tensors that its constructor sets to a constant).

    The model is made twice, under two states of the global generators. What comes out equal is set (a mask,
    a scale of 1, a branch that shall start at 0); what differs is drawn, and so are tensors without an initial
    value, whose memory is NaN here.

    Raises:
        UserError: both times one and the same tensor: it would start as another network left it.
    """
    first, second = (_made(factory, seed) for seed in (1, 2))
    ours, theirs = _tensors(first), _tensors(second)
    for name, tensor in ours.items():
        if tensor is theirs.get(name):
            raise UserError(
                f"{name}: is the same tensor each time the network is made, and would start as the run before left it. "
                "Make its module in the function, not once beside it."
            )
    kept = {name for name, tensor in ours.items() if name in theirs and _same(tensor, theirs[name])}
    return first, frozenset(kept)


def _made(factory: Callable[[], M], seed: int) -> M:
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    settings: Any = torch.utils.deterministic
    fills = settings.fill_uninitialized_memory
    # In this mode torch.empty gives NaN instead of whatever lay there, which might well be equal twice.
    torch.use_deterministic_algorithms(True, warn_only=True)
    settings.fill_uninitialized_memory = True
    try:
        with seeded(seed), torch.device("cpu"):
            return factory()
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        settings.fill_uninitialized_memory = fills


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)  # never where there is a NaN
