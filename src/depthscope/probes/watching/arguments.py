"""The arguments of a training pass, copied for a pass before it: what that one writes, pops or draws is not missed."""

from __future__ import annotations

import copy
import dataclasses
import enum
import types
from collections import UserDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.probes.contents import GENERATORS, remembered_generator
from depthscope.probes.guard import as_found

_NO_STATE = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    np.generic,
    enum.Enum,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    type,
    types.NoneType,
    types.EllipsisType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
)
_OWN_WAYS = ("__copy__", "__deepcopy__", "__reduce__", "__getstate__", "__setstate__", "__slots__")


class Uncopyable(Exception):
    """An argument has a state that a further pass may change for good."""


@contextmanager
def copied(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Copies of a pass's arguments; generators among them are put back afterwards.

    Tensors are cloned, each once and with its strides, since operations depend on them (`reshape` copies or not);
    dicts, lists, tuples, sets, dataclasses and plain objects are rebuilt around the clones. What the model holds
    itself stays: it is put back by `as_found`.

    Args:
        model: that is to take them.
        args: by position.
        kwargs: by name.

    Raises:
        Uncopyable: an iterator, a stream, an object whose class copies in ways of its own.
    """
    copier = _Copier(model)
    given = copier(args), copier(dict(kwargs))
    with ExitStack() as stack:
        for module in copier.modules:
            stack.enter_context(as_found(module))
        for restore in copier.restores:
            stack.callback(restore)
        yield given


class _Copier:
    """One tree of arguments. Whatever stands in it twice stands twice in the copy."""

    def __init__(self, model: nn.Module) -> None:
        held = (*model.modules(), *model.parameters(), *model.buffers())
        self._done: dict[int, Any] = {id(each): each for each in held}
        self._alive: list[Any] = []  # an id is one object's only while that lives
        self.modules: list[nn.Module] = []
        self.restores: list[Callable[[], object]] = []

    def __call__(self, item: Any) -> Any:
        if isinstance(item, _NO_STATE):
            return item
        if id(item) not in self._done:
            self._alive.append(item)
            self._done[id(item)] = self._copy(item)
        return self._done[id(item)]

    def _copy(self, item: Any) -> Any:
        kind = type(item)
        if isinstance(item, Tensor):
            return _clone(item)
        if isinstance(item, nn.Module):  # a loss, a teacher
            self.modules.append(item)
            return item
        if isinstance(item, GENERATORS):
            self.restores.append(remembered_generator(item))
            return item
        if isinstance(item, np.ndarray) and item.dtype != object:
            return item.copy()
        if isinstance(item, UserDict):  # such as the BatchEncoding of transformers
            return self._filled(item, "data")
        if isinstance(item, dict | list):
            return self._refilled(item)
        if isinstance(item, tuple):
            parts = [self(each) for each in item]
            return kind(*parts) if hasattr(item, "_fields") else kind(parts)
        if kind is deque:
            return deque((self(each) for each in item), item.maxlen)
        if kind in (set, frozenset):
            return kind(self(each) for each in item)
        if callable(getattr(item, "clone", None)):  # graphs of PyG and DGL, dicts of tensors
            return item.clone()
        if dataclasses.is_dataclass(item) and not hasattr(item, "__dict__"):
            return self._filled(item, *(each.name for each in dataclasses.fields(item)))
        if isinstance(item, types.SimpleNamespace) or (hasattr(item, "__dict__") and _is_plain(kind)):
            return self._filled(item, *vars(item))
        raise Uncopyable(
            f"an argument of the model, of type {kind.__name__}, may keep a state that cannot be copied, and the pass "
            "that finds the structure would change it: boundaries, blocks and additions are missing"
        )

    def _filled(self, item: Any, *names: str) -> Any:
        new = self._done[id(item)] = copy.copy(item)  # at once: it may hold itself
        for name in names:
            object.__setattr__(new, name, self(getattr(item, name)))  # of a frozen dataclass too
        return new

    def _refilled(self, item: dict[Any, Any] | list[Any]) -> Any:
        new: Any = copy.copy(item)
        self._done[id(item)] = new
        for key, value in item.items() if isinstance(item, dict) else enumerate(item):
            new[key] = self(value)
        return new


def _is_plain(kind: type) -> bool:
    """Whether all that an object is stands in its `__dict__`, as far as Python's own ways of copying go."""
    made: object = kind.__new__
    return made is object.__new__ and not any(name in vars(each) for each in kind.__mro__[:-1] for name in _OWN_WAYS)


def _clone(tensor: Tensor) -> Tensor:
    """A tensor with the same values, strides and flag, on no graph of the caller's."""
    own = tensor.detach().clone()
    dense = tensor.layout is not torch.strided or type(own) is not Tensor or own.stride() == tensor.stride()
    if not dense:  # the memory from the first entry to the last, gaps and overlaps too
        reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        own = tensor.detach().as_strided((reach if tensor.numel() else 0,), (1,)).clone()
    if tensor.requires_grad:
        own.requires_grad = True  # `requires_grad_` would load torch's compiler, which takes seconds
        own = own if tensor.is_leaf else own.clone()
    return own if dense else own.as_strided(tensor.shape, tensor.stride(), 0)
