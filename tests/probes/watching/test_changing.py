"""Models that do not run alike from pass to pass, passes that fail, gradients on the way to the loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.probes.measure.profile import profile_model
from depthscope.probes.watching import Watching


class Dropped(nn.Module):
    """Pre-LN blocks of which a pass leaves out those that `out` names, or each with some probability."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.head = nn.Linear(4, 6), nn.Linear(6, 2)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6)) for _ in range(5))
        self.p = p
        self.out: set[int] = set()

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for index, block in enumerate(self.blocks):
            if index in self.out or (self.p and float(torch.rand(())) < self.p):
                continue
            x = x + block(x)
        out: Tensor = self.head(x)
        return out


def step(model: nn.Module, optimizer: Any, x: Tensor) -> None:
    optimizer.zero_grad()
    model(x).square().sum().backward()
    optimizer.step()


def test_each_scheduled_pass_of_a_model_that_drops_layers_is_measured_by_its_own_trace() -> None:
    model = Dropped()
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    x = torch.randn(3, 4)
    outs = [{2}, set(), set(), {1, 3}, {4}]
    with Watching(model, optimizer, 1) as watching:
        for out in outs:
            model.out = out
            step(model, optimizer, x)
    records = watching.records()
    silent = [each.conditions.silent for each in records]
    # The second pass is the first to differ from a trace. The fullest pass gives the structure.
    assert "takes another way from pass to pass" in silent[1]
    assert [each for each in silent[2:] if each] == [
        "the model runs other operations from pass to pass: 2 blocks of 7 did not run in this one",
        "the model runs other operations from pass to pass: 1 block of 7 did not run in this one",
    ]
    assert len(watching.structure.blocks) == 7
    assert all(each.used for each in watching.structure.parameters)
    assert records[3].statuses["blocks.1.1.weight"] == "unused"
    assert "no grad" not in {status for record in records for status in record.statuses.values()}
    for out, record in list(zip(outs, records, strict=True))[2:]:
        model.out = out
        alone = profile_model(model, x)
        names = {each.name for each in record.readings if each.place == "boundary"}
        assert names == {each.name for each in alone.structure.boundaries}
        read = {each.name: each.value for each in record.readings if each.quantity == "residual_ratio"}
        assert read == pytest.approx(alone.values("addition", "residual_ratio"), rel=1e-6)


def test_a_probe_of_a_model_that_drops_layers_calls_none_of_them_unused() -> None:
    model = Dropped(p=0.5)
    model.never = nn.Linear(2, 2)
    torch.manual_seed(2)
    profile = profile_model(model, torch.randn(3, 4))
    assert len(profile.values("addition", "residual_ratio")) < 5
    assert {each.name for each in profile.structure.parameters if not each.used} == {"never.weight", "never.bias"}
    assert "no grad" not in profile.statuses.values()
    assert "this one left layers out" in profile.conditions[0].silent


def test_a_model_that_differs_from_its_trace_just_before_is_given_up() -> None:
    calls = [0]

    class Restless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            calls[0] += 1  # a global variable, which nothing puts back
            out: Tensor = self.b(torch.tanh(self.a(x)) if calls[0] % 2 else torch.sigmoid(self.a(x)))
            return out

    model = Restless()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer, 1) as watching:
        for _ in range(8):
            step(model, optimizer, torch.randn(3, 4))
    assert calls[0] == 8 + 3  # no trace more after three in vain
    assert all("from pass to pass" in each.conditions.silent for each in watching.records())


@pytest.mark.parametrize("to_none", [True, False])
def test_of_a_gradient_penalty_the_last_backward_pass_is_measured(to_none: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    y = torch.randint(3, (6,))
    wanted: list[list[float]] = []
    with Watching(model, optimizer, 1) as watching:
        for _ in range(3):
            z = torch.randn(6, 4, requires_grad=True)
            kept: list[Tensor] = []
            handles = [
                layer.register_forward_hook(lambda _m, _a, out, kept=kept: (out.retain_grad(), kept.append(out))[0])
                for layer in (model[1], model[3], model[4])
            ]
            optimizer.zero_grad(set_to_none=to_none)
            out = model(z)
            (gradient,) = torch.autograd.grad(out.sum(), z, create_graph=True)
            for each in kept:
                each.grad = None  # torch retains that of `autograd.grad` too
            loss: Tensor = F.cross_entropy(out, y) + gradient.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            wanted.append([float(each.grad.norm()) for each in kept if each.grad is not None])
            optimizer.step()
            for handle in handles:
                handle.remove()
    assert watching.num_steps == 3
    for record, norms in zip(watching.records(), wanted, strict=True):
        assert record.conditions.silent == ""
        read = [each.value for each in record.readings if (each.place, each.quantity) == ("boundary", "grad_norm")]
        assert read[-3:] == pytest.approx(norms, rel=1e-5)


def test_a_first_pass_that_fails_and_lazy_layers_cost_one_step_at_most() -> None:
    for model, wrong, silent in (
        (nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), 5, ["", ""]),
        (nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(2)), 0, ["lazy layer", ""]),
    ):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with Watching(model, optimizer, 1) as watching:
            assert watching.structure.parameters
            if wrong:
                with pytest.raises(RuntimeError):
                    model(torch.randn(3, wrong))
            for _ in silent:
                step(model, optimizer, torch.randn(3, 4))
        for record, why in zip(watching.records(), silent, strict=True):
            assert why in record.conditions.silent
            assert bool(why) == bool(record.conditions.silent)


@pytest.mark.parametrize("given", [True, False])
def test_a_probe_inside_of_a_watch_is_none_of_its_steps(given: bool) -> None:
    model = Dropped()
    batch = torch.randn(3, 4), torch.randint(2, (3,))
    alone = profile_model(model, batch, F.cross_entropy)
    with Watching(model, torch.optim.SGD(model.parameters(), 0.0) if given else None) as watching:
        beside = profile_model(model, batch, F.cross_entropy)
    assert beside.readings == alone.readings
    assert beside.conditions == alone.conditions
    assert watching.num_steps == 0
    assert watching.records() == ()
