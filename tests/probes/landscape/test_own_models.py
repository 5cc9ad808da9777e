"""Other people's models and losses: complex buffers, weights made from others, states, precisions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import spectral_norm, weight_norm

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
