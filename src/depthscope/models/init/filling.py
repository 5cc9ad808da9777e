"""Overwrite every tensor of a model with its initial value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.hashing import array_digest
from depthscope.core.streams import stream
from depthscope.models.init.gamma import last_gammas
from depthscope.models.init.named import INITIALISERS, TORCH, Initialiser, Rule
from depthscope.models.init.own import reset
from depthscope.models.init.rules import Array, bits, declared_value, fixed_value, is_embedding, weight_of
from depthscope.models.init.tensors import each_tensor, unfilled

Draw = Callable[[str, nn.Module, str, np.random.Generator], Array | None]
"""An initialiser of one's own: `(name, module, own name, generator)` -> the values, or None to leave a parameter to
the rules that draw nothing. The generator is `stream(seed, "init", name)`."""


def fill(
    model: nn.Module,
    seed: int,
    *,
    init: str | Draw = "he_fan_in",
    gain: float = 1.0,
    gains: Mapping[str, float] = {},
    zero_last_gamma: bool = False,
    options: Mapping[str, Any] = {},
    examples: Tensor | None = None,
    kept: frozenset[str] = frozenset(),
    already_reset: bool = False,
) -> dict[str, str]:
    """Overwrite every parameter and buffer of `model` with its initial value.

    - Weights of linear layers (the classifier's too), convolutions, attention: as `init` draws them. Embeddings:
      `rules.is_embedding`.
    - What a module declares in `initial`, biases and normalisers: `rules.fixed_value`.

    Args:
        model: on a real device, its memory perhaps uninitialised.
        seed: parameter `name` is drawn from `stream(seed, "init", name)`.
        init: a name of `INITIALISERS`; `torch`: each module's own `reset_parameters`, under a state of torch's
            generator made from `stream(seed, "init", module name)`; or a `Draw`.
        gain: factor on the standard deviation, for initialisers that take one.
        gains: name of a weight -> gain in place of `gain`, such as that of a stem.
        zero_last_gamma: start with gamma 0 in the normaliser that ends each residual branch, so that
            every branch is 0, see `gamma.last_gammas`.
        options: of the initialiser; `examples`, the number of them, is the caller's.
        examples: inputs of the model, normalised as in training, [N, ...]: for initialisers that measure (`lsuv`).
        kept: names of tensors that have their initial value already.
        already_reset: torch's own initialisation has been done on the CPU.

    Returns:
        Name -> digest of each initial tensor, parameters and buffers, as cast to its own dtype.

    Raises:
        UserError: `init` is unknown, or cannot be had for this model; the model holds a tensor that no rule fills,
            or has no memory; `zero_last_gamma` without residual additions, or where a branch does not end in a
            normaliser; a gain for an initialiser that takes none; no examples for one that measures.
    """
    known = _known(init, gain, gains, options, examples)
    rule = None if known is None else known.rule_for(model)
    zeroed = last_gammas(model) if zero_last_gamma else frozenset()
    every = list(each_tensor(model))
    names = {name for name, _, _, _ in every}
    for name in gains:
        if name not in names:
            raise UserError(f"gains: {type(model).__name__} has no tensor {name!r}.")
    if init == TORCH and not already_reset:
        reset(model, seed, kept)
    drawn = set()
    for name, module, own_name, tensor in every:
        if tensor.is_meta:
            raise UserError(f"{name}: has no memory. Call model.to_empty(device=...) before fill.")
        if name in zeroed:
            value: Array | None = np.zeros(tensor.shape)
        elif name in kept or init == TORCH:
            continue
        elif isinstance(init, str):
            assert rule is not None
            value = _ruled(name, module, own_name, stream(seed, "init", name), rule, gains.get(name, gain))
            drawn.add(name)
        else:
            value = _own(name, module, own_name, tensor, stream(seed, "init", name), init)
        if value is None:
            raise UserError(unfilled(name, module, own_name, init))
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(value).to(tensor.dtype))
    if known is not None and known.finish is not None:
        measured = {name: options[name] for name in known.options if name in options}
        known.finish(model, frozenset(drawn), examples, seed=seed, **measured)
    return {name: array_digest(bits(tensor.detach().cpu()).numpy()) for name, _, _, tensor in every}


def _known(
    init: str | Draw, gain: float, gains: Mapping[str, float], options: Mapping[str, Any], examples: Tensor | None
) -> Initialiser | None:
    """What stands behind a name of the table; None for `torch` and code of the user's."""
    for each in (gain, *gains.values()):
        if not (math.isfinite(each) and each > 0):
            raise UserError(f"gain: wanted a finite number above 0, got {each}.")
    if not isinstance(init, str):
        return None
    if init not in (*INITIALISERS, TORCH):
        raise UserError(unknown_name("init", init, (*INITIALISERS, TORCH)))
    known = INITIALISERS.get(init)
    if (known is None or not known.takes_gain) and any(each != 1 for each in (gain, *gains.values())):
        raise UserError(f"gain: init {init!r} takes none. Leave it away, or choose another init.")
    own = known.options if known else ()
    for name in options:
        if name not in own and not (own and name == "examples"):
            raise UserError(unknown_name(f"option of init {init!r},", name, own))
    if known and known.finish and (examples is None or len(examples) < 2):
        raise UserError(f"init {init!r} measures layers on a batch; give it `examples`, two or more inputs.")
    return known


def _ruled(
    name: str, module: nn.Module, own_name: str, rng: np.random.Generator, rule: Rule, gain: float
) -> Array | None:
    """The initial value of one tensor, by what its module is."""
    tensor: Tensor = getattr(module, own_name)
    if declared_value(module, own_name) is None:
        if is_embedding(module, own_name):
            table: Array = rng.standard_normal(tuple(tensor.shape))
            table *= gain
            padding: Any = module.padding_idx  # the row that stands for it stays 0
            if padding is not None:
                table[padding] = 0
            return table
        if (weight := weight_of(name, module, own_name, gain)) is not None:
            return rule(weight, rng)
    return _fixed(module, own_name, tensor)


def _own(
    name: str, module: nn.Module, own_name: str, tensor: Tensor, rng: np.random.Generator, draw: Draw
) -> Array | None:
    """Of parameters, what the user's initialiser gives; else the fixed value."""
    found = draw(name, module, own_name, rng) if isinstance(tensor, nn.Parameter) else None
    return _fixed(module, own_name, tensor) if found is None else found


def _fixed(module: nn.Module, own_name: str, tensor: Tensor) -> Array | None:
    value = fixed_value(module, own_name)
    return None if value is None else np.full(tuple(tensor.shape), value)
