"""What the command line makes of names and shapes: noise, tokens, made-up targets, data of the user's own."""

from __future__ import annotations

import re
import traceback
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from depthscope.api.batches import first_batch
from depthscope.core.errors import UserError, shown
from depthscope.core.streams import stream
from depthscope.probes.guard import as_found
from depthscope.study.catalog import is_user_code
from depthscope.train.named import LOSSES, called, data_named, scores_of
from depthscope.train.named import built as built
from depthscope.train.named import fresh as fresh
from depthscope.train.named import loss_named as loss_named
from depthscope.train.named import moved as moved
from depthscope.train.usercode import resolve, takes, told


def measured_data(target: str) -> Any:
    """Data of the user's for a probe: a batch of them.

    Raises:
        UserError: as for `data_named`, and for `first_batch`.
    """
    return first_batch(data_named(target))


def training_data(target: str, option: str = "--data") -> Any:
    """Training data from a function of the user's: one that takes a seed is called for each, another once.

    Raises:
        UserError: no such name, or the function raised.
    """
    if not is_user_code(target):
        raise UserError(f"{option}: wanted package.module:function, got {shown(target)}.")
    found = resolve(target)
    if takes(target, "seed"):
        return lambda seed: found(seed=seed)
    return called(target, option)


def shape(text: str, option: str) -> tuple[int, ...]:
    """`8x3x32x32` as numbers.

    Raises:
        UserError: it is no shape.

    >>> shape("8x3x32x32", "--input")
    (8, 3, 32, 32)
    """
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*", text):
        raise UserError(f"{option}: wanted a shape such as 8x3x32x32, the batch first; got {shown(text)}.")
    return tuple(int(part) for part in text.split("x"))


def noise(sizes: tuple[int, ...]) -> Tensor:
    """Standard normal numbers of a named stream."""
    return torch.from_numpy(stream(0, "probe", "input").standard_normal(sizes, dtype="float32"))


def table_asked(error: BaseException | None) -> int | None:
    """How many rows the table has in which a look-up raised; None where something else raised."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)] if error is not None else []
    # Behind the look-up may lie frames of what watches it.
    asked = [frame for frame in frames if frame.f_code is functional.embedding.__code__]
    return len(asked[-1].f_locals["weight"]) if asked else None


def tokens(sizes: tuple[int, ...], vocab: int) -> Tensor:
    """Tokens drawn evenly from a vocabulary, of a named stream."""
    return torch.from_numpy(stream(0, "probe", "tokens").integers(vocab, size=sizes))


def made_up_targets(model: nn.Module, inputs: Tensor, loss: str, classes: int | None) -> Tensor | None:
    """Targets for noise, of the shape that the model's output asks for; None for a loss of the user's own.

    Raises:
        UserError: the output has no dimension of so many classes, or is no tensor.
    """
    if loss not in LOSSES:
        return None
    with as_found(model), torch.no_grad():
        try:
            output = model(inputs.clone())
        except (Exception, SystemExit) as error:
            raise UserError(f"the model raised on an input of shape {list(inputs.shape)}: {told(error)}") from error
    found = scores_of(output)
    sizes = tuple(found.shape)
    drawn = stream(0, "probe", "targets")
    if loss == "mse":
        return torch.from_numpy(drawn.standard_normal(sizes, dtype="float32")).to(found.device)
    if len(sizes) < 2:
        raise UserError(f"--loss cross_entropy: wanted scores [batch, classes, ...], the output has shape {sizes}.")
    last = len(sizes) == 3 if classes is None else len(sizes) > 2 and sizes[-1] == classes
    count = sizes[-1] if last else sizes[1]
    if classes is not None and count != classes:
        raise UserError(f"--classes {classes}: the output has shape {sizes}, whose classes would be {count}.")
    rest = sizes[:-1] if last else sizes[:1] + sizes[2:]
    return torch.from_numpy(drawn.integers(count, size=rest)).to(found.device)
