"""The tensors of a model, each once, and what is said where nothing fills one."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn


def each_tensor(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, Tensor]]:
    """(name, owner, name in the owner, tensor) of each parameter and buffer, once."""
    # A shared module is visited once, under its first name; so is a tensor that two modules share.
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for tensors in (module.named_parameters(recurse=False), module.named_buffers(recurse=False)):
            for own_name, tensor in tensors:
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{prefix}.{own_name}" if prefix else own_name, module, own_name, tensor


def unfilled(name: str, module: nn.Module, own_name: str, init: object) -> str:
    """The message of a tensor that nothing fills; `init` is a name, or an initialiser of the user's."""
    kind = type(module).__name__
    if not isinstance(init, str):
        return (
            f"{name}: your initialiser gave None for {own_name!r} of {kind}, and no rule fills it. Return its values."
        )
    if init == "torch":
        return (
            f"{name}: no reset_parameters fills {own_name!r} of {kind}, and its constructor draws it at random or "
            "leaves it empty. Draw it in a method reset_parameters of that module, or by an initialiser of your own "
            "(init = 'package.module:function')."
        )
    return (
        f"{name}: no rule of init {init!r} fills {own_name!r} of {kind}. Use init = 'torch' (its own "
        "reset_parameters), or an initialiser of your own (init = 'package.module:function')."
    )
