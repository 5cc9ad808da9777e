"""Small real trainings, each from its seed, that the rules on curves of losses are judged by.

    training("held-out", "shuffled labels", 3)

Inputs are 20 standard normal numbers; classes are those of a random teacher network, so that they can be learnt. Depth,
width, architecture, optimiser, batch and the learning rate within its range are drawn. Everything is watched as a
person would watch it: the losses of each step, a validation loss at intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import depthscope
from depthscope.analysis.model import ModelDiagnosis

NUM_INPUTS, NUM_CLASSES = 20, 4
SALTS = {"development": 3, "held-out": 4}
Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One sort of training.

    Attributes:
        cause: what is to be told; empty where nothing is the matter.
        adam: range of the logarithm (base 10) of the learning rate with Adam.
        sgd: the same with SGD.
        examples: in the training set.
        noise: part of the labels, in training and validation, that are drawn evenly instead.
        steps: updates.
        number: how many are tried.
        what: in words.
    """

    cause: str
    adam: tuple[float, float] = (-3.2, -2.7)
    sgd: tuple[float, float] = (-1.6, -1.2)
    examples: int = 4096
    noise: float = 0.0
    steps: int = 200
    number: int = 8
    what: str


PLANS: Mapping[str, Plan] = {
    "healthy fit": Plan(cause="", what="4,096 examples, usual learning rates, 200 steps"),
    "noisy labels": Plan(cause="", noise=0.3, what="the same with 3 labels in 10 drawn evenly"),
    "short": Plan(cause="", steps=20, what="the first 20 steps of a healthy fit"),
    "slow": Plan(cause="", adam=(-4.0, -3.7), sgd=(-2.3, -2.0), what="a low learning rate at which the loss falls"),
    "too fast": Plan(
        cause="learning rate", adam=(-0.7, 0.3), sgd=(0.7, 1.3), number=24, what="learning rates 100 times too high"
    ),
    "too slow": Plan(cause="stalled", adam=(-7.5, -6.5), sgd=(-6.5, -5.5), what="learning rates 10,000 times too low"),
    "shuffled labels": Plan(
        cause="no generalisation", noise=1.0, examples=128, steps=400, what="128 examples whose labels are drawn evenly"
    ),
    "overfitting": Plan(
        cause="no generalisation", noise=0.3, examples=96, steps=400, what="96 examples, 3 labels in 10 drawn evenly"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What became of one training, and what was said of it."""

    detail: str
    first: float
    last: float
    validation: float
    diagnosis: ModelDiagnosis


def training(split: str, kind: str, index: int) -> Trained:
    """Train, watched; no global generator is moved."""
    plan = PLANS[kind]
    rng = np.random.default_rng([20261201, SALTS[split], list(PLANS).index(kind), index])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        return _train(plan, rng)


def _train(plan: Plan, rng: Rng) -> Trained:
    teacher = nn.Sequential(nn.Linear(NUM_INPUTS, 16), nn.Tanh(), nn.Linear(16, NUM_CLASSES, bias=False))
    nn.init.normal_(teacher[2].weight)  # type: ignore[arg-type]
    inputs, targets = _data(teacher, plan.examples, plan.noise)
    held_inputs, held_targets = _data(teacher, 512, plan.noise)
    name, model = _model(rng)
    adam = bool(rng.integers(2))
    rate = 10 ** rng.uniform(*(plan.adam if adam else plan.sgd))
    make: Callable[..., torch.optim.Optimizer] = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = make(model.parameters(), lr=rate, **({} if adam else {"momentum": float(rng.choice([0.0, 0.9]))}))
    batch = int(rng.choice([16, 32, 64]))
    losses, validation = [], float("nan")
    with depthscope.watch(model, optimizer, 100) as watched:
        for step in range(plan.steps):
            if step % (plan.steps // 5) == 0 and step:
                validation = _validate(model, held_inputs, held_targets)
                watched.validation(validation)
            chosen = torch.randint(plan.examples, (batch,))
            loss = cross_entropy(model(inputs[chosen]), targets[chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            watched.loss(loss.detach())
            losses.append(float(loss.detach()))
        validation = _validate(model, held_inputs, held_targets)
        watched.validation(validation)
    return Trained(
        detail=f"{name}, {'Adam' if adam else 'SGD'} {rate:.2g}, batch {batch}",
        first=losses[0],
        last=losses[-1],
        validation=validation,
        diagnosis=watched.diagnose(),
    )


def _validate(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        found = float(cross_entropy(model(inputs), targets))
    model.train()
    return found


def _data(teacher: nn.Module, count: int, noise: float) -> tuple[Tensor, Tensor]:
    inputs = torch.randn(count, NUM_INPUTS)
    with torch.no_grad():
        targets = teacher(inputs).argmax(-1)
    drawn = torch.randint(NUM_CLASSES, (count,))
    return inputs, torch.where(torch.rand(count) < noise, drawn, targets)


def _model(rng: Rng) -> tuple[str, nn.Module]:
    width, depth = int(rng.choice([32, 64])), int(rng.integers(4, 9))
    if rng.integers(2):
        blocks = [
            _Residual(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            for _ in range(depth)
        ]
        return f"Pre-LN, {depth} blocks of {width}", nn.Sequential(
            nn.Linear(NUM_INPUTS, width), *blocks, nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES)
        )
    layers: list[nn.Module] = []
    for at in range(depth):
        layer = nn.Linear(width if at else NUM_INPUTS, width)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return f"plain He-ReLU, {depth} layers of {width}", nn.Sequential(*layers, nn.Linear(width, NUM_CLASSES))


class _Residual(nn.Sequential):
    """x + F(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)  # type: ignore[no-any-return, no-untyped-call]
