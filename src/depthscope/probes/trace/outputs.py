"""Tensors in what a model takes and gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from torch import Tensor

_FIRST = (
    "logits",
    "prediction_logits",
    "last_hidden_state",
    "sample",
    "out",
    "output",
    "prediction",
    "reconstruction",
)
"""Names under which models put what they are about, the most telling first."""


def _fields(item: Any) -> list[tuple[str, Any]] | None:
    """Named parts of a container, in order; None of what is none."""
    if isinstance(item, Mapping):
        return [(str(key), each) for key, each in item.items()]
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return list(zip(item._fields, item, strict=True))
    if isinstance(item, list | tuple | set | frozenset):
        return [("", each) for each in item]
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return [(each.name, getattr(item, each.name)) for each in dataclasses.fields(item)]
    if isinstance(item, SimpleNamespace):
        return list(vars(item).items())
    return None


def tensors_of(item: Any) -> Iterator[Tensor]:
    """Every tensor in nested mappings, sequences, dataclasses and namespaces, in order; each container once."""
    stack, seen = [item], set[int]()
    while stack:
        each = stack.pop()
        if isinstance(each, Tensor):
            yield each
            continue
        parts = _fields(each)
        if parts is None or id(each) in seen:
            continue
        seen.add(id(each))
        stack.extend(part for _, part in reversed(parts))


def results_of(output: Any) -> Iterator[Tensor]:
    """Every tensor of a model's output but its `loss`, unless that is all: what a loss does is not the model's."""
    parts = _fields(output)
    if parts is not None and any(name == "loss" for name, _ in parts):
        others = list(tensors_of([part for name, part in parts if name != "loss"]))
        if others:
            yield from others
            return
    yield from tensors_of(output)


def main_outputs(output: Any) -> Iterator[Tensor]:
    """Floating-point tensors of a model's output, the one that the model is about first.

    Named parts come in the order of `_FIRST`, a `loss` last, everything else in its own order.
    """
    parts = _fields(output)
    if parts is not None and any(name for name, _ in parts):
        named = {name: part for name, part in parts if part is not None}
        order = [name for name in _FIRST if name in named]
        order += [name for name in named if name not in order and name != "loss"]
        order += [name for name in named if name == "loss"]
        output = [named[name] for name in order]
    yield from (each for each in tensors_of(output) if each.is_floating_point() or each.is_complex())


def main_output(output: Any) -> Tensor | None:
    """The floating-point tensor that a model's output is about, such as its logits; None where there is none."""
    return next(main_outputs(output), None)
