"""FLOPs of torch's operations, each worked out once for all operands of the same shapes, where they have no values.

A network of a thousand layers has a few dozen distinct operations, and to find the shapes of what one batch norm gives
takes torch milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

from depthscope.probes.mode import Mode


@dataclass(frozen=True)
class _Shape:
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class Counter(Mode):
    """Counts, by torch's own formulas, the operations that are done inside.

    Operands with values are left alone. On the meta device an operation that was done before is not done again: it has
    the FLOPs that it had, and gives tensors of the shapes that it gave.

    Attributes:
        flops: so far; a multiply and an add are two.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self._done: dict[Hashable, tuple[int, Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What the operation gives."""
        kwargs = kwargs or {}
        key = (func, _described((args, kwargs))) if _is_pure(func) and _is_meta((args, kwargs)) else None
        if key in self._done:
            flops, shapes = self._done[key]
            self.flops += flops
            return _empty(shapes)
        result = func(*args, **kwargs)
        formula = flop_registry.get(func._overloadpacket) if isinstance(func, OpOverload) else None
        flops = formula(*args, **kwargs, out_val=result) if formula else 0
        self.flops += flops
        if key is not None and all(isinstance(each, Tensor) for each in _listed(result)):
            self._done[key] = (flops, _described(result))
        return result


def _is_pure(func: Any) -> bool:
    """Whether what an operation gives shares no memory with its operands, and leaves them as they are."""
    if not isinstance(func, OpOverload):
        return False
    return all(each.alias_info is None for each in (*func._schema.arguments, *func._schema.returns))


def _is_meta(given: Any) -> bool:
    found = [each.is_meta for each in _tensors(given)]
    return bool(found) and all(found)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


def _listed(result: Any) -> Any:
    return result if isinstance(result, list | tuple) else (result,)


def _described(value: Any) -> Any:
    """The same, with shapes in place of tensors."""
    if isinstance(value, Tensor):
        return _Shape(tuple(value.shape), value.stride(), value.dtype)
    if isinstance(value, dict):
        return tuple((key, _described(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_described, value))
    return type(value), value  # 1 == True == 1.0, which torch tells apart


def _empty(shapes: Any) -> Any:
    if isinstance(shapes, _Shape):
        return torch.empty_strided(shapes.size, shapes.stride, dtype=shapes.dtype, device="meta")
    return tuple(map(_empty, shapes))
