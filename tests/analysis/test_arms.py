"""The table of arms, and what was controlled between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from depthscope.analysis.controls import Control, controls, differing_fields
from depthscope.analysis.summarise import summarise
from depthscope.analysis.table import Results
from depthscope.record.schema import Digests, Outcome
from depthscope.study.study import Arm

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults, MakeTable


def with_digests(results: Results, arm: str, **digests: Any) -> Results:
    """The same results, with other digests in the records of one arm."""
    records = dict(results.records)
    for row in results.rows:
        if row.cell.arm == arm and row.record is not None:
            found = {**row.record.digests.model_dump(), **digests}
            records[row.cell.run_id] = row.record.model_copy(update={"digests": Digests.model_validate(found)})
    return Results(plan=results.plan, records=records, load_table=results.load_table)


@pytest.fixture
def results(make_results: MakeResults) -> Results:
    return make_results(lambda cell: {"train_accuracy": 0.5 + 0.1 * cell.seed, "train_loss": 1.0})


def test_a_row_for_each_cell(results: Results) -> None:
    rows = summarise(results)
    assert [(row.arm, row.axes["depth"], row.parameters) for row in rows] == [
        ("plain", 2, 102),
        ("plain", 8, 108),
        ("res", 2, 102),
        ("res", 8, 108),
    ]
    first = rows[0]
    assert set(first.estimates) == {"train_accuracy", "train_loss"}
    accuracy = first.estimates["train_accuracy"]
    # mean .6, s .1, half width 4.3027 * .1 / sqrt(3) = .2484
    assert (accuracy.value, accuracy.low, accuracy.high) == pytest.approx((0.6, 0.3516, 0.8484), abs=1e-4)
    assert first.estimates["train_loss"].low is None
    assert (first.cpu_s, first.wall_s, first.steps) == (4.5, 6.0, (10, 10))
    assert (first.num_runs, first.n, first.num_missing, first.num_stopped_early) == (3, 3, 0, 0)


def test_what_did_not_complete_is_counted(make_results: MakeResults, table: MakeTable) -> None:
    values = {
        ("plain", 2): [0.5, "diverged", "failed", None],
        ("plain", 8): [None] * 4,
        ("res", 2): [0.5, 0.6, 0.7, 0.8],
        ("res", 8): ["diverged"] * 4,
    }
    results = make_results(table(values), seeds=4)
    mixed, missing, whole, diverged = summarise(results)
    assert (mixed.n, mixed.num_diverged, mixed.num_failed, mixed.num_missing) == (1, 1, 1, 1)
    assert "3 of 4 values left out" in (mixed.estimates["train_accuracy"].note or "")
    assert (missing.n, missing.cpu_s, missing.parameters, missing.steps, missing.estimates) == (0, None, None, None, {})
    assert (whole.n, whole.cpu_s) == (4, 6.0)
    assert (diverged.n, diverged.num_diverged, diverged.cpu_s) == (0, 4, 6.0)


def test_early_stops(results: Results) -> None:
    records = dict(results.records)
    run_id = results.rows[0].cell.run_id
    outcome = Outcome(status="completed", step=7, stopped_early=True)
    records[run_id] = records[run_id].model_copy(update={"outcome": outcome})
    first = summarise(Results(plan=results.plan, records=records, load_table=results.load_table))[0]
    assert (first.num_stopped_early, first.steps) == (1, (7, 10))


def only(found: tuple[Control, ...]) -> Control:
    """The first of the controls, once all places of the axes are seen to be there."""
    assert len(found) == 2
    return found[0]


def test_a_strict_control(results: Results) -> None:
    found = only(controls(results))
    assert (found.part, found.baseline, found.arm, found.seeds) == ("main", "plain", "res", (0, 1, 2))
    assert found.shared == ("stem.weight", "head.weight")
    assert found.differing == found.only_baseline == found.only_arm == ()
    assert (found.same_data, found.same_order, found.same_augment) == (True, True, True)
    assert (found.paired, found.same_start) == (True, True)
    assert found.fields == ("shortcut",)


def test_tensors_that_differ_on_any_seed(results: Results) -> None:
    init = {"stem.weight": "stem0", "extra.weight": "e"}  # equal on seed 0 alone
    found = only(controls(with_digests(results, "res", init=init)))
    assert (found.shared, found.differing) == ((), ("stem.weight",))
    assert (found.only_baseline, found.only_arm) == (("head.weight",), ("extra.weight",))
    assert found.same_start is False
    assert found.paired is True


@pytest.mark.parametrize(
    ("digests", "paired"),
    [
        ({"data": "other"}, False),
        ({"data": None}, None),
        ({"order": "x"}, None),
        ({"augment": "x"}, None),
        ({"data": "other", "order": "x"}, False),
    ],
)
def test_what_is_not_paired_or_not_known(results: Results, digests: dict[str, Any], paired: bool | None) -> None:
    assert only(controls(with_digests(results, "res", **digests))).paired is paired


def test_orders_are_compared_where_there_are_batches(make_results: MakeResults) -> None:
    base = {
        "backend": "torch",
        "measures": [],
        "family": "cifar_resnet",
        "norm": "batch",
        "activation": "relu",
        "init": "he_fan_in",
    }
    batches = {"data": "images", "batch_size": 10, "padding": 1, "augment": "crop_flip"}
    arms = (Arm(name="plain", set={"shortcut": "none"}), Arm(name="res", set={"shortcut": "A"}))
    results = make_results(lambda cell: {}, base={**base, **batches}, arms=arms, axes={"depth": [8, 14]})
    results = with_digests(with_digests(results, "res", augment="x"), "plain", augment="x")
    assert [each.axes["depth"] for each in controls(results)] == [8, 14]
    assert only(controls(results)).same_order is None  # batches, and no record of their order
    both = with_digests(with_digests(results, "res", order="x"), "plain", order="x")
    assert only(controls(both)).same_order is True
    assert only(controls(with_digests(both, "res", order="y"))).paired is False


def test_a_record_without_digests_is_no_other_start(results: Results) -> None:
    """A run that failed before its tensors were drawn: nothing is known of it."""
    records = dict(results.records)
    failed = next(row for row in results.rows if (row.cell.arm, row.cell.seed) == ("res", 1))
    record = records[failed.cell.run_id]
    outcome = Outcome(status="failed", step=0, reason="out of memory")
    records[failed.cell.run_id] = record.model_copy(update={"outcome": outcome, "digests": Digests(), "summary": {}})
    found = only(controls(Results(plan=results.plan, records=records, load_table=results.load_table)))
    assert (found.seeds, found.num_skipped) == ((0, 2), 1)
    assert found.shared == ("stem.weight", "head.weight")
    assert found.differing == found.only_baseline == found.only_arm == ()
    assert (found.paired, found.same_start) == (True, True)
    assert only(controls(results)).num_skipped == 0


def test_missing_records_say_nothing(make_results: MakeResults) -> None:
    found = only(controls(make_results(lambda cell: None)))
    assert (found.seeds, found.paired, found.same_start, found.fields) == ((), None, None, ("shortcut",))


def test_differing_fields_reach_into_options(results: Results) -> None:
    spec = results.rows[0].spec
    changed = spec.model_copy(
        update={"seed": 5, "lr": 0.5, "optimizer_options": {**spec.optimizer_options, "momentum": 0.5}, "measures": ()}
    )
    assert differing_fields(spec, changed) == ("optimizer_options.momentum", "lr")
