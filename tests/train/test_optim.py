"""Groups of parameters: what a repair asks of the optimiser, held to a loop written plainly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from tests.train.short import NET

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from depthscope.models.hints import ParamHint, parameter_groups  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.network import make_module  # noqa: E402
from depthscope.train.optim import make_optimizer, set_rate  # noqa: E402
from depthscope.train.torch_state import restore, tensors_of  # noqa: E402


class Scaled(nn.Module):
    hints: ClassVar[Mapping[str, ParamHint]] = {
        "a": ParamHint(weight_decay=False),
        "b": ParamHint(lr_scale=0.1),
        "c": ParamHint(lr_scale=0.1),
        "plain": ParamHint(),
        "left_out": ParamHint(lr_scale=9.0),
    }

    def __init__(self) -> None:
        super().__init__()
        for at, name in enumerate(("b", "a", "plain", "c")):
            setattr(self, name, nn.Parameter(torch.tensor([1.0 + at, -2.0])))
        self.inner = nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        own = dict(self.named_parameters(recurse=False))
        out: Tensor = self.inner(x * own["a"] + own["b"]) + (x * own["plain"] * own["c"]).sum()
        return out


def spec(**changes: Any) -> RunSpec:
    return RunSpec.model_validate({**NET, "steps": 1, "lr": 0.1, **changes})


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_each_parameter_is_updated_as_it_asks(optimizer: str) -> None:
    options = {"weight_decay": 0.3, "momentum": 0.5} if optimizer == "sgd" else {}
    one = spec(optimizer=optimizer, optimizer_options=options)
    torch.manual_seed(1)
    model = Scaled()
    twin = Scaled()
    twin.load_state_dict(model.state_dict())
    made = make_optimizer(one, model)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    grouped = [[names[id(each)] for each in group["params"]] for group in made.param_groups]
    # The order of the groups does not depend on the order of the parameters in the model.
    assert grouped == [["plain", "inner.weight", "inner.bias"], ["b", "c"], ["a"]]
    alone: dict[str, Any] = {}
    for name, parameter in twin.named_parameters():
        own = {"lr": 0.1, **({"weight_decay": 0.0 if name == "a" else 0.3, "momentum": 0.5} if options else {})}
        alone[name] = (torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam)([parameter], **own)
    x = torch.tensor([[0.3, -1.0]])
    for lr in (0.1, 0.05, 0.2):
        set_rate(made, lr)
        for name, each in alone.items():
            each.param_groups[0]["lr"] = lr * (0.1 if name in ("b", "c") else 1.0)
            each.zero_grad()
        made.zero_grad()
        model(x).sum().backward()
        twin(x).sum().backward()
        made.step()
        for each in alone.values():
            each.step()
        for name, value in twin.state_dict().items():
            assert torch.equal(model.state_dict()[name], value), (name, lr)


def test_without_hints_there_is_one_group_as_torch_makes_it() -> None:
    one = spec(optimizer_options={"weight_decay": 1e-3})
    model = make_module(one, (3, 16, 16), 10)
    (group,) = make_optimizer(one, model).param_groups
    (plain,) = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3).param_groups
    assert group.keys() == plain.keys()
    assert [id(each) for each in group["params"]] == [id(each) for each in plain["params"]]
    assert {name: group[name] for name in group if name != "params"} == {
        name: plain[name] for name in plain if name != "params"
    }


def test_the_groups_serve_an_optimiser_and_a_scheduler_of_ones_own() -> None:
    model = Scaled()
    optimizer = torch.optim.AdamW(parameter_groups(model, lr=0.4), lr=0.4, weight_decay=0.3)
    assert [(group["lr"], group["weight_decay"]) for group in optimizer.param_groups] == [
        (0.4, 0.3),
        (pytest.approx(0.04), 0.3),
        (0.4, 0.0),
    ]
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.step()
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.2, pytest.approx(0.02), 0.2]


def test_what_the_optimiser_remembers_is_restored_by_parameter() -> None:
    """In another grouping too: the state counts parameters as the model holds them."""

    class Together(Scaled):
        hints: ClassVar[Mapping[str, ParamHint]] = {"inner": ParamHint(lr_scale=2.0), "plain": ParamHint(lr_scale=2.0)}

    one = spec(optimizer="adam")
    model = Scaled()
    made = make_optimizer(one, model)
    model(torch.ones(1, 2)).sum().backward()
    made.step()
    tensors = tensors_of(model, made)
    other = Together()
    again = make_optimizer(one, other)
    assert len(again.param_groups) == 2
    restore(other, again, tensors)
    for (name, parameter), like in zip(model.named_parameters(), other.parameters(), strict=True):
        assert made.state[parameter].keys() == again.state[like].keys() != set()
        for key, value in made.state[parameter].items():
            assert torch.equal(value, again.state[like][key]), (name, key)
    assert {name: value.tobytes() for name, value in tensors_of(other, again).items()} == {
        name: value.tobytes() for name, value in tensors.items()
    }


def test_fixups_scalars_learn_at_a_tenth_and_a_rezero_is_not_decayed() -> None:
    fixup = spec(norm="fixup", init="fixup", shortcut="A_pool")
    model = make_module(fixup, (3, 16, 16), 10)
    scales = [group.get("lr_scale", 1.0) for group in make_optimizer(fixup, model).param_groups]
    assert scales == [1.0, 0.1]
    scalars = [each.numel() for each in make_optimizer(fixup, model).param_groups[1]["params"]]
    assert set(scalars) == {1}
    rezero = spec(norm="none", shortcut="rezero", optimizer_options={"weight_decay": 1e-2})
    groups = make_optimizer(rezero, make_module(rezero, (3, 16, 16), 10)).param_groups
    assert [(group["weight_decay"], len(group["params"]) == 3) for group in groups] == [(1e-2, False), (0.0, True)]


def test_adamw_takes_its_decay_off_the_weights_and_not_through_the_gradient() -> None:
    """Loshchilov & Hutter 2019, algorithm 2, in float64 by a loop."""
    options = {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6, "weight_decay": 0.3}
    torch.manual_seed(2)
    model = Scaled().double()
    values = {name: each.detach().clone() for name, each in model.named_parameters()}
    first = {name: torch.zeros_like(each) for name, each in values.items()}
    second = {name: torch.zeros_like(each) for name, each in values.items()}
    made = make_optimizer(spec(optimizer="adamw", optimizer_options=options), model)
    x = torch.tensor([[0.3, -1.0]], dtype=torch.float64)
    for step, lr in enumerate((0.1, 0.05, 0.2), start=1):
        set_rate(made, lr)
        made.zero_grad()
        model(x).sum().backward()
        gradients = {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}
        made.step()
        for name, gradient in gradients.items():
            own = lr * (0.1 if name in ("b", "c") else 1.0)
            first[name] = 0.8 * first[name] + 0.2 * gradient
            second[name] = 0.9 * second[name] + 0.1 * gradient**2
            update = (first[name] / (1 - 0.8**step)) / ((second[name] / (1 - 0.9**step)).sqrt() + 1e-6)
            values[name] = values[name] - own * update - own * (0.0 if name == "a" else 0.3) * values[name]
    for name, each in model.named_parameters():
        torch.testing.assert_close(each.detach(), values[name], rtol=1e-12, atol=0)
