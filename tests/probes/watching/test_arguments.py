"""The pass that finds the structure misses nothing of the training's arguments, nor of what a model holds."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from depthscope.probes.watching import Watching
from depthscope.probes.watching.arguments import Uncopyable, copied


class Deep(nn.Module):
    def __init__(self, take: Callable[..., Tensor]) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
        self.take = take
        self.held: dict[str, Any] = {
            "g": [random.Random(3), (np.random.default_rng(3), torch.Generator().manual_seed(3))]
        }

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        out: Tensor = self.body(self.take(self, *args, **kwargs))
        return out


@dataclass(frozen=True)
class Frozen:
    rows: list[Tensor]


def _nested(model: Deep, x: Tensor) -> Tensor:
    one, (two, three) = model.held["g"]
    mixed: Tensor = x * one.random() + float(two.random()) + torch.randn(4, generator=three)
    return mixed


def _grows(_model: Deep, x: Tensor, memory: list[float]) -> Tensor:
    memory.append(float(x.sum()))
    return x * len(memory)


TAKES: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor], tuple[Any, ...]]]] = {
    "writes its input": (lambda _m, x: x.sub_(0.5).div_(0.25), lambda x: (x,)),
    "pops": (lambda _m, b: b.pop("x"), lambda x: ({"x": x, "y": 1},)),
    "empties a frozen dataclass": (lambda _m, b: b.rows.pop().mul_(2), lambda x: (Frozen([x]),)),
    "takes from an object": (lambda _m, b: b.__dict__.pop("x"), lambda x: (SimpleNamespace(x=x),)),
    "appends": (_grows, lambda x: (x, [])),
    "draws from a generator": (
        lambda _m, x, g: x + torch.randn(x.shape, generator=g),
        lambda x: (x, torch.Generator().manual_seed(1)),
    ),
    "draws from generators that it holds deep inside": (_nested, lambda x: (x,)),
}


def trained(take: Callable[..., Tensor], given: Callable[[Tensor], tuple[Any, ...]], watched: bool) -> Any:
    torch.manual_seed(0)
    model = Deep(take)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watching = Watching(model, optimizer, 2) if watched else None
    with watching or nullcontext():
        for _ in range(4):
            optimizer.zero_grad()
            model(*given(torch.randn(3, 4))).square().sum().backward()
            optimizer.step()
    return [each.tolist() for each in model.parameters()], watching


@pytest.mark.parametrize("name", TAKES)
def test_a_pass_before_the_first_takes_nothing_from_it(name: str) -> None:
    take, given = TAKES[name]
    plain, _ = trained(take, given, watched=False)
    watched, watching = trained(take, given, watched=True)
    assert watched == plain
    assert {each.conditions.silent for each in watching.records()} == {""}


def test_where_nothing_can_be_put_back_nothing_is_traced_and_it_says_so() -> None:
    torch.manual_seed(7)
    rows = list(torch.randn(9, 3, 4))

    def given() -> Callable[[Tensor], tuple[Any, ...]]:
        source = iter(rows)
        return lambda _x: (source,)

    plain, _ = trained(lambda _model, source: next(source), given(), watched=False)
    watched, watching = trained(lambda _model, source: next(source), given(), watched=True)
    assert watched == plain
    assert all("of type list_iterator" in each.conditions.silent for each in watching.records())
    assert "boundary" not in {each.place for each in watching.profile.readings}

    for held, why in ((iter(range(9)), "holds an iterator (held)"), (_sgd(), "holds an optimizer (held)")):
        model: Any = nn.Linear(4, 2)
        model.held = held
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with Watching(model, optimizer) as watching:
            model(torch.randn(3, 4)).sum().backward()
            optimizer.step()
        assert why in watching.records()[0].conditions.silent


def _sgd() -> torch.optim.SGD:
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)


def test_a_copy_has_the_strides_and_the_shape_of_the_tree() -> None:
    x = torch.randn(4, 6, requires_grad=True)
    leaf = torch.randn(3, requires_grad=True)
    itself: list[Any] = [x]
    itself.append(itself)
    tensors = [x[:, ::2], x.T, torch.randn(5).expand(3, 5), (x * 2)[1:], leaf, torch.randn(0, 3), torch.tensor(2.0)]
    with copied(nn.Linear(1, 1), (tensors, tensors[0], itself), {}) as ((copies, first, cycle), _):
        for one, other in zip(copies, tensors, strict=True):
            assert one is not other
            assert torch.equal(one, other)
            assert (one.stride(), one.requires_grad, one.is_leaf) == (
                other.stride(),
                other.requires_grad,
                other.is_leaf,
            )
            assert one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr() or not one.numel()
        assert first is copies[0]
        assert cycle[1] is cycle
    teacher = nn.BatchNorm1d(4)
    before = copy.deepcopy(teacher.state_dict())
    with copied(nn.Linear(1, 1), (teacher,), {}) as ((same,), _):
        assert same is teacher
        teacher(torch.randn(5, 4))
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())
    with pytest.raises(Uncopyable, match="type generator"), copied(nn.Linear(1, 1), ((i for i in range(3)),), {}):
        pass
