"""What training lowers and how an answer is judged: labels, a label for each position, or targets.

Shape letters: B batch, T positions, K classes or targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from depthscope.data.dataset import IGNORED, Dataset
from depthscope.train.measure import divergence_bound


class Objective(Protocol):
    """What a data set asks of a network."""

    @property
    def guess(self) -> float:
        """Loss of an answer at chance: ln K of classes, and of targets that of their mean."""

    def bound(self, first: float) -> float:
        """Loss above which a run has diverged whose first batch had this one; see `measure.divergence_bound`."""

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The mean over the answers that are asked: cross entropy in nats, or the squared error."""

    def total(self, output: Tensor, y: Tensor) -> Tensor:
        """The sum over the answers that are asked."""

    def hits(self, output: Tensor, y: Tensor) -> Tensor | None:
        """How many answers are right; None where an answer is not right or wrong, but near or far."""

    def num(self, y: Tensor) -> int | Tensor:
        """How many answers are asked; a tensor where only the device knows."""


def objective_of(data: Dataset) -> Objective:
    """The objective of a data set."""
    if data.task == "regression":
        return Targets(data.chance_loss)
    guess = math.log(data.num_classes)
    return Labels(guess) if data.train.y.ndim == 1 else Positions(guess)


@dataclass(frozen=True)
class _Guessed:
    guess: float


class _Classes(_Guessed):
    def bound(self, first: float) -> float:
        """See `Objective`."""
        del first
        return divergence_bound(self.guess)


class Labels(_Classes):
    """A label an example: output [B, K], y int64 [B]."""

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return nn.functional.cross_entropy(output, y)

    def total(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return nn.functional.cross_entropy(output, y, reduction="sum")

    def hits(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return (output.argmax(1) == y).sum()

    def num(self, y: Tensor) -> int:
        """See `Objective`."""
        return len(y)


class Positions(_Classes):
    """A label a position: output [B, T, K], y int64 [B, T] with `IGNORED` where nothing is asked."""

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`; not finite where nothing is asked at all."""
        return nn.functional.cross_entropy(output.flatten(0, 1), y.flatten(), ignore_index=IGNORED)

    def total(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return nn.functional.cross_entropy(output.flatten(0, 1), y.flatten(), ignore_index=IGNORED, reduction="sum")

    def hits(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return (output.argmax(2) == y).sum()  # `IGNORED` is no class: no answer equals it

    def num(self, y: Tensor) -> Tensor:
        """See `Objective`."""
        return (y != IGNORED).sum()


class Targets(_Guessed):
    """Targets an example: output [B, K], y of floating point [B, K]."""

    def bound(self, first: float) -> float:
        """See `Objective`."""
        return divergence_bound(self.guess, first)

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return nn.functional.mse_loss(output, y)

    def total(self, output: Tensor, y: Tensor) -> Tensor:
        """See `Objective`."""
        return nn.functional.mse_loss(output, y, reduction="sum")

    def hits(self, output: Tensor, y: Tensor) -> None:
        """See `Objective`."""
        del output, y

    def num(self, y: Tensor) -> int:
        """See `Objective`."""
        return y.numel()


def judged(objective: Objective, output: Tensor, y: Tensor) -> dict[str, float]:
    """`loss`, and `accuracy` where answers are right or wrong, of one batch, in float64."""
    output, y = output.cpu().double(), _wide(y)  # on the CPU: MPS has no float64
    found = {"loss": float(objective.loss(output, y))}
    hits = objective.hits(output, y)
    return found if hits is None else {**found, "accuracy": int(hits) / int(objective.num(y))}


def summed(objective: Objective, output: Tensor, y: Tensor) -> tuple[float, int | None, int]:
    """(sum of the losses, right answers or None, answers that are asked) of one batch, in float64."""
    output, y = output.cpu().double(), _wide(y)
    hits = objective.hits(output, y)
    return float(objective.total(output, y)), None if hits is None else int(hits), int(objective.num(y))


def _wide(y: Tensor) -> Tensor:
    y = y.cpu()
    return y.to(torch.float64) if y.is_floating_point() else y
