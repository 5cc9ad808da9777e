"""What a curvature is of: a model, examples and a loss as a caller has them; and what to say of it."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from depthscope.core.errors import UserError, shown
from depthscope.probes.guard import unwrapped
from depthscope.train.build import choose_device
from depthscope.train.examples import first_examples
from depthscope.train.named import built, data_named, loss_named, moved
from depthscope.train.variants.generators import Side

Material = tuple[str, nn.Module, list[Any], Any]
"""The model's name, the model, batches and the loss."""


def material(model: Any, data: Any, loss_fn: Any, examples: int, batch_size: int, device: str | None) -> Material:
    """All of it, on the model's device.

    Raises:
        UserError: bad input, in one line.
    """
    if isinstance(loss_fn, str):
        loss_fn = loss_named(loss_fn)
    if loss_fn is not None and not callable(loss_fn):
        raise UserError(f"curvature: loss_fn: wanted a function (output, targets) -> loss, got {shown(loss_fn)}.")
    if isinstance(model, str):
        with Side(0, "init", "probe").drawing():  # a factory begins at a named stream; it moves the caller's in no way
            name = model
            model, batch = built(name, choose_device(device) if device is not None else None)
            data = data_named(data) if isinstance(data, str) else batch if data is None else data
    elif isinstance(model, nn.Module):
        name = type(unwrapped(model)).__name__
        if device is not None:
            raise UserError("curvature: device: a model object is measured where it lies; move it, model.to(device).")
    else:
        raise UserError(f"curvature: model: wanted a torch.nn.Module or package.module:factory, got {shown(model)}.")
    if data is None:
        raise UserError(
            f"curvature: {name}: no data: give examples, such as (inputs, targets) or a DataLoader (--data)."
        )
    try:
        return name, model, moved(first_examples(data, examples, batch_size, at_most=True), model), loss_fn
    except UserError as error:
        raise UserError(str(error).replace("landscape:", "curvature:", 1)) from error


def notes_on(model: nn.Module, loss: float, *, norm: str, draws: bool) -> tuple[str, ...]:
    """What to know about the figures, a sentence each."""
    modules = list(unwrapped(model).modules())
    found = []
    if any(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in modules):
        by = "each batch's own statistics, as in training" if norm == "batch" else "the statistics that it holds"
        found.append(f"Batch norm: by {by}.")
    if any(isinstance(each, nn.modules.dropout._DropoutNd) for each in modules):
        found.append("Dropout: off.")
    if draws:
        found.append("The model draws random numbers: always the same here, so the figures are those of these draws.")
    if not math.isfinite(loss):
        found.append(f"The loss is {loss}: there is no curvature here.")
    return tuple(found)
