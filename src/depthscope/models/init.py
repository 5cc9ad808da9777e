"""Initial weights: every tensor from its own named stream, drawn by NumPy in float64, then cast.

Networks that share a tensor's name and shape so start from the same tensor, whatever else they hold,
on every device and in every version of torch. (`init = "torch"` alone draws by torch's own generator, one
state a module: equal between arms and devices, and as stable between versions as torch is.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.hashing import array_digest
from depthscope.core.streams import stream
from depthscope.models.construct import construct, seeded
from depthscope.models.rules import FANS, NORMALISERS, bits, fixed_value, standard_deviation, zeroed_row
from depthscope.models.rules import fans as fans

TORCH = "torch"
"""The initialiser that is each module's own `reset_parameters`."""

Draw = Callable[[str, nn.Module, str, np.random.Generator], NDArray[Any] | None]
"""An initialiser of one's own: `(name, module, own name, generator)` -> the values, or None to leave a parameter to
the rules that draw nothing. The generator is `stream(seed, "init", name)`."""

M = TypeVar("M", bound=nn.Module)


def build(
    factory: Callable[[], M],
    *,
    seed: int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    init: str | Draw = "he_fan_in",
    gain: float = 1.0,
    zero_last_gamma: bool = False,
    constants: bool = False,
) -> tuple[M, dict[str, str]]:
    """Make a model and `fill` it.

    It is made on the meta device, where the constructors' own random initialisation never happens; with
    `constants`, or where torch itself is to initialise, on the CPU and twice, which tells what the
    constructor sets from what it draws. No global generator moves in either case.

    Args:
        factory: makes the model, such as `lambda: cifar_resnet(depth=20)`.
        seed: the run's seed.
        device: where the model shall live.
        dtype: of its floating-point tensors.
        init: as for `fill`.
        gain: as for `fill`.
        zero_last_gamma: as for `fill`.
        constants: keep the tensors that the constructor sets to a constant, such as masks.

    Returns:
        The model (in train mode) and the digests that `fill` returns.

    Raises:
        UserError: as for `fill`.
    """
    options: dict[str, Any] = {"init": init, "gain": gain, "zero_last_gamma": zero_last_gamma}
    if constants or init == TORCH:
        model, kept = construct(factory)
        if init == TORCH:
            _reset(model, seed, kept)
        model = model.to(dtype=dtype).to(device=device)
        return model.train(), fill(model, seed, kept=kept, already_reset=init == TORCH, **options)
    with torch.device("meta"):
        model = factory()
    model = model.to(dtype=dtype).to_empty(device=device)
    return model, fill(model, seed, **options)


def fill(
    model: nn.Module,
    seed: int,
    *,
    init: str | Draw = "he_fan_in",
    gain: float = 1.0,
    zero_last_gamma: bool = False,
    kept: frozenset[str] = frozenset(),
    already_reset: bool = False,
) -> dict[str, str]:
    """Overwrite every parameter and buffer of `model` with its initial value.

    - Weights of linear layers (the classifier's too), convolutions, attention: N(0, gain^2 2/fan), see
      `rules.standard_deviation`. A classifier with K outputs has fan_out K, so `he_fan_out` makes its weights
      larger than `he_fan_in` does.
    - Biases and normalisers: `rules.fixed_value`.

    Args:
        model: on a real device, its memory perhaps uninitialised.
        seed: parameter `name` is drawn from `stream(seed, "init", name)`.
        init: `he_fan_in` or `he_fan_out`, which differ where a layer changes the number of channels
            (published reproductions of the CIFAR networks use either); `torch`: each module's own
            `reset_parameters`, under a state of torch's generator made from `stream(seed, "init", module name)`;
            or a `Draw`.
        gain: factor on the standard deviation.
        zero_last_gamma: start with gamma 0 in the normaliser that ends each residual branch, so that
            every branch is 0 (Goyal et al. 2017, arXiv 1706.02677, section 5.1). Read from
            `model.additions()`.
        kept: names of tensors that have their initial value already.
        already_reset: torch's own initialisation has been done on the CPU.

    Returns:
        Name -> digest of each initial tensor, parameters and buffers, as cast to its own dtype.

    Raises:
        UserError: `init` is unknown; the model holds a tensor that no rule fills, or has no memory;
            `zero_last_gamma` without residual additions, or where a branch does not end in a normaliser.
    """
    if isinstance(init, str) and init not in (*FANS, TORCH):
        raise UserError(unknown_name("init", init, (*FANS, TORCH)))
    if not (math.isfinite(gain) and gain > 0):
        raise UserError(f"gain: wanted a finite number above 0, got {gain}.")
    zeroed = _last_gammas(model) if zero_last_gamma else frozenset()
    if init == TORCH and not already_reset:
        _reset(model, seed, kept)
    digests: dict[str, str] = {}
    for name, module, own_name, tensor in _each_tensor(model):
        if tensor.is_meta:
            raise UserError(f"{name}: has no memory. Call model.to_empty(device=...) before fill.")
        if name in zeroed:
            value: NDArray[Any] | None = np.zeros(tensor.shape)
        elif name in kept or init == TORCH:
            value = None
        else:
            value = _initial(name, module, own_name, stream(seed, "init", name), init, gain)
        with torch.no_grad():
            cast = tensor.detach().cpu() if value is None else torch.from_numpy(value).to(tensor.dtype)
            if value is not None:
                tensor.copy_(cast)
        digests[name] = array_digest(bits(cast).numpy())
    return digests


def _each_tensor(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, Tensor]]:
    """(name, owner, name in the owner, tensor) of each parameter and buffer, once."""
    # A shared module is visited once, under its first name; so is a tensor that two modules share.
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for tensors in (module.named_parameters(recurse=False), module.named_buffers(recurse=False)):
            for own_name, tensor in tensors:
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{prefix}.{own_name}" if prefix else own_name, module, own_name, tensor


def _initial(
    name: str, module: nn.Module, own_name: str, rng: np.random.Generator, init: str | Draw, gain: float
) -> NDArray[Any]:
    """The initial value of one tensor, by what its module is."""
    shape: torch.Size = getattr(module, own_name).shape
    if not isinstance(init, str):
        drawn = init(name, module, own_name, rng) if isinstance(getattr(module, own_name), nn.Parameter) else None
        if drawn is not None:
            return drawn
    else:
        deviation = standard_deviation(module, own_name, init)
        if deviation is not None:
            standard: NDArray[np.float64] = rng.standard_normal(shape)
            standard *= gain * deviation
            row = zeroed_row(module, own_name)
            if row is not None:
                standard[row] = 0
            return standard
    fixed = fixed_value(module, own_name)
    if fixed is None:
        raise UserError(_unfilled(name, module, own_name, init))
    return np.full(shape, fixed)


def _unfilled(name: str, module: nn.Module, own_name: str, init: str | Draw) -> str:
    kind = type(module).__name__
    if not isinstance(init, str):
        return (
            f"{name}: your initialiser gave None for {own_name!r} of {kind}, and no rule fills it. Return its values."
        )
    if init == TORCH:
        return (
            f"{name}: no reset_parameters fills {own_name!r} of {kind}, and its constructor draws it at random or "
            "leaves it empty. Draw it in a method reset_parameters of that module, or by an initialiser of your own "
            "(init = 'package.module:function')."
        )
    return (
        f"{name}: no rule of init {init!r} fills {own_name!r} of {kind}. Use init = 'torch' (its own "
        "reset_parameters), or an initialiser of your own (init = 'package.module:function')."
    )


def _reset(model: nn.Module, seed: int, kept: frozenset[str]) -> None:
    """Call each module's own initialisation, children before parents, each under its own state of the generator.

    Raises:
        UserError: a tensor is left as it was, and its constructor had not set it either; or is not on the CPU,
            whose generator alone gives the same draws for every device.
    """
    every = list(_each_tensor(model))
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
        reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
        if callable(reset):
            with seeded(int(stream(seed, "init", prefix).integers(2**63))):
                reset()
    with torch.no_grad():
        for tensor, value in constants:  # a parent's constructor may have set what a child's reset draws
            tensor.copy_(value)
    for name, module, own_name, tensor in every:
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            raise UserError(_unfilled(name, module, own_name, TORCH))


def _last_gammas(model: nn.Module) -> frozenset[str]:
    find = getattr(model, "additions", None)
    if not callable(find):
        raise UserError(
            f"zero_last_gamma: {type(model).__name__} has no method additions() that names its residual branches. "
            "Give it one, or leave zero_last_gamma out."
        )
    additions = find()
    if not additions:
        raise UserError(
            "zero_last_gamma: this network has no residual addition (shortcut none), so all of its output "
            "would be zero. Choose shortcut A or B, or leave zero_last_gamma out."
        )
    for addition in additions:
        if not isinstance(model.get_submodule(addition.branch), NORMALISERS):
            raise UserError(f"zero_last_gamma: {addition.branch}, the end of a residual branch, is no normaliser.")
    return frozenset(f"{addition.branch}.weight" for addition in additions)
