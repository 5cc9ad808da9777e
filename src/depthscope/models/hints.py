"""What a parameter asks of the optimiser: a repair brings its own groups.

A module of ours says it in a class attribute `hints`, own name -> `ParamHint`; what its scalars start as stands beside
it, in `initial`, own name -> value. Parameters of which nothing is said are treated as the recipe treats all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

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
