"""Depth and memory: work that grows with the number of operations, and no activation held."""

from __future__ import annotations

from heapq import heappop
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from depthscope.probes.trace import additions, trace


class Deep(nn.Module):
    """A residual network of so many one-layer branches; one weight for all, so that only the graph is deep."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers, self.linear = layers, nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.layers):
            x = x + torch.tanh(self.linear(x))
        return x


def _visits(layers: int, monkeypatch: pytest.MonkeyPatch) -> int:
    count = 0
    pop = heappop

    def counted(heap: Any) -> Any:
        nonlocal count
        count += 1
        return pop(heap)

    with monkeypatch.context() as patch:
        patch.setattr(additions, "heappop", counted)
        found = trace(Deep(layers), (torch.randn(1, 2),), {}).structure
    assert len(found.additions) == layers
    assert len(found.blocks) == layers
    return count


@pytest.mark.parametrize("layers", [300, pytest.param(4000, marks=pytest.mark.slow)])
def test_visits_are_linear_in_depth(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walks end at the nearest common value: the same number of visits a layer at any depth."""
    assert _visits(layers, monkeypatch) == layers * _visits(1, monkeypatch)


class Watchful(nn.Module):
    """Looks whether the memory of an activation is gone once nothing of its own refers to it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.freed: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        before = None
        for layer in self.layers:
            x = torch.tanh(layer(x))
            if before is not None:
                self.freed.append(bool(before.expired()))  # type: ignore[no-untyped-call]
            before = StorageWeakRef(x.untyped_storage())  # type: ignore[no-untyped-call]
        return x


def test_no_activation_is_held() -> None:
    model = Watchful()
    seen = model.freed
    model(torch.randn(2, 4))
    assert not all(seen)  # autograd holds them
    seen.clear()
    found: list[bool] = []
    model.register_forward_hook(lambda module, args, out: found.extend(model.freed))
    trace(model, (torch.randn(2, 4),), {})
    assert found == [True, True, True]


def test_memory_that_is_used_again_is_another_tensor() -> None:
    """Freed tensors give their addresses to new ones: a chain of temporaries is no cycle and no alias."""

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(50):
                x = torch.relu(self.linear(x) * 1.0)
            return x

    found = trace(Chain(), (torch.randn(2, 3),), {}).structure
    assert len(found.blocks) == 50
    assert not found.additions
