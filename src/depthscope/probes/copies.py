"""Copies of a model, or of a loss, that compute what it computes, in a dtype."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.probes.guard import set_generator
from depthscope.probes.shadow import bare_copy


def copy_of(model: nn.Module) -> nn.Module:
    """A copy without the caller's hooks, but with torch's own that make a weight from others at each pass.

    Those are the older ways of torch (`nn.utils.weight_norm`, `spectral_norm`, `prune`), whose hooks belong to the
    function that is computed. The weight that the last pass made is no leaf, which `copy.deepcopy` refuses; the copy
    gets its values, until it makes its own.

    Raises:
        UserError: see `shadow.bare_copy`.
    """
    hooked = [(each, _makers(each)) for each in model.modules()]
    made = [value for each, hooks in hooked if hooks for value in vars(each).values() if _has_history(value)]
    found = bare_copy(model, {id(each): each.detach().clone() for each in made})
    for (_, hooks), twin in zip(hooked, found.modules(), strict=True):
        for key, hook in hooks.items():
            twin._forward_pre_hooks[key] = copy.deepcopy(hook)
    return found


def recast(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The same module, its numbers of floating point in a dtype, complex ones as precise."""
    change: Any = module._apply  # `.to(dtype)` would take complex numbers for real ones
    change(lambda tensor: cast(tensor, dtype))
    return module


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor of floating point in a dtype, a complex one as precise; any other as it is."""
    if tensor.is_complex():
        return tensor.to(torch.complex128 if dtype is torch.float64 else torch.complex64)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def own_loss_fn(loss_fn: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """A loss to be called with outputs of a dtype; of a module a copy, its class weights and the like in that dtype.

    Raises:
        UserError: see `shadow.bare_copy`.
    """
    return recast(copy_of(loss_fn).to(device=device), dtype) if isinstance(loss_fn, nn.Module) else loss_fn


def restarted(device: torch.device) -> None:
    """Put generators where every evaluation begins, so that a model that draws in it draws alike at every point."""
    set_generator(device, 0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - other people's models may draw from it


def _makers(module: nn.Module) -> dict[int, Any]:
    hooks = module._forward_pre_hooks
    return {key: hook for key, hook in hooks.items() if type(hook).__module__.startswith("torch.nn.utils.")}


def _has_history(value: object) -> bool:
    return isinstance(value, Tensor) and not value.is_leaf
