"""A deep run that begins with a trained shallower network: equal at the start; its training nested, kept, resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.train.short import TRAINED

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Progress, SafePoint, Started, State
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.shallow import drawn_spec, shallow_spec
from depthscope.train.start import run_task

pytest.importorskip("torch")
from depthscope.train import constructed

DEEP: dict[str, Any] = {**TRAINED, "depth": 20, "init": "constructed", "init_options": {"from_depth": 8}, "lr": 0.05}
SPIRAL: dict[str, Any] = {
    "backend": "torch",
    "family": "mlp",
    "depth": 12,
    "width": 8,
    "norm": "batch",
    "activation": "relu",
    "init": "constructed",
    "init_options": {"from_depth": 5},
    "data": "spiral",
    "lr": 0.02,
    "steps": 15,
}


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    constructed._KEPT.clear()


def made(fields: Mapping[str, Any], **options: Any) -> RunSpec:
    return RunSpec.model_validate({**fields, "init_options": {**fields["init_options"], **options}})


def events(spec: RunSpec, states: Mapping[str, State] | None = None) -> list[Any]:
    return list(run_task(Task((spec,)), Context(), states or {}))


def end(found: list[Any]) -> Ended:
    (ended,) = [each for each in found if isinstance(each, Ended)]
    return ended


def nested(found: list[Any]) -> int:
    return sum(isinstance(each, Progress) and each.text.startswith("first the network of") for each in found)


@pytest.mark.parametrize("fields", [DEEP, SPIRAL], ids=["images", "spiral"])
def test_it_starts_where_the_shallow_run_of_the_same_recipe_ends(fields: dict[str, Any]) -> None:
    spec = made(fields)
    shallow = shallow_spec(spec)
    assert (shallow.depth, shallow.init, shallow.seed) == (fields["init_options"]["from_depth"], "he_fan_in", 0)
    alone = end(events(shallow)).summary
    found = events(spec)
    summary = end(found).summary
    assert summary["train_loss_start"] == pytest.approx(alone["train_loss"], abs=1e-5)
    assert summary["train_accuracy_start"] == alone["train_accuracy"]
    assert summary["construction_loss_change"] == summary["train_loss_start"] - alone["train_loss"]
    assert summary["construction_accuracy_change"] == 0
    assert summary["train_loss"] != pytest.approx(alone["train_loss"], abs=1e-4)
    (started,) = [each for each in found if isinstance(each, Started)]
    drawn = next(each for each in events(drawn_spec(spec)) if isinstance(each, Started))
    assert started.digests.init.keys() == drawn.digests.init.keys()
    assert started.digests.init["head.weight"] != drawn.digests.init["head.weight"]
    assert (started.digests.order, started.digests.augment) == (drawn.digests.order, drawn.digests.augment)


def test_with_the_full_batch_it_is_equal_in_training_mode_too_and_with_batches_it_is_not() -> None:
    spiral, images = (end(events(made(fields))).summary for fields in (SPIRAL, DEEP))
    assert spiral["train_loss_start_batch"] == pytest.approx(spiral["train_loss_start"], abs=1e-5)
    assert spiral["train_loss_first"] == pytest.approx(spiral["train_loss_start"], abs=1e-5)
    assert abs(images["train_loss_start_batch"] - images["train_loss_start"]) > 1e-3


def test_arms_from_the_same_shallow_run_train_it_once_and_go_on_at_their_own_rates() -> None:
    stepped = {**DEEP, "schedule": "step", "schedule_options": {"milestones": [0.5], "factor": 0.1}, "warmup_steps": 2}
    first, second = (events(made(stepped, at_last_lr=last)) for last in (False, True))
    assert nested(first) > 0
    assert nested(second) == 0
    assert end(first).summary["train_loss_start"] == end(second).summary["train_loss_start"]
    rates = [
        [value for each in found if getattr(each, "table", "") == "metrics" for value in rates_of(each.columns)]
        for found in (first, second)
    ]
    assert rates[0] == pytest.approx([0.025, 0.05, 0.05, 0.005, 0.005, 0.005])
    assert rates[1] == pytest.approx([0.005] * 6)


def rates_of(columns: Mapping[str, list[Any]]) -> list[float]:
    return [value for quantity, value in zip(columns["quantity"], columns["value"], strict=True) if quantity == "lr"]


def test_resumed_it_trains_no_shallow_network_and_ends_in_the_same_bits() -> None:
    spec = made(DEEP)
    whole = end(events(spec))
    task = run_task(Task((spec,)), Context())
    state = next(point.take()[0] for point in task if isinstance(point, SafePoint) and point.step == 4)
    constructed._KEPT.clear()
    rest = events(spec, {spec.run_id: state})
    assert nested(rest) == 0
    assert end(rest).final == whole.final is not None
    assert end(rest).summary == whole.summary


def test_a_shallow_network_that_diverges_is_the_outcome() -> None:
    outcome = end(events(made({**DEEP, "lr": 1e9}))).outcome
    assert (outcome.status, outcome.step) == ("diverged", 0)
    assert outcome.reason is not None
    assert outcome.reason.startswith("the shallower network of 8 layers did not train; training loss")


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"init_options": {"from_depth": 20}}, "init_options.from_depth", "wanted less than the depth, 20; got 20."),
        ({"init_options": {"from_depth": 9}}, "init_options.from_depth", "depth 9 is not 6n+2"),
        ({"init_options": {"from_depth": 8, "init": "he"}}, "init_options.init", "not 'he'."),
        ({"init_options": {"from_depth": 8, "init": "constructed"}}, "init_options.init", "not 'constructed'."),
        ({"shortcut": "A"}, "shortcut", "'constructed' takes 'none', not 'A'."),
        ({"activation": "tanh"}, "activation", "'constructed' takes 'relu' or 'linear', not 'tanh'."),
        ({"norm": "layer"}, "norm", "'constructed' takes 'batch' or 'none' or 'fixup', not 'layer'."),
        ({"family": "own.code:net"}, "init", "use another init."),
    ],
)
def test_what_has_no_construction_is_refused_before_it_runs(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValueError, match="1 validation error") as caught:
        RunSpec.model_validate({**DEEP, **changes})
    assert field in str(caught.value)
    assert message in str(caught.value)
    assert not isinstance(caught.value, UserError)
