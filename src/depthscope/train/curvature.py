"""How smooth and how sharp the loss is where a run in torch stands: along the step, and by the Hessian's ends.

Both look at the batch on which layers are measured, in training mode, as an update sees it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.hints import parameter_groups
from depthscope.probes.step import FACTORS, along_step
from depthscope.study.run import RunSpec
from depthscope.train.objective import Objective
from depthscope.train.probing import Row

if TYPE_CHECKING:
    from depthscope.probes.curvature import Hessian

SMOOTHNESS, SHARPNESS = "smoothness", "sharpness"
"""The measures' names; rows of the metrics table have them as their split."""

TOL = 1e-3
"""Of eigenvalues, relative: finer than a figure of them can show."""

MAX_PRODUCTS = 320
"""With the Hessian, for each of its ends, about."""

Batch = tuple[Tensor, Tensor]


def rate_at(spec: RunSpec, rates: Sequence[float], step: int) -> float:
    """The learning rate of the update that follows a step; at the end, of the last one; without any, the peak."""
    return rates[min(step, len(rates) - 1)] if rates else spec.lr


def smoothness_rows(model: nn.Module, batch: Batch, objective: Objective, lr: float, step: int) -> list[Row]:
    """Rows of `probes.step`: eta is half to four times the learning rate at that step.

    `loss`, `gradient_norm` at w; `loss_low`, `loss_high`, `change_low`, `change_high` on the way; `smoothness`.
    """
    found = along_step(model, *batch, objective.loss, etas=[factor * lr for factor in FACTORS])
    (loss_low, loss_high), (change_low, change_high) = found.loss_range, found.change_range
    values = {
        "loss": found.loss,
        "gradient_norm": found.gradient_norm,
        "loss_low": loss_low,
        "loss_high": loss_high,
        "change_low": change_low,
        "change_high": change_high,
        "smoothness": found.smoothness,
    }
    return [(step, SMOOTHNESS, quantity, value) for quantity, value in values.items()]


def sharpness_rows(
    spec: RunSpec, model: nn.Module, batch: Batch, objective: Objective, lr: float, step: int
) -> list[Row]:
    """Rows of the largest and the smallest eigenvalue of the loss's Hessian, with residuals.

    `lambda_max`, `lambda_min`, `residual_max`, `residual_min`, no numbers where the Hessian is none, or where its ends
    did not settle; and `edge`, what `edge` gives, where it gives something.
    """
    from depthscope.probes.curvature import extremes

    hessian = hessian_of(model, batch, objective)
    try:
        ends = extremes(hessian, tol=TOL, seed=spec.seed, max_products=MAX_PRODUCTS)
        values = {
            "lambda_max": ends.largest,
            "lambda_min": ends.smallest,
            "residual_max": ends.residual_largest,
            "residual_min": ends.residual_smallest,
        }
    except UserError:  # a training is not given up for a figure of it
        values = dict.fromkeys(("lambda_max", "lambda_min", "residual_max", "residual_min"), math.nan)
    if (bound := edge(spec, model, lr)) is not None:
        values["edge"] = bound
    return [(step, SHARPNESS, quantity, value) for quantity, value in values.items()]


def hessian_of(model: nn.Module, batch: Batch, objective: Objective, *, check: bool = False) -> Hessian:
    """Of the loss of one batch in training mode, in the precision of the training.

    Raises:
        UserError: where `check`, the loss cannot be differentiated twice, or not rightly.
    """
    from depthscope.probes.curvature import Hessian  # SciPy is loaded here, and only for a run that needs it

    wide = next(model.parameters()).dtype == torch.float64
    found = Hessian(model, [batch], objective.loss, train=True, dtype=torch.float64 if wide else torch.float32)
    if check:
        found.check_symmetric()
    return found


def edge(spec: RunSpec, model: nn.Module, lr: float) -> float | None:
    """The curvature from which on this gradient descent, on a quadratic, would not come to rest.

    Along an eigenvector of H, descent with Polyak's momentum b and weight decay d (which adds d to each eigenvalue) is
    v <- b v + (l + d) x, x <- x - lr v. Its two factors lie within the unit circle while lr (l + d) < 2 + 2 b: so
    l = (2 + 2 b) / lr - d, and 2 / lr without either. Full-batch descent rises to it and stays about it, the edge of
    stability; descent on batches stays below it. A gradient that is clipped makes smaller steps than that.

    Source: Cohen et al. 2021 (arXiv 2103.00065, section 2 and appendix B on momentum).

    Args:
        spec: names the optimiser.
        model: whose parameters may ask for rates of their own.
        lr: of that step.

    Returns:
        None where there is no one such number: an optimiser that scales its gradients (Adam's bound is one on another
        matrix), clipped gradients, or parameters of which some have another learning rate or no weight decay.
    """
    if spec.optimizer != "sgd" or spec.clip != "none":
        return None
    options: Mapping[str, Any] = spec.optimizer_options
    decay, momentum = options["weight_decay"], options["momentum"]
    for group in parameter_groups(model, lr=spec.lr):
        if "lr" in group or (decay and "weight_decay" in group):
            return None
    bound: float = (2 + 2 * momentum) / lr - decay
    return bound


def keep_curvature(summary: dict[str, float], rows: Sequence[Row], step: int) -> None:
    """Put the figures of a step into a run's summary: the first, the last, and the largest finite one, if any."""
    values = {(split, quantity): value for _, split, quantity, value in rows}
    for name, key in (("smoothness", (SMOOTHNESS, "smoothness")), ("sharpness", (SHARPNESS, "lambda_max"))):
        if key not in values:
            continue
        value = values[key]
        if step == 0:
            summary[f"{name}_first"] = value
        summary[f"{name}_last"] = value
        if math.isfinite(value):  # of a loss that is none there is no largest
            summary[f"{name}_most"] = max(value, summary.get(f"{name}_most", value))
    bound = values.get((SHARPNESS, "edge"), 0.0)
    if bound > 0:
        summary["sharpness_ratio_last"] = values[SHARPNESS, "lambda_max"] / bound
