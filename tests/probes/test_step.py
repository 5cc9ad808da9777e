"""Along the step: closed forms on quadratics, a slow twin on networks, and the model as it was."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.step import FACTORS, along_step


class Bowl(nn.Module):
    """L = w^T H w / 2, whatever comes in, in two parameters and a frozen one."""

    def __init__(self, hessian: Tensor, w: Tensor) -> None:
        super().__init__()
        self.register_buffer("hessian", hessian)
        self.first, self.rest = nn.Parameter(w[:1].clone()), nn.Parameter(w[1:].clone())
        self.frozen = nn.Parameter(torch.ones(3, dtype=w.dtype), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(2, dtype=w.dtype))

    def forward(self, x: Tensor) -> Tensor:
        del x
        w = torch.cat([self.first, self.rest])
        hessian: Any = self.hessian
        value: Tensor = w @ hessian @ w / 2 + 0 * self.frozen.sum()
        return value


def itself(output: Tensor, target: Tensor) -> Tensor:
    del target
    return output


def quadratic(*diagonal: float) -> tuple[Tensor, Tensor]:
    """A Hessian with these eigenvalues, turned; and weights."""
    torch.manual_seed(1)
    turn, _ = torch.linalg.qr(torch.randn(len(diagonal), len(diagonal), dtype=torch.float64))
    return turn @ torch.tensor(diagonal, dtype=torch.float64).diag() @ turn.T, torch.randn(
        len(diagonal), dtype=torch.float64
    )


NOTHING = torch.zeros(1, dtype=torch.float64)


@pytest.mark.parametrize("diagonal", [(4.0, 1.0, 0.25), (2.0, -3.0, 0.0), (5.0, 5.0, 5.0)])
def test_a_quadratic(diagonal: tuple[float, ...]) -> None:
    hessian, w = quadratic(*diagonal)
    etas = (0.05, 0.4, 0.1)
    found = along_step(Bowl(hessian, w), NOTHING, NOTHING, itself, etas=etas)
    g = hessian @ w
    loss, bend = float(w @ g) / 2, float(g @ hessian @ g)
    losses = [loss - eta * float(g @ g) + eta * eta * bend / 2 for eta in etas]
    stretch = float((hessian @ g).norm())
    assert found.loss == pytest.approx(loss, rel=1e-14)
    assert found.gradient_norm == pytest.approx(float(g.norm()), rel=1e-14)
    assert found.losses == pytest.approx(losses, rel=1e-13)
    assert found.changes == pytest.approx([eta * stretch for eta in etas], rel=1e-13)
    assert found.distances == pytest.approx([eta * float(g.norm()) for eta in etas], rel=1e-13)
    assert found.loss_range == pytest.approx((min(losses), max(losses)), rel=1e-13)
    assert found.change_range == pytest.approx((0.05 * stretch, 0.4 * stretch), rel=1e-13)
    assert found.smoothness == pytest.approx(stretch / float(g.norm()), rel=1e-13)


def test_of_a_gradient_that_is_an_eigenvector_the_smoothness_is_the_eigenvalues_size() -> None:
    hessian, w = torch.diag(torch.tensor([-7.0, 2.0])).double(), torch.tensor([1.0, 0.0]).double()
    assert along_step(Bowl(hessian, w), NOTHING, NOTHING, itself, etas=(0.1,)).smoothness == pytest.approx(7, rel=1e-13)


def test_the_largest_ratio_is_taken_over_the_whole_range() -> None:
    """L = w^4 at w = 1: g(w') = 4 (1 - 4 eta)^3, so the ratio is (4 - 4 (1 - 4 eta)^3) / (4 eta), largest for least."""

    class Quartic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones((), dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            return self.w**4 + 0 * x.sum()

    etas = (0.2, 0.01, 0.1)
    ratios = [(4 - 4 * (1 - 4 * eta) ** 3) / (4 * eta) for eta in etas]
    assert along_step(Quartic(), NOTHING, NOTHING, itself, etas=etas).smoothness == pytest.approx(
        max(ratios), rel=1e-12
    )
    assert max(ratios) == ratios[1]


def test_where_the_gradient_is_zero_nothing_moves() -> None:
    hessian, w = quadratic(4.0, 1.0)
    found = along_step(Bowl(hessian, 0 * w), NOTHING, NOTHING, itself, etas=FACTORS)
    assert found.losses == (0.0,) * len(FACTORS)
    assert found.change_range == (0.0, 0.0)
    assert math.isnan(found.smoothness)


def test_what_overflows_stays_so() -> None:
    hessian, w = quadratic(1e200, 1.0)
    found = along_step(Bowl(hessian, w), NOTHING, NOTHING, itself, etas=(1e-201, 1.0))
    assert found.loss_range[1] == math.inf
    assert math.isfinite(found.loss_range[0])

    def broken(output: Tensor, target: Tensor) -> Tensor:
        return output.sqrt() + 0 * target.sum()  # beyond the bottom there is no root

    steep = along_step(Bowl(hessian / -1e200, w), NOTHING, NOTHING, broken, etas=(0.1,))
    assert all(math.isnan(each) for each in (*steep.loss_range, *steep.change_range, steep.smoothness))


def network(norm: str) -> nn.Module:
    model, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="A", norm=norm), seed=3)
    return model.eval()


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_a_network_as_by_hand_in_training_mode(norm: str) -> None:
    """A slow twin: copies with the weights written in, each batch normalised by its own statistics."""
    model = network(norm)
    torch.manual_seed(0)
    x, y = torch.randn(16, 3, 8, 8), torch.arange(16) % 10
    found = along_step(model, x, y, nn.functional.cross_entropy, etas=(0.05, 0.2), dtype=torch.float64)

    def judged(twin: nn.Module) -> tuple[float, Tensor]:
        twin.zero_grad()
        loss = nn.functional.cross_entropy(twin(x.double()), y)
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach()), nn.utils.parameters_to_vector([each.grad for each in twin.parameters()])  # type: ignore[misc]

    twin = copy.deepcopy(model).double().train()
    begin = nn.utils.parameters_to_vector(twin.parameters()).detach()
    loss, g = judged(twin)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    for at, eta in enumerate((0.05, 0.2)):
        nn.utils.vector_to_parameters(begin - eta * g, twin.parameters())
        there, gradient = judged(twin)
        assert found.losses[at] == pytest.approx(there, rel=1e-10)
        assert found.changes[at] == pytest.approx(float((gradient - g).norm()), rel=1e-9)


def test_float32_is_the_models_own_and_near_float64() -> None:
    model = network("batch")
    torch.manual_seed(0)
    x, y = torch.randn(16, 3, 8, 8), torch.arange(16) % 10
    own = along_step(model, x, y, nn.functional.cross_entropy, etas=(0.1,))
    wide = along_step(model, x, y, nn.functional.cross_entropy, etas=(0.1,), dtype=torch.float64)
    assert own.smoothness == pytest.approx(wide.smoothness, rel=1e-3)
    assert own.smoothness != wide.smoothness


def test_the_model_and_the_generators_are_left_as_found() -> None:
    model = network("batch")
    model.register_buffer("drawn", torch.zeros(()))
    x, y = torch.randn(4, 3, 8, 8), torch.arange(4)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    draws = torch.get_rng_state()
    with torch.no_grad():
        along_step(model, x, y, nn.functional.cross_entropy, etas=(0.1,))
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), draws)
    assert not any(module.training for module in model.modules())
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert all(torch.equal(each.grad, torch.ones_like(each)) for each in model.parameters() if each.grad is not None)


def test_dropout_draws_the_same_at_every_point() -> None:
    """A linear loss behind dropout: with one mask its gradient never changes."""
    model = nn.Sequential(nn.Linear(64, 1, bias=False), nn.Flatten(0), nn.Dropout(0.5)).double()
    x = torch.randn(32, 64, dtype=torch.float64)
    found = along_step(model, x, x, lambda output, _target: output.sum(), etas=(0.1, 0.2))
    assert found.changes == (0.0, 0.0)
    assert found.losses == pytest.approx([found.loss - eta * found.gradient_norm**2 for eta in (0.1, 0.2)], rel=1e-12)


@pytest.mark.parametrize("etas", [(), (0.1, 0.0), (-1.0,), (math.inf,), (math.nan,)])
def test_bad_etas_are_refused(etas: tuple[float, ...]) -> None:
    hessian, w = quadratic(1.0, 2.0)
    with pytest.raises(UserError, match="positive numbers for eta"):
        along_step(Bowl(hessian, w), NOTHING, NOTHING, itself, etas=etas)


def test_a_model_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(UserError, match="no parameter that is trained"):
        along_step(nn.Linear(1, 1).requires_grad_(False), torch.ones(1, 1), torch.ones(1, 1), itself, etas=(0.1,))
