"""Which tensors lie in the same memory, and that what is freed is not taken for what comes after it."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.probes.trace import trace
from depthscope.probes.trace.tensors import Region

_CELLS = torch.arange(24)


def _pieces() -> list[Tensor]:
    """Windows of a matrix, of its transpose and of a cube, and every other column."""
    flat, cube = _CELLS.view(4, 6), _CELLS.view(2, 3, 4)
    spans = [(0, 1), (0, 2), (1, 3), (2, 4), (0, 4), (3, 4)]
    windows = [flat[a:b, c:d] for (a, b), (c, d) in product(spans, [(0, 2), (2, 4), (1, 5), (5, 6), (3, 6), (0, 6)])]
    windows += [flat.T[a:b] for a, b in spans] + [flat[:, at::2] for at in (0, 1)] + [flat[:, at] for at in range(6)]
    windows += [cube[:, a:b, c:d] for (a, b), (c, d) in product([(0, 1), (1, 3), (0, 3)], [(0, 2), (2, 3), (1, 4)])]
    windows.append(torch.as_strided(_CELLS, (2, 3), (4, 1), 3))  # runs over the ends of rows
    return windows


def test_regions_against_their_entries() -> None:
    """Never apart where an entry is shared; apart wherever two windows of one tensor share none."""
    pieces = [(Region.of(each), set(each.flatten().tolist())) for each in _pieces()]
    missed = 0
    for (one, first), (other, second) in product(pieces, pieces):
        assert not (one.apart(other) and first & second), (one, other)
        if one.strides == other.strides and not first & second:
            missed += not one.apart(other)
    assert missed == 0


class Columns(nn.Module):
    """Reads one column of a table after it wrote another, as caches of many layers in one tensor do."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        table = x.new_zeros(2, 3, 2)
        left, right = table[..., 0], table[..., 1]
        left.copy_(torch.tanh(self.linear(x)))
        return x + right


def test_a_column_knows_nothing_of_its_neighbour() -> None:
    assert not trace(Columns(), (torch.randn(2, 3),), {}).structure.additions


class Temporary(nn.Module):
    """A constant that torch makes without an operation may get the address of a layer's result that was let go."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.same = nn.Linear(3, 3), 0

    def forward(self, x: Tensor) -> Tensor:
        ones = np.ones(3, np.float32)
        for _ in range(20):
            h = self.linear(x)
            x = x * 1.0
            del h
            x = x + torch.from_numpy(ones)
        return x + torch.tanh(self.linear(x))


def test_a_new_tensor_at_an_old_address_is_new() -> None:
    assert len(trace(Temporary(), (torch.randn(2, 3),), {}).structure.additions) == 1


class Adjacency(nn.Module):
    """Attention on a graph: its input, the adjacency, biases the scores that are made of it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.query, self.key = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, adjacency: Tensor) -> Tensor:
        x = self.stem(adjacency)
        scores = self.query(x) @ self.key(x).transpose(-1, -2) + adjacency
        mixed: Tensor = torch.softmax(scores / 2, -1) @ x
        return mixed


def test_a_bias_of_attention_scores_is_no_skip() -> None:
    assert not trace(Adjacency(), (torch.randn(2, 5, 5),), {}).structure.additions


class Twice(nn.Module):
    """A reversible stream: both halves start as the same tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.f, self.g = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        left, right = torch.cat([x, x], -1).chunk(2, -1)
        left = left + torch.tanh(self.f(right))
        right = right + torch.tanh(self.g(left))
        return torch.cat([left, right], -1)


def test_a_tensor_joined_to_itself_and_split_is_whole() -> None:
    assert len(trace(Twice(), (torch.randn(2, 3),), {}).structure.additions) == 2


class Mixed(nn.Module):
    """Attention without a projection of its values, and a reconstruction whose loss stands beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.query, self.head = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        h, q = self.stem(x), self.query(x)
        out = self.head(h + torch.softmax(q @ q.transpose(-1, -2), -1) @ h)
        return {"loss": (out - x).square().mean(), "logits": out}


def test_mixing_is_a_branch_and_a_loss_is_not_the_model() -> None:
    found = trace(Mixed(), (torch.randn(2, 5, 3),), {}).structure
    assert len(found.additions) == 1
