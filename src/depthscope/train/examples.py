"""The first examples of whatever data a caller has, in their order, as batches that are the same each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, default_collate

from depthscope.core.errors import UserError, shown, words_of
from depthscope.core.hashing import array_digest, combined_digest
from depthscope.train.variants.data import as_tensors, num_examples
from depthscope.train.variants.generators import Side

WANTED = (
    "(inputs, targets) tensors or NumPy arrays, a mapping of the model's arguments, a Dataset, a DataLoader or another "
    "iterable of batches"
)


def first_examples(data: Any, num: int, batch_size: int, *, at_most: bool = False) -> list[Any]:
    """The first `num` examples, in batches of `batch_size`, the last of which may be smaller.

    A batch has the form of the data's own batches. How a loader cuts its batches plays no part. The global generators,
    from which a loader draws its order, begin at a named stream, and are put back.

    Args:
        data: see `WANTED`. A tuple is a batch, and so is a list that holds a tensor; another list is of batches.
        num: examples, 1 or more.
        batch_size: likewise.
        at_most: whether data that hold fewer give all that they hold.

    Raises:
        UserError: the data are none of these, hold fewer examples, or batches that cannot be joined; reading raised.
    """
    with Side(0, "probe", "data").drawing():
        try:
            whole = _joined(_gathered(as_tensors(data), num))
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"landscape: reading the data raised {type(error).__name__}: {words_of(error)}") from error
    held = num_examples(whole)
    if held < 1:
        raise UserError("landscape: the data hold none.")
    if at_most:
        num = min(num, held)
    if held < num:
        what = "1 example" if held == 1 else f"{held:,} examples"
        raise UserError(
            f"landscape: the data hold {what}, wanted {num:,}. Ask for {held:,} (--examples), or give more."
        )
    return [_cut(whole, at, min(at + batch_size, num)) for at in range(0, num, batch_size)]


def head_of(batches: list[Any], num: int) -> list[Any]:
    """The first `num` examples of batches, cut as they are."""
    found: list[Any] = []
    for batch in batches:
        if num > 0:
            found.append(_cut(batch, 0, min(num, num_examples(batch))))
            num -= num_examples(batch)
    return found


def examples_digest(batches: list[Any]) -> str:
    """Digest of what batches hold, in their order."""
    return combined_digest({str(at): _digest(batch) for at, batch in enumerate(batches)})


def tensor_digest(tensor: Tensor) -> str:
    """Digest of a tensor's dtype, shape and values."""
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    if held.dtype == torch.bfloat16:  # which NumPy has not; each is exact in float32
        held = held.float()
    return array_digest(held.numpy())


def _gathered(data: Any, num: int) -> list[Any]:
    """Batches that hold `num` examples or more together, or all."""
    one = isinstance(data, Tensor | Mapping | tuple)
    if one or (isinstance(data, list) and any(isinstance(each, Tensor | np.ndarray) for each in data)):
        return [data]
    if isinstance(data, Dataset) and not isinstance(data, IterableDataset):
        rows: Any = data
        items = [rows[at] for at in range(min(len(rows), num))]
        return [as_tensors(default_collate(items))] if items else []
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise UserError(f"landscape: data: wanted {WANTED}; got {shown(data)}.")
    found: list[Any] = []
    held = 0
    for batch in data:
        found.append(as_tensors(batch))
        held += num_examples(found[-1])
        if held >= num:
            break
    return found


def _joined(batches: list[Any]) -> Any:
    if not batches:
        raise UserError("landscape: the data hold none.")
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, Tensor):
        shapes = {tuple(each.shape[1:]) for each in batches}
        if len(shapes) > 1:
            raise UserError(
                f"landscape: the data's batches have examples of shapes {' and '.join(map(str, sorted(shapes)))}; "
                "wanted one shape. Pad them, or ask for the examples of one batch (--examples)."
            )
        return torch.cat(batches)
    if isinstance(first, Mapping):
        return {name: _joined([batch[name] for batch in batches]) for name in first}
    if isinstance(first, tuple | list):
        return tuple(_joined(list(parts)) for parts in zip(*batches, strict=True))
    raise UserError(f"landscape: data: wanted {WANTED}; got batches of {type(first).__name__}.")


def _cut(batch: Any, first: int, end: int) -> Any:
    if isinstance(batch, Tensor):
        return batch[first:end]
    if isinstance(batch, Mapping):
        return {name: _cut(each, first, end) for name, each in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(_cut(each, first, end) for each in batch)
    raise UserError(f"landscape: data: wanted {WANTED}; got {shown(batch)} in a batch.")


def _digest(batch: Any) -> str:
    if isinstance(batch, Tensor):
        return tensor_digest(batch)
    parts = batch.items() if isinstance(batch, Mapping) else enumerate(batch)
    return combined_digest({str(name): _digest(each) for name, each in parts})
