"""What a parameter asks of the optimiser: a repair brings its own groups.

A module of ours says it in a class attribute `hints`, own name -> `ParamHint`; what its scalars start as stands beside
it, in `initial`, own name -> value. Parameters of which nothing is said are treated as the recipe treats all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from depthscope.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ParamHint:
    """How one parameter is updated.

    Attributes:
        lr_scale: factor on the recipe's learning rate (Fixup: 0.1 for its scalars).
        weight_decay: whether the recipe's weight decay applies (ReZero: not to its a).

    Raises:
        UserError: a value of another kind.
    """

    lr_scale: float = 1.0
    weight_decay: bool = True

    def __post_init__(self) -> None:
        scale = self.lr_scale
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not (math.isfinite(scale) and scale >= 0):
            raise UserError(f"ParamHint: wanted a finite number, 0 or more, for lr_scale, got {scale!r}.")
        if not isinstance(self.weight_decay, bool):
            raise UserError(f"ParamHint: wanted True or False for weight_decay, got {self.weight_decay!r}.")


PLAIN = ParamHint()
"""What a parameter asks for that asks for nothing."""

LR_SCALE = "lr_scale"
"""Key of an optimiser's group under which the factor on its learning rate is kept, where there is one."""


def hints_of(model: nn.Module) -> dict[str, ParamHint]:
    """Name -> hint of every parameter that asks for something else than `PLAIN`."""
    found: dict[str, ParamHint] = {}
    for prefix, module in model.named_modules():
        own = getattr(module, "hints", {})
        for own_name, hint in own.items() if isinstance(own, Mapping) else ():
            # A module of somebody else's may use the name for something of its own.
            if isinstance(hint, ParamHint) and hint != PLAIN:
                found[f"{prefix}.{own_name}" if prefix else own_name] = hint
    return found


def parameter_groups(model: nn.Module, *, lr: float) -> list[dict[str, Any]]:
    """All parameters of a model, for any optimiser of torch: a group for each treatment that they ask for.

    Parameters of which the model says nothing are the first group, treated as the optimiser's own arguments say; each
    other treatment has a group of its own, in an order that does not depend on where in the model it is asked for.
    Groups without weight decay say `weight_decay = 0`. Those with a factor on the learning rate say their own `lr`,
    from which torch's schedulers go on, and the factor as `lr_scale` for loops that set the rate themselves.

    Args:
        model: whose modules may have `hints`.
        lr: the recipe's learning rate; the optimiser is to be given the same.
    """
    named = dict(model.named_parameters(remove_duplicate=False))
    # A parameter that a module leaves out, such as the bias of a convolution, has a hint and no tensor.
    hints = {id(named[name]): hint for name, hint in hints_of(model).items() if name in named}
    parameters = list(model.parameters())
    asked = sorted(set(hints.values()) - {PLAIN}, key=lambda hint: (hint.lr_scale, hint.weight_decay))
    groups = []
    for hint in (PLAIN, *asked):
        own = [each for each in parameters if hints.get(id(each), PLAIN) == hint]
        if own:
            groups.append({"params": own, **_differs(hint, lr)})
    return groups


def _differs(hint: ParamHint, lr: float) -> dict[str, Any]:
    """What of a group's options is not the recipe's."""
    scale = {} if hint.lr_scale == 1 else {"lr": lr * hint.lr_scale, LR_SCALE: hint.lr_scale}
    return scale if hint.weight_decay else {**scale, "weight_decay": 0.0}
