"""A branch taken out by the probe is what it is when its own weights are made to give nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.profile import Addition, Point
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.lesion import lesions


def network(shortcut: str, **options: Any) -> Any:
    """With running statistics and scales that are no round numbers."""
    model, _ = build(lambda: cifar_resnet(depth=14, width=4, shortcut=shortcut, **options), seed=2)
    torch.manual_seed(0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean, module.running_var):
                assert tensor is not None
                nn.init.uniform_(tensor, 0.5, 1.5)
    return model


def by_class(logits: Tensor, y: Tensor) -> dict[str, float]:
    loss = nn.functional.cross_entropy(logits.double(), y)
    return {"loss": float(loss), "accuracy": float((logits.argmax(1) == y).double().mean())}


def judged(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    with torch.no_grad():
        logits = copy.deepcopy(model).eval()(x).double()
    loss = -logits.log_softmax(1).gather(1, y[:, None]).mean()
    return float(loss), float((logits.argmax(1) == y).double().mean())


def silence_branch(block: Any) -> None:
    nn.init.zeros_(block.bn2.weight)
    nn.init.zeros_(block.bn2.bias)


def shut_gate(block: Any) -> None:
    nn.init.constant_(block.join.gate.bias, -1e6)
    nn.init.zeros_(block.join.gate.layer.weight)


@pytest.mark.parametrize(("shortcut", "twin"), [("A", silence_branch), ("B", silence_branch), ("highway", shut_gate)])
def test_each_branch_in_turn(shortcut: str, twin: Any) -> None:
    model = network(shortcut)
    x, y = torch.randn(32, 3, 8, 8), torch.arange(32) % 10
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = lesions(model, x, y, by_class, points=model.points(), additions=model.additions(), step=9)
    intact = (found.intact["loss"], found.intact["accuracy"])
    assert intact == pytest.approx(judged(model, x, y), rel=1e-6)
    assert len(found.rows) == 12
    values = {(row.layer, row.quantity): row.value for row in found.rows}
    for index in range(6):
        without = copy.deepcopy(model)
        twin(without.blocks[index])
        loss, accuracy = judged(without, x, y)
        layer = 2 + 2 * index  # the stem, then two convolutions a block, of which the second is the branch's end
        assert values[layer, "lesion_loss"] == pytest.approx(loss, rel=1e-5)
        assert values[layer, "lesion_accuracy"] == accuracy
        assert abs(loss - intact[0]) > 1e-3
    assert {row.step for row in found.rows} == {9}
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


class Own(nn.Module):
    """Somebody's own: no join, two branches and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.skip = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = self.skip(x) + self.first(x)
        total: Tensor = x + self.second(x)
        return total


def test_a_model_without_joins_has_its_branch_for_zeros_and_a_wrong_name_is_told() -> None:
    model = Own()
    points = [Point(layer=name, kind="linear", weight=f"{name}.weight", output=name) for name in ("first", "second")]
    additions = [Addition(block="", branch=name, skip="skip", layer=name) for name in ("first", "second")]
    x, y = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    found = lesions(model, x, y, by_class, points=points, additions=additions)
    losses = [row.value for row in found.rows if row.quantity == "lesion_loss"]
    with torch.no_grad():
        wanted = [float(nn.functional.cross_entropy(x + branch(x), y)) for branch in (model.second, model.first)]
    assert losses == pytest.approx(wanted, rel=1e-6)
    with pytest.raises(UserError, match="unknown layer of an addition 'third'"):
        lesions(
            model, x, y, by_class, points=points, additions=[Addition(block="", branch="x", skip="", layer="third")]
        )
    with pytest.raises(UserError, match=r"unknown module 'frist'\. Did you mean 'first'"):
        lesions(
            model, x, y, by_class, points=points, additions=[Addition(block="", branch="frist", skip="", layer="first")]
        )


class Half(nn.Module):
    """A branch with a join, as a block's."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.branch = nn.Linear(3, 3, bias=False)
        with torch.no_grad():
            self.branch.weight.copy_(factor * torch.eye(3))
        self.skip = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = self.skip(x) + self.branch(x)
        return total


class TwoBranches(nn.Module):
    """Blocks of two branches, x -> (1 + a)(1 + b) x, and one block of a single branch."""

    def __init__(self) -> None:
        super().__init__()
        blocks = [nn.ModuleDict({"attention": Half(a), "mlp": Half(b)}) for a, b in ((0.5, 1.0), (-0.5, 3.0))]
        self.blocks = nn.ModuleList([*blocks, nn.ModuleDict({"mlp": Half(4.0)})])

    def names(self) -> list[str]:
        return [f"blocks.{at}.{name}" for at, block in enumerate(self.blocks) for name in dict(block.named_children())]

    def forward(self, x: Tensor) -> Tensor:
        for name in self.names():
            x = self.get_submodule(name)(x)
        return x


def test_a_block_of_two_branches_is_taken_out_as_a_whole_too() -> None:
    model = TwoBranches()
    points = [
        Point(layer=f"{each}.branch", kind="linear", weight=f"{each}.branch.weight", output=each)
        for each in model.names()
    ]
    additions = [
        Addition(block=each, branch=f"{each}.branch", skip=f"{each}.skip", layer=f"{each}.branch")
        for each in model.names()
    ]
    x = torch.tensor([[1.0, 2.0, -1.0]])

    def factor(output: Tensor, target: Tensor) -> dict[str, float]:
        return {"loss": float((output / target).mean())}

    found = lesions(model, x, x, factor, points=points, additions=additions, step=3)
    assert found.intact == {"loss": pytest.approx(1.5 * 2 * 0.5 * 4 * 5)}
    assert [(row.layer, row.quantity) for row in found.rows[:5]] == [(at, "lesion_loss") for at in range(5)]
    assert [row.value for row in found.rows[:5]] == pytest.approx([30 / 1.5, 30 / 2, 30 / 0.5, 30 / 4, 30 / 5])
    # At the layer of each block's last branch; what has one branch is told by that one alone.
    assert [(row.layer, row.quantity) for row in found.rows[5:]] == [(at, "block_lesion_loss") for at in (1, 3)]
    assert [row.value for row in found.rows[5:]] == pytest.approx([30 / 3, 30 / 2])
    assert not any(module._forward_hooks for module in model.modules())
