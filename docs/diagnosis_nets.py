"""The nets that the diagnosis is tried on: 200 healthy and 200 broken, each from its seed, with the truth of each.

    population("held-out")     # 400 nets; `docs/diagnosis.md` reports these
    population("development")  # others, of the same law: thresholds are chosen on these alone

Committed before any threshold was set. What counts as healthy is settled here, by construction: the gain is the one
that theory or the published recipe asks for, or normalisation makes the scale cancel. What counts as broken is one
fault planted in a healthy recipe, at one block, or a wrong gain in all of them that makes the gradient over the
whole body change by at least 10^4. Depth, width, activation, batch, place and size of a fault are drawn.

A truth's place is the name of a block, or `whole` for all of them. Data are random, with a batch from 32 to 128.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from diagnosis_faults import FAULTS
from diagnosis_healthy import HEALTHY
from diagnosis_recipes import Built, Rng, Truth
from torch import Tensor, nn

NUM_EACH = 200
SALTS = {"development": 1, "held-out": 2}


@dataclass(frozen=True, kw_only=True)
class Net:
    """One net with its batch; the loss is cross entropy.

    Attributes:
        key: such as `held-out/broken/17`.
        kind: the family of a healthy net, or the kind of fault.
        detail: what was drawn, in words.
        model: in train mode.
        inputs: one batch.
        targets: class numbers, [B].
        truth: see there.
    """

    key: str
    kind: str
    detail: str
    model: nn.Module
    inputs: Tensor
    targets: Tensor
    truth: Truth


def population(split: str) -> Iterator[Net]:
    """The healthy nets, then the broken ones."""
    for broken in (False, True):
        for index in range(NUM_EACH):
            yield net(split, broken, index)


def net(split: str, broken: bool, index: int) -> Net:
    """One net by its number; kinds take turns, the rest is drawn. No global generator is moved."""
    rng = np.random.default_rng([20261130, SALTS[split], int(broken), index])
    kinds: dict[str, Callable[[Rng], Built]] = dict(FAULTS if broken else HEALTHY)
    kind = list(kinds)[index % len(kinds)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        built = kinds[kind](rng)
        inputs, targets = built.batch(int(rng.choice([32, 64, 128])))
        if built.steps:
            train(built.model, inputs, targets, built.steps)
    key = f"{split}/{'broken' if broken else 'healthy'}/{index}"
    return Net(
        key=key,
        kind=kind,
        detail=built.detail,
        model=built.model.train(),
        inputs=inputs,
        targets=targets,
        truth=built.truth,
    )


def train(model: nn.Module, inputs: Tensor, targets: Tensor, steps: int) -> None:
    """A few updates of Adam on one batch."""
    optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
