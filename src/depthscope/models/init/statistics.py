"""Run a model as its first training step would see the data, and leave it as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from depthscope.models.init.rules import NORMALISERS


@contextlib.contextmanager
def batch_statistics(model: nn.Module) -> Iterator[None]:
    """Normalisers use the batch's statistics and all else is as in evaluation, so that dropout draws nothing.

    Without gradients. Modes and buffers, so running statistics too, are put back.
    """
    modes = {module: module.training for module in model.modules()}
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    model.eval()
    for module in modes:
        if isinstance(module, NORMALISERS):
            module.train()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def widened(output: Tensor) -> Tensor:
    """In float64, where the device has it (MPS has not)."""
    return output.float() if output.device.type == "mps" else output.double()
