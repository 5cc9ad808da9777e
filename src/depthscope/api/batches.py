"""A batch out of whatever a caller has: tensors, NumPy arrays, a data set, a loader or other iterable of batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, default_collate

from depthscope.core.errors import UserError, words_of
from depthscope.train.variants.data import as_tensors
from depthscope.train.variants.generators import Side

SIZE = 64
"""Examples that are taken of a data set."""


def first_batch(data: Any) -> Any:
    """A batch as it is; of a data set its first `SIZE` examples, of a loader or other iterable its first batch.

    NumPy arrays become tensors. The global generators, from which a loader draws its order, stay as they were.

    Raises:
        UserError: the data hold none, or reading them raised.
    """
    if isinstance(data, Tensor | np.ndarray | Mapping | tuple | list):
        return as_tensors(data)
    if not isinstance(data, Dataset | Iterable) or isinstance(data, str | bytes):
        return data  # refused where the batch is read, with what is wanted
    with Side(0, "probe", "data").drawing():
        try:
            if isinstance(data, Dataset) and not isinstance(data, IterableDataset):
                rows: Any = data
                found = [rows[at] for at in range(min(len(rows), SIZE))]
                batch = default_collate(found) if found else None
            else:
                batch = next(iter(data), None)
        except Exception as error:
            raise UserError(
                f"probe: batch: reading the data raised {type(error).__name__}: {words_of(error)}"
            ) from error
    if batch is None:
        raise UserError("probe: batch: the data hold none.")
    return as_tensors(batch)
