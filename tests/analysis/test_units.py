"""The unit of a loss is nats where classes are asked for; a squared error has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from depthscope.analysis.diagnosis import diagnose
from depthscope.analysis.summarise import summarise
from depthscope.analysis.table import Results
from depthscope.analysis.units import squared, unit_in

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults

TORCH: dict[str, Any] = {"backend": "torch", "measures": [], "gain": 1.0}


def of(make_results: MakeResults, data: str, **base: Any) -> Results:
    """Results whose runs say a loss alone."""
    return make_results(lambda cell: {"train_loss": 0.1 * cell.seed + cell.axes["depth"]}, base={"data": data, **base})


def test_the_loss_of_classes_is_in_nats(make_results: MakeResults) -> None:
    rows = of(make_results, "spiral").rows
    assert not squared(rows)
    assert unit_in(rows, "train_loss") == "nats"
    assert unit_in(rows, "train_accuracy") == "accuracy"
    assert unit_in(rows, "dh_factor_first") == ""


def test_a_squared_error_has_no_unit_in_the_table_nor_in_the_diagnosis(make_results: MakeResults) -> None:
    results = of(make_results, "identity_task", **TORCH)
    assert squared(results.rows)
    assert unit_in(results.rows, "train_loss") == unit_in(results.rows, "train_loss_running") == ""
    assert {cell.estimates["train_loss"].unit for cell in summarise(results)} == {""}
    told = [each.diagnosis for each in diagnose(results)]
    assert told
    assert not any("nats" in text for each in told for text in each.text.values())
    in_nats = [each.diagnosis for each in diagnose(of(make_results, "spiral"))]
    assert all("nats" in each.text["en"] for each in in_nats)


def test_of_the_users_own_data_the_record_tells(make_results: MakeResults) -> None:
    own = {"data": "own.module:make", **TORCH}
    numbers = make_results(lambda cell: {"train_loss": 1.0}, base=own)
    classes = make_results(lambda cell: {"train_loss": 1.0, "train_accuracy": 0.5}, base=own)
    assert unit_in(numbers.rows, "train_loss") == ""
    assert unit_in(classes.rows, "train_loss") == "nats"
