"""Passes that are recorded and replayed: bit for bit what the plain passes give, around all that lies between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.short import NET, TRAINED
from torch import Tensor

from depthscope.record.events import Ended, Event, SafePoint, State
from depthscope.study.run import RunSpec
from depthscope.train import graphs, torch_loop
from depthscope.train.build import Context
from depthscope.train.graphs import recorder
from depthscope.train.state import Standing

FIELDS: dict[str, Any] = {
    **TRAINED,
    "shortcut": "A",
    "optimizer_options": {"momentum": 0.9, "weight_decay": 1e-3},
    "lr": 0.05,
    "clip": "norm",
    "clip_options": {"max_norm": 1.0},
    "measures": ["layers"],
}


class Replays:
    """A graph without a GPU: what is done again writes where the recorded results and gradients lie.

    As on a GPU, recording leaves nothing of use in them, and runs the work several times before.
    """

    def __init__(self) -> None:
        self.num_recorded = self.num_replayed = 0
        self.model: torch.nn.Module | None = None

    def __call__(
        self, work: Callable[[], tuple[Tensor, Tensor | None]]
    ) -> tuple[Callable[[], object], tuple[Tensor, Tensor | None]]:
        self.num_recorded += 1
        for _ in range(3):
            found = work()
        assert self.model is not None
        parameters = list(self.model.parameters())
        kept = [parameter.grad for parameter in parameters]
        outputs = [each for each in (*found, *kept) if each is not None]
        for each in outputs:
            each.fill_(float("nan") if each.is_floating_point() else -1)

        def again() -> None:
            self.num_replayed += 1
            new = [each for each in work() if each is not None]
            new += [parameter.grad for parameter in parameters if parameter.grad is not None]
            for old, value in zip(outputs, new, strict=True):
                old.copy_(value)
            for parameter in parameters:
                parameter.grad = None  # a graph writes memory, and knows nothing of Python's attributes

        return again, found


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> Replays:
    """Every run records its passes."""
    made = Replays()

    class Watched(graphs.Replayed):
        def __init__(self, model: torch.nn.Module, *rest: Any) -> None:
            made.model = model
            super().__init__(model, *rest)

    monkeypatch.setattr(torch_loop, "recorder", lambda spec, context: made if context.graphs else None)
    monkeypatch.setattr(torch_loop, "Replayed", Watched)
    return made


def events(
    spec: RunSpec, states: Mapping[str, State] = {}, *, replayed: bool, stop: int | None = None
) -> tuple[list[Event], State | None]:
    """Of a run; up to the safe point of step `stop`, whose state comes with them."""
    heard: list[Event] = []
    context = Context(device="cpu", graphs=replayed)
    for event in torch_loop.run([spec], context, states, Standing()):
        if isinstance(event, SafePoint):
            if event.step == stop:
                return heard, event.take()[0]
        else:
            heard.append(event)
    return heard, None


def told(heard: list[Event]) -> list[str]:
    """All of it, to the last digit."""
    return [repr(each) for each in heard]


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
def test_a_run_is_bit_for_bit_that_of_the_plain_passes(replays: Replays, precision: str) -> None:
    spec = RunSpec.model_validate(FIELDS | {"precision": precision})
    plain, _ = events(spec, replayed=False)
    assert replays.num_recorded == 0
    fast, _ = events(spec, replayed=True)
    assert told(fast) == told(plain)
    assert isinstance(fast[-1], Ended)
    assert fast[-1].final is not None
    # Batches of 24, 24 and 16, twice: the smaller ones are not replayed.
    assert (replays.num_recorded, replays.num_replayed) == (1, 4)


def test_a_run_that_goes_on_with_a_smaller_batch_records_none(replays: Replays) -> None:
    spec = RunSpec.model_validate(FIELDS)
    plain, _ = events(spec, replayed=False)
    _, state = events(spec, replayed=True, stop=5)
    assert state is not None
    before = replays.num_recorded, replays.num_replayed
    rest, _ = events(spec, {spec.run_id: state}, replayed=True)
    assert told(rest)[-1] == told(plain)[-1]
    assert (replays.num_recorded, replays.num_replayed) == before == (1, 4)


def test_the_state_on_the_way_is_that_of_the_plain_passes(replays: Replays) -> None:
    spec = RunSpec.model_validate(FIELDS)
    (_, plain), (_, fast) = (events(spec, replayed=each, stop=4) for each in (False, True))
    assert plain is not None
    assert fast is not None
    assert plain.tensors.keys() == fast.tensors.keys()
    for name, value in plain.tensors.items():
        np.testing.assert_array_equal(fast.tensors[name], value, err_msg=name)


def test_who_is_recorded() -> None:
    def recorded(device: str = "cuda", graphs: bool = True, **fields: Any) -> bool:
        spec = RunSpec.model_validate({**NET, "epochs": 1, "data_options": {}, **fields})
        return recorder(spec, Context(device=device, graphs=graphs)) is not None

    assert recorded()
    assert recorded(device="cuda:1", shortcut="A")
    assert not recorded(graphs=False)  # nobody asked
    assert not recorded(device="cpu")
    assert not recorded(shortcut="stochastic_depth")  # a replay would drop the same branches each time
    assert not recorded(model_options={"checkpointing": True})
