"""Losses and hits of each kind of answer, held to loops written plainly; and what a whole run makes of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.train.tasks import LETTERS, NUMBERS, letters, numbers

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from depthscope.data.dataset import IGNORED  # noqa: E402
from depthscope.record.events import Ended, Progress, Rows, SafePoint, Started  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context, load_data  # noqa: E402
from depthscope.train.feed import Feed  # noqa: E402
from depthscope.train.measure import diverged_at  # noqa: E402
from depthscope.train.network import make_network  # noqa: E402
from depthscope.train.objective import Labels, Positions, Targets, judged, objective_of, summed  # noqa: E402
from depthscope.train.optim import make_optimizer  # noqa: E402
from depthscope.train.passes import clean_pass  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402


def surprise(logits: Any, label: int) -> float:
    return math.log(sum(math.exp(each) for each in logits)) - float(logits[label])


def test_a_label_an_example_is_torchs_own_cross_entropy_to_the_bit() -> None:
    output, y = torch.randn(9, 5), torch.arange(9) % 5
    objective = Labels(math.log(5))
    assert torch.equal(objective.loss(output, y), torch.nn.CrossEntropyLoss()(output, y))
    assert objective.num(y) == 9
    assert int(objective.hits(output, y)) == sum(
        int(row.argmax()) == label for row, label in zip(output, y.tolist(), strict=True)
    )
    # Whatever the start: a cross entropy that begins at 40,000 nats is out of bounds there.
    assert objective.bound(40_000.0) == Positions(math.log(5)).bound(0.1) == 1e3 * math.log(5)


def test_a_label_a_position_counts_only_where_something_is_asked() -> None:
    output = torch.randn(2, 3, 4, dtype=torch.float64)
    y = torch.tensor([[2, IGNORED, 0], [IGNORED, IGNORED, 3]])
    asked = [(output[0, 0], 2), (output[0, 2], 0), (output[1, 2], 3)]
    wanted = [surprise(row.tolist(), label) for row, label in asked]
    objective = Positions(math.log(4))
    assert float(objective.loss(output, y)) == pytest.approx(sum(wanted) / 3, rel=1e-12)
    assert float(objective.total(output, y)) == pytest.approx(sum(wanted), rel=1e-12)
    assert int(objective.num(y)) == 3
    right = sum(int(row.argmax()) == label for row, label in asked)
    assert int(objective.hits(output, y)) == right
    assert judged(objective, output, y) == {"loss": pytest.approx(sum(wanted) / 3), "accuracy": right / 3}
    total, hits, num = summed(objective, output, y)
    assert (hits, num) == (right, 3)
    assert total == pytest.approx(sum(wanted))


def test_targets_have_a_squared_error_and_no_accuracy() -> None:
    output, y = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 2.0], [3.0, -1.0]])
    objective = Targets(0.25)
    assert float(objective.loss(output, y)) == (1 + 0 + 9 + 1) / 4
    assert judged(objective, output, y) == {"loss": 11 / 4}
    assert summed(objective, output, y) == (11.0, None, 4)


def test_targets_are_bounded_by_the_greater_of_a_guess_and_the_start() -> None:
    objective = Targets(0.25)
    assert objective.bound(0.01) == objective.bound(math.nan) == objective.bound(math.inf) == 250.0
    assert objective.bound(600.0) == 600_000.0
    assert (Targets(0.0).bound(2.0), Targets(0.0).bound(0.0)) == (2_000.0, math.inf)
    assert diverged_at([600.0, 5e5, 6.1e5], objective.bound(600.0)) == 2
    assert diverged_at([math.inf], objective.bound(math.inf)) == diverged_at([math.inf], math.inf) == 0


def test_each_data_set_has_its_own() -> None:
    assert objective_of(letters(0)) == Positions(math.log(4))
    assert objective_of(numbers(0)) == Targets(numbers(0).chance_loss)
    spiral = load_data(RunSpec.model_validate({**LETTERS, "data": "spiral", "steps": 1}), Context())
    assert isinstance(objective_of(spiral), Labels)


def done(fields: dict[str, Any]) -> tuple[RunSpec, list[Any]]:
    spec = RunSpec.model_validate(fields)
    return spec, [event for event in run_task(Task((spec,)), Context()) if not isinstance(event, SafePoint)]


def ended(events: list[Any]) -> Ended:
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome.status == "completed", events[-1].outcome.reason
    return events[-1]


def naive(model: Any, x: Tensor, y: Tensor) -> tuple[list[float], list[bool]]:
    """(surprise, right) of every asked position of a split, one by one."""
    with torch.no_grad():
        logits = model(x)
    asked = [(row, at) for row in range(len(y)) for at in range(y.shape[1]) if int(y[row, at]) != IGNORED]
    found = [(logits[row, at].tolist(), int(y[row, at])) for row, at in asked]
    return [surprise(*each) for each in found], [int(np.argmax(row)) == label for row, label in found]


def test_an_epochs_loss_weighs_each_batch_by_the_answers_that_it_asks() -> None:
    spec, events = done({**LETTERS, "epochs": 2, "measures": ["layers", "lesion"]})
    # The same updates, written plainly.
    data = load_data(spec, Context())
    feed = Feed(data, spec, "cpu", torch.float32)
    model, _ = make_network(spec, data)
    optimizer = make_optimizer(spec, model)
    for epoch in range(2):
        surprises: list[float] = []
        hits: list[bool] = []
        sizes = []
        for x, y in feed.epoch(epoch):
            found = naive(model, x, y)
            surprises, hits = surprises + found[0], hits + found[1]
            sizes.append(len(found[0]))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x).transpose(1, 2), y, ignore_index=IGNORED).backward()
            optimizer.step()
        assert sizes[0] * 4 != sizes[2] * 8, "batches of 8, 8 and 4 examples were to ask unequally much"
    summary = ended(events).summary
    assert summary["train_loss_running"] == pytest.approx(sum(surprises) / len(surprises), rel=1e-5)
    assert summary["train_accuracy_running"] == sum(hits) / len(hits)
    for name, split in (("train", feed.train), ("test", feed.test)):
        assert split is not None
        losses, right = naive(model.eval(), *split)
        assert summary[f"{name}_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)
        assert summary[f"{name}_accuracy"] == pytest.approx(sum(right) / len(right))
    examples = [event.examples for event in events if isinstance(event, Progress)]
    assert examples == [20, 40], "examples, and not answers"
    rows = {
        (quantity, layer)
        for event in events
        if isinstance(event, Rows) and event.table == "layers"
        for quantity, layer in zip(event.columns["quantity"], event.columns["name"], strict=True)
    }
    assert {("dh_norm", "table"), ("lesion_accuracy", "blocks.0.one"), ("block_lesion_loss", "blocks.0.two")} <= rows
    assert ("block_lesion_loss", "blocks.0.one") not in rows


def test_a_split_is_evaluated_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec.model_validate({**LETTERS, "epochs": 1})
    data = load_data(spec, Context())
    model, _ = make_network(spec, data)
    x, y = Feed(data, spec, "cpu", torch.float32).train
    whole = clean_pass(model, x, y, spec, objective_of(data))
    monkeypatch.setattr("depthscope.train.twin.EVAL_BATCH", 3)
    assert clean_pass(model, x, y, spec, objective_of(data)) == pytest.approx(whole, rel=1e-12)


def test_numbers_have_no_accuracy_anywhere() -> None:
    fields = {**NUMBERS, "epochs": 200, "measures": ["layers", "tests.train.tasks:biggest"]}
    _, events = done({**fields, "precision": "float64"})
    summary = ended(events).summary
    assert not [name for name in summary if "accuracy" in name]
    quantities = {each for event in events if isinstance(event, Rows) for each in event.columns.get("quantity", [])}
    assert {"loss", "lr", "dh_norm", "biggest.weight"} <= quantities
    assert "accuracy" not in quantities
    texts = [event.text for event in events if isinstance(event, Progress) and event.text]
    assert texts[0].startswith("epoch 1: loss ")
    assert "accuracy" not in texts[0]
    # The sums are linear in what it sees.
    assert summary["train_loss"] < 1e-3 < 0.5 < summary["train_loss_first"]
    (started,) = [event for event in events if isinstance(event, Started)]
    y = numbers(0).train.y
    assert started.chance_loss == pytest.approx(float(((y - y.mean(0)) ** 2).mean()))


def test_numbers_diverge_above_a_thousand_times_the_loss_that_they_began_with() -> None:
    spec, events = done({**NUMBERS, "optimizer": "sgd", "lr": 2.0, "epochs": 3})
    data = load_data(spec, Context())
    feed, (model, _) = Feed(data, spec, "cpu", torch.float32), make_network(spec, data)
    optimizer, losses = make_optimizer(spec, model), []
    for x, y in (batch for epoch in range(3) for batch in feed.epoch(epoch)):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (step,) = [at for at in range(9) if losses[at] > 1e3 * losses[0] >= max(losses[:at])]
    # In the second epoch: it is held to the first batch of the run, and not to that of the epoch.
    assert 3 < step < 6
    assert losses[0] > data.chance_loss
    assert losses[step] < 1e3 * losses[3]
    outcome = events[-1].outcome
    assert (outcome.status, outcome.step) == ("diverged", step)
    assert f"training loss {losses[step]:.4g}"[:-1] in str(outcome.reason)


def test_a_start_a_thousand_times_worse_than_a_guess_is_trained() -> None:
    """A residual RNN adds at each of a hundred steps: what its head reads is large, and no reason to stop."""
    fields = {**NUMBERS, "family": "recurrent", "data": "adding", "depth": 100, "width": 32, "activation": "tanh"}
    fields |= {"model_options": {"cell": "residual_rnn"}, "init": "orthogonal", "lr": 1e-3, "clip": "norm"}
    fields |= {"data_options": {"num_train": 16, "num_test": 0}, "steps": 3}
    spec, events = done(fields)
    assert ended(events).summary["train_loss_first"] > 1e3 * load_data(spec, Context()).chance_loss


def test_tokens_and_targets_are_taken_as_they_are() -> None:
    spec = RunSpec.model_validate({**NUMBERS, "epochs": 1})
    x, y = Feed(load_data(spec, Context()), spec, "cpu", torch.float64).train
    assert x.numpy().tobytes() == numbers(0).train.x.tobytes()
    assert y.numpy().tobytes() == numbers(0).train.y.tobytes()
    spec = RunSpec.model_validate({**LETTERS, "epochs": 1})
    x, y = Feed(load_data(spec, Context()), spec, "cpu", torch.float32).train
    assert (x.dtype, y.dtype) == (torch.int64, torch.int64)
