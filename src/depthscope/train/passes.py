"""Passes over a whole split: loss and accuracy of a model as it stands.

Shape letters: B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from depthscope.study.run import RunSpec
from depthscope.train.twin import eval_batch


def clean_pass(model: nn.Module, x: Tensor, y: Tensor, spec: RunSpec) -> dict[str, float]:
    """`loss` (mean cross entropy, in nats) and `accuracy` over a split, in evaluation mode; it stays in it."""
    return _judged(model.eval(), x, y, eval_batch(spec, len(y)))


def training_pass(model: nn.Module, x: Tensor, y: Tensor, batch_size: int) -> dict[str, float]:
    """The same in training mode, as an update sees the split: each batch normalised by its own statistics.

    In the data set's order and without augmentation. A last batch of one example has no statistics: it is left out.
    Buffers, such as running statistics, and the mode are put back.
    """
    buffers: Iterable[Tensor] = list(model.buffers())
    before = [buffer.clone() for buffer in buffers]
    training = model.training
    if len(y) % batch_size == 1 and len(y) > 1:
        x, y = x[:-1], y[:-1]
    try:
        return _judged(model.train(), x, y, batch_size)
    finally:
        model.train(training)
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)


@torch.no_grad()
def _judged(model: nn.Module, x: Tensor, y: Tensor, size: int) -> dict[str, float]:
    total, hits = 0.0, 0
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        # MPS has no float64, and the sum of ten thousand losses wants it.
        logits_BK = model(x[part]).cpu().double()
        y_B = y[part].cpu()
        total += float(nn.functional.cross_entropy(logits_BK, y_B, reduction="sum"))
        hits += int((logits_BK.argmax(1) == y_B).sum())
    return {"loss": total / len(y), "accuracy": hits / len(y)}
