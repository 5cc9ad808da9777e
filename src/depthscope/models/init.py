"""Initial weights: every tensor from its own named stream, drawn by NumPy in float64, then cast.

Networks that share a tensor's name and shape so start from the same tensor, whatever else they hold,
on every device and in every version of torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.hashing import array_digest
from depthscope.core.streams import stream

FANS: Mapping[str, str] = MappingProxyType({"he_fan_in": "in", "he_fan_out": "out"})
"""Name of an initialiser -> the fan that its variance 2/fan is made of."""


M = TypeVar("M", bound=nn.Module)


def build(
    factory: Callable[[], M],
    *,
    seed: int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    init: str = "he_fan_in",
    gain: float = 1.0,
    zero_last_gamma: bool = False,
) -> tuple[M, dict[str, str]]:
    """Make a model on the meta device, give it memory on `device`, `fill` it.

    The constructors' own random initialisation never happens, so no global generator moves.

    Args:
        factory: makes the model, such as `lambda: cifar_resnet(depth=20)`.
        seed: the run's seed.
        device: where the model shall live.
        dtype: of its floating-point tensors.
        init: as for `fill`.
        gain: as for `fill`.
        zero_last_gamma: as for `fill`.

    Returns:
        The model (in train mode) and the digests that `fill` returns.

    Raises:
        UserError: as for `fill`.
    """
    with torch.device("meta"):
        model = factory()
    model = model.to(dtype=dtype).to_empty(device=device)
    return model, fill(model, seed, init=init, gain=gain, zero_last_gamma=zero_last_gamma)


def fill(
    model: nn.Module, seed: int, *, init: str = "he_fan_in", gain: float = 1.0, zero_last_gamma: bool = False
) -> dict[str, str]:
    """Overwrite every parameter and buffer of `model` with its initial value.

    - Weights of convolutions and linear layers, the classifier's too: N(0, gain^2 2/fan), He et al. 2015
      (arXiv 1502.01852, equations 10 and 14). A classifier with K outputs has fan_out K, so `he_fan_out`
      makes its weights larger than `he_fan_in` does.
    - Biases 0. Batch norm: gamma 1, beta 0, running mean 0, running variance 1, counter 0.

    Args:
        model: on a real device, its memory perhaps uninitialised.
        seed: parameter `name` is drawn from `stream(seed, "init", name)`.
        init: `he_fan_in` or `he_fan_out`. They differ where a layer changes the number of channels:
            published reproductions of the CIFAR networks use either.
        gain: factor on the standard deviation.
        zero_last_gamma: start with gamma 0 in the batch norm that ends each residual branch, so that
            every branch is 0 (Goyal et al. 2017, arXiv 1706.02677, section 5.1). Read from
            `model.additions()`.

    Returns:
        Name -> digest of each initial tensor, parameters and buffers, as cast to its own dtype.

    Raises:
        UserError: `init` is unknown; the model holds a tensor that no rule fills, or has no memory;
            `zero_last_gamma` without residual additions, or where a branch does not end in batch norm.
    """
    if init not in FANS:
        raise UserError(unknown_name("init", init, FANS))
    if not (math.isfinite(gain) and gain > 0):
        raise UserError(f"gain: wanted a finite number above 0, got {gain}.")
    zeroed = _last_gammas(model) if zero_last_gamma else frozenset()
    digests: dict[str, str] = {}
    # A shared module is visited once, under its first name; so is a tensor that two modules share.
    filled: set[int] = set()
    for prefix, module in model.named_modules():
        for own_name, tensor in _own_tensors(module):
            name = f"{prefix}.{own_name}" if prefix else own_name
            if id(tensor) in filled:
                continue
            filled.add(id(tensor))
            if tensor.is_meta:
                raise UserError(f"{name}: has no memory. Call model.to_empty(device=...) before fill.")
            value = np.zeros(tensor.shape) if name in zeroed else _initial(module, own_name, name, seed, init, gain)
            assert value.shape == tensor.shape, f"{name}: drew {value.shape} for {tuple(tensor.shape)}"
            cast = torch.from_numpy(value).to(tensor.dtype)
            with torch.no_grad():
                tensor.copy_(cast)
            # NumPy has no bfloat16: take its bits.
            digests[name] = array_digest((cast.view(torch.int16) if cast.dtype is torch.bfloat16 else cast).numpy())
    return digests


def fans(weight: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight stored as torch does: [out, in / groups, *kernel].

    fan_in is the number of inputs that one output sums over. fan_out is `out` times the kernel's size:
    the number of outputs that one input reaches where stride and groups are 1, as in the paper.
    """
    kernel = math.prod(weight.shape[2:])
    return weight.shape[1] * kernel, weight.shape[0] * kernel


def _own_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters(recurse=False)
    yield from module.named_buffers(recurse=False)


def _initial(module: nn.Module, own_name: str, name: str, seed: int, init: str, gain: float) -> NDArray[np.float64]:
    """The initial value of one tensor, by what its module is."""
    shape: torch.Size = getattr(module, own_name).shape
    if isinstance(module, nn.Conv2d | nn.Linear):
        if own_name == "weight":
            fan_in, fan_out = fans(module.weight)
            fan = {"in": fan_in, "out": fan_out}[FANS[init]]
            standard: NDArray[np.float64] = stream(seed, "init", name).standard_normal(shape)
            return standard * (gain * math.sqrt(2 / fan))
        if own_name == "bias":
            return np.zeros(shape)
    if isinstance(module, _BatchNorm):
        if own_name in ("weight", "running_var"):
            return np.ones(shape)
        if own_name in ("bias", "running_mean", "num_batches_tracked"):
            return np.zeros(shape)
    raise UserError(
        f"{name}: no rule of init {init!r} fills {own_name!r} of {type(module).__name__}. "
        "Add one to depthscope.models.init."
    )


def _last_gammas(model: nn.Module) -> frozenset[str]:
    find = getattr(model, "additions", None)
    additions = find() if callable(find) else ()
    if not additions:
        raise UserError(
            "zero_last_gamma: this network has no residual addition (shortcut none), so all of its output "
            "would be zero. Choose shortcut A or B, or leave zero_last_gamma out."
        )
    for addition in additions:
        if not isinstance(model.get_submodule(addition.branch), _BatchNorm):
            raise UserError(f"zero_last_gamma: {addition.branch}, the end of a residual branch, is no batch norm.")
    return frozenset(f"{addition.branch}.weight" for addition in additions)
