"""`profile_model` leaves every model, and what it shares with the program, bitwise as found; after an exception too."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from depthscope.core.errors import UserError
from depthscope.probes.guard import as_found
from depthscope.probes.measure.profile import profile_model

if TYPE_CHECKING:
    from tests.probes.measure.conftest import Case

    Make = Callable[[str], Case]


def bits(tensor: Tensor) -> tuple[Any, ...]:
    dense = tensor.detach()
    values = dense.coalesce().values() if dense.is_sparse else dense
    return (id(tensor), str(tensor.dtype), tuple(tensor.shape), tensor.requires_grad, values.numpy().tobytes())


def plain(value: Any) -> Any:
    """An attribute as something that can be compared."""
    if isinstance(value, Tensor):
        return bits(value)
    if isinstance(value, torch.Generator):
        return bits(value.get_state())[1:]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | set | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, int | float | str | None) else id(value)


def state(model: nn.Module) -> dict[str, Any]:
    """Everything that the promise names."""
    modules = dict(model.named_modules())
    return {
        "attributes": {name: {key: plain(item) for key, item in vars(each).items()} for name, each in modules.items()},
        "classes": {name: type(each) for name, each in modules.items()},
        "weights": {name: bits(each) for name, each in model.named_parameters()},
        "memory": {name: each.data_ptr() for name, each in model.named_parameters()},
        "gradients": {
            name: None if each.grad is None else bits(each.grad) for name, each in model.named_parameters()
        },
        "tensor hooks": {
            name: [list((getattr(each, table) or {}).items()) for table in ("_backward_hooks",)]
            + [list((each._post_accumulate_grad_hooks or {}).items())]
            for name, each in model.named_parameters()
        },
        "global hooks": [list(table) for key, table in vars(torch_module).items() if key.startswith("_global_f")],
        "generators": repr((random.getstate(), np.random.get_state(), torch.get_rng_state().tolist())),  # noqa: NPY002
        "modes": (
            torch.is_grad_enabled(),
            torch.is_anomaly_enabled(),
            torch.get_default_dtype(),
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.is_autocast_cache_enabled(),
            torch.are_deterministic_algorithms_enabled(),
        ),
    }  # fmt: skip


def dishevel(model: nn.Module) -> None:
    """Gradients on some parameters, flags at random, hooks of every kind, one of which draws."""
    for index, module in enumerate(model.modules()):
        module.training = index % 3 != 1
        module.register_forward_hook(lambda *_: None)
        module.register_forward_pre_hook(lambda *_: None)
    for index, parameter in enumerate(model.parameters()):
        if parameter.requires_grad:
            parameter.register_hook(lambda gradient: gradient * (1 + 0 * random.random()))  # type: ignore[no-untyped-call]
            parameter.register_post_accumulate_grad_hook(_never)  # type: ignore[no-untyped-call]
            parameter.grad = torch.randn_like(parameter) if index % 2 else None


def _never(_parameter: Tensor) -> None:
    raise AssertionError("an optimiser inside the backward pass would have stepped")


def unchanged(model: nn.Module, before: dict[str, Any]) -> None:
    after = state(model)
    for key, value in before.items():
        assert after[key] == value, key


def test_a_profile_changes_nothing(case: Case) -> None:
    dishevel(case.model)
    before = state(case.model)
    first = profile_model(case.model, case.batch, case.loss_fn)
    unchanged(case.model, before)
    assert profile_model(case.model, case.batch, case.loss_fn) == first
    unchanged(case.model, before)


def fail(*_: Any) -> Any:
    torch.rand(1)
    random.random()
    np.random.rand()  # noqa: NPY002
    raise RuntimeError("planted")


def fail_backward(output: Any, _targets: Any) -> Tensor:
    output.register_hook(fail)
    total: Tensor = output.abs().sum()
    return total


@pytest.mark.parametrize("loss_fn", [fail, fail_backward])
def test_neither_does_one_that_fails_in_the_middle(loss_fn: Callable[..., Tensor], case: Case) -> None:
    dishevel(case.model)
    before = state(case.model)
    with pytest.raises(UserError, match="planted"):
        profile_model(case.model, case.batch, loss_fn)
    unchanged(case.model, before)


def test_nor_one_whose_model_fails(make: Make) -> None:
    case = make("writing")
    dishevel(case.model)
    case.model.fails = True  # type: ignore[assignment]
    before = state(case.model)
    with pytest.raises(UserError, match=r"the model \(Writing\) raised RuntimeError .*int64 \[4, 5\].*: planted"):
        profile_model(case.model, case.batch, case.loss_fn)
    unchanged(case.model, before)


class Unruly(nn.Module):
    """Does in its forward pass whatever a model might."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.old = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.late = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002
        out: Tensor = self.late(self.old(self.linear(F.dropout(x))))
        out.sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]
        self.late.bias.requires_grad = False
        self.late.weight.register_hook(_never)  # type: ignore[no-untyped-call]
        self.late.register_forward_hook(lambda *_: None)
        self.late.weight.data = torch.zeros(4, 4)
        self.late.eval()
        self.added = nn.Linear(1, 1)
        torch.set_anomaly_enabled(True)
        torch.set_autocast_enabled("cpu", True)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch_module.register_module_forward_hook(lambda *_: None)
        self.half()
        return out


def test_whatever_a_forward_pass_does_is_undone() -> None:
    model = Unruly()
    dishevel(model)
    for parameter in model.parameters():
        assert parameter._post_accumulate_grad_hooks is not None
        parameter._post_accumulate_grad_hooks.clear()
    x = torch.randn(3, 4)
    model.old(x)
    before = state(model)
    with as_found(model):
        assert not torch.is_autocast_cache_enabled()
        model(x)
        assert state(model) != before
    unchanged(model, before)
    F.linear(x, model.late.weight).sum().backward()  # type: ignore[no-untyped-call]


def test_parameters_are_copied_only_when_they_are_written(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's weights are its memory: a second set of them is not to be had."""
    copied: list[int] = []
    clone: Any = torch.UntypedStorage.clone

    def noted(storage: torch.UntypedStorage) -> Any:
        copied.append(storage._cdata)
        return clone(storage)

    monkeypatch.setattr(torch.UntypedStorage, "clone", noted)
    for name, written in (("stack", 0), ("in place", 0), ("writing", 2)):
        case = make(name)
        weights = {each.untyped_storage()._cdata for each in case.model.parameters()}
        copied.clear()
        with as_found(case.model):
            case.model(*(case.batch[:1] if isinstance(case.batch, tuple) else (case.batch,)))
        assert len(weights & set(copied)) == written, name


def test_what_autocast_and_parametrisations_have_cached_serves_no_measurement(make: Make) -> None:
    """A backward pass of the measurement would use up the caller's graph."""
    case = make("stack")
    nn.utils.parametrizations.weight_norm(case.model.get_submodule("2"))
    x, targets = case.batch
    with torch.autocast("cpu", dtype=torch.bfloat16), nn.utils.parametrize.cached():
        loss = F.cross_entropy(case.model(x), targets)
        profile_model(case.model, case.batch, case.loss_fn)
        loss.backward()  # type: ignore[no-untyped-call]


class Running(nn.Module):
    """Writes a buffer in place, and uses it."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 3)
        self.register_buffer("scale", torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.scale.mul_(0.9).add_(x.abs().mean(0), alpha=0.1)
        h: Tensor = self.linear(x.tanh().requires_grad_() * self.scale)
        return h


def test_a_backward_pass_that_is_still_owed_can_run_and_a_wrong_one_cannot() -> None:
    model, x, y = Running(), torch.linspace(-1, 1, 24).reshape(4, 6), torch.arange(4) % 3
    loss = F.cross_entropy(model(x), y)
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    assert model.linear.weight.grad is not None
    expected = model.linear.weight.grad.clone()
    profile_model(model, (x, y), F.cross_entropy)
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    assert torch.equal(model.linear.weight.grad, 2 * expected)
    model.scale.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()  # type: ignore[no-untyped-call]


class Drawing(nn.Module):
    """Draws from generators that it is given."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 3)

    def forward(self, x: Tensor, ours: torch.Generator, theirs: dict[str, np.random.Generator]) -> Tensor:
        x = x + torch.randn(x.shape, generator=ours) + float(theirs["numpy"].standard_normal())
        h: Tensor = self.linear(x)
        return h


def test_the_callers_targets_and_generators_are_as_found() -> None:
    def greedy(output: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(output, targets.sub_(1))

    x, y = torch.ones(4, 6), torch.ones(4, dtype=torch.int64)
    ours, theirs = torch.Generator().manual_seed(1), np.random.default_rng(1)
    before = ours.get_state(), theirs.bit_generator.state
    batch = (x, ours, {"numpy": theirs}, y)
    found = profile_model(Drawing(), batch, greedy)
    assert torch.equal(ours.get_state(), before[0])
    assert theirs.bit_generator.state == before[1]
    assert bool((y == 1).all())
    twin = Drawing()
    expected = F.cross_entropy(twin(*batch[:-1]), torch.zeros_like(y))
    assert found.values("model", "loss")[""] == expected.item()


def test_a_lazy_layer_is_refused() -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(UserError, match=r"0\.weight has no values yet"):
        profile_model(model, torch.randn(2, 3))
    assert isinstance(model[0], nn.LazyLinear)


def train(profiled: bool, make: Make) -> list[Any]:
    """Three steps with momentum and dropout; a profile before each and between backward and step."""
    torch.manual_seed(0)
    case = replace(make("dropout and batch norm"))
    optimizer = torch.optim.SGD(case.model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        x, targets = torch.randn(6, 6), torch.randint(3, (6,))
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(case.model(x.clone()), targets)
        if profiled:
            profile_model(case.model, case.batch, case.loss_fn, step=step)
        loss.backward()  # type: ignore[no-untyped-call]
        if profiled:
            profile_model(case.model, case.batch[0], step=step)
        optimizer.step()
    return [*(each.tolist() for each in case.model.state_dict().values()), torch.get_rng_state().tolist()]


def test_training_with_and_without_ends_bit_identical(make: Make) -> None:
    assert train(True, make) == train(False, make)
