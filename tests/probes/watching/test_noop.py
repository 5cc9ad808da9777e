"""A watched training ends bit for bit as an unwatched one, and nothing is left behind."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

from depthscope.probes.watching import Watching


class Net(nn.Module):
    """A small net of everything that has a state or draws: batch norm, dropout, in-place, a skip, a tied weight."""

    def __init__(self, *, batch_norm: bool = True, dropout: float = 0.2, checkpointed: bool | None = None) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8) if batch_norm else nn.LayerNorm(8), nn.ReLU())
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(8, 8))
            for _ in range(3)
        )
        self.head = nn.Linear(8, 3)
        self.checkpointed = checkpointed

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            if self.checkpointed is None or not self.training:
                out = block(x)
            else:
                out = checkpoint(block, x, use_reentrant=self.checkpointed)
            out += x
            x = out
        logits: Tensor = self.head(x)
        return logits


@dataclass(frozen=True, kw_only=True)
class Training:
    net: Callable[[], nn.Module] = Net
    optimizer: Callable[[Any], Any] = lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)
    scaler: Callable[[], Any] = lambda: None
    autocast: bool = False
    micro_batches: int = 1
    clip: float | None = None
    closure: bool = False
    to_none: bool = True
    every: int = 3
    watched: dict[str, Any] = field(default_factory=dict)


TRAININGS = {
    "SGD momentum": Training(),
    "Adam": Training(optimizer=lambda p: torch.optim.Adam(p, 1e-2)),
    "Adam fused": Training(optimizer=lambda p: torch.optim.Adam(p, 1e-2, fused=True)),
    "gradients set to 0": Training(to_none=False),
    "clipped": Training(clip=0.1),
    "accumulated": Training(micro_batches=3),
    "AMP bf16": Training(autocast=True),
    "AMP, scaler": Training(autocast=True, scaler=lambda: torch.amp.GradScaler("cpu", init_scale=2.0**10)),
    "AMP, scaler, fused": Training(
        autocast=True,
        scaler=lambda: torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2),
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, fused=True),
    ),
    "AMP, a skipped step": Training(scaler=lambda: torch.amp.GradScaler("cpu", init_scale=2.0**127)),
    "AMP, a skipped step, fused": Training(
        scaler=lambda: torch.amp.GradScaler("cpu", init_scale=2.0**127),
        optimizer=lambda p: torch.optim.Adam(p, 1e-2, fused=True),
    ),
    "checkpointed": Training(net=lambda: Net(checkpointed=False)),
    "checkpointed, re-entrant": Training(net=lambda: Net(checkpointed=True)),
    "without batch norm": Training(net=lambda: Net(batch_norm=False)),
    "LBFGS": Training(closure=True, optimizer=lambda p: torch.optim.LBFGS(p, 0.1, max_iter=3)),
    "closure": Training(closure=True, optimizer=lambda p: torch.optim.SGD(p, 0.05)),
}


def train(case: Training, watched: bool, steps: int = 8) -> tuple[str, Watching | None]:
    """Everything that a training leaves behind, as text of its bits."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global generator is what must not move
    model = case.net()
    optimizer = case.optimizer(model.parameters())
    scaler = case.scaler()
    watching = Watching(model, optimizer, case.every, scaler=scaler, **case.watched) if watched else None
    losses = []
    with watching or nullcontext():
        for _ in range(steps):

            def backward() -> Tensor:
                optimizer.zero_grad(set_to_none=case.to_none)
                for _ in range(case.micro_batches):
                    x, y = torch.randn(7, 6), torch.randint(3, (7,))
                    with torch.autocast("cpu", torch.bfloat16, enabled=case.autocast):
                        loss = F.cross_entropy(model(x), y) / case.micro_batches
                    (loss if scaler is None else scaler.scale(loss)).backward()
                losses.append(loss.item())
                return loss

            if case.closure:
                optimizer.step(backward)
                continue
            backward()
            if case.clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), case.clip)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
            with torch.no_grad():
                model.eval()(torch.randn(2, 6))
                model.train()
        left = (
            [(name, each.tolist()) for name, each in model.state_dict().items()],
            [None if each.grad is None else each.grad.tolist() for each in model.parameters()],
            _plain(optimizer.state_dict()),
            None if scaler is None else scaler.state_dict(),
            losses,
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state(),  # noqa: NPY002
        )
    assert not list(_hooks(model, optimizer))
    return repr(left), watching


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _hooks(model: nn.Module, optimizer: Any) -> Iterator[object]:
    for module in model.modules():
        for name, table in vars(module).items():
            if "hook" in name and table:
                yield name
    for parameter in model.parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            yield parameter
    yield from optimizer._optimizer_step_pre_hooks
    yield from optimizer._optimizer_step_post_hooks


@pytest.mark.parametrize("case", TRAININGS.values(), ids=TRAININGS.keys())
def test_a_watched_training_ends_bit_for_bit_as_an_unwatched_one(case: Training) -> None:
    plain, _ = train(case, watched=False)
    watched, watching = train(case, watched=True)
    assert watched == plain
    assert watching is not None
    assert [each.step for each in watching.records()] == [0, 1, 2, 3, 6]
    silent = {each.conditions.silent for each in watching.records()}
    assert silent == {""} or case.net().checkpointed  # re-entrant: gradients inside are not seen, and it says so


@pytest.mark.parametrize("case", [Training(), TRAININGS["AMP, scaler, fused"]], ids=["plain", "AMP"])
def test_so_it_does_with_every_option(case: Training) -> None:
    plain, _ = train(case, watched=False)
    options = {"every_step": True, "filter": ["mid", -1, "stem*"], "writer": lambda _values, _step: None}
    assert train(replace(case, every=1, watched=options), watched=True)[0] == plain


def test_nothing_is_left_after_an_exception() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watching = Watching(model, optimizer)

    def run() -> None:
        with watching:
            model(torch.randn(4, 6)).sum().backward()
            optimizer.step()
            model(torch.randn(4, 5))

    with pytest.raises(RuntimeError):
        run()
    assert not list(_hooks(model, optimizer))
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert watching.num_steps == 1


def test_a_pass_that_fails_does_not_disturb_the_next() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer, 1) as watching:
        for width in (6, 5, 6):
            try:
                model(torch.randn(4, width)).sum().backward()
            except RuntimeError:
                assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
                continue
            optimizer.step()
            optimizer.zero_grad()
    assert [(each.step, each.conditions.silent, each.conditions.batch) for each in watching.records()] == [
        (0, "", 4),
        (1, "", 4),
    ]


def test_a_copy_of_the_model_carries_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An average of weights or a best model kept is a deep copy: it must copy neither the writer nor the records."""

    def copied(_self: object, _memo: object) -> None:
        raise AssertionError("copied")

    monkeypatch.setattr(Watching, "__deepcopy__", copied, raising=False)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer) as watching:
        average = AveragedModel(model)
        best = copy.deepcopy(model)
        for net in (average, best):
            net(torch.randn(4, 6)).sum().backward()
        average.update_parameters(model)
        assert watching.num_steps == 0
    assert watching.records() == ()
