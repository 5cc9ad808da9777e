"""What a map shows of an output: the loss that was named or given, and the share of right answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from torch import Tensor, nn

from depthscope.core.errors import UserError, shown
from depthscope.probes.guard import as_found
from depthscope.probes.landscape.outputs import MeanOf
from depthscope.train.named import cross_entropy, mse, scores_of
from depthscope.train.usercode import told

Loss = Any
"""`(output, targets) -> loss`, a mean over the batch; None: the model's own `output.loss`."""

IGNORED = -100
"""The target that torch's losses leave out unless they are told another."""


def judged(loss_fn: Loss, output: Any, targets: Any) -> dict[str, float]:
    """`loss`, and the `accuracy` where targets [B] are classes and scores [B, K].

    Losses of ours are found in float64, those of the user's in what `Surface` gives, and a module is left as found.
    Targets that are ignored count neither as right nor as wrong; a cross-entropy that leaves them out of its mean
    weighs by the number of the others, and so does the accuracy. Any other loss weighs by its batch's number of
    examples.

    Raises:
        UserError: the loss is not one number.
    """
    if loss_fn in (cross_entropy, mse):
        output = scores_of(output).cpu().double()
        targets = targets.cpu().double() if targets.is_floating_point() else targets.cpu()
    try:
        with as_found(loss_fn) if isinstance(loss_fn, nn.Module) else nullcontext():
            loss: Any = (loss_fn or own_loss)(output, targets)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"landscape: the loss raised {told(error)}") from error
    if not isinstance(loss, float | int | Tensor) or (isinstance(loss, Tensor) and loss.numel() != 1):
        raise UserError(f"landscape: the loss gives {shown(loss)}; wanted one number, the mean over a batch.")
    found = {"loss": float(loss)}
    if not isinstance(targets, Tensor) or targets.is_floating_point():
        return found
    asked = targets != getattr(loss_fn, "ignore_index", IGNORED)
    num = int(asked.sum())
    if _leaves_out(loss_fn):
        found["loss"] = MeanOf(found["loss"], num)
    if loss_fn is not mse and targets.ndim == 1:
        scores = output if isinstance(output, Tensor) else getattr(output, "logits", None)
        if isinstance(scores, Tensor) and scores.ndim == 2:
            right = int(((scores.argmax(1) == targets) & asked).sum())
            found["accuracy"] = MeanOf(right / num if num else math.nan, num)
    return found


def _leaves_out(loss_fn: Loss) -> bool:
    """Whether it is a mean over the targets that are not ignored, each counting alike."""
    if type(loss_fn) is nn.CrossEntropyLoss:
        return loss_fn.weight is None and loss_fn.reduction == "mean"
    return loss_fn is cross_entropy or loss_fn is nn.functional.cross_entropy


def own_loss(output: Any, targets: Any) -> Tensor:
    """The loss that a model gives of itself.

    Raises:
        UserError: it gives none.
    """
    del targets
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if not isinstance(found, Tensor):
        raise UserError(
            f"landscape: no loss: the model gives {type(output).__name__} without a loss of its own. Name one: "
            "cross_entropy, mse or package.module:function (--loss), or pass loss_fn."
        )
    return found
