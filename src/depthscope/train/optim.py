"""The optimiser of a run in torch, with the groups of parameters that the model asks for."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from depthscope.models.hints import LR_SCALE, parameter_groups
from depthscope.study.run import RunSpec
from depthscope.train.build import resolve, target_of
from depthscope.train.twin import is_twin


def make_optimizer(spec: RunSpec, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser of a run, over all parameters of its model, grouped by what they ask for."""
    options: dict[str, Any] = dict(spec.optimizer_options)
    if "beta1" in options:
        options["betas"] = (options.pop("beta1"), options.pop("beta2"))
    if is_twin(spec):
        options["foreach"] = True  # of a hundred small tensors: the same bits as one by one, in a third of the time
    make = resolve(target_of("optimizer", spec.optimizer, "torch"))
    made: torch.optim.Optimizer = make(parameter_groups(model, lr=spec.lr), lr=spec.lr, **options)
    return made


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give each group the schedule's learning rate, times its own factor."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group[LR_SCALE] if LR_SCALE in group else lr
