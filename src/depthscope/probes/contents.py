"""What a module holds, remembered so that it can be put back bit by bit, without copying its weights."""

from __future__ import annotations

import copy
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.mode import Mode


class Contents:
    """All that a module and its submodules hold, as it was when this was made.

    Attributes of each submodule (its flags, hooks, buffers and parameters are attributes too) by identity,
    the contents of lists, dicts, sets and deques among them and inside one another, the states of generators among
    them; the values of every tensor; of each parameter its `requires_grad`, `.grad` and hooks.

    Parameters are copied only when something is about to write them (`CopyOnWrite`), all other tensors,
    small as a rule, at once.

    Args:
        model: any module; nothing of it is deep-copied.

    Raises:
        UserError: a parameter has no values yet.
    """

    def __init__(self, model: nn.Module) -> None:
        self._modules = dict(model.named_modules())
        self._parameters = list(dict.fromkeys(model.parameters()))
        for name, parameter in model.named_parameters():
            if nn.parameter.is_lazy(parameter):
                raise UserError(f"probe: {name} has no values yet (a lazy layer). Run the model on one batch first.")
        self._names = {id(each): name for name, each in model.named_parameters()}
        self._types = {name: type(module) for name, module in self._modules.items()}
        self._training = {name: module.training for name, module in self._modules.items()}
        self._attributes = {name: dict(vars(module)) for name, module in self._modules.items()}
        held = [value for attributes in self._attributes.values() for value in attributes.values()]
        containers = _nested(held)
        self._containers = [_remembered_container(each) for each in containers if type(each) in _CONTAINERS]
        inside = [item for each in containers for item in _items(each)]
        self._generators = [remembered_generator(value) for value in held + inside if isinstance(value, GENERATORS)]
        parameters = {_key(parameter) for parameter in self._parameters}
        tensors = {id(each): each for each in (*held, *inside, *model.buffers()) if isinstance(each, Tensor)}
        self._tensors = [_Remembered(each) for each in tensors.values() if not isinstance(each, nn.Parameter)]
        copied: set[object] = set()
        for each in self._tensors:
            if each.key not in parameters | copied:
                copied.add(each.key)
                each.copy()
        self._weights = [_RememberedParameter(each) for each in self._parameters]
        self.writes = CopyOnWrite(self._weights)

    def set_aside_gradients(self) -> None:
        """Let no parameter have a `.grad`: a backward pass inside the model then adds to none of the caller's."""
        for parameter in self._parameters:
            parameter.grad = None

    def put_back(self) -> tuple[str, ...]:
        """Make the module hold again what it held.

        Returns:
            Names of parameters that were written where torch does not show it, which stay as they are now.
        """
        for name, module in self._modules.items():
            if type(module) is not self._types[name]:
                module.__class__ = self._types[name]
            attributes, found = self._attributes[name], module.__dict__
            for key in [key for key in found if key not in attributes]:
                del found[key]
            found.update((key, value) for key, value in attributes.items() if found.get(key, found) is not value)
        for restore in self._containers + self._generators:
            restore()
        for name, module in self._modules.items():
            if module.training is not self._training[name]:  # of a scripted module it is no attribute in Python
                module.training = self._training[name]
        for tensor in self._tensors:
            tensor.put_back()
        lost = [weight.tensor for weight in self._weights if not weight.put_back()]
        return tuple(self._names[id(each)] for each in lost)


class CopyOnWrite(Mode):
    """Copies a parameter before the first operation that writes it, as `Embedding(max_norm=...)` does in its forward.

    Operations tell by their schema what they write. Those that lie (batch norm writes its running statistics
    unannounced) write buffers.
    """

    eager_only = True

    def __init__(self, weights: Iterable[_Remembered]) -> None:
        super().__init__()
        self._weights: dict[object, list[_Remembered]] = {}
        for each in weights:
            self._weights.setdefault(each.key, []).append(each)

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Copy what `func` is about to write, then run it."""
        kwargs = dict(kwargs or {})
        for position, name in _written_arguments(func):
            value = args[position] if position < len(args) else kwargs.get(name)
            for tensor in value if isinstance(value, list | tuple) else (value,):
                if isinstance(tensor, Tensor):
                    for weight in self._weights.get(_key(tensor), ()):
                        weight.copy()
        return func(*args, **kwargs)


_WRITTEN: dict[object, tuple[tuple[int, str], ...]] = {}


def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    """Position and name of each argument that an operation writes."""
    if func not in _WRITTEN:
        schema = getattr(func, "_schema", None)  # higher-order operators have none
        _WRITTEN[func] = tuple(
            (position, argument.name)
            for position, argument in enumerate(schema.arguments if schema is not None else ())
            if argument.alias_info is not None and argument.alias_info.is_write
        )
    return _WRITTEN[func]


class _Remembered:
    """One tensor: which memory it shows and how, and, once `copy` was called, that memory's bits."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.key = _key(tensor)
        self._alias = tensor.detach()  # keeps the memory alive, and shows it as the tensor does now
        self._saved: torch.UntypedStorage | Tensor | None = None
        # The program's own backward pass, still owed, refuses tensors that it saved and that were written since. They
        # have their old values again afterwards, so that their count of writes may have its own.
        modes: Any = torch.autograd.grad_mode
        self._counter = None if tensor.is_inference() else modes._unsafe_preserve_version_counter(tensor)

    def copy(self) -> None:
        if self._saved is None:
            storage = _storage(self._alias)
            # The memory, not the tensor: an expanded buffer cannot be written, and no version counter moves,
            # so that a backward pass which the caller still owes finds its saved tensors valid.
            self._saved = self._alias.clone() if storage is None else storage.clone()  # type: ignore[no-untyped-call]

    def put_back(self) -> bool:
        with torch.no_grad():
            if _look(self.tensor) != _look(self._alias):
                self.tensor.data = self._alias
            if isinstance(self._saved, Tensor):
                with torch.inference_mode(self._alias.is_inference()):
                    self._alias.copy_(self._saved)
            elif self._saved is not None:
                self._alias.untyped_storage().copy_(self._saved)
        if self._saved is not None and self._counter is not None:
            self._counter.__exit__()
        return True


class _RememberedParameter(_Remembered):
    """Of a parameter also its flag, its gradient and its hooks."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor)
        self._requires_grad = tensor.requires_grad
        self._grad = tensor.grad
        self._version = _version(tensor)
        self._hooks = {name: _entries(getattr(tensor, name, None)) for name in _TENSOR_HOOKS}

    def put_back(self) -> bool:
        tensor = self.tensor
        seen = self._saved is not None or _version(tensor) == self._version
        super().put_back()
        if tensor.requires_grad != self._requires_grad:
            tensor.requires_grad = self._requires_grad
        if tensor.grad is not self._grad:
            tensor.grad = self._grad
        for name, entries in self._hooks.items():
            table = getattr(tensor, name, None)
            if table is not None and _entries(table) != entries:
                # torch's own side holds the same table, so that emptying it takes its hooks away there too.
                table.clear()
                table.update(entries)
        return seen


_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_CONTAINERS = {
    list,
    dict,
    OrderedDict,
    defaultdict,
    Counter,
    set,
    deque,
}  # exactly these: another's `clear` may do more
GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)


def _entries(table: Mapping[int, object] | None) -> dict[int, object]:
    return dict(table) if table else {}


def _nested(values: Iterable[object]) -> list[Any]:
    """The containers among values and inside one another, tuples too, each once."""
    found: dict[int, Any] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if (type(value) in _CONTAINERS or isinstance(value, tuple)) and id(value) not in found:
            found[id(value)] = value
            waiting.extend(_items(value))
    return list(found.values())


def _items(container: Any) -> Iterator[object]:
    return iter(list(container.values()) if isinstance(container, dict) else list(container))


def _remembered_container(container: Any) -> Callable[[], object]:
    before = list(container.items()) if isinstance(container, dict) else list(container)

    def restore() -> None:
        container.clear()
        (container.extend if isinstance(container, list | deque) else container.update)(before)

    return restore


def remembered_generator(generator: Any) -> Callable[[], object]:
    """What puts a generator, one of `GENERATORS`, back into the state that it is in now."""
    if isinstance(generator, torch.Generator):
        return partial(generator.set_state, generator.get_state())
    if isinstance(generator, np.random.Generator):
        return partial(setattr, generator.bit_generator, "state", generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return partial(generator.set_state, generator.get_state())
    return partial(generator.setstate, generator.getstate())


def copied_generator(generator: Any) -> Any:
    """Another one at the same place."""
    if not isinstance(generator, torch.Generator):
        return copy.deepcopy(generator)
    found = torch.Generator(device=generator.device)
    found.set_state(generator.get_state())
    return found


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _storage(tensor: Tensor) -> torch.UntypedStorage | None:
    """A tensor's memory; None where it has none of its own, as a sparse tensor or a wrapper of others."""
    wrapper = type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__
    if wrapper or tensor.layout is not torch.strided:
        return None
    return tensor.untyped_storage()


def _key(tensor: Tensor) -> object:
    storage = _storage(tensor)
    return id(tensor) if storage is None else storage._cdata


def _look(tensor: Tensor) -> tuple[object, ...]:
    storage = _storage(tensor)
    if storage is None:
        return (tensor.shape, tensor.dtype, tensor.device, tensor.layout)
    return (storage._cdata, tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype)
