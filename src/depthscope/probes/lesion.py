"""The lesion study: one residual branch taken out at a time, and what that does to a trained network.

Sources: Srivastava et al. 2015 (arXiv 1507.06228, section 4.2), who shut one gate of a highway network at a time; Veit
et al. 2016 (arXiv 1605.06431, section 4.1), who took out one branch of a residual network.

Shape letters: B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point, Row
from depthscope.probes.guard import undisturbed
from depthscope.probes.shadow import bare_copy


@dataclass(frozen=True, kw_only=True)
class Lesions:
    """What a network loses with each of its branches.

    Attributes:
        loss: mean cross entropy of the intact network on the batch, in nats.
        accuracy: of the intact network.
        rows: `lesion_loss` and `lesion_accuracy` of the network without one branch, at the layer of that addition.
    """

    loss: float
    accuracy: float
    rows: tuple[Row, ...]


def lesions(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    points: Sequence[Point],
    additions: Sequence[Addition],
    step: int = 0,
) -> Lesions:
    """Loss and accuracy without each residual branch in turn, in evaluation mode, on a copy of the model.

    A block that has a `join` with a method `without_branch(s)` says itself what is left of it (a highway's gate is
    shut: T = 0 and y = s); of any other the branch's output F is taken for zeros. What follows the addition, as a ReLU
    does, stays. The model is only read.

    Args:
        model: gives logits [B, K].
        inputs: [B, ...], as the model takes them.
        targets: [B], class indices.
        points: the model's layers, whose positions the rows have.
        additions: the branches; each names one of the points' layers.
        step: written into the rows.

    Raises:
        UserError: a name that the model or the points do not have; a `without_branch` that gives no tensor of
            y's shape; see also `shadow.bare_copy`.
    """
    positions = {point.layer: index for index, point in enumerate(points)}
    for addition in additions:
        if addition.layer not in positions:
            raise UserError(unknown_name("layer of an addition", addition.layer, positions))
    with undisturbed(inputs.device), torch.no_grad():
        copy = bare_copy(model).eval()
        loss, accuracy = _judged(copy, inputs, targets)
        rows: list[Row] = []
        for addition in additions:
            with _without(copy, addition):
                found = _judged(copy, inputs, targets)
            at = positions[addition.layer]
            for quantity, value in zip(("lesion_loss", "lesion_accuracy"), found, strict=True):
                rows.append(Row(step=step, layer=at, quantity=quantity, value=value))
    return Lesions(loss=loss, accuracy=accuracy, rows=tuple(rows))


@contextmanager
def _without(model: nn.Module, addition: Addition) -> Iterator[None]:
    modules: dict[str, Any] = dict(model.named_modules())
    join: Any = modules.get(f"{addition.block}.join")
    if hasattr(join, "without_branch"):
        hook = join.register_forward_hook(partial(_shut, f"{addition.block}.join"))
    elif addition.branch in modules:
        hook = modules[addition.branch].register_forward_hook(lambda _module, _inputs, f: torch.zeros_like(f))
    else:
        raise UserError(unknown_name("module", addition.branch, [each for each in modules if each]))
    try:
        yield
    finally:
        hook.remove()


def _shut(name: str, join: Any, operands: tuple[Tensor, ...], y: Tensor) -> Tensor:
    left = join.without_branch(operands[0])
    # A hook that gives None changes nothing: the branch would count for nothing, unseen.
    if not isinstance(left, Tensor) or left.shape != y.shape:
        what = f"shape {list(left.shape)}" if isinstance(left, Tensor) else type(left).__name__
        raise UserError(f"{name}.without_branch(s): gave {what}; wanted a tensor of shape {list(y.shape)}.")
    return left


def _judged(model: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[float, float]:
    """(mean cross entropy, accuracy)."""
    logits_BK = model(inputs).cpu().double()  # on the CPU: MPS has no float64
    labels_B = targets.cpu()
    loss = nn.functional.cross_entropy(logits_BK, labels_B)
    return float(loss), float((logits_BK.argmax(1) == labels_B).double().mean())
