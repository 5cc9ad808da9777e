"""Tiny data sets of each kind of answer, and networks of one's own for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.core.profile import Addition, Point
from depthscope.core.streams import stream
from depthscope.data.dataset import IGNORED, Dataset, Split, make_dataset

BASE: dict[str, Any] = {
    "backend": "torch",
    "depth": 1,
    "width": 4,
    "activation": "linear",
    "init": "torch",
    "lr": 0.05,
    "optimizer": "adam",
    "batch_size": 8,
}
LETTERS = {**BASE, "family": "tests.train.tasks:Reader", "data": "tests.train.tasks:letters"}
"""A label for each position."""
NUMBERS = {**BASE, "family": "tests.train.tasks:Adder", "data": "tests.train.tasks:numbers"}
"""Targets."""


def letters(seed: int, num: int = 20, num_test: int = 5) -> Dataset:
    """Rows of six tokens of four, that are asked from one to six of the next ones, more of the later rows."""
    del seed
    drawn = stream(3, "data", "letters").integers(4, size=(num + num_test, 7))
    x, y = np.ascontiguousarray(drawn[:, :6]), np.ascontiguousarray(drawn[:, 1:])
    for row in range(len(y)):
        y[row, 1 + row % 6 :] = IGNORED
    return make_dataset(
        "letters",
        Split(x[:num], y[:num]),
        test=Split(x[num:], y[num:]),
        num_classes=4,
        num_tokens=4,
        alphabet=("", "a", "b", "c"),
        facts={},
    )


def numbers(seed: int, num: int = 20, scale: float = 1.0) -> Dataset:
    """Sequences of three pairs; the targets are the sums over them, and their first differences."""
    del seed
    x = stream(4, "data", "numbers").normal(size=(num + 5, 3, 2))
    y = scale * np.stack([x.sum((1, 2)), x[:, 0, 0] - x[:, 0, 1], 0 * x[:, 0, 0] + 2], 1)
    return make_dataset("numbers", Split(x[:num], y[:num]), test=Split(x[num:], y[num:]), task="regression", facts={})


class Reader(nn.Module):
    """A table of what follows each token, and two residual branches in one block."""

    def __init__(self, *, num_inputs: int, num_classes: int, width: int, length: int) -> None:
        super().__init__()
        assert length == 6
        self.table = nn.Embedding(num_inputs, width)
        self.skips = nn.ModuleList([nn.Identity(), nn.Identity()])
        self.blocks = nn.ModuleList([nn.ModuleDict({"one": nn.Linear(width, width), "two": nn.Linear(width, width)})])
        self.head = nn.Linear(width, num_classes)

    def points(self) -> tuple[Point, ...]:
        layers = (("table", "embedding"), ("blocks.0.one", "linear"), ("blocks.0.two", "linear"), ("head", "linear"))
        return tuple(Point(layer=name, kind=kind, weight=f"{name}.weight", output=name) for name, kind in layers)

    def additions(self) -> tuple[Addition, ...]:
        return tuple(
            Addition(block=f"blocks.0.{name}", branch=f"blocks.0.{name}", skip=f"skips.{at}", layer=f"blocks.0.{name}")
            for at, name in enumerate(("one", "two"))
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x)
        for skip, branch in zip(self.skips, self.blocks[0].children(), strict=True):
            h = skip(h) + branch(h.tanh())
        logits: Tensor = self.head(h)
        return logits


class Adder(nn.Module):
    """Linear in all that it sees."""

    def __init__(self, *, num_inputs: int, num_classes: int, length: int) -> None:
        super().__init__()
        assert num_inputs == 2
        self.head = nn.Linear(num_inputs * length, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(x.flatten(1))
        return found


def biggest(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """A probe."""
    del x, y
    with torch.no_grad():
        return {"weight": max(float(each.abs().max()) for each in model.parameters())}
