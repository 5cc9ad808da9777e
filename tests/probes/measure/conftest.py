"""Models that a one-shot probe must measure right and leave alone, one a trait; and an independent way to measure."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, a batch, and the modules at whose outputs a twin is measured.

    Attributes:
        twin: computes the same by other means, where a plain copy cannot be measured by hooks.
    """

    model: nn.Module
    batch: Any
    loss_fn: Callable[[Any, Any], Tensor] | None = None
    boundaries: tuple[str, ...] = ()
    twin: nn.Module | None = None


@dataclass
class Measured:
    norms: dict[str, float] = field(default_factory=dict)
    gradients: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    loss: float = 0.0


def norm(tensor: Tensor) -> float:
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    wide = dense.detach().to(torch.complex128 if dense.is_complex() else torch.float64)
    return float(wide.abs().square().sum().sqrt())


def by_retain_grad(case: Case) -> Measured:
    """Plain hooks and `retain_grad` on a copy, and `backward`."""
    model = case.twin or copy.deepcopy(case.model)
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            calls = sum(each.partition("#")[0] == name for each in kept)
            kept[f"{name}#{calls}" if calls else name] = output
            output.retain_grad()

        return hook

    names = {name.partition("#")[0] for name in case.boundaries}
    for name, module in model.named_modules():
        if name in names:
            module.register_forward_hook(keep(name))
    inputs, targets = case.batch if isinstance(case.batch, tuple) else (case.batch, None)
    inputs = inputs.clone() if isinstance(inputs, Tensor) else inputs
    output = model(**inputs) if isinstance(inputs, dict) else model(inputs)
    assert case.loss_fn is not None
    loss = case.loss_fn(output, targets)
    loss.backward()  # type: ignore[no-untyped-call]
    found = Measured(loss=loss.item())
    for name, h in kept.items():
        assert h.grad is not None
        found.norms[name], found.gradients[name] = norm(h), norm(h.grad)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found.weights[name] = norm(parameter.grad)
    return found


class Block(nn.Module):
    def __init__(self, width: int, in_place: bool) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.relu1, self.relu2 = nn.ReLU(inplace=in_place), nn.ReLU(inplace=in_place)
        self.in_place = in_place

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        if self.in_place:
            out += identity
        else:
            out = out + identity
        activated: Tensor = self.relu2(out)
        return activated


def residual(in_place: bool) -> nn.Module:
    torch.manual_seed(0)
    blocks = [Block(4, in_place) for _ in range(3)]
    return nn.Sequential(nn.Conv2d(2, 4, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))


def images(width: int = 2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, width, 4, 4, generator=generator), torch.arange(5) % 3


def in_place() -> Case:
    return Case(
        model=residual(True), batch=images(), loss_fn=F.cross_entropy, boundaries=("1", "2", "3"), twin=residual(False)
    )


def stack(depth: int = 4, width: int = 6, activation: Callable[[], nn.Module] = nn.Tanh) -> nn.Sequential:
    torch.manual_seed(2)
    layers = [module for _ in range(depth) for module in (nn.Linear(width, width), activation())]
    return nn.Sequential(*layers, nn.Linear(width, 3))


def rows(width: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(7, width, generator=generator), torch.arange(7) % 3


class Restless(nn.Module):
    """Dropout, batch norm, and an input that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 8)
        self.norm, self.dropout, self.head = nn.BatchNorm1d(8), nn.Dropout(0.4), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x -= 1
        x = self.dropout(torch.relu(self.norm(self.first(x))))
        out: Tensor = self.head(torch.relu(self.second(x)))
        return out


class Repeated(nn.Module):
    """One layer, three times."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.layer, self.head = nn.Sequential(nn.Linear(6, 6), nn.Tanh()), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.layer(self.layer(self.layer(x))))
        return out


class Tied(nn.Module):
    """Token input; the head's weight is the embedding's."""

    def __init__(self, frozen: bool = False, sparse: bool = False) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.embed = nn.Embedding(11, 6, sparse=sparse)
        self.body = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 6), nn.GELU())
        self.head = nn.Linear(6, 11, bias=False)
        if not sparse:
            self.head.weight = self.embed.weight
        self.embed.weight.requires_grad_(not frozen)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(self.embed(tokens)))
        return out


def tokens() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    return torch.randint(11, (4, 5), generator=generator), torch.randint(11, (4, 5), generator=generator)


def next_token(output: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(output.flatten(0, 1), targets.flatten())


class Parts(nn.Module):
    """A frozen layer, one that is never called, one whose result is detached."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(8)
        self.frozen, self.used, self.idle, self.cut, self.head = (nn.Linear(6, 6) for _ in range(5))
        self.frozen.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.used(torch.tanh(self.frozen(x))))
        out: Tensor = self.head(x + self.cut(x).detach())
        return out


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(stack())
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        *layers, head = self.layers
        for layer in layers:
            x = layer(x) if self.reentrant is None else checkpoint(layer, x, use_reentrant=self.reentrant)
        out: Tensor = head(x)
        return out


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(9)
        self.weight = nn.Parameter(torch.randn(6, 6, dtype=torch.complex64, generator=generator))
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head((x.to(torch.complex64) @ self.weight).abs())
        return out


class Attention(nn.Module):
    """Fused attention, two inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(10)
        self.qkv, self.out, self.head = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (each.unflatten(-1, (2, 4)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        out: Tensor = self.head(x).mean(1)
        return out


class Uncopyable(Checkpointed):
    """A lock cannot be copied."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lock = threading.Lock()


class Writing(nn.Module):
    """Writes its own weight, and keeps books in attributes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(11)
        self.embed = nn.Embedding(11, 6, max_norm=0.5)
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6))
        self.norm, self.head = nn.BatchNorm1d(6, track_running_stats=True), nn.Linear(6, 3)
        self.calls, self.seen, self.generator = 0, [0], torch.Generator()
        self.history = torch.zeros(2)
        self.fails = False

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        self.history += 1
        self.latest = self.spectral(self.embed(tokens)).mean(1)
        with torch.no_grad():
            self.norm.weight.add_(torch.rand(6, generator=self.generator))
            self.head.bias.data = torch.ones(3)
        if self.fails:
            self.train()
            self.register_buffer("late", torch.ones(1))
            torch.set_grad_enabled(False)
            raise RuntimeError("planted")
        out: Tensor = self.head(self.norm(self.latest))
        return out


def sequences() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(12)
    return {"x": torch.randn(4, 5, 8, generator=generator), "mask": torch.ones(5, 5, dtype=torch.bool).tril()}


def evaluated(model: nn.Module) -> nn.Module:
    return model.eval()


CASES: dict[str, Callable[[], Case]] = {
    "in place": in_place,
    "stack": lambda: Case(model=stack(), batch=rows(), loss_fn=F.cross_entropy, boundaries=("1", "3", "5", "7")),
    "repeated": lambda: Case(
        model=Repeated(), batch=rows(), loss_fn=F.cross_entropy, boundaries=("layer", "layer#1", "layer#2")
    ),
    "tied": lambda: Case(model=Tied(), batch=tokens(), loss_fn=next_token, boundaries=("embed", "body.1", "body")),
    "sparse": lambda: Case(
        model=Tied(sparse=True), batch=tokens(), loss_fn=next_token, boundaries=("embed", "body.1", "body")
    ),
    "dropout and batch norm": lambda: Case(model=Restless(), batch=rows(), loss_fn=F.cross_entropy),
    "parts": lambda: Case(model=Parts(), batch=rows(), loss_fn=F.cross_entropy),
    "complex": lambda: Case(model=Complex(), batch=rows(), loss_fn=F.cross_entropy),
    "attention": lambda: Case(model=Attention(), batch=sequences(), loss_fn=lambda out, _: out.square().sum()),
    "checkpointed": lambda: Case(
        model=Checkpointed(False), batch=rows(), loss_fn=F.cross_entropy, twin=Checkpointed(None)
    ),
    "checkpointed, re-entrant": lambda: Case(
        model=Checkpointed(True), batch=rows(), loss_fn=F.cross_entropy, twin=Checkpointed(None)
    ),
    "uncopyable": lambda: Case(
        model=Uncopyable(), batch=rows(), loss_fn=F.cross_entropy, twin=Checkpointed(None), boundaries=("layers.1",)
    ),
    "evaluated": lambda: Case(model=evaluated(residual(True)), batch=images(), loss_fn=F.cross_entropy),
    "writing": lambda: Case(model=Writing(), batch=tokens()[0], loss_fn=lambda out, _: out.square().sum()),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


@pytest.fixture
def make() -> Callable[[str], Case]:
    return lambda name: CASES[name]()


@pytest.fixture
def twin() -> Callable[[Case], Measured]:
    return by_retain_grad
