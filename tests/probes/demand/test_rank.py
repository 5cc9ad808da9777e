"""Effective rank against a naive twin and tables whose rank is known."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from depthscope.probes.demand import effective_rank, rank_cost, rank_reducer
from depthscope.probes.demand.rank import MAX_ROWS
from depthscope.probes.demand.rows import is_sequence
from depthscope.probes.trace import Follow, trace


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def naive(rows: Tensor) -> float:
    values = np.linalg.svd((rows - rows.mean(0)).numpy(), compute_uv=False) ** 2
    p = values / values.sum()
    return math.exp(-sum(each * math.log(each) for each in p if each > 0))


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (7, 3, 4, 4), (4, 6, 5)])
def test_agrees_with_the_naive_twin(shape: tuple[int, ...]) -> None:
    h = normal(*shape) + 3
    rows = h.reshape(-1, shape[-1]) if len(shape) == 3 else h.reshape(shape[0], -1)
    found, limit = effective_rank(h)
    assert found == pytest.approx(naive(rows), rel=1e-10)
    assert limit == min(len(rows) - 1, rows.shape[1])
    assert 1 < found <= limit


def test_channels_are_no_positions() -> None:
    h = normal(4, 6, 5)
    assert effective_rank(h, sequence=False)[0] == pytest.approx(naive(h.flatten(1)), rel=1e-10)


@pytest.mark.parametrize("rank", [1, 3, 6])
@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
def test_equal_directions_count_as_many_as_they_are(rank: int, scale: float) -> None:
    # Rows +-e_i in a rotated basis, far from the origin: rank equal singular values.
    basis = torch.linalg.qr(normal(9, 9))[0][:rank]
    rows = torch.cat([basis, -basis]) + 5
    for table in (rows, torch.cat([rows, rows])):
        assert effective_rank(scale * table)[0] == pytest.approx(rank, rel=1e-9)


def test_rows_that_have_become_one_point_have_no_direction() -> None:
    point = normal(1, 20).float()
    rounding = torch.from_numpy(np.random.default_rng(1).choice([0.0, 6e-8], size=(16, 20))).float()
    assert effective_rank(point * (1 + rounding)) == (0.0, 15)
    assert effective_rank(point.expand(16, 20)) == (0.0, 15)
    assert effective_rank(torch.zeros(16, 20)) == (0.0, 15)
    # A hundred times as much is no rounding.
    assert effective_rank(point * (1 + 1e-4 * normal(16, 20).float()))[0] > 5


def test_one_row_infinities_and_many_rows() -> None:
    assert effective_rank(torch.ones(1, 7)) == (0.0, 0)
    assert math.isnan(effective_rank(torch.tensor([[1.0, 2.0], [math.inf, 0.0]]))[0])
    many = normal(3 * MAX_ROWS, 4)
    assert effective_rank(many)[0] == pytest.approx(naive(many), rel=1e-2)


class Net(nn.Module):
    """Convolution over time, then a sequence: [B, C, L] and [B, T, F]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 4, 3, padding=1), nn.ReLU())
        self.norm, self.linear = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(self.norm(self.conv(x).transpose(1, 2)))
        return y


class Keep:
    def __init__(self, reducer: object) -> None:
        self.reducer = reducer
        self.found: dict[int, Mapping[str, float]] = {}
        self.seen: dict[int, Tensor] = {}

    def boundary(self, index: int, tensor: Tensor) -> None:
        self.found[index] = self.reducer(index, tensor.detach())  # type: ignore[operator]
        self.seen[index] = tensor.detach().clone()

    def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
        pass


def test_the_reducer_reads_every_boundary_by_its_layout() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Net().double()
    x = normal(6, 3, 5)
    traced = trace(model, (x,), {})
    keep = Keep(rank_reducer(traced.structure))
    with Follow(traced, keep):
        model(x)
    assert sorted(keep.found) == [each.index for each in traced.structure.boundaries]
    layouts = [is_sequence(traced.structure, index) for index in sorted(keep.found)]
    assert layouts[0] is False
    assert layouts[-1] is True
    for index, layout in enumerate(layouts):
        h = keep.seen[index]
        rows = h.reshape(-1, h.shape[-1]) if layout else h.flatten(1)
        assert keep.found[index]["rank"] == pytest.approx(naive(rows), rel=1e-9)
        assert keep.found[index]["rank_limit"] == min(len(rows) - 1, rows.shape[1])


def test_cost_names_the_decompositions() -> None:
    told = rank_cost(trace(Net(), (torch.zeros(2, 3, 5),), {}).structure, 64)
    # Boundaries of 3 x 5 and 4 x 5 an example, then 64 x 5 positions of 4.
    assert (told.forwards, told.backwards) == (1, 0)
    assert "order 20 or less" in str(told)
    assert told.num_bytes == 8 * (2 * 64 * 20 + 2 * 20**2)
