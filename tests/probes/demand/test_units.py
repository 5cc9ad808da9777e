"""Dead and saturated units, and what chance alone gives (ORACLES 6)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import ndtri
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.demand import expected_silent, too_few, unit_reducer, units_cost
from depthscope.probes.demand.reducers import relu_depth
from depthscope.probes.demand.units import dead_fraction, saturated_fraction
from depthscope.probes.trace import Follow, trace


@pytest.mark.parametrize("num_examples", [1, 2, 4, 8])
def test_the_first_layer_is_silent_by_chance_as_often_as_coins_fall(num_examples: int) -> None:
    p = 2.0**-num_examples
    mean, _ = expected_silent(1, num_examples)
    # 12 networks of 256 units, which within a network see the same inputs but have weights of their own.
    assert mean == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / (12 * 256)) + 1e-9)


@pytest.mark.parametrize(
    ("num_examples", "known"),
    [
        (20, (0.110, 0.250, 0.367)),
        (128, (0.042, 0.134, 0.370)),
        pytest.param(1024, (0.017, 0.077, 0.248), marks=pytest.mark.slow),
    ],
)
def test_deeper_layers_are_silent_as_often_as_measured_elsewhere(num_examples: int, known: tuple[float, ...]) -> None:
    for depth, value in zip((5, 10, 30), known, strict=True):
        mean, deviation = expected_silent(depth, num_examples)
        # The known values are of few networks of width 512, which scatter as ours of width 256 do, or less.
        assert abs(mean - value) < 2 * deviation, depth
        assert deviation < 0.06


def test_one_input_survives_layers_of_few_units() -> None:
    # P = (1 - 2^-n)^L: each layer loses the input with probability 2^-n. 600 nets, each with its input 20 times.
    rng = np.random.default_rng(0)
    for width, depth in ((2, 3), (3, 6)):
        alive = 0
        for _ in range(600):
            h = torch.from_numpy(rng.standard_normal((1, width))).expand(20, width)
            for _ in range(depth):
                h = (h @ torch.from_numpy(rng.standard_normal((width, width)))).relu()
            alive += dead_fraction(h) != 1
        p = (1 - 2.0**-width) ** depth
        assert alive / 600 == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 600))


@pytest.mark.parametrize(("q", "p"), [(1, 0.008129), (4, 0.185727), (9, 0.377659)])
def test_saturated_tanh(q: float, p: float) -> None:
    quantiles = torch.from_numpy(ndtri((np.arange(200_000) + 0.5) / 200_000)).reshape(-1, 20)
    assert saturated_fraction((math.sqrt(q) * quantiles).tanh(), "tanh") == pytest.approx(p, abs=1.5e-5)
    # sigmoid(2z) = (1 + tanh z) / 2 is within .01 of a bound where |tanh z| > .98.
    expected = float(((math.sqrt(q) * quantiles).tanh().abs() > 0.98).double().mean())
    assert saturated_fraction((2 * math.sqrt(q) * quantiles).sigmoid(), "sigmoid") == pytest.approx(expected, abs=1e-5)
    assert saturated_fraction(quantiles, "gelu") is None


def test_a_half_float_is_saturated_by_its_value() -> None:
    # In float16 .99 is rounded up, to 2028/2048, which is above it all the same.
    h = torch.tensor([2027 / 2048, 2028 / 2048] * 20, dtype=torch.float16).reshape(20, 2)
    assert saturated_fraction(h, "tanh") == 0.5


def test_units_of_each_layout() -> None:
    h = torch.ones(20, 4, 3, 3)
    h[:, 0] = 0
    h[:, 1, 2, 2] = 0  # one place of a channel is no dead channel
    h[3:, 2] = 0  # nor is one that some examples use
    assert dead_fraction(h) == 1 / 4
    tokens = torch.ones(4, 5, 8)
    tokens[..., :2] = 0
    assert dead_fraction(tokens) == 2 / 8
    assert dead_fraction(tokens, sequence=False) is None  # then there are 4 samples
    assert dead_fraction(torch.zeros(19, 3)) is None
    assert dead_fraction(torch.zeros(20, 3)) == 1
    assert not too_few(20)
    assert "got 19" in too_few(19)


class Read:
    def __init__(self, model: nn.Module, x: Tensor) -> None:
        traced = trace(model, (x,), {})
        self.structure = traced.structure
        self.reduce = unit_reducer(traced.structure)
        self.found: dict[int, dict[str, float]] = {}
        with Follow(traced, self):
            model(x)

    def boundary(self, index: int, tensor: Tensor) -> None:
        self.found[index] = dict(self.reduce(index, tensor.detach()))

    def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
        pass


def relu_net(width: int, depth: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(width, width, bias=False), activation()) for _ in range(depth)]
        for layer in layers:
            nn.init.normal_(layer[0].weight, std=math.sqrt(2 / width))  # type: ignore[arg-type]
        return nn.Sequential(*layers, nn.Linear(width, 10))


def test_a_fresh_network_has_what_is_expected_of_it() -> None:
    x = torch.randn(32, 256, generator=torch.Generator().manual_seed(0))
    read = Read(relu_net(256, 8), x)
    depths = [relu_depth(read.structure, index) for index in sorted(read.found)]
    assert depths == [0, *range(1, 9), 0]
    for index in range(1, 9):
        found = read.found[index]
        assert (found["dead_expected"], found["dead_expected_std"]) == expected_silent(index, 32, 256)
        assert abs(found["dead"] - found["dead_expected"]) < 4 * found["dead_expected_std"] + 0.01
    # A layer whose weights fell far below 0 is told from chance.
    model = relu_net(256, 8)
    with torch.no_grad():
        model[2][0].weight.sub_(1.0)  # type: ignore[index]
    broken = Read(model, x).found[3]
    assert broken["dead"] > broken["dead_expected"] + 6 * broken["dead_expected_std"]


class ReluBehindAddition(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = (x + layer(x)).relu()
        return x


def test_saturation_is_read_behind_tanh_alone_and_chance_behind_plain_relu_alone() -> None:
    x = 30 * torch.randn(32, 16, generator=torch.Generator().manual_seed(0))
    found = Read(relu_net(16, 3, nn.Tanh), x).found
    assert found[1]["saturated"] > 0.8
    assert "saturated" not in found[max(found)]
    assert not any("dead_expected" in each for each in found.values())
    normed = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    assert not any("dead_expected" in each for each in Read(normed, x).found.values())
    assert not any("dead_expected" in each for each in Read(ReluBehindAddition(), x).found.values())
    assert all(not each for each in Read(relu_net(16, 3), x[:10]).found.values())


def test_bad_arguments_and_cost() -> None:
    with pytest.raises(UserError, match="depth"):
        expected_silent(0, 20)
    assert "1 forward" in str(units_cost(trace(relu_net(4, 2), (torch.zeros(2, 4),), {}).structure))
