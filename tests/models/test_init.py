"""Initial tensors: paired between arms, filled without exception, with the spread that the paper asks for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.hashing import array_digest
from depthscope.core.streams import stream
from depthscope.models.convnet import CifarResNet, cifar_resnet
from depthscope.models.init import build, fill


def network(shortcut: str, depth: int = 20, width: int = 16, **options: Any) -> tuple[CifarResNet, dict[str, str]]:
    return build(lambda: cifar_resnet(depth=depth, width=width, shortcut=shortcut), seed=0, **options)


def test_arms_start_from_the_same_shared_tensors() -> None:
    (plain, plain_digests), (padded, padded_digests), (projected, projected_digests) = (
        network(shortcut, depth=56) for shortcut in ("none", "A", "B")
    )
    assert plain_digests == padded_digests
    assert plain_digests.items() < projected_digests.items()
    assert all(".shortcut." in name for name in projected_digests.keys() - plain_digests.keys())
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, padded.state_dict()[name]), name
        assert torch.equal(tensor, projected.state_dict()[name]), name


def test_digests_are_those_of_the_tensors_in_the_model() -> None:
    model, digests = network("B")
    assert digests == {name: array_digest(tensor.numpy()) for name, tensor in model.state_dict().items()}


def test_each_tensor_comes_from_its_own_named_stream() -> None:
    model, _ = network("none")
    draw = stream(0, "init", "blocks.3.conv1.weight").standard_normal((32, 16, 3, 3)) * math.sqrt(2 / (16 * 9))
    assert torch.equal(model.get_parameter("blocks.3.conv1.weight"), torch.from_numpy(draw).float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_dtype_starts_from_the_same_draw(dtype: torch.dtype) -> None:
    wide, wide_digests = network("A", width=4, dtype=torch.float64)
    cast, digests = network("A", width=4, dtype=dtype)
    for name, parameter in cast.named_parameters():
        assert parameter.dtype is dtype
        assert torch.equal(parameter, wide.get_parameter(name).to(dtype)), name
    assert digests["head.weight"] != wide_digests["head.weight"]
    assert cast.get_buffer("stem.bn.num_batches_tracked").dtype is torch.int64


def test_seeds_differ_and_repeat() -> None:
    def digests(seed: int) -> dict[str, str]:
        return build(lambda: cifar_resnet(depth=8, width=4), seed=seed)[1]

    assert digests(0) == digests(0)
    changed = {name for name, digest in digests(0).items() if digest != digests(1)[name]}
    assert changed == {name for name in digests(0) if name.endswith("weight") and ".bn" not in name}


def test_fill_leaves_nothing_of_what_was_there() -> None:
    model, digests = network("B", width=4)
    poisoned = cifar_resnet(depth=20, width=4, shortcut="B")
    for tensor in poisoned.state_dict().values():
        tensor.fill_(-7 if tensor.dtype is torch.int64 else float("nan"))
    assert fill(poisoned, 0) == digests
    for name, tensor in poisoned.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert poisoned.get_buffer("stem.bn.num_batches_tracked").item() == 0
    assert torch.equal(poisoned.get_buffer("stem.bn.running_var"), torch.ones(4))
    assert not poisoned.get_parameter("head.bias").any()


def test_building_moves_no_global_generator() -> None:
    before, numpy_before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    network("B")
    assert torch.equal(before, torch.get_rng_state())
    assert numpy_before == str(np.random.get_state())  # noqa: NPY002


def interior(x: Tensor) -> Tensor:
    return x[..., 1:-1, 1:-1] if x.ndim == 4 else x


@pytest.mark.parametrize("init", ["he_fan_in", "he_fan_out"])
@pytest.mark.parametrize(("num_in", "num_out"), [(16, 32), (32, 16), (24, 24)])
@pytest.mark.parametrize("kind", ["conv", "linear"])
def test_a_layer_keeps_the_variance_that_its_fan_promises(kind: str, num_in: int, num_out: int, init: str) -> None:
    """He 2015: fan_in keeps E[h^2] forward, fan_out keeps E[g^2] backward, each through a ReLU.

    Measured through the real layer at unequal widths. Forward E[(Wx)^2] = fan_in var(W) E[x^2] with
    E[x^2] = 1/2 as after a ReLU (here without a ReLU's mean, which all pixels share: it would only add
    scatter); backward E[(W^T g)^2] = fan_out var(W) E[g^2]. Pixels at the border see padding.
    """
    layer: nn.Module = (
        nn.Conv2d(num_in, num_out, 3, padding=1, bias=False) if kind == "conv" else nn.Linear(num_in, num_out)
    )
    taps = 9 if kind == "conv" else 1
    forward, backward = [], []
    rng = torch.Generator().manual_seed(0)
    for seed in range(20):
        fill(layer, seed, init=init)
        shape = (4, num_in, 12, 12) if kind == "conv" else (256, num_in)
        x = torch.randn(shape, generator=rng).div(math.sqrt(2)).requires_grad_()
        y = layer(x)
        y.backward(torch.randn(y.shape, generator=rng))
        assert x.grad is not None
        forward.append(interior(y).square().mean().item())
        backward.append(interior(x.grad).square().mean().item())
    kept = (1.0, 2 * num_out / num_in) if init == "he_fan_in" else (num_in / num_out, 2.0)
    # num_in * num_out * taps * 20 squared normals; the inputs' own scatter is of the same order.
    tolerance = 5 * math.sqrt(2 / (num_in * num_out * taps * 20)) + 0.02
    assert np.mean(forward) == pytest.approx(kept[0], rel=tolerance)
    assert np.mean(backward) == pytest.approx(kept[1], rel=tolerance)


def test_the_two_fans_differ_where_channels_change() -> None:
    fan_in, _ = network("none", init="he_fan_in")
    fan_out, _ = network("none", init="he_fan_out")
    for name, ratio in (("blocks.3.conv1", 2**0.5), ("blocks.3.conv2", 1.0), ("head", (10 / 64) ** 0.5)):
        weight = fan_in.get_parameter(f"{name}.weight")
        torch.testing.assert_close(weight, fan_out.get_parameter(f"{name}.weight") * ratio)


def test_gain_scales_weights_alone() -> None:
    one, _ = network("A", width=4)
    half, _ = network("A", width=4, gain=0.5)
    for name, parameter in one.named_parameters():
        scaled = ".bn" not in name and name.endswith("weight")
        assert torch.equal(half.get_parameter(name), parameter * (0.5 if scaled else 1)), name


@pytest.mark.parametrize("shortcut", ["A", "B"])
def test_zero_last_gamma_zeroes_the_end_of_each_branch_alone(shortcut: str) -> None:
    standard, digests = network(shortcut, width=4)
    zeroed, zeroed_digests = network(shortcut, width=4, zero_last_gamma=True)
    changed = {name for name in digests if digests[name] != zeroed_digests[name]}
    assert changed == {f"blocks.{index}.bn2.weight" for index in range(9)}
    for name in changed:
        assert not zeroed.get_parameter(name).any()
    assert standard.get_parameter("blocks.3.bn2.weight").eq(1).all()


def test_zero_gamma_blocks_are_the_identity_at_step_0() -> None:
    """ORACLES 5: with a ReLU after the addition J = diag(x > 0), on inputs that are not negative."""
    model, _ = network("A", width=4, dtype=torch.float64, zero_last_gamma=True)
    block = model.get_submodule("blocks.1")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 4, 6, 6, generator=generator, dtype=torch.float64).relu().requires_grad_()
    y = block(x)
    assert torch.equal(y, x)
    cotangent = torch.randn(y.shape, generator=generator, dtype=torch.float64)
    (pulled_back,) = torch.autograd.grad(y, x, cotangent, retain_graph=True)
    assert torch.equal(pulled_back, cotangent * (x > 0))
    weights = dict(block.named_parameters())
    inside = torch.autograd.grad(y, list(weights.values()), cotangent)
    moving = {name for name, gradient in zip(weights, inside, strict=True) if gradient.any()}
    assert moving == {"bn2.weight", "bn2.bias"}


def test_zero_last_gamma_is_refused_for_a_plain_network() -> None:
    with pytest.raises(UserError, match=r"no residual addition \(shortcut none\)"):
        network("none", zero_last_gamma=True)


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(1))


class OddBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(1), persistent=False)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Odd(), "scale: no rule .* of Odd"),
        (nn.Sequential(OddBuffer()), "0.table: no rule"),
        (nn.Sequential(nn.Linear(2, 2), nn.PReLU()), "1.weight: no rule .* of PReLU"),
        (nn.Linear(2, 2, device="meta"), "weight: has no memory"),
    ],
)
def test_a_tensor_that_nothing_fills_is_an_error(model: nn.Module, message: str) -> None:
    with pytest.raises(UserError, match=message):
        fill(model, 0)


def test_a_shared_tensor_is_drawn_once() -> None:
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    assert fill(model, 0).keys() == {"0.weight"}
    expected = stream(0, "init", "0.weight").standard_normal((3, 3)) * math.sqrt(2 / 3)
    assert torch.equal(second.weight, torch.from_numpy(expected).float())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"init": "he_fanin"}, "Did you mean 'he_fan_in'"), ({"gain": 0.0}, "gain"), ({"gain": math.nan}, "gain")],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        network("none", **options)
