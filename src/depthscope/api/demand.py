"""A profile with what is measured on demand, each with its cost told before it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Literal

from torch import nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.readings import ModelProfile, Reading
from depthscope.probes import demand
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
    asked = {measure} if isinstance(measure, str) else set(measure)
    counter = demand.SampleCounter()
    seen = [counter] if "units" in asked else []
    profile = profile_model(model, batch, loss_fn, step=step, data=data, seed=seed, reducers=seen)
    if seen and (why := demand.too_few(counter.most(profile.structure))):
        raise UserError(f"measure: {why}")
    structure, num_examples = profile.structure, profile.conditions[step].batch
    told: list[str] = []

    def announce(text: str) -> None:
        told.append(text)
        if tell is not None:
            tell(text)

    reducers = []
    if "rank" in asked:
        announce(str(demand.rank_cost(structure, num_examples)))
        reducers.append(demand.rank_reducer(structure))
    if "units" in asked:
        announce(str(demand.units_cost(structure)))
        reducers.append(demand.unit_reducer(structure))
    if reducers:
        profile = profile_model(model, batch, loss_fn, step=step, data=data, seed=seed, reducers=reducers)
    further: list[Reading] = []
    if "jacobian" in asked:
        announce(str(demand.jacobian_cost(structure, num_examples)))
        spectra = demand.block_spectra(model, batch, seed=seed)
        further += spectra.readings(step)
        for block, why in spectra.missing.items():
            announce(f"Jacobian of {block}: none; {why}")
    if "trust" in asked:
        announce(str(demand.trust_cost(structure)))
        further += demand.gradient_trust(model, batch, loss_fn, seed=seed).readings(step)
    return dataclasses.replace(profile, readings=(*profile.readings, *further)), tuple(told)
