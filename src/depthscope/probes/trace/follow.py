"""The dispatch mode of a measured pass: it calls a listener where the traced boundaries and additions come by."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from depthscope.probes.mode import Mode
from depthscope.probes.trace.ops import info_of
from depthscope.probes.trace.settings import unfused
from depthscope.probes.trace.tensors import tensor_arguments
from depthscope.probes.trace.tracing import Traced

_DETACH = torch.ops.aten.detach.default


class Listener(Protocol):
    """What is told of a pass. It must reduce at once and keep nothing large: the next operation may overwrite."""

    def boundary(self, index: int, tensor: Tensor) -> None:
        """A boundary exists; its `grad_fn` is set, and `tensor.register_hook` sees its gradient."""

    def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
        """A residual addition is about to run; the operands are whole, and are used as they go into the sum."""


class Follow(Mode):
    """Follow a forward pass of the model that was traced; enter it around the call.

    A boundary is told when the next operation begins or the pass ends: by then autograd has set its `grad_fn`, also
    where a custom Function (activation checkpointing among them) gives it, and nothing has overwritten it.
    Operations of other threads, such as a data loader's, are let through uncounted.

    Args:
        traced: of the same model in the same mode with a batch of the same sort.
        listener: see there.
    """

    def __init__(self, traced: Traced, listener: Listener) -> None:
        super().__init__()
        self.departed: str = ""
        """Where the operations began to differ from those traced; empty where they did not."""
        self._traced = traced
        self._listener = listener
        self._expected = traced.funcs
        self._at = 0
        self._pending: list[tuple[int, Tensor]] = []
        self._thread = threading.get_ident()
        positions = traced.positions
        self._taken: dict[int, list[tuple[int, int]]] = {}
        self._sums: dict[int, tuple[int, bool]] = {}
        self._after: dict[int, list[tuple[int, int]]] = {}
        for index, place in enumerate(positions.boundaries):
            if place is not None:
                table = self._taken if place.taken else self._after
                table.setdefault(place.op, []).append((index, place.at))
        for index, (op, first) in enumerate(zip(positions.additions, positions.skip_first, strict=True)):
            self._sums[op] = (index, first)
        self._before = self._taken.keys() | self._sums.keys()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is _DETACH or self.departed or threading.get_ident() != self._thread:
            return func(*args, **kwargs)
        if self._pending:
            self._flush()
        at = self._at
        self._at = at + 1
        if at >= len(self._expected) or self._expected[at] is not func:
            self._depart(func, at)
            return func(*args, **kwargs)
        if at in self._before:
            self._tell(at, func, args, kwargs)
        out = func(*args, **kwargs)
        if at in self._after:
            outs = list(tensor_arguments((out,), {}))
            self._pending.extend((index, outs[place]) for index, place in self._after[at])
        return out

    def __enter__(self) -> Follow:
        self._unfused = unfused()
        self._unfused.__enter__()
        super().__enter__()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._unfused.__exit__(None, None, None)
        super().__exit__(kind, value, trace)  # type: ignore[no-untyped-call]
        if kind is None and not self.departed:
            self._flush()
            if self._at < len(self._expected):
                self.departed = (
                    f"the measured pass ended after {self._at} operations; the traced one has {len(self._expected)}"
                )
        self._pending.clear()

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        for index, tensor in pending:
            self._listener.boundary(index, tensor)

    def _depart(self, func: Any, at: int) -> None:
        wanted = str(self._expected[at]) if at < len(self._expected) else "the end"
        self.departed = (
            f"operation {at} of the measured pass is {func}, that of the traced one {wanted}: the model takes another "
            "way from pass to pass"
        )

    def _tell(self, at: int, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        for index, place in self._taken.get(at, ()):
            self._listener.boundary(index, list(tensor_arguments(args, kwargs))[place])
        if at in self._sums:
            index, skip_first = self._sums[at]
            with torch.no_grad():
                first, second = _summands(func, args, kwargs)
                self._listener.addition(index, *((second, first) if skip_first else (first, second)))


def _summands(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """The two tensors whose sum an addition gives, factors applied."""
    info = info_of(func)
    first, second, *rest = tensor_arguments(args, kwargs)
    if info.base == "addcmul":
        return first, second * rest[0] * info.argument("value", args, kwargs, 1)
    if info.base == "lerp":
        weight = rest[0] if rest else info.argument("weight", args, kwargs)
        return first * (1 - weight), second * weight
    alpha = info.argument("alpha", args, kwargs, 1)
    if info.base == "rsub":  # second - alpha first
        return first * -alpha, second
    if info.base in ("sub", "subtract"):
        alpha = -alpha
    return first, second if alpha == 1 else second * alpha
