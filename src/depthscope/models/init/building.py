"""Make a model and fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from depthscope.models.construct import construct
from depthscope.models.init.filling import Draw, fill
from depthscope.models.init.named import INITIALISERS, TORCH
from depthscope.models.init.own import reset

M = TypeVar("M", bound=nn.Module)


def build(
    factory: Callable[[], M],
    *,
    seed: int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    init: str | Draw = "he_fan_in",
    gain: float = 1.0,
    gains: Mapping[str, float] = {},
    zero_last_gamma: bool = False,
    constants: bool = False,
    options: Mapping[str, Any] = {},
    examples: Tensor | None = None,
) -> tuple[M, dict[str, str]]:
    """Make a model and `fill` it.

    It is made on the meta device, where the constructors' own random initialisation never happens; with
    `constants`, or where torch itself is to initialise, on the CPU and twice, which tells what the
    constructor sets from what it draws. No global generator moves in either case. An initialiser that measures
    does so on the CPU, so that its result does not depend on the device.

    Args:
        factory: makes the model, such as `lambda: cifar_resnet(depth=20)`.
        seed: the run's seed.
        device: where the model shall live.
        dtype: of its floating-point tensors.
        init: as for `fill`.
        gain: as for `fill`.
        gains: as for `fill`.
        zero_last_gamma: as for `fill`.
        constants: keep the tensors that the constructor sets to a constant, such as masks.
        options: as for `fill`.
        examples: as for `fill`, on any device.

    Returns:
        The model (in train mode) and the digests that `fill` returns.

    Raises:
        UserError: as for `fill`.
    """
    filling: dict[str, Any] = {
        "init": init,
        "gain": gain,
        "gains": gains,
        "zero_last_gamma": zero_last_gamma,
        "options": options,
        "examples": examples,
    }
    measures = isinstance(init, str) and init in INITIALISERS and INITIALISERS[init].finish is not None
    home = "cpu" if measures else device
    if constants or init == TORCH:
        model, kept = construct(factory)
        if init == TORCH:
            reset(model, seed, kept)
        model = model.to(dtype=dtype).to(device=home)
        digests = fill(model.train(), seed, kept=kept, already_reset=init == TORCH, **filling)
    else:
        with torch.device("meta"):
            model = factory()
        model = model.to(dtype=dtype).to_empty(device=home)
        digests = fill(model, seed, **filling)
    return model.to(device=device), digests
