"""What a caller gives, checked once where it comes in: past these lines no pass asks again.

Shape letters: S seeds, N examples, T positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from depthscope.core.errors import UserError, shown

Array = NDArray[Any]


def check_count(what: str, value: object, least: int) -> None:
    """Refuse what is no integer of `least` or more."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise UserError(f"{what}: wanted an integer of {least} or more, got {shown(value)}.")


def check_real(what: str, dtype: DTypeLike) -> None:
    """Refuse a type that cannot hold a weight: in integers every small one is 0."""
    if not np.issubdtype(dtype, np.inexact):
        raise UserError(f"{what}: wanted a floating type, such as float32 or float64, got {np.dtype(dtype).name}.")


def check_shape(what: str, array: Array, *wanted: int | str) -> None:
    """Refuse another number of axes, or another length of one. A letter stands for any length from 1."""
    fits = array.ndim == len(wanted) and all(
        got > 0 if isinstance(size, str) else got == size for got, size in zip(array.shape, wanted, strict=True)
    )
    if not fits:
        raise UserError(f"{what}: wanted shape [{', '.join(map(str, wanted))}], got {list(array.shape)}.")


def check_seeds(what: str, array: Array, num_seeds: int) -> None:
    """Refuse a seed axis that neither has one row a seed nor is 1, for all of them."""
    if len(array) not in (1, num_seeds):
        raise UserError(f"{what}: wanted 1 or {num_seeds} rows, one a seed, got {len(array)}.")


def check_tokens(what: str, tokens: Array, num_tokens: int) -> None:
    """Refuse numbers that are no rows of a table of `num_tokens`. A negative one would be read from its end."""
    _check_integers(what, tokens)
    low, high = int(tokens.min()), int(tokens.max())
    if low < 0 or high >= num_tokens:
        raise UserError(f"{what}: wanted tokens from 0 to {num_tokens - 1}, got {low if low < 0 else high}.")


def check_labels(what: str, labels: Array, num_classes: int) -> None:
    """Refuse labels [S, ...] above the last class, and a seed of which nothing is asked: its mean is over none."""
    _check_integers(what, labels)
    high_S = labels.reshape(len(labels), -1).max(axis=1)
    if int(high_S.max()) >= num_classes:
        raise UserError(
            f"{what}: wanted labels from 0 to {num_classes - 1}, below 0 where nothing is asked, got {high_S.max()}."
        )
    if (high_S < 0).any():
        raise UserError(
            f"{what}: wanted a label of 0 or more for each seed, got row {int((high_S < 0).argmax())} with none."
        )


def _check_integers(what: str, array: Array) -> None:
    if not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"{what}: wanted integers, got {array.dtype.name}.")
