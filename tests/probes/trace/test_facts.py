"""Facts of operations against closed forms, in every layout in which a weight is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from depthscope.core.structure import Op
from depthscope.probes.trace import trace


def ops(model: nn.Module, *args: Any) -> list[Op]:
    return [op for block in trace(model, args, {}).structure.blocks for op in block.ops]


class TransposedLinear(nn.Module):
    """Weight [in, out], as Hugging Face's Conv1D keeps it."""

    def __init__(self, inside: int, out: int, how: str) -> None:
        super().__init__()
        self.weight, self.bias, self.how = nn.Parameter(torch.randn(inside, out)), nn.Parameter(torch.ones(out)), how

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "addmm":
            return torch.addmm(self.bias, x, self.weight)
        if self.how == "einsum":
            return torch.einsum("bi,io->bo", x, self.weight)
        if self.how == "left":
            return (self.weight.T @ x.T).T
        return x.half().float() @ self.weight.bfloat16().float()


@pytest.mark.parametrize("how", ["addmm", "einsum", "left", "cast"])
def test_fans_of_transposed_weights(how: str) -> None:
    model = TransposedLinear(6, 4, how)
    (op,) = [each for each in ops(model, torch.randn(3, 6)) if each.kind == "linear"]
    assert (op.facts["fan_in"], op.facts["fan_out"]) == (6, 4)
    assert op.facts["sw2"] == pytest.approx(6 * float(model.weight.detach().var(unbiased=False)), rel=1e-2)
    assert "weight" in op.weights
    assert op.facts["sb2"] == (1 if how == "addmm" else 0)


@pytest.mark.parametrize(
    ("layer", "shape", "fans"),
    [
        (nn.Linear(6, 4), (3, 6), (6, 4)),
        (nn.Conv2d(6, 4, 3, padding=1), (3, 6, 5, 5), (54, 36)),
        (nn.Conv2d(6, 4, 3, padding=1, groups=2), (3, 6, 5, 5), (27, 36)),
        (nn.Conv1d(6, 4, 3, padding=1), (3, 6, 5), (18, 12)),
        (nn.ConvTranspose2d(6, 4, 3, padding=1), (3, 6, 5, 5), (54, 36)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_weights(layer: Any, shape: tuple[int, ...], fans: tuple[float, float]) -> None:
    (op,) = ops(layer, torch.randn(shape))
    weight, bias = (each.detach() for each in (layer.weight, layer.bias))
    assert (op.facts["fan_in"], op.facts["fan_out"]) == fans
    assert op.facts["sw2"] == pytest.approx(fans[0] * float(weight.var(unbiased=False)), rel=1e-5)
    assert op.facts["sb2"] == pytest.approx(float(bias.square().mean()), rel=1e-5)
    assert set(op.weights) == {"weight", "bias"}


def test_orthogonality() -> None:
    """0 for orthogonal, tall, wide and delta-orthogonal weights; sqrt(1 - 1/n) for a rank of one."""
    for out, inside in ((5, 5), (8, 5), (5, 8)):
        linear = nn.Linear(inside, out)
        nn.init.orthogonal_(linear.weight, gain=1.7)
        assert ops(linear, torch.randn(2, inside))[0].facts["orthogonality"] == pytest.approx(0, abs=1e-6)
    conv = nn.Conv2d(4, 6, 3, padding=1)
    nn.init.dirac_(conv.weight)
    assert ops(conv, torch.randn(1, 4, 5, 5))[0].facts["orthogonality"] == pytest.approx(0, abs=1e-6)
    linear = nn.Linear(9, 4)
    nn.init.ones_(linear.weight)
    assert ops(linear, torch.randn(2, 9))[0].facts["orthogonality"] == pytest.approx(0.75**0.5, rel=1e-5)


def test_orthogonality_of_huge_weights_is_left_out() -> None:
    linear = nn.Linear(700, 700)
    assert "orthogonality" not in ops(linear, torch.randn(1, 700))[0].facts


@pytest.mark.parametrize(
    ("module", "kind", "name", "facts"),
    [
        (nn.LeakyReLU(0.2), "activation", "leaky_relu", {"slope": 0.2}),
        (nn.ReLU6(), "activation", "relu6", {}),
        (nn.SELU(), "activation", "selu", {}),
        (nn.ELU(), "activation", "elu", {}),
        (nn.GELU("tanh"), "activation", "gelu", {}),
        (nn.PReLU(init=0.3), "activation", "prelu", {"slope": 0.3}),
        (nn.Dropout(0.3), "dropout", "dropout", {"p": 0.3}),
        (nn.MaxPool1d(1), "pool", "max", {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_activations(module: nn.Module, kind: str, name: str, facts: dict[str, float]) -> None:
    (op,) = [
        each
        for each in ops(nn.Sequential(nn.Linear(3, 3, bias=False), module), torch.randn(2, 3))
        if each.kind != "linear"
    ]
    assert (op.kind, op.name) == (kind, name)
    assert dict(op.facts) == pytest.approx(facts)


@pytest.mark.parametrize(
    ("module", "name", "facts"),
    [
        (nn.BatchNorm1d(4), "batch", {"training": 1, "value": 1}),
        (nn.BatchNorm1d(4).eval(), "batch", {"training": 0, "value": 1}),
        (nn.InstanceNorm1d(4, affine=True), "instance", {"value": 1}),
        (nn.GroupNorm(2, 4), "group", {"group_size": 2, "value": 1}),
        (nn.LayerNorm(6), "layer", {"value": 1}),
        (nn.RMSNorm(6), "rms", {"value": 1}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_norms(module: nn.Module, name: str, facts: dict[str, float]) -> None:
    """A norm of primitives (RMSNorm where torch has none) is one operation that holds its gamma."""
    (op,) = [each for each in ops(module, torch.randn(3, 4, 6)) if each.kind == "norm"]
    assert op.name == name
    assert dict(op.facts) == pytest.approx(facts)
    assert "weight" in op.weights


def _spectral(linear: nn.Linear) -> nn.Module:
    module: nn.Module = nn.utils.parametrizations.spectral_norm(linear)
    return module


def _weight_norm(linear: nn.Linear) -> nn.Module:
    module: nn.Module = nn.utils.parametrizations.weight_norm(linear)
    return module


@pytest.mark.parametrize(
    ("wrap", "wanted"),
    [
        (_spectral, {"parametrizations.weight.original", "bias"}),
        (_weight_norm, {"parametrizations.weight.original0", "parametrizations.weight.original1", "bias"}),
    ],
)
def test_parametrised_weights_are_consumed(wrap: Callable[[nn.Linear], nn.Module], wanted: set[str]) -> None:
    """The facts are those of the weight as it is used."""
    model = wrap(nn.Linear(6, 4)).eval()
    (op,) = [each for each in ops(model, torch.randn(2, 6)) if each.kind == "linear"]
    assert set(op.weights) == wanted
    weight: Any = model.weight.detach()  # type: ignore[operator]
    assert op.facts["sw2"] == pytest.approx(6 * float(weight.var(unbiased=False)), rel=1e-5)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.alpha = nn.Linear(3, 3), nn.Parameter(torch.full((3,), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        return functional.silu(self.linear(x) * self.alpha / 2)


def test_scales() -> None:
    scales = [op for op in ops(Scaled(), torch.randn(2, 3)) if op.kind == "scale"]
    assert [op.facts["value"] for op in scales] == pytest.approx([0.25, 0.5])
    assert [op.weights for op in scales] == [("alpha",), ()]
    assert [op.module for op in ops(Scaled(), torch.randn(2, 3))] == ["linear", "", "", ""]
