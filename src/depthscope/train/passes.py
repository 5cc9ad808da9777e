"""Passes over a whole split: loss and accuracy of a model as it stands."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from depthscope.models.fold import folding
from depthscope.models.overwrite import overwriters, overwriting
from depthscope.study.run import RunSpec
from depthscope.train.objective import Objective, summed
from depthscope.train.twin import eval_batch
from depthscope.train.usercode import may_overwrite


def clean_pass(model: nn.Module, x: Tensor, y: Tensor, spec: RunSpec, objective: Objective) -> dict[str, float]:
    """`loss` (mean over what is asked) and, of classes, `accuracy` over a split, in evaluation mode; it stays in it.

    In float32 also where training was in bfloat16. Batch norms are folded; inputs are overwritten where they may be.
    """
    model.eval()
    with folding(model), overwriting(overwriters(model) if may_overwrite(spec) else ()):
        return _judged(model, x, y, eval_batch(spec, len(y)), objective)


def training_pass(model: nn.Module, x: Tensor, y: Tensor, batch_size: int, objective: Objective) -> dict[str, float]:
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
        return _judged(model.train(), x, y, batch_size, objective)
    finally:
        model.train(training)
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)


@torch.no_grad()
def _judged(model: nn.Module, x: Tensor, y: Tensor, size: int, objective: Objective) -> dict[str, float]:
    total, asked = 0.0, 0
    right: list[int] = []
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        loss, hits, num = summed(objective, model(x[part]), y[part])
        total, asked = total + loss, asked + num
        right += [] if hits is None else [hits]
    found = {"loss": total / asked}
    return {**found, "accuracy": sum(right) / asked} if right else found
