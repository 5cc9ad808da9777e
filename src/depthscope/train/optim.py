"""The optimiser of a run in torch, with a group of parameters for each treatment that they ask for."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from depthscope.models.hints import PLAIN, ParamHint, hints_of
from depthscope.study.run import RunSpec
from depthscope.train.build import resolve, target_of
from depthscope.train.twin import is_twin

_SCALE = "lr_scale"


def make_optimizer(spec: RunSpec, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser of a run, over all parameters of its model.

    Parameters of which the model says nothing are the first group, treated as the recipe says; each other treatment
    has a group of its own, in an order that does not depend on where in the model it is asked for.
    """
    options: dict[str, Any] = dict(spec.optimizer_options)
    if spec.optimizer == "adam":
        options = {"betas": (options["beta1"], options["beta2"]), "eps": options["eps"]}
    if is_twin(spec):
        options["foreach"] = True  # of a hundred small tensors: the same bits as one by one, in a third of the time
    make = resolve(target_of("optimizer", spec.optimizer, "torch"))
    made: torch.optim.Optimizer = make(_groups(model), lr=spec.lr, **options)
    return made


def _groups(model: nn.Module) -> list[dict[str, Any]]:
    named = dict(model.named_parameters(remove_duplicate=False))
    # A parameter that a module leaves out, such as the bias of a convolution, has a hint and no tensor.
    hints = {id(named[name]): hint for name, hint in hints_of(model).items() if name in named}
    parameters = list(model.parameters())
    asked = sorted(set(hints.values()) - {PLAIN}, key=lambda hint: (hint.lr_scale, hint.weight_decay))
    groups = []
    for hint in (PLAIN, *asked):
        own = [each for each in parameters if hints.get(id(each), PLAIN) == hint]
        if own:
            groups.append({"params": own, **_differs(hint)})
    return groups


def _differs(hint: ParamHint) -> dict[str, Any]:
    """What of a group's options is not the recipe's."""
    scale = {} if hint.lr_scale == 1 else {_SCALE: hint.lr_scale}
    return scale if hint.weight_decay else {**scale, "weight_decay": 0.0}


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give each group the schedule's learning rate, times its own factor."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group[_SCALE] if _SCALE in group else lr
