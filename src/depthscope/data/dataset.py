"""What every data set is, whatever it was made from.

Shape letters: N examples, C channels, H height, W width, I input features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.hashing import array_digest, combined_digest


@dataclass(frozen=True, eq=False)
class Split:
    """Examples with their labels.

    Attributes:
        x: images, uint8 or float32 `[N, C, H, W]` in 0..255, or vectors, float64 `[N, I]`.
        y: labels, int64 `[N]`, in 0..num_classes-1.
    """

    x: NDArray[Any]
    y: NDArray[np.int64]

    def __post_init__(self) -> None:
        assert self.x.ndim in (2, 4), f"x has shape {self.x.shape}, wanted [N, I] or [N, C, H, W]"
        assert self.y.shape == self.x.shape[:1], f"y has shape {self.y.shape} beside x {self.x.shape}"
        assert self.y.dtype == np.int64, f"y is {self.y.dtype}, wanted int64"

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A data set, ready to train on.

    Attributes:
        name: what it is called in the catalogue.
        train: the examples to learn from.
        test: the examples to be judged on, once, at the end; None where there are none.
        validation: held out of the training examples for anyone who selects; None where none were.
        num_classes: number of classes.
        mean: mean of `train.x`, float64, `[C]` for images (over examples and pixels), `[I]` for vectors.
        std: its standard deviation (divided by the count, not the count less one), shaped alike.
        digest: digest of the content of all splits: equal arrays, equal digest.
        facts: how it was made, for the record.
    """

    name: str
    train: Split
    test: Split | None = None
    validation: Split | None = None
    num_classes: int
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    digest: str
    facts: dict[str, str | int]


def make_dataset(
    name: str,
    train: Split,
    *,
    num_classes: int,
    facts: Mapping[str, str | int],
    test: Split | None = None,
    validation: Split | None = None,
) -> Dataset:
    """A `Dataset` with its mean, standard deviation and digest taken from the arrays themselves."""
    splits = {"train": train, "test": test, "validation": validation}
    parts: dict[str, str] = {}
    for key, split in splits.items():
        if split is not None:
            parts[f"{key}.x"] = array_digest(split.x)
            parts[f"{key}.y"] = array_digest(split.y)
    mean, std = moments(train.x)
    return Dataset(
        name=name,
        train=train,
        test=test,
        validation=validation,
        num_classes=num_classes,
        mean=mean,
        std=std,
        digest=combined_digest(parts),
        facts=dict(facts),
    )


def moments(x: NDArray[Any], chunk: int = 2000) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation over all axes but the second, in float64.

    Two passes, so that no difference of large sums is taken; in chunks of `chunk` examples, so that
    50,000 images are never held in float64 at once.

    >>> mean, std = moments(np.array([[0.0, 5.0], [2.0, 5.0]]))
    >>> mean.tolist(), std.tolist()
    ([1.0, 5.0], [1.0, 0.0])
    """
    axes = (0, *range(2, x.ndim))
    count = x.size // x.shape[1]
    shape = (1, -1, *(1 for _ in x.shape[2:]))
    pieces = [x[start : start + chunk] for start in range(0, len(x), chunk)]
    mean = np.sum([piece.sum(axis=axes, dtype=np.float64) for piece in pieces], axis=0) / count
    squares = [np.square(piece.astype(np.float64) - mean.reshape(shape)).sum(axis=axes) for piece in pieces]
    return mean, np.sqrt(np.sum(squares, axis=0) / count)
