"""Activation checkpointing: a chain of blocks that keeps a few boundaries, and computes the rest again in backward.

Source: Chen et al. 2016, arXiv 1604.06174, section 4.1: with n blocks in segments of about sqrt(n), what is kept grows
as sqrt(n) in place of n, for one more forward pass.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Blocks(nn.Sequential):
    """Blocks one after the other; `blocks.3` is the fourth. Without `checkpointing` it is an `nn.Sequential`.

    With it, the same numbers to the last bit, outputs, gradients and buffers:

    - a block's buffers are written in the forward pass alone: the second computation has copies of them, so that batch
      norm's running statistics move once a step;
    - what a block draws (dropout, blocks that are left out) is drawn alike the second time, since the generators are
      put back for it;
    - forward hooks are called in both computations, as everywhere in torch; a hook of a tensor once.

    Args:
        blocks: in forward order.
        checkpointing: keep only the inputs of segments for the backward pass.
    """

    def __init__(self, *blocks: nn.Module, checkpointing: bool = False) -> None:
        super().__init__(*blocks)
        self.checkpointing = checkpointing

    def forward(self, x: Tensor) -> Tensor:
        """What the chain makes of x; of any shape that its first block takes."""
        blocks = list(self)
        if not (self.checkpointing and torch.is_grad_enabled()):
            return _chain(blocks, x)
        *first, last = segments(len(blocks))
        for start, end in first:
            part = blocks[start:end]
            x = checkpoint(
                _chain, part, x, use_reentrant=False, context_fn=partial(_contexts, part), preserve_rng_state=True
            )
        # The backward pass begins with the last segment: computing it again at once would spare nothing.
        return _chain(blocks[slice(*last)], x)


def segments(num: int) -> tuple[tuple[int, int], ...]:
    """(start, end) of the segments of `num` blocks: about sqrt(num) of them, whose lengths differ by 1 at most.

    >>> segments(5), len(segments(333)), max(end - start for start, end in segments(333))
    (((0, 2), (2, 5)), 18, 19)
    """
    count = max(1, round(math.sqrt(num)))
    edges = [at * num // count for at in range(count + 1)]
    return tuple(itertools.pairwise(edges))


def _chain(blocks: Sequence[nn.Module], x: Tensor) -> Tensor:
    for block in blocks:
        x = block(x)
    return x


_Context = contextlib.AbstractContextManager[None]


def _contexts(blocks: Sequence[nn.Module]) -> tuple[_Context, _Context]:
    """Those of the first and of the second computation."""
    device = next((each.device.type for block in blocks for each in block.parameters()), "cpu")
    return contextlib.nullcontext(), _again(blocks, torch.mps.get_rng_state() if device == "mps" else None)


@contextlib.contextmanager
def _again(blocks: Sequence[nn.Module], mps_state: Tensor | None) -> Iterator[None]:
    """The second computation: with buffers of its own, and on MPS, whose generator torch does not put back, with it."""
    if mps_state is None:
        with _own_buffers(blocks):
            yield
        return
    now = torch.mps.get_rng_state()
    torch.mps.set_rng_state(mps_state)
    try:
        with _own_buffers(blocks):
            yield
    finally:
        torch.mps.set_rng_state(now)


@contextlib.contextmanager
def _own_buffers(blocks: Sequence[nn.Module]) -> Iterator[None]:
    """Inside, modules in train mode have copies of their buffers; after it the buffers as they were, untouched.

    Neither `track_running_stats = False` nor `momentum = 0` would do: without running statistics batch norm saves
    fewer tensors, which torch takes for another computation, and 0 times an infinite mean is no number.
    """
    held = [(module, dict(module._buffers)) for block in blocks for module in block.modules() if module.training]
    try:
        for module, buffers in held:
            for name, buffer in buffers.items():
                if buffer is not None:
                    module._buffers[name] = buffer.detach().clone()
        yield
    finally:
        for module, buffers in held:
            module._buffers.update(buffers)
