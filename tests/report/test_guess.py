"""The line at chance in figures of losses: of the records, where they tell it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.analysis.conftest import record_of

from depthscope.analysis.table import Results
from depthscope.report import content, gallery
from depthscope.report.content import View
from depthscope.report.estimates import Estimates
from depthscope.report.guess import chance_losses, loss_reference, reference
from depthscope.report.words import Words
from depthscope.study.expand import Cell, expand
from depthscope.study.study import StudySpec

LN3 = math.log(3)
NUMPY = {"backend": "numpy", "family": "mlp", "data": "spiral", "gain": 0.72}
TORCH = {"backend": "torch", "family": "mlp", "data": "identity_task"}
RECURRENT = {"backend": "torch", "family": "recurrent", "data": "copy", "model_options": {"readout": "each"}}
GPT = {"backend": "torch", "family": "gpt", "data": "names", "init": "gpt2"}


def results_of(base: dict[str, Any], chance: Callable[[Cell], float | None]) -> Results:
    """Two depths and two seeds of one arm, whose records tell this loss at chance."""
    start = {"width": 8, "activation": "tanh", "init": "gaussian", "steps": 10}
    document = {
        "name": "made-up",
        "title": {"en": "Made up"},
        "seeds": 2,
        "base": {**start, **base},
        "parts": {"main": {"axes": {"depth": [2, 8]}, "arms": [{"name": "plain"}]}},
    }
    plan = expand(StudySpec.model_validate(document))
    records = {
        cell.run_id: record_of(plan.runs[cell.run_id], {"train_loss": 0.9 + 0.01 * cell.seed}, chance_loss=chance(cell))
        for cell in plan.cells
    }
    return Results(plan=plan, records=records, load_table=lambda run_id, name: None)


def view_of(base: dict[str, Any], chance: Callable[[Cell], float | None]) -> View:
    (view,) = content.views(results_of(base, chance), Words("en"))
    return view


@pytest.mark.parametrize(
    ("base", "english", "chinese"),
    [
        (NUMPY, "a guess, 1.099", "随机猜测，1.099"),
        (TORCH, "answering the mean, 1.099", "总是回答均值，1.099"),
        (GPT, "entropy of single characters, 1.099", "单个字符的熵，1.099"),
    ],
)
def test_the_line_says_what_chance_is(base: dict[str, Any], english: str, chinese: str) -> None:
    view = view_of(base, lambda cell: LN3)
    line = loss_reference(view, Words("en"))
    assert line is not None
    assert (line.name, dict(line.levels)) == (english, {2: LN3, 8: LN3})
    other = loss_reference(view, Words("zh"))
    assert other is not None
    assert other.name == chinese


def test_by_depth_it_is_a_line_without_one_value() -> None:
    def of(cell: Cell) -> float:
        return float(10 * math.log(8) / (cell.axes["depth"] + 20))

    line = reference(view_of(RECURRENT, of), "train_loss", Words("en"))
    assert line is not None
    assert line.name == "a guess"
    assert line.levels == {2: 10 * math.log(8) / 22, 8: 10 * math.log(8) / 28}


def test_where_each_seed_draws_data_of_its_own_the_mean_stands() -> None:
    assert chance_losses(view_of(TORCH, lambda cell: 0.2 + 0.02 * cell.seed)) == {
        2: pytest.approx(0.21),
        8: pytest.approx(0.21),
    }


def test_old_records_have_no_line_and_no_figure_but_of_training_has_one() -> None:
    assert chance_losses(view_of(NUMPY, lambda cell: None)) == {}
    assert chance_losses(view_of(NUMPY, lambda cell: LN3 if cell.axes["depth"] == 2 else None)) == {}
    view = view_of(NUMPY, lambda cell: LN3)
    assert reference(view, "train_loss", Words("en")) is not None
    assert reference(view, "test_loss", Words("en")) is None
    accuracy = reference(view, "train_accuracy", Words("en"))
    assert accuracy is None or accuracy.name.startswith("chance")


def test_the_figure_of_the_training_loss_has_the_line() -> None:
    results = results_of(NUMPY, lambda cell: 0.9)
    (view,) = content.views(results, Words("en"))
    (block,) = gallery.blocks(results, view, Estimates(results), Words("en"))
    (panel,) = block.panels
    chart: Any = panel.draw()
    assert "a guess, 0.900" in str(chart.to_dict()["datasets"])
