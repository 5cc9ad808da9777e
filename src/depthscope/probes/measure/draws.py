"""Models that drop layers at random in Python: what one pass left out is not unused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from depthscope.core.readings import ModelProfile
from depthscope.probes.guard import set_generator, undisturbed
from depthscope.probes.trace import Traced

_IN_VAIN, _MOST = 2, 16
"""Passes that take no more parameters than those before, after which no more are made; and passes in all."""


def with_other_draws(model: nn.Module, profile: ModelProfile, run: Callable[[], Traced]) -> ModelProfile:
    """A profile that tells the parameters that no pass takes from those that the measured one left out.

    Passes with other draws of the generators on the CPU are made, in train mode, and only where the measured one left
    parameters out. Those that one of them takes are used in the structure, while their statuses stay those of
    the measured pass.

    Args:
        model: unwrapped.
        profile: of one pass.
        run: traces the model on the same batch, and leaves it as found.
    """
    structure = profile.structure
    unused = {each.name for each in structure.parameters if not each.used}
    left, in_vain = set(unused), 0
    with undisturbed(torch.device("cpu")):
        for seed in range(_MOST):
            if not (model.training and left and in_vain < _IN_VAIN):
                break
            set_generator("cpu", seed)
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002 - other people's models may draw from it
            try:
                taken = {each.name for each in run().structure.parameters if each.used}
            except Exception:  # what fails with other draws says nothing of the pass that was measured
                break
            in_vain = 0 if left & taken else in_vain + 1
            left -= taken
    if left == unused:
        return profile
    silent = "the model runs other operations from pass to pass, and this one left layers out"
    return replace(
        profile,
        structure=replace(
            structure,
            parameters=tuple(replace(each, used=each.name not in left) for each in structure.parameters),
        ),
        conditions={
            step: replace(each, silent="; ".join(part for part in (each.silent, silent) if part))
            for step, each in profile.conditions.items()
        },
    )
