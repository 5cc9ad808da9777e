"""Copies of a model that compute what it computes."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import nn

from depthscope.probes.guard import set_generator
from depthscope.probes.shadow import bare_copy


def copy_of(model: nn.Module) -> nn.Module:
    """A copy without the caller's hooks, but with torch's own that make a weight from others (`weight_norm`, `prune`).

    Raises:
        UserError: see `shadow.bare_copy`.
    """
    copy = bare_copy(model)
    for module, twin in zip(model.modules(), copy.modules(), strict=True):
        for key, hook in module._forward_pre_hooks.items():
            if type(hook).__module__.startswith("torch.nn.utils."):
                twin._forward_pre_hooks[key] = hook
    return copy


def restarted(device: torch.device) -> None:
    """Put generators where every evaluation begins, so that a model that draws in it draws alike at every point."""
    set_generator(device, 0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - other people's models may draw from it
