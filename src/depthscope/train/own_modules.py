"""Modules that functions of the user's made for a network of ours: what they declare, and one pass through them."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.hints import ParamHint
from depthscope.study.run import RunSpec
from depthscope.train.own import made_by
from depthscope.train.usercode import network_name, network_targets


def check_declared(model: nn.Module) -> None:
    """See that `hints` and `initial` of the user's modules are what is read of them, and name tensors of theirs.

    Of any other module they are left alone, which may use these names for something of its own.

    Raises:
        UserError: one is not.
    """
    for prefix, module, _, target in _made(model):
        for name, each in module.named_modules(prefix=prefix):
            for attribute, what, fits in (
                ("hints", "depthscope.models.shortcuts.ParamHint", lambda value: isinstance(value, ParamHint)),
                ("initial", "a finite number", _is_number),
            ):
                given = getattr(each, attribute, {})
                wanted = f"{target}: {name}.{attribute}: wanted a mapping of its tensors' names, each to {what}"
                if not isinstance(given, Mapping):
                    raise UserError(f"{wanted}; got {given!r}.")
                for own_name, value in given.items():
                    if not fits(value):
                        raise UserError(f"{wanted}; got {own_name!r}: {value!r}.")
                    if own_name not in each._parameters and own_name not in each._buffers:
                        known = ", ".join([*each._parameters, *each._buffers]) or "none"
                        raise UserError(f"{wanted}; it has no {own_name!r}. Its own: {known}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@contextlib.contextmanager
def watched(spec: RunSpec, model: nn.Module) -> Iterator[None]:
    """See what the user's modules do in a forward pass within the block.

    A normaliser and an activation keep the shape, the type and the device of what comes in, and a join those of its
    branch, as does a skip of what it is joined to. None changes what comes in: in a network without a normaliser an
    activation in place would change the skip too. None makes a NaN of numbers of an ordinary size. Draws are torch's:
    a run puts no other generator where its seed and its step say.

    Raises:
        UserError: one does otherwise.
    """
    handles = []
    for name, module, part, target in _made(model):
        before, after = _watch(name, part, target)
        handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
    python, legacy = random.getstate(), str(np.random.get_state())  # noqa: NPY002 - what code of the user's may use
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    moved = "random" if random.getstate() != python else "numpy.random"
    if network_targets(spec) and (moved == "random" or str(np.random.get_state()) != legacy):  # noqa: NPY002
        raise UserError(
            f"{network_name(spec)}: draws from the global generator of {moved} in the forward pass, which nothing puts "
            "where the seed and the step say, so that the run could not be repeated. Draw by torch (torch.rand)."
        )


_ORDINARY = 1e6
"""Beyond it a NaN may be the depth's doing, and a run that ends so is a finding."""


def _watch(name: str, part: str, target: str) -> tuple[Callable[..., None], Callable[..., None]]:
    came: list[Tensor] = []

    def before(_module: nn.Module, given: tuple[Any, ...]) -> None:
        if part == "join":
            s, f = given
            if _form(s) != _form(f):
                raise UserError(f"{target}: {name}: the skip gave {_shown(s)}; wanted the branch's {_shown(f)}.")
        came[:] = [each.detach().clone() for each in given]

    def after(_module: nn.Module, given: tuple[Any, ...], made: Any) -> None:
        for old, new in zip(came, given, strict=True):
            if old.shape != new.shape or not torch.equal(old.nan_to_num(), new.detach().nan_to_num()):
                raise UserError(f"{target}: {name} changes its input in place. Give a new tensor.")
        wanted = given[-1]
        if not isinstance(made, Tensor):
            raise UserError(f"{target}: {name} gave {type(made).__name__}; wanted a tensor.")
        if part != "skip" and _form(made) != _form(wanted):  # a skip's is seen where it is joined
            raise UserError(f"{target}: {name} gave {_shown(made)}; wanted {_shown(wanted)}, as it came in.")
        ordinary = all(bool((each.abs() <= _ORDINARY).all()) for each in came)  # of a NaN false
        if ordinary and bool(made.isnan().any()):
            raise UserError(f"{target}: {name} gave NaN for numbers between -{_ORDINARY:g} and {_ORDINARY:g}.")
        came.clear()

    return before, after


def _form(tensor: Any) -> object:
    if not isinstance(tensor, Tensor):
        return type(tensor)
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _shown(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        return type(tensor).__name__
    where = "" if tensor.device.type == "cpu" else f" on {tensor.device}"
    return f"{tensor.dtype} of shape {list(tensor.shape)}{where}"


def _made(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, str]]:
    """(name, module, what it is to its block, the user's function) of each module that a function made."""
    for name, module in model.named_modules():
        if (known := made_by(module)) is not None:
            yield name, module, *known
