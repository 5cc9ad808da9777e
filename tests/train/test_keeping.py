"""Weights that a run keeps: which, of which steps, and that they are those of the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.train.short import LAB, TRAINED

from depthscope.probes.numbers import tensor_digest, weights_digest
from depthscope.record.events import Ended, Event, SafePoint, Started, Weights
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.keeping import MAX_EPOCHS, kept_steps
from depthscope.train.start import run_task

torch = pytest.importorskip("torch")


def spec_of(**fields: Any) -> RunSpec:
    return RunSpec.model_validate({**TRAINED, "measures": ["weights"], **fields})


def heard(spec: RunSpec) -> tuple[dict[int, Weights], list[Event]]:
    events = [event for event in run_task(Task((spec,)), Context()) if not isinstance(event, SafePoint)]
    return {event.step: event for event in events if isinstance(event, Weights)}, events


@pytest.mark.parametrize("num_steps", [0, 1, 7, 49, 50, 51, 99, 101, 1000, 12_345])
@pytest.mark.parametrize("per_epoch", [1, 3, 391])
def test_steps_are_the_first_the_last_and_ends_of_epochs_far_apart(num_steps: int, per_epoch: int) -> None:
    steps = sorted(kept_steps(num_steps, per_epoch))
    assert (steps[0], steps[-1]) == (0, num_steps)
    epochs = [step for step in steps[1:] if step % per_epoch == 0]
    assert len(epochs) <= MAX_EPOCHS + 1
    assert len(set(np.diff([0, *epochs])[:-1])) <= 1, "equally far apart, but for the last"
    if 0 < num_steps // per_epoch <= MAX_EPOCHS:
        assert epochs == list(range(per_epoch, num_steps + 1, per_epoch))


def test_the_first_are_the_initial_ones_and_the_last_those_of_the_end() -> None:
    kept, events = heard(spec_of(measure_steps=[2, 99]))
    assert sorted(kept) == [0, 2, 3, 6]
    (started,) = (event for event in events if isinstance(event, Started))
    (ended,) = (event for event in events if isinstance(event, Ended))
    tensors = {
        step: {name: torch.from_numpy(value) for name, value in each.tensors.items()} for step, each in kept.items()
    }
    assert {name: tensor_digest(each) for name, each in tensors[0].items()} == started.digests.init
    assert weights_digest(tensors[6]) == ended.final
    assert all(np.any(kept[2].tensors[name] != kept[3].tensors[name]) for name in kept[0].tensors if "weight" in name)


def test_keeping_them_changes_nothing_of_the_run() -> None:
    without = spec_of(measures=[])
    assert spec_of().run_id == without.run_id
    endings = [[event for event in heard(spec)[1] if isinstance(event, Ended)] for spec in (spec_of(), without)]
    assert endings[0] == endings[1]


def test_a_run_that_diverges_keeps_those_that_it_reached() -> None:
    kept, events = heard(spec_of(lr=1e30, measure_steps=[1], augment="none", padding=0))
    (ended,) = (event for event in events if isinstance(event, Ended))
    assert ended.outcome.status == "diverged"
    assert sorted(kept) == [0, 1, 3]


def test_an_untrained_network_is_kept_once() -> None:
    assert sorted(heard(spec_of(epochs=None, steps=0))[0]) == [0]


def test_the_laboratory_keeps_none_and_the_study_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'weights' is not there for numpy"):
        RunSpec.model_validate({**LAB, "steps": 1, "measures": ["weights"]})
