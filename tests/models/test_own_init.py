"""Initial tensors of anybody's model: what its constructor sets stays, what it draws is drawn anew by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build, fill


class Block(nn.Module):
    """A transformer's block in small, with all that constructors do to tensors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.up = nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)
        nn.init.zeros_(self.down.weight)  # the branch starts at 0
        self.scale = nn.Parameter(torch.full((width,), 0.1))
        self.register_buffer("mask", torch.triu(torch.ones(4, 4), 1).bool())

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        added: Tensor = x + self.scale * self.down(torch.relu(self.up(normed)))
        return added


class Model(nn.Module):
    def __init__(self, depth: int, width: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, width, padding_idx=0)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 11, bias=False)
        self.head.weight = self.embed.weight


INITS = ("he_fan_in", "he_fan_out", "torch")


@pytest.mark.parametrize("init", INITS)
def test_a_deeper_net_starts_from_the_same_shared_tensors(init: str) -> None:
    _, shallow = build(lambda: Model(1), seed=3, init=init, constants=True)
    _, deep = build(lambda: Model(4), seed=3, init=init, constants=True)
    _, other = build(lambda: Model(1), seed=4, init=init, constants=True)
    assert shallow.items() < deep.items()
    drawn = {name for name in shallow if shallow[name] != other[name]}
    weights = {"embed.weight", "blocks.0.attention.in_proj_weight", "blocks.0.attention.out_proj.weight"}
    biases = {"blocks.0.up.bias", "blocks.0.down.bias"} if init == "torch" else set()
    assert drawn == {*weights, "blocks.0.up.weight", *biases}


@pytest.mark.parametrize("init", INITS)
def test_what_a_constructor_sets_stays(init: str) -> None:
    model, _ = build(lambda: Model(2), seed=0, init=init, constants=True, dtype=torch.float64)
    block = model.get_submodule("blocks.1")
    assert not block.get_parameter("down.weight").any()
    assert torch.equal(block.get_parameter("scale"), torch.full((6,), 0.1).double())
    assert torch.equal(block.get_buffer("mask"), torch.triu(torch.ones(4, 4), 1).bool())
    assert model.head.weight is model.embed.weight  # the tie holds
    assert not model.embed.weight[0].any()  # the padding's row


def test_torchs_own_values_are_those_of_reset_parameters_under_the_modules_stream() -> None:
    model, _ = build(lambda: Model(1), seed=5, init="torch", constants=True)
    torch.manual_seed(int(stream(5, "init", "blocks.0.up").integers(2**63)))
    expected = nn.Linear(6, 18)
    assert torch.equal(model.get_parameter("blocks.0.up.weight"), expected.weight)
    assert torch.equal(model.get_parameter("blocks.0.up.bias"), expected.bias)
    # Attention sets the bias of its last projection to 0, after that projection's own reset.
    assert not model.get_parameter("blocks.0.attention.out_proj.bias").any()


def test_torchs_own_initialisation_of_a_known_family_needs_no_constants_told() -> None:
    """U(-b, b) with b = 1 / sqrt(fan_in): variance 1 / (3 fan_in)."""
    model, _ = build(lambda: cifar_resnet(depth=8, width=32), seed=0, init="torch")
    weight = model.get_parameter("blocks.2.conv1.weight").detach()
    assert float(weight.abs().max()) <= 1 / math.sqrt(64 * 9)
    assert float(weight.var()) == pytest.approx(1 / (3 * 64 * 9), rel=0.03)
    assert model.get_parameter("stem.bn.weight").eq(1).all()


def test_building_moves_no_generator_and_no_setting() -> None:
    before, numpy_before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    for init in INITS:
        build(lambda: Model(1), seed=0, init=init, constants=True)
    assert torch.equal(before, torch.get_rng_state())
    assert numpy_before == str(np.random.get_state())  # noqa: NPY002
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(
    ("layer", "own", "fan_in", "fan_out"),
    [
        (lambda: nn.Conv1d(4, 6, 5), "weight", 20, 30),
        (lambda: nn.Conv3d(4, 6, (1, 2, 3)), "weight", 24, 36),
        (lambda: nn.Conv2d(4, 6, 3, groups=2), "weight", 18, 54),
        (lambda: nn.MultiheadAttention(8, 2), "in_proj_weight", 8, 8),
        (lambda: nn.MultiheadAttention(8, 2, kdim=5, vdim=8), "k_proj_weight", 5, 8),
    ],
)
def test_each_module_has_the_spread_of_its_fan(layer: Any, own: str, fan_in: int, fan_out: int) -> None:
    for init, fan in (("he_fan_in", fan_in), ("he_fan_out", fan_out)):
        model = layer()
        fill(model, 7, init=init, gain=0.5)
        weight = model.get_parameter(own)
        wanted = stream(7, "init", own).standard_normal(tuple(weight.shape)) * 0.5 * math.sqrt(2 / fan)
        assert torch.equal(weight, torch.from_numpy(wanted).float())


@pytest.mark.parametrize(
    "layer", [nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.InstanceNorm1d(3, affine=True, track_running_stats=True)]
)
def test_normalisers_start_as_the_identity(layer: nn.Module) -> None:
    for tensor in layer.state_dict().values():
        tensor.fill_(7)
    fill(layer, 0)
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, torch.full_like(tensor, 1 if name in ("weight", "running_var") else 0)), name


def test_an_initialiser_of_ones_own_draws_by_name() -> None:
    asked = []

    def draw(name: str, module: nn.Module, own: str, rng: np.random.Generator) -> Any:
        asked.append((name, type(module).__name__, own))
        return rng.normal(size=module.weight.shape) if own == "weight" and isinstance(module, nn.Linear) else None

    layers = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    fill(layers, 9, init=draw)
    expected = stream(9, "init", "0.weight").normal(size=(2, 3))
    assert torch.equal(layers.get_parameter("0.weight"), torch.from_numpy(expected).float())
    assert not layers.get_parameter("0.bias").any()
    assert layers.get_parameter("1.weight").eq(1).all()
    # Of buffers it is not asked.
    assert [name for name, _, _ in asked] == ["0.weight", "0.bias", "1.weight", "1.bias"]


class Random(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(3))


class Empty(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.empty(3))


@pytest.mark.parametrize("model", [Random, Empty])
@pytest.mark.parametrize(("init", "remedy"), [("he_fan_in", "init = 'torch'"), ("torch", "reset_parameters")])
def test_a_tensor_that_nothing_fills_is_named_with_the_remedy(model: Any, init: str, remedy: str) -> None:
    with pytest.raises(UserError, match=r"0\.token: ") as told:
        build(lambda: nn.Sequential(model()), seed=0, init=init, constants=True)
    assert remedy in str(told.value)
    assert "package.module:function" in str(told.value)


def test_zero_last_gamma_needs_additions() -> None:
    with pytest.raises(UserError, match="Model has no method additions"):
        build(lambda: Model(1), seed=0, zero_last_gamma=True, constants=True)
