"""Batches from whatever a caller has: tensors, a data set, a loader, or a function of the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from depthscope.core.errors import UserError, shown
from depthscope.core.streams import stream
from depthscope.train.variants.generators import Side

CLEAN = 2_048
"""Examples at most behind a clean figure."""
WANTED = (
    "(inputs, targets) tensors or NumPy arrays, a mapping of them, a Dataset, a DataLoader or another iterable of "
    "batches, or a function seed -> iterable of batches"
)


class Source:
    """Training data, read as batches by seed and step.

    Args:
        data: see `WANTED`.
        batch_size: of tensors and data sets; a loader has its own.
        what: `data` or `validation`, for messages.

    Raises:
        UserError: it is none of these, or holds nothing.
    """

    def __init__(self, data: Any, *, batch_size: int, what: str = "data") -> None:
        data = as_tensors(data)
        self._data, self._size, self._what = data, batch_size, what
        self._items = _items(data, what)
        if self._items is None and not callable(data) and not isinstance(data, Iterable):
            raise UserError(f"compare: {what}: wanted {WANTED}; got {shown(data)}.")
        if self._items is not None and not len(self._items):
            raise UserError(f"compare: {what}: it has no example.")

    def __str__(self) -> str:
        if self._items is not None:
            size = min(self._size, len(self._items))
            return f"{len(self._items):,} examples, {size} a batch, drawn anew each epoch"
        return "batches as they came, the same for every variant"

    def batches(self, seed: int) -> Iterator[Any]:
        """Batches without end, for one seed. What the data draw does not depend on what is drawn in between."""
        course = Side(seed, "order", "variants")
        if self._items is not None:
            for epoch in _count():
                order = stream(seed, "order", epoch).permutation(len(self._items))
                full = max(len(order) - len(order) % self._size, min(self._size, len(order)))
                for at in range(0, full, self._size):
                    with course.drawing():  # a data set may augment
                        batch = self._items.take(order[at : at + self._size])
                    yield batch
        given = self._data(seed) if callable(self._data) and not isinstance(self._data, Iterable) else self._data
        if not isinstance(given, Iterable):
            raise UserError(f"compare: {self._what}: the function gave {shown(given)}; wanted an iterable of batches.")
        while True:
            with course.drawing():
                batches = iter(given)
            num = 0
            while True:
                with course.drawing():
                    batch = next(batches, _END)
                if batch is _END:
                    break
                num += 1
                yield batch
            if not num or batches is given:
                had = "it has no batch" if not num else f"it ended after {num} batches, and cannot be read again"
                raise UserError(f"compare: {self._what}: {had}. Give a list, a DataLoader or a function of the seed.")

    def clean(self, seed: int) -> list[Any]:
        """Batches of at most `CLEAN` examples together: always the same of tensors and sets, else the seed's first."""
        if self._items is not None:
            chosen = stream(0, "probe", "clean").permutation(len(self._items))[:CLEAN]
            order = np.sort(chosen)
            with Side(0, "probe", "clean").drawing():
                return [self._items.take(order[at : at + self._size]) for at in range(0, len(order), self._size)]
        found: list[Any] = []
        total = 0
        finite = not callable(self._data) and hasattr(self._data, "__len__")
        for batch in self.batches(seed):
            found.append(batch)
            total += max(num_examples(batch), 1)
            if total >= CLEAN or (finite and len(found) >= len(self._data)):
                return found
        return found


def as_tensors(data: Any) -> Any:
    """NumPy arrays as tensors, those of floating point in torch's default dtype; all else as it is.

    >>> as_tensors((np.ones(2), [1])), as_tensors({"x": np.arange(2)})
    ((tensor([1., 1.]), [1]), {'x': tensor([0, 1])})
    """
    if isinstance(data, np.ndarray) and data.dtype.kind in "fiub":
        found = torch.as_tensor(data)
        return found.to(torch.get_default_dtype()) if data.dtype.kind == "f" else found
    if isinstance(data, Mapping) and any(isinstance(each, np.ndarray) for each in data.values()):
        return {name: as_tensors(each) for name, each in data.items()}
    if type(data) in (tuple, list) and any(isinstance(each, np.ndarray | tuple | list | Mapping) for each in data):
        return type(data)(as_tensors(each) for each in data)
    return data


_END = object()


class _Items:
    """Examples by number."""

    def __init__(self, length: int, take: Callable[[np.ndarray[Any, Any]], Any]) -> None:
        self._length, self.take = length, take

    def __len__(self) -> int:
        return self._length


def _items(data: Any, what: str) -> _Items | None:
    """Data of which any example can be had; None of those that come in batches."""
    if isinstance(data, DataLoader | IterableDataset):
        return None
    if isinstance(data, Tensor):
        return _Items(len(data), lambda index: data[torch.as_tensor(index)])
    parts = list(data.values()) if isinstance(data, Mapping) else data if isinstance(data, tuple) else None
    if parts is not None and parts and all(isinstance(each, Tensor) and each.ndim for each in parts):
        lengths = sorted({len(each) for each in parts})
        if len(lengths) > 1:
            raise UserError(f"compare: {what}: the tensors hold {' and '.join(map(str, lengths))} examples.")
        if isinstance(data, Mapping):
            return _Items(lengths[0], lambda index: {name: each[torch.as_tensor(index)] for name, each in data.items()})
        return _Items(lengths[0], lambda index: tuple(each[torch.as_tensor(index)] for each in data))
    if isinstance(data, Dataset) and hasattr(data, "__len__"):
        return _Items(len(data), lambda index: default_collate([data[int(at)] for at in index]))
    return None


def _count() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def num_examples(batch: Any) -> int:
    """Length of the first tensor found in a batch."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim else 1
    values: Sequence[Any] = list(batch.values()) if isinstance(batch, Mapping) else batch
    return next((n for each in values if (n := num_examples(each))), 0) if isinstance(values, tuple | list) else 0
