"""Boundaries and blocks against lists written by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tests.zoo import cells, convolutional, mobile, resnet
from torch import Tensor, nn
from torch.nn import functional

from depthscope.core.structure import Structure
from depthscope.probes.trace import trace


def structure(model: nn.Module, *args: Any, **kwargs: Any) -> Structure:
    return trace(model, args, kwargs).structure


def names(found: Structure) -> list[str]:
    return [each.name for each in found.boundaries]


def roles(found: Structure) -> list[str]:
    return [each.role for each in found.blocks]


class Layer(nn.Module):
    def __init__(self, inside: int, out: int, *, norm: bool, in_place: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(inside, out)
        self.norm = nn.BatchNorm1d(out) if norm else nn.Identity()
        self.act = nn.ReLU(inplace=in_place)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.act(self.norm(self.linear(x)))
        return out


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_plain(norm: bool, in_place: bool) -> None:
    layers = [Layer(3 if at == 0 else 5, 5, norm=norm, in_place=in_place) for at in range(4)]
    found = structure(nn.Sequential(*layers, nn.Linear(5, 2)), torch.randn(6, 3))
    assert names(found) == ["input", "0", "1", "2", "3", "output"]
    assert roles(found) == ["stem", "body", "body", "body", "head"]
    assert [each.shape for each in found.boundaries] == [(3,), (5,), (5,), (5,), (5,), (2,)]
    kinds = ["linear", "norm", "activation"] if norm else ["linear", "activation"]
    assert [op.kind for op in found.blocks[1].ops] == kinds
    assert found.blocks[1].weights[:2] == ("1.linear.bias", "1.linear.weight")
    assert found.blocks[1].name == "1"


def test_tokens_of_three_dimensions_through_linear_layers() -> None:
    """`nn.Linear` flattens and unflattens: the boundary is what the module gives."""
    found = structure(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4)), torch.randn(2, 5, 3))
    assert names(found) == ["input", "1", "2", "output"]
    assert found.boundaries[1].shape == (5, 4)


def test_resnet_ends_its_blocks_after_the_activation() -> None:
    """He 2015: the ReLU after the addition; the pooling belongs to the head."""
    found = structure(resnet.resnet(18, 2), mobile.images(16))
    assert names(found) == ["input", "3", *(str(at) for at in range(4, 12)), "output"]
    assert roles(found) == ["stem", *["body"] * 8, "head"]
    assert found.additions[0].name == "4:add"


def test_preactivation_ends_its_blocks_at_the_sum() -> None:
    """Also where a unit shares its BN-ReLU with a projection, through which all flows; the last BN is the head's."""
    found = structure(resnet.preactivation_resnet(2), mobile.images(16))
    assert names(found) == ["input", *(str(at) for at in range(7)), "output"]
    assert [each.name for each in found.additions] == ["1", "2", "3", "4", "5", "6"]
    assert [op.kind for op in found.blocks[-1].ops] == ["norm", "activation", "pool", "linear"]
    assert [op.kind for op in found.additions[2].skip] == ["conv"]


@pytest.mark.parametrize(
    ("post", "wanted"),
    [
        (False, ["input", "embed:add", "out.0:add", "down.0:add", "out.1:add", "down.1:add", "output"]),
        (True, ["input", "embed:add", "norms.0", "norms.1", "norms.2", "norms.3", "output"]),
    ],
)
def test_transformer(post: bool, wanted: list[str]) -> None:
    """A float mask, a rotary turn and a bias of positions that all layers share hide no boundary."""
    found = structure(cells.HandTransformer(2, post=post), torch.randint(0, 11, (2, 6)), torch.ones(2, 6))
    assert names(found) == wanted
    assert roles(found) == ["stem", "body", "body", "body", "body", "head"]


def test_vgg_and_densenet() -> None:
    found = structure(convolutional.vgg((64, 64, 0, 128, 0)), mobile.images(8))
    assert names(found) == ["input", "1", "4", "8", "12", "15", "output"]
    dense = structure(convolutional.densenet((2, 2)), mobile.images(8))
    assert names(dense) == ["input", "2", "3", "6", "8", "9", "10", "output"]


class Shared(nn.Module):
    """One layer called three times, and a tied head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.idle = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for _ in range(3):
            x = self.layer(x)
        out: Tensor = self.head(x)
        return out


def test_repeated_calls_and_tied_weights() -> None:
    found = structure(Shared(), torch.randint(0, 7, (2, 5)))
    assert names(found) == ["input", "embed", "layer", "layer#1", "layer#2", "output"]
    assert roles(found) == ["stem", "body", "body", "body", "head"]
    by_name = {each.name: each for each in found.parameters}
    assert by_name["embed.weight"].aliases == ("head.weight",)
    assert by_name["embed.weight"].used
    assert not by_name["idle.weight"].used
    assert "head.weight" not in by_name


class NoStem(nn.Module):
    """A residual network whose first addition adds the raw input."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for branch in self.branches:
            x = x + branch(x)
        return x


def test_raw_input_that_is_added_back_is_no_mask() -> None:
    found = structure(NoStem(), torch.randn(2, 4))
    assert names(found) == ["input", "branches.0:add", "branches.1:add", "output"]
    assert len(found.additions) == 3
    assert roles(found) == ["body", "body", "body"]


@dataclass
class Out:
    loss: Tensor
    logits: Tensor
    state: Tensor


class TwoInputs(nn.Module):
    """Two inputs of which one enters late; several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.late = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(2, 4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor, y: Tensor) -> Out:
        x = functional.relu(self.second(functional.relu(self.first(x))))
        x = x + self.late(y)
        logits = self.head(x)
        return Out(loss=logits.mean(), logits=logits, state=x)


def test_several_inputs_and_outputs() -> None:
    found = structure(TwoInputs(), torch.randn(2, 3), y=torch.randn(2, 2))
    assert names(found) == ["input", "first:relu", "second:relu", "late:add", "output"]
    assert found.boundaries[-1].shape == (5,)
    assert not found.additions


class Odd(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.linear = how, nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        kinds = {
            "nothing": None,
            "number": 3,
            "same": x,
            "constant": torch.ones(2),
            "integers": self.linear(x).argmax(-1),
        }
        return kinds.get(self.how, {"deep": [{"er": self.linear(x)}]})


@pytest.mark.parametrize("how", ["nothing", "number", "same", "constant", "integers", "nested"])
def test_odd_outputs_have_ends(how: str) -> None:
    found = structure(Odd(how), torch.randn(2, 3))
    assert names(found) == ["input", "output"]
    assert len(found.blocks) == 1


def test_a_norm_stays_with_the_block_that_holds_it() -> None:
    """Of five pre-activation blocks one lacks its skip: the block before it still ends at its own sum."""

    class Block(nn.Module):
        def __init__(self, skip: bool) -> None:
            super().__init__()
            self.norm, self.up, self.down, self.skip = nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 4), skip

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.down(functional.gelu(self.up(self.norm(x))))
            return x + y if self.skip else y

    net = nn.Sequential(nn.Linear(3, 4), *(Block(at != 2) for at in range(5)), nn.Linear(4, 2))
    wanted = ["input", "0", "1", "2", "3:gelu", "3", "4", "5", "output"]
    assert names(structure(net, torch.randn(2, 3))) == wanted
