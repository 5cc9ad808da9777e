"""The direction of the gradient in the training dtype against float64 (ORACLES 10)."""

from __future__ import annotations

import copy
import math
import threading
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from depthscope.core.errors import UserError
from depthscope.core.structure import Parameter, Structure
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.demand import gradient_trust, trust_cost


def images(num: int, size: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(num, 3, size, size, generator=generator), torch.randint(10, (num,), generator=generator)


def mlp(*, dtype: torch.dtype = torch.float32, extra: nn.Module | None = None) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), extra or nn.Tanh(), nn.Linear(8, 3))
    return model.to(dtype)


def points(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(16, 6, generator=generator).to(dtype), torch.randint(3, (16,), generator=generator)


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b / (a.norm() * b.norm()))


@pytest.mark.parametrize(
    ("width", "size", "num"), [(4, 8, 32), pytest.param(16, 32, 32, marks=pytest.mark.slow, id="full")]
)
def test_bfloat16_tells_nothing_of_a_plain_net_with_batch_norm_and_much_of_a_residual_one(
    width: int, size: int, num: int
) -> None:
    batch = images(num, size)
    found = {}
    for shortcut in ("none", "A"):
        model, _ = build(partial(cifar_resnet, depth=56, width=width, shortcut=shortcut), seed=0)
        found[shortcut] = gradient_trust(model, batch, F.cross_entropy, autocast=torch.bfloat16)
        if shortcut == "none":
            single = gradient_trust(model, batch, F.cross_entropy)
    assert abs(found["none"].cosine) < 0.3  # it is noise, and which depends on the processor
    assert found["A"].cosine > 0.7
    # Its size is right all the same, and the layer at the output keeps its direction: the error grows with depth.
    assert 0.7 < found["none"].norm_ratio < 1.4
    assert found["none"].by_layer["head"] > found["none"].by_layer["stem.conv"]
    assert 0.01 < single.relative_error < 0.4
    assert single.cosine > 0.9
    assert (found["none"].dtype, single.dtype) == ("float32 under autocast to bfloat16", "float32")


def test_agrees_with_two_plain_backward_passes() -> None:
    model = mlp(dtype=torch.bfloat16)
    inputs, targets = points(torch.bfloat16)
    found = gradient_trust(model, (inputs, targets), F.cross_entropy)
    pairs = {}
    exact = copy.deepcopy(model).double()
    for twin, given in ((model, inputs), (exact, inputs.double())):
        backward: Any = F.cross_entropy(twin(given), targets).backward
        backward()
    for (name, low), high in zip(model.named_parameters(), exact.parameters(), strict=True):
        assert low.grad is not None
        assert high.grad is not None
        pairs[name] = low.grad.double().flatten(), high.grad.flatten()
        assert found.by_parameter[name] == pytest.approx(cosine(*pairs[name]), abs=1e-12)
    g, exact_g = (torch.cat([pair[side] for pair in pairs.values()]) for side in (0, 1))
    assert found.cosine == pytest.approx(cosine(g, exact_g), abs=1e-12)
    assert found.relative_error == pytest.approx(float((g - exact_g).norm() / exact_g.norm()))
    assert found.norm_ratio == pytest.approx(float(g.norm() / exact_g.norm()))
    layer = [torch.cat([pairs["0.weight"][side], pairs["0.bias"][side]]) for side in (0, 1)]
    assert found.by_layer["0"] == pytest.approx(cosine(*layer), abs=1e-12)
    assert 0.99 < found.cosine < 1 - 1e-6


@pytest.mark.parametrize("loss_fn", [F.cross_entropy, None])
def test_float64_agrees_with_itself(loss_fn: Any) -> None:
    inputs, targets = points(torch.float64)
    found = gradient_trust(mlp(dtype=torch.float64), (inputs, targets), loss_fn)
    assert found.relative_error == 0
    assert found.cosine == pytest.approx(1)
    assert not found.draws


def test_a_scaled_loss_keeps_what_float16_would_lose() -> None:
    model, batch = mlp(dtype=torch.float16), points(torch.float16)

    def loss_fn(output: Tensor, targets: Tensor) -> Tensor:
        return 1e-7 * F.cross_entropy(output.float() if output.dtype is torch.float16 else output, targets)

    assert not gradient_trust(model, batch, loss_fn).cosine > 0.9
    scaled = gradient_trust(model, batch, loss_fn, loss_scale=2.0**20)
    assert scaled.cosine > 0.999
    assert scaled.norm_ratio == pytest.approx(1, rel=0.01)


def test_dropout_is_off_and_other_draws_are_told() -> None:
    inputs, targets = points()
    off = gradient_trust(mlp(extra=nn.Dropout(0.5)), (inputs, targets), F.cross_entropy)
    assert off.cosine > 1 - 1e-9
    assert not off.draws

    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * torch.rand(x.shape[1], dtype=x.dtype)

    assert gradient_trust(mlp(extra=Noise()), (inputs, targets), F.cross_entropy).draws


def test_the_model_and_all_generators_are_as_found() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    model[2].eval()
    fired = []
    model[0].register_forward_hook(lambda *_: fired.append(1))
    model[0].weight.grad = torch.ones(8, 6)
    twin = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state, grad = torch.get_rng_state(), model[0].weight.grad
    gradient_trust(model, points(), F.cross_entropy)
    assert all(torch.equal(tensor, twin[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert model[0].weight.grad is grad
    assert bool((grad == 1).all())
    assert model[3].weight.grad is None
    assert [module.training for module in model] == [True, True, False, True]
    assert torch.get_default_dtype() is torch.float32
    assert not fired


def test_activation_checkpoints_and_shared_and_unused_parameters() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = nn.Linear(6, 6)
            self.second.weight = self.first.weight
            self.unused = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = checkpoint(self.first, x, use_reentrant=True)
            out: Tensor = self.second(y.tanh())
            return out

    found = gradient_trust(Shared(), points(), F.cross_entropy)
    assert found.cosine > 0.999
    assert set(found.by_parameter) == {"first.weight", "first.bias", "second.bias"}
    assert found.readings(3)[0].value == found.cosine
    assert {each.place for each in found.readings(3)} == {"model", "parameter"}


def test_sparse_and_complex_gradients() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 4, sparse=True)
            self.turn = nn.Parameter(torch.ones(4, dtype=torch.complex64) * (1 + 1j))

        def forward(self, tokens: Tensor) -> Tensor:
            power: Tensor = (self.embed(tokens) * self.turn).abs().square()
            return power

    found = gradient_trust(Odd(), torch.tensor([[0, 1], [3, 3]]), lambda output, _: output.mean())
    assert set(found.by_parameter) == {"embed.weight", "turn"}
    assert min(found.by_parameter.values()) > 1 - 1e-9
    assert found.relative_error < 1e-5


def test_a_gradient_of_zero_has_no_direction() -> None:
    found = gradient_trust(mlp(), points(), lambda output, targets: output.sum() * 0)
    assert math.isnan(found.cosine)
    assert math.isnan(found.relative_error)
    assert not found.by_parameter


class Locked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.lock = nn.Linear(6, 3), threading.Lock()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(x)
        return y


class Stubborn(Locked):
    def __init__(self) -> None:
        super().__init__()
        del self.lock
        self.mix: Tensor
        self.register_buffer("mix", torch.eye(3))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).float() @ self.mix


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Locked(), "copy.deepcopy cannot copy Locked: TypeError: cannot pickle '_thread.lock' object"),
        (Stubborn(), "does not run in float64: .*dtype"),
        (mlp().requires_grad_(False), "no parameter got a gradient"),
    ],
)
def test_what_cannot_be_compared_is_told_in_one_line(model: nn.Module, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        gradient_trust(model, points(), F.cross_entropy)
    assert "\n" not in str(caught.value)


def test_cost_counts_both_passes() -> None:
    told = trust_cost(Structure(boundaries=(), blocks=(), parameters=(Parameter(name="w", shape=(1000, 1000)),)))
    assert (told.forwards, told.backwards, told.num_bytes) == (2, 2, 20_000_000)
