"""The initialiser `torch`: each module's own `reset_parameters`, under a named state of torch's generator."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.models.construct import seeded
from depthscope.models.init.rules import declared_value
from depthscope.models.init.tensors import each_tensor, unfilled


def reset(model: nn.Module, seed: int, kept: frozenset[str]) -> None:
    """Call each module's own initialisation, children before parents, each under its own state of the generator.

    Raises:
        UserError: a tensor is left as it was, and its constructor had not set it either; or is not on the CPU,
            whose generator alone gives the same draws for every device.
    """
    every = list(each_tensor(model))
    constants: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for name, _, _, tensor in every:
            if tensor.device.type != "cpu":
                raise UserError(f"{name}: is on {tensor.device}; init 'torch' draws on the CPU. Use `build`.")
            if name in kept:
                constants.append((tensor, tensor.clone()))
            elif tensor.is_floating_point():  # (integers are counters and indices: constants, or set by a reset)
                tensor.fill_(math.nan)  # where nothing writes, it stays
    for prefix, module in reversed(list(model.named_modules())):
        # Attention and the transformer name theirs with an underscore. A parent comes after its children, since
        # it may set their tensors again, as attention does with the bias of its last projection.
        method = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
        if callable(method):
            with seeded(int(stream(seed, "init", prefix).integers(2**63))):
                method()
    with torch.no_grad():
        for tensor, value in constants:  # a parent's constructor may have set what a child's reset draws
            tensor.copy_(value)
        for _, module, own_name, tensor in every:
            if (declared := declared_value(module, own_name)) is not None:
                tensor.fill_(declared)
    for name, module, own_name, tensor in every:
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            raise UserError(unfilled(name, module, own_name, "torch"))
