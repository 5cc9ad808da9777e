"""Other people's models and losses: complex buffers, weights made from others, states, precisions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import spectral_norm, weight_norm

from depthscope.core.errors import UserError
from depthscope.probes.curvature import Hessian
from depthscope.probes.landscape.directions import directions
from depthscope.probes.landscape.surface import Surface


def by_class(output: Any, targets: Tensor) -> dict[str, float]:
    return {"loss": float(F.cross_entropy(output.detach(), targets))}


def examples(num: int = 12) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(num, 6, generator=draw), torch.randint(3, (num,), generator=draw)


class Turned(nn.Module):
    """Multiplies by a complex buffer, as rotary embeddings do."""

    turn: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(6, 4), nn.Linear(8, 3)
        self.register_buffer("turn", torch.polar(torch.ones(4), torch.arange(4.0)))

    def forward(self, x: Tensor) -> Tensor:
        z = self.first(x) * self.turn
        logits: Tensor = self.head(torch.cat([z.real, z.imag], 1))
        return logits


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float64", 1e-6), ("bfloat16", 0.02)])
def test_complex_buffers_stay_complex(precision: Any, tolerance: float) -> None:
    torch.manual_seed(0)
    model, (x, y) = Turned(), examples()
    surface = Surface(model, [(x, y)], by_class, directions(model, axes=1, seed=0), precision=precision)
    assert surface.at(0.0)["loss"] == pytest.approx(by_class(model(x), y)["loss"], rel=tolerance)
    with surface.model_at(0.0) as there:
        assert dict(there.named_buffers())["turn"].dtype is torch.complex128
        assert by_class(there(x.double()), y)["loss"] == pytest.approx(by_class(model(x), y)["loss"], rel=1e-6)


class Cautious(nn.Module):
    """Changes itself where its scores are large, so at some points alone: an attribute, a buffer, one put anew."""

    count: Tensor
    scale: Tensor

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.head, self.way = nn.Linear(6, 8), nn.Linear(8, 3), way
        self.register_buffer("scale", torch.ones(1))
        self.factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.relu(self.first(x))) * self.factor * self.scale
        if float(logits.detach().abs().max()) > 30:
            if self.way == "attribute":
                self.factor /= 2
            elif self.way == "buffer":
                self.scale.div_(2)
            elif self.way == "anew":
                self.scale = self.scale / 2
            else:
                self.head.bias.detach().add_(1.0)
                raise ValueError("too large")
        return logits


@pytest.mark.parametrize("way", ["attribute", "buffer", "anew", "raises"])
@pytest.mark.parametrize("fast", [False, True])
def test_points_of_a_model_that_changes_itself_at_some_of_them(way: str, fast: bool) -> None:
    torch.manual_seed(0)
    model, (x, y) = Cautious(way), examples()
    batches = [(x[:8], y[:8]), (x[8:], y[8:])]
    axes = directions(model, axes=1, seed=0)

    def asked(surface: Surface, *points: float) -> dict[float, float]:
        found = {}
        for point in points:
            try:
                found[point] = surface.at(point)["loss"]
            except UserError:
                found[point] = -1.0
        return found

    points = (0.0, 20.0, -20.0, 1.0)
    alone = {
        point: loss
        for each in points
        for point, loss in asked(Surface(model, batches, by_class, axes, fast=fast), each).items()
    }
    surface = Surface(model, batches, by_class, axes, fast=fast)
    for order in (points, points[::-1], points):
        assert asked(surface, *order) == alone
    if way != "raises":
        with torch.no_grad():
            model.first.weight.add_(axes.axes[0]["first.weight"].float(), alpha=20.0)
            model.head.weight.add_(axes.axes[0]["head.weight"].float(), alpha=20.0)
            losses = [by_class(model(x), y)["loss"] * len(x) for x, y in batches]
        assert alone[20.0] == pytest.approx(sum(losses) / len(examples()[0]), rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("older", [weight_norm, spectral_norm])
def test_a_weight_that_a_hook_has_made(older: Any) -> None:
    """By torch's older ways the weight is no leaf, and not one of the parameters that move."""
    torch.manual_seed(0)
    model, (x, y) = nn.Sequential(older(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 3)), examples()
    loss: Any = F.cross_entropy(model(x), y)
    loss.backward()
    made: Any = model[0].weight
    axes = directions(model, axes=1, seed=0)
    surface = Surface(model, [(x, y)], by_class, axes, precision="float64")
    twin: Any = nn.Sequential(older(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 3)).double()
    twin.load_state_dict(model.state_dict())
    twin.eval()
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            parameter.add_(axes.axes[0][name], alpha=0.5)
        assert surface.at(0.5)["loss"] == pytest.approx(by_class(twin(x.double()), y)["loss"], rel=1e-12)
    assert model[0].weight is made
    with surface.model_at(0.5) as there:
        assert Hessian(there, [(x, y)], F.cross_entropy).loss() == pytest.approx(surface.at(0.5)["loss"], rel=1e-12)
    assert Hessian(model, [(x, y)], F.cross_entropy).loss() == pytest.approx(surface.at(0.0)["loss"], rel=1e-6)
