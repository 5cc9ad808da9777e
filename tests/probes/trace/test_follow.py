"""Following a pass: right tensors at the right time, and nothing changed by it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from tests.zoo import cells, mobile, resnet
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from depthscope.probes.trace import Follow, trace


class Notes:
    """Reduces what it is told to numbers at once."""

    def __init__(self) -> None:
        self.norms: dict[int, float] = {}
        self.gradients: dict[int, float] = {}
        self.additions: dict[int, tuple[float, float]] = {}

    def boundary(self, index: int, tensor: Tensor) -> None:
        self.norms[index] = float(tensor.detach().double().norm())
        if tensor.requires_grad:
            note = self.gradients.__setitem__
            tensor.register_hook(lambda grad: note(index, float(grad.double().norm())))  # type: ignore[no-untyped-call]

    def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
        self.additions[index] = (float(branch.double().norm()), float(skip.double().norm()))


def follow(model: nn.Module, *args: Any) -> tuple[Notes, Follow, Any]:
    notes = Notes()
    with Follow(trace(model, args, {}), notes) as followed:
        out = model(*args)
    return notes, followed, out


class Block(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear, self.act, self.how = nn.Linear(4, 4), nn.ReLU(inplace=True), how
        self.out = nn.Linear(4, 4)

    def branch(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.linear(x).tanh())
        return out

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "reentrant":
            out = checkpoint(self.branch, x, use_reentrant=True)
        elif self.how == "checkpoint":
            out = checkpoint(self.branch, x, use_reentrant=False)
        else:
            out = self.branch(x)
        out += x
        activated: Tensor = self.act(out)
        return activated


@pytest.mark.parametrize("how", ["plain", "checkpoint", "reentrant"])
def test_against_a_twin_by_hand(how: str) -> None:
    """In-place sums and activations, checkpointed or not: norms and gradients equal those of a twin out of place."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Block(how), Block(how), nn.Linear(4, 2))
    x = torch.randn(5, 3)
    notes, followed, out = follow(model, x)
    assert followed.departed == ""
    out.square().sum().backward()

    stem, first, second, head = model
    held = [x, stem(x)]
    wanted = []
    for block in (first, second):
        branch = block.branch(held[-1])  # type: ignore[operator]
        wanted.append((float(branch.detach().double().norm()), float(held[-1].detach().double().norm())))
        held.append(torch.relu(branch + held[-1]))
    held.append(head(held[-1]))
    gradients = torch.autograd.grad(held[-1].square().sum(), held[1:])
    assert notes.norms == pytest.approx(
        {at: float(each.detach().double().norm()) for at, each in enumerate(held)}, rel=1e-5
    )
    assert notes.gradients == pytest.approx(
        {at: float(each.double().norm()) for at, each in enumerate(gradients, 1)}, rel=1e-5
    )
    assert notes.additions == {at: pytest.approx(each, rel=1e-5) for at, each in enumerate(wanted)}


class Doubling(torch.autograd.Function):
    """Its output has no `grad_fn` until `apply` has returned."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return grad @ weight.T, None


class Custom(nn.Module):
    def __init__(self, *, last: bool) -> None:
        super().__init__()
        self.stem, self.weight, self.head = nn.Linear(3, 4), nn.Parameter(2 * torch.eye(4)), nn.Linear(4, 2)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        x = Doubling.apply(self.stem(x), self.weight)  # type: ignore[no-untyped-call]
        return x if self.last else self.head(x)


@pytest.mark.parametrize("last", [False, True])
def test_outputs_of_custom_functions_bear_hooks(last: bool) -> None:
    notes, _, out = follow(Custom(last=last), torch.randn(2, 3))
    out.sum().backward()
    assert sorted(notes.gradients) == ([1, 2] if last else [1, 2, 3])
    if last:
        assert notes.gradients[2] == pytest.approx(8**0.5)
        assert notes.gradients[1] == pytest.approx(2 * 8**0.5)


@pytest.mark.parametrize("form", ["alpha", "sub", "addcmul", "lerp"])
def test_operands_are_told_as_they_enter_the_sum(form: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.gamma = nn.Linear(3, 3), nn.Parameter(torch.full((3,), 0.5))

        def forward(self, x: Tensor) -> Tensor:
            f = self.linear(x)
            if form == "alpha":
                return torch.add(x, f, alpha=0.5)
            if form == "sub":
                return x.sub(f, alpha=0.5)
            return torch.addcmul(x, self.gamma, f) if form == "addcmul" else torch.lerp(x, f, 0.5)

    told = []

    class Keep(Notes):
        def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
            told.append((branch.clone(), skip.clone()))

    net, x = Net(), torch.randn(2, 3)
    with Follow(trace(net, (x,), {}), Keep()):
        out = net(x)
    ((branch, skip),) = told
    assert torch.allclose(branch + skip, out, atol=1e-6)
    assert torch.allclose(branch.abs(), 0.5 * net.linear(x).abs(), atol=1e-6)


class Moody(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.calls = nn.ModuleList(nn.Linear(3, 3) for _ in range(3)), 0

    def forward(self, x: Tensor) -> Tensor:
        for at, layer in enumerate(self.layers):
            x = layer(x)
            x = torch.tanh(x) if self.calls and at == 1 else torch.relu(x)
        return x


def test_departs_where_the_model_takes_another_way() -> None:
    model, x = Moody(), torch.randn(2, 3)
    traced = trace(model, (x,), {})
    assert model.calls == 0
    model.calls = 1
    notes = Notes()
    with Follow(traced, notes) as followed:
        model(x)
    assert "operation 5 of the measured pass is aten.tanh.default, that of the traced one aten.relu.default" in (
        followed.departed
    )
    assert sorted(notes.norms) == [0, 1]
    model.calls, model.layers = 0, model.layers[:2]
    with Follow(traced, notes) as followed:
        model(x)
    assert "ended after 6 operations; the traced one has 9" in followed.departed


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["efficientnet", "transformer", "resnet"])
def test_leaves_everything_bitwise(kind: str, training: bool) -> None:
    """Output, statistics and generators are those of a pass without trace and mode, also inside another mode."""
    torch.manual_seed(0)
    args: tuple[Any, ...] = (mobile.images(16),)
    if kind == "efficientnet":
        model: nn.Module = mobile.efficientnet_b0(16)
    elif kind == "resnet":
        model = resnet.cifar_resnet(8, "A")
    else:
        encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        model, args = nn.TransformerEncoder(encoder, 2), (torch.randn(2, 5, 8),)
    model.train(training)

    def state() -> list[Tensor]:
        return [each.clone() for each in model.state_dict().values()]

    found, numbers = state(), torch.get_rng_state()
    held = random.getstate()
    traced = trace(model, args, {})
    assert all(torch.equal(one, two) for one, two in zip(found, state(), strict=True))
    assert torch.equal(numbers, torch.get_rng_state())
    assert held == random.getstate()

    plain = model(*args)
    after, drawn = state(), torch.get_rng_state()
    model.load_state_dict(dict(zip(model.state_dict(), found, strict=True)))
    torch.set_rng_state(numbers)
    with FlopCounterMode(display=False), Follow(traced, Notes()) as followed:
        measured = model(*args)
    assert followed.departed == ""
    assert torch.equal(plain, measured)
    assert torch.equal(drawn, torch.get_rng_state())
    assert all(torch.equal(one, two) for one, two in zip(after, state(), strict=True))


class Forces(nn.Module):
    """Differentiates in its forward pass, so that the trace must save what autograd needs."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


class Frozen(nn.Module):
    """A backbone under no_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, 4), Block("plain"), Block("plain"))
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.backbone(x)
        out: Tensor = self.head(x)
        return out


def test_inner_gradients_and_inner_no_grad() -> None:
    assert len(trace(Forces(), (torch.randn(2, 3),), {}).structure.boundaries) >= 2
    notes, followed, out = follow(Frozen(), torch.randn(2, 3))
    out.sum().backward()
    assert followed.departed == ""
    assert sorted(notes.norms) == [0, 1, 2, 3, 4]
    assert sorted(notes.additions) == [0, 1]
    assert sorted(notes.gradients) == [4]


def test_frozen_encoder_is_not_fused() -> None:
    """With everything frozen in eval mode torch would run each layer as one operation."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    encoder.requires_grad_(False)
    notes, followed, _ = follow(encoder, torch.randn(2, 5, 8))
    assert followed.departed == ""
    assert len(notes.additions) == 4
    assert torch.backends.mha.get_fastpath_enabled()


def test_an_exception_leaves_the_mode() -> None:
    class Broken(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ArithmeticError("broken")

    with pytest.raises(ArithmeticError):
        trace(Broken(), (torch.randn(2),), {})
    net, x = cells.Highway(1), torch.randn(2, 4)
    with pytest.raises(ArithmeticError), Follow(trace(net, (x,), {}), Notes()):
        raise ArithmeticError
    assert not torch.nn.modules.module._global_forward_hooks
    assert torch.backends.mha.get_fastpath_enabled()
