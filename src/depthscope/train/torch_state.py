"""The state of a model and its optimiser as arrays, and back, without a bit or a layout in memory changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from depthscope.train.state import named, part


def tensors_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """Copies of weights and buffers, and of what the optimiser remembers of each parameter.

    Parameters are counted as the model holds them, in whatever groups the optimiser has them.
    """
    kept = {
        f"{index}.{name}": _array(value)
        for index, parameter in enumerate(model.parameters())
        for name, value in optimizer.state.get(parameter, {}).items()
        if value is not None  # SGD without momentum notes that it has none
    }
    return {**named("model", state_arrays(model)), **named("optimizer", kept)}


def state_arrays(model: nn.Module) -> dict[str, NDArray[Any]]:
    """Copies of weights and buffers, by name."""
    return {name: _array(value) for name, value in model.state_dict().items()}


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, NDArray[Any]]) -> None:
    """The inverse of `tensors_of`, for a model and an optimiser made anew from the same spec.

    Raises:
        RuntimeError: tensors of another model.
    """
    # `load_state_dict` copies into the tensors that are there, so they keep their layout in memory.
    model.load_state_dict({name: _tensor(value) for name, value in part(tensors, "model").items()})
    state: dict[int, dict[str, Tensor]] = {}
    parameters = list(model.parameters())
    grouped = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    places = {id(parameter): at for at, parameter in enumerate(grouped)}  # torch counts through the groups
    for name, value in part(tensors, "optimizer").items():
        index, _, key = name.partition(".")
        like, found = parameters[int(index)], _tensor(value)
        if found.shape == like.shape and like.ndim:
            # Laid out as the parameter, as the optimiser's own is: a kernel may round otherwise on another layout.
            found = torch.empty_like(like, dtype=found.dtype, requires_grad=False).copy_(found)
        state.setdefault(places[id(like)], {})[key] = found
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _array(value: Tensor | float) -> NDArray[Any]:
    tensor = torch.as_tensor(value).detach().cpu()
    # NumPy has no bfloat16. Nothing of ours is kept in it, but a model of one's own may; each is exact in float32.
    return np.array((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy(), order="C")


def _tensor(value: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.array(value))
