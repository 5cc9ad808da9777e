"""Checkpointing changes no bit of outputs, gradients and buffers, and does keep less."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.profile import Addition, Point
from depthscope.models.checkpoint import Blocks, segments
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.models.preact import preact_resnet
from depthscope.probes.watch import profile


class Block(nn.Module):
    """relu(skip(x) + drop(bn(conv(x)))), which counts how often it is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.skip = nn.Identity()
        self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.4)
        self.relu = nn.ReLU()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        out: Tensor = self.relu(self.skip(x) + self.drop(self.bn(self.conv(x))))
        return out


def made(checkpointing: bool, num: int = 7) -> nn.Sequential:
    torch.manual_seed(3)
    body = Blocks(*(Block() for _ in range(num)), checkpointing=checkpointing)
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), body)


def trained(model: nn.Module, steps: int = 3) -> dict[str, Tensor]:
    """All that a few updates leave behind: every tensor, the last gradients and the outputs on the way."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kept = {}
    for step in range(steps):
        torch.manual_seed(100 + step)
        optimizer.zero_grad(set_to_none=True)
        output = model(torch.randn(5, 3, 8, 8))
        output.square().mean().backward()
        optimizer.step()
        kept[f"output {step}"] = output.detach()
    kept["draw"] = torch.rand(3)  # where the generator stands after the last backward pass
    grads = {f"grad {name}": each.grad for name, each in model.named_parameters()}
    return {**kept, **grads, **model.state_dict()}


def test_no_bit_differs_with_batch_norm_and_dropout() -> None:
    plain, spared = trained(made(False)), trained(made(True))
    assert plain.keys() == spared.keys()
    assert [name for name in plain if not torch.equal(plain[name], spared[name])] == []
    assert int(spared["1.0.bn.num_batches_tracked"]) == 3


@pytest.mark.parametrize(
    "family",
    [
        partial(cifar_resnet, depth=20, shortcut="B"),
        partial(cifar_resnet, depth=20, shortcut="stochastic_depth", shortcut_options={"survival": 0.5}),
        partial(preact_resnet, depth=29, bottleneck=True),
        partial(preact_resnet, depth=20, shortcut="dropout"),
    ],
    ids=["B", "stochastic depth", "bottleneck", "dropout"],
)
def test_no_bit_differs_in_the_families_of_the_thousand_layers(family: Callable[..., nn.Module]) -> None:
    def left(on: bool) -> dict[str, Any]:
        model, _ = build(lambda: family(width=4, checkpointing=on), seed=0)
        return trained(model, steps=2)

    plain, spared = left(False), left(True)
    assert [name for name in plain if not torch.equal(plain[name], spared[name])] == []


def test_each_block_but_the_last_segments_is_computed_twice() -> None:
    model = made(True)
    blocks = [each for each in model.modules() if isinstance(each, Block)]
    model(torch.randn(2, 3, 6, 6)).sum().backward()
    assert [block.calls for block in blocks] == [2] * 4 + [1] * 3
    with torch.no_grad():
        model(torch.randn(2, 3, 6, 6))
    assert [block.calls for block in blocks] == [3] * 4 + [2] * 3


def test_a_probe_measures_the_same_in_a_checkpointed_network() -> None:
    points = [
        Point(layer=f"1.{at}.conv", kind="conv", weight=f"1.{at}.conv.weight", output=f"1.{at}.relu") for at in range(7)
    ]
    additions = [
        Addition(block=f"1.{at}", branch=f"1.{at}.drop", skip=f"1.{at}.skip", layer=f"1.{at}.conv") for at in range(7)
    ]
    x, y = torch.randn(3, 3, 6, 6), torch.zeros(3, 4, 6, 6)

    def measured(checkpointing: bool) -> object:
        model = made(checkpointing)
        torch.manual_seed(8)  # dropout draws in the copy too
        return profile(model, nn.functional.mse_loss, x, y, points=points, additions=additions)

    assert measured(True) == measured(False)


def test_infinite_activations_leave_the_same_running_statistics() -> None:
    found = []
    for checkpointing in (False, True):
        model = made(checkpointing)
        model(torch.full((2, 3, 6, 6), 1e38)).sum().backward()
        found.append(model.state_dict())
    assert all(torch.equal(found[0][name].nan_to_num(7), found[1][name].nan_to_num(7)) for name in found[0])


def test_evaluation_mode_with_gradients_uses_the_running_statistics_in_both_computations() -> None:
    grads = []
    for checkpointing in (False, True):
        model = made(checkpointing)
        trained(model, steps=1)
        model.eval().zero_grad()
        torch.manual_seed(5)
        model(torch.randn(2, 3, 6, 6)).sum().backward()
        grads.append([each.grad for each in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))


@pytest.mark.parametrize("num", [1, 2, 3, 9, 27, 333, 600])
def test_segments_cover_all_blocks_once_in_about_sqrt_parts(num: int) -> None:
    found = segments(num)
    assert [at for start, end in found for at in range(start, end)] == list(range(num))
    sizes = [end - start for start, end in found]
    assert max(sizes) - min(sizes) <= 1
    assert abs(len(found) - num**0.5) <= 0.5 or num == 1


def saved(run: Callable[[], Tensor]) -> int:
    """Bytes that a forward pass keeps for the backward pass."""
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sum(each.untyped_storage().nbytes() for each in kept.values())


def test_it_keeps_the_inputs_of_segments_and_the_last_segment() -> None:
    x = torch.randn(4, 3, 16, 16)
    image = 4 * 4 * 16 * 16 * 4
    plain, spared = (saved(partial(made(on, 25), x)) for on in (False, True))
    # A block keeps three images and a mask: the inputs of its convolution, its batch norm and the next block.
    assert plain > 25 * 3 * image
    assert spared < (5 + 5 * 4) * image
