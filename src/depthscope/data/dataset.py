"""What every data set is, whatever it was made from.

Shape letters: N examples, C channels, H height, W width, I input features, T positions, K targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.hashing import array_digest, combined_digest

IGNORED = -1
"""The label of a position where nothing is asked."""

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Split:
    """Examples with their answers.

    Attributes:
        x: images, uint8 or float32 `[N, C, H, W]` in 0..255; vectors, float64 `[N, I]`; sequences of vectors,
            float64 `[N, T, I]`; or tokens, int64 `[N, T]`.
        y: labels, int64 `[N]`, in 0..num_classes-1; a label for each position, int64 `[N, T]`, with `IGNORED`
            where nothing is asked; or, in regression, targets, float64 `[N, K]`.

    Raises:
        UserError: another shape or type.
    """

    x: NDArray[Any]
    y: NDArray[Any]

    def __post_init__(self) -> None:
        # No invariants: code of the user's makes splits too.
        x, y = list(self.x.shape), list(self.y.shape)
        if self.x.ndim not in (2, 3, 4):
            raise UserError(f"Split: x has shape {x}; wanted [N, I], [N, T], [N, T, I] or [N, C, H, W].")
        if self.y.dtype not in (np.int64, np.float64):
            raise UserError(f"Split: y is {self.y.dtype}; wanted int64 for labels, float64 for targets.")
        if self.y.dtype == np.float64:
            fits = self.y.ndim == 2 and len(self.y) == len(self.x)
        else:
            has_positions = self.x.ndim == 3 or (self.x.ndim == 2 and self.x.dtype == np.int64)
            fits = self.y.shape in (self.x.shape[:1], self.x.shape[:2] if has_positions else None)
        if not fits:
            wanted = "labels [N], a label for each position of a sequence [N, T], or float64 targets [N, K]"
            raise UserError(f"Split: y has shape {y} and type {self.y.dtype} beside x {x}; wanted {wanted}.")

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
        task: what is asked: classes, or numbers.
        num_classes: number of classes; 0 in regression.
        num_tokens: size of the vocabulary, V, where the inputs are tokens 0..V-1; else 0.
        alphabet: what text each token stands for, where the tokens are text.
        mean: mean of `train.x`, float64, `[C]` for images (over examples and pixels), `[I]` for vectors; `[0]`
            where inputs are used as they are.
        std: its standard deviation (divided by the count, not the count less one), shaped alike.
        chance_loss: training loss of the best answer that does not look at the inputs: the entropy, in nats, of how
            often each label is asked; in regression, the mean squared error of the mean target.
        digest: digest of the content of all splits: equal arrays, equal digest.
        facts: how it was made, for the record.
    """

    name: str
    train: Split
    test: Split | None = None
    validation: Split | None = None
    task: Task = "classification"
    num_classes: int
    num_tokens: int = 0
    alphabet: tuple[str, ...] = ()
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    chance_loss: float
    digest: str
    facts: dict[str, str | int]

    @property
    def num_outputs(self) -> int:
        """Numbers that are asked of a network at a time: scores of the classes, or targets."""
        return self.num_classes if self.task == "classification" else self.train.y.shape[1]

    @property
    def normalised(self) -> bool:
        """Whether inputs are brought to mean 0 and deviation 1 before a network sees them: images and vectors are."""
        return len(self.mean) > 0


def make_dataset(
    name: str,
    train: Split,
    *,
    facts: Mapping[str, str | int],
    num_classes: int = 0,
    task: Task = "classification",
    num_tokens: int = 0,
    alphabet: tuple[str, ...] = (),
    chance_loss: float | None = None,
    test: Split | None = None,
    validation: Split | None = None,
) -> Dataset:
    """A `Dataset` with its mean, standard deviation, chance loss and digest taken from the arrays themselves.

    Args:
        name: see `Dataset`, as for the rest.
        train: the examples to learn from.
        facts: how it was made.
        num_classes: number of classes; left away in regression.
        task: what is asked.
        num_tokens: size of the vocabulary, where `train.x` are tokens.
        alphabet: what text each token stands for.
        chance_loss: where it is not that of one answer for all positions, as where some positions are always alike.
        test: the examples to be judged on.
        validation: examples held out.

    Raises:
        UserError: classes and targets at once, or an alphabet of another size.
    """
    if not (task == "regression") == (num_classes == 0) == (train.y.dtype == np.float64):
        raise UserError(
            f"{name}: task {task!r}, num_classes = {num_classes}, labels of {train.y.dtype}; wanted int64 labels and "
            "num_classes, or float64 targets and task = 'regression' without classes."
        )
    if len(alphabet) not in (0, num_tokens):
        raise UserError(f"{name}: alphabet has {len(alphabet)} texts; wanted one a token, {num_tokens}.")
    splits = {"train": train, "test": test, "validation": validation}
    parts: dict[str, str] = {}
    for key, split in splits.items():
        if split is not None:
            parts[f"{key}.x"] = array_digest(split.x)
            parts[f"{key}.y"] = array_digest(split.y)
    as_they_are = num_tokens > 0 or train.x.ndim == 3 or task == "regression"
    mean, std = (np.empty(0), np.empty(0)) if as_they_are else moments(train.x)
    return Dataset(
        name=name,
        train=train,
        test=test,
        validation=validation,
        task=task,
        num_classes=num_classes,
        num_tokens=num_tokens,
        alphabet=alphabet,
        mean=mean,
        std=std,
        chance_loss=loss_of_chance(train.y) if chance_loss is None else chance_loss,
        digest=combined_digest(parts),
        facts=dict(facts),
    )


def loss_of_chance(y: NDArray[Any]) -> float:
    """Loss of the best answer that is the same for every example and position.

    Of labels, int64 of any shape, the entropy of their frequencies in nats, `IGNORED` left out; of targets, float64
    `[N, K]`, the mean squared distance from their mean, which is the mean variance.

    >>> bool(loss_of_chance(np.array([0, 1, IGNORED])) == np.log(2))
    True
    >>> loss_of_chance(np.array([[0.0], [2.0]]))
    1.0
    """
    if y.dtype == np.float64:
        return float(np.var(y, axis=0).mean())
    counts = np.unique(y[y != IGNORED], return_counts=True)[1]
    share = counts / counts.sum()
    return float(-(share * np.log(share)).sum()) + 0.0  # one class alone: 0.0, and no -0.0


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
