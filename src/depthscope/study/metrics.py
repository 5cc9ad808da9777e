"""The final figures of a run by name. A study's claims name them as `metric`, a record holds them as `summary`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from depthscope.core.errors import shown

SUMMARY: Mapping[str, str] = MappingProxyType(
    {
        "train_loss_running": "mean loss over the last epoch's (augmented) training batches, nats",
        "train_accuracy_running": "accuracy over the last epoch's (augmented) training batches",
        "train_loss": "mean loss of a clean pass over the training set after the last step, eval mode, nats",
        "train_accuracy": "accuracy of a clean pass over the training set after the last step, eval mode",
        "validation_loss": "mean loss on the validation split, where there is one, after the last step, nats",
        "validation_accuracy": "accuracy on the validation split, where there is one, after the last step",
        "test_loss": "mean loss on the test set, evaluated once, after the last step, nats",
        "test_accuracy": "accuracy on the test set, evaluated once, after the last step",
        "train_loss_first": "loss of the first training batch, before any update, nats",
        "train_loss_change": "train_loss_running - train_loss_first",
        "train_loss_start": "train_loss of a constructed network before any update, nats",
        "train_accuracy_start": "train_accuracy of a constructed network before any update",
        "train_loss_start_batch": "the same loss in training mode: each batch normalised by its own statistics, nats",
        "train_accuracy_start_batch": "the same accuracy in training mode",
        "construction_loss_change": "train_loss_start - train_loss of the shallower network at its end",
        "construction_accuracy_change": "train_accuracy_start - train_accuracy of the shallower network at its end",
        "lesion_loss_change": "loss without one branch - loss of the intact network, median over branches, nats",
        "lesion_accuracy_change": "accuracy without one branch - accuracy of the intact network, median over branches",
        "smoothness_first": "along the step: largest change of the gradient over the distance moved, at step 0",
        "smoothness_last": "the same after the last step",
        "smoothness_most": "the largest of those of all steps at which it was measured",
        "sharpness_first": "largest eigenvalue of the Hessian of the loss, training mode, at step 0",
        "sharpness_last": "the same after the last step",
        "sharpness_most": "the largest of those of all steps at which it was measured",
        "sharpness_ratio_last": "sharpness_last over the curvature at which gradient descent at the last learning rate "
        "is unstable: (2 + 2 momentum) / lr - weight decay",
        "landscape_roughness": "share of the loss's ups and downs along the lines of a map that a valley would not "
        "have, mean over lines; averaged over the run's planes",
        "landscape_rise": "orders of magnitude by which the loss of a map lies above its centre's: mean of "
        "log10(loss / centre loss) over its points; averaged over the run's planes",
        "landscape_nonconvex_share": "share of a map's points where the Hessian's smallest eigenvalue is below -.1 of "
        "the largest; averaged over the run's planes",
        "landscape_curvature_ratio": "-(smallest eigenvalue of the Hessian) / (largest), 0 where none is negative: "
        "median over a map's points; averaged over the run's planes",
        "dh_factor_first": "|dL/dh| at the first layer over the last, per layer (geometric mean), at step 0",
        "dh_factor_last": "the same after the last step",
        "dh_factor_change": "dh_factor_last / dh_factor_first",
        "dw_factor_first": "|dW| at the first layer after the stem over the last, per layer, at step 0",
        "dw_end_log_first": "ln |dW| of the last layer before the head of a transformer, at step 0",
        "gradcheck_complex_median": "gradient check by complex step: median relative error",
        "gradcheck_central_median": "gradient check by central difference at h = 1e-4: median relative error",
        "gradcheck_five_point_median": "gradient check by five-point difference at h = 3e-3: median relative error",
    }
)
"""Every figure that a summary may hold, with its definition; beside those of the user's own probes."""

PROBE = "probe:"
"""Begins the name of what a probe of the user's measured last: `probe:function.name`."""


def is_metric(name: str) -> bool:
    """Whether a summary may hold a figure of this name.

    >>> is_metric("train_loss"), is_metric("probe:spectrum.largest"), is_metric("probe:spectrum")
    (True, True, False)
    """
    function, dot, quantity = name.removeprefix(PROBE).partition(".")
    return name in SUMMARY or (name.startswith(PROBE) and function.isidentifier() and bool(dot and quantity))


def worse_side(metric: str) -> Literal["up", "down"] | None:
    """Which way a figure gets worse; None where neither side is, or where it is a user's own.

    >>> worse_side("train_loss"), worse_side("test_accuracy"), worse_side("dh_factor_first")
    ('up', 'down', None)
    """
    if metric not in SUMMARY:
        return None
    return "up" if "loss" in metric else "down" if "accuracy" in metric else None


def loss_or_accuracy(metric: str) -> str:
    """The name as it came, if it is of a figure that has a worse side.

    Raises:
        ValueError: it is of none.
    """
    if worse_side(metric) is None:
        known = ", ".join(sorted(key for key in SUMMARY if worse_side(key)))
        raise ValueError(f"of {shown(metric)} neither side is worse; wanted a loss or an accuracy. Known: {known}.")
    return metric
