"""A second axis: which of its values lead and main figure speak of; and the page of a study that chooses a value."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.analysis.conftest import record_of

from depthscope.analysis.choosing import candidates
from depthscope.analysis.findings import judge
from depthscope.analysis.headline import headline
from depthscope.analysis.table import Results
from depthscope.report import content, gallery, render
from depthscope.report.estimates import Estimates
from depthscope.report.export import figures
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.selection import is_selection, selection_study
from depthscope.study.study import StudySpec

DOCUMENT: dict[str, Any] = {
    "name": "mine",
    "title": {"en": "Mine"},
    "seeds": 3,
    "base": {
        "backend": "numpy", "family": "mlp", "width": 8, "activation": "relu", "init": "gaussian", "gain": 1.4,
        "data": "spiral", "steps": 40,
    },
    "parts": {
        "main": {
            "axes": {"depth": [2, 8], "lr": [0.01, 0.1, 0.5]},
            "arms": [{"name": "plain"}, {"name": "skip", "set": {"shortcut": "identity"}}],
        }
    },
}  # fmt: skip


def claim(**where: Any) -> dict[str, Any]:
    sides = {key: {"arm": "skip", "where": {"depth": depth, **where}} for key, depth in (("a", "max"), ("b", "min"))}
    return {
        "name": "nd", "kind": "no_degradation", "text": {"en": "x"}, "part": "main", "metric": "train_accuracy",
        "unit": "accuracy", "confirmatory": True, "margin": 0.02, **sides,
    }  # fmt: skip


def accuracy(lr: float, depth: int, seed: int) -> float:
    """Depth costs 1, 10 and 50 points at the three rates."""
    cost = {0.01: 0.01, 0.1: 0.1, 0.5: 0.5}[lr]
    return 0.9 + 0.001 * seed - (cost if depth == 8 else 0.0) * (1 + 0.01 * seed)


def results(*claims: dict[str, Any]) -> Results:
    plan = expand(StudySpec.model_validate({**DOCUMENT, "claims": list(claims)}))
    records = {
        cell.run_id: record_of(
            plan.runs[cell.run_id], {"train_accuracy": accuracy(cell.axes["lr"], cell.axes["depth"], cell.seed)}
        )
        for cell in plan.cells
    }
    return Results(plan=plan, records=records, load_table=lambda run_id, name: None)


@pytest.mark.parametrize(
    ("where", "lr", "cost"), [({"lr": 0.1}, "0.1", "10.1"), ({"lr": "max"}, "0.5", "50.5"), ({}, "0.01", "1.0")]
)
def test_lead_and_figure_stand_where_the_claim_does_and_say_so(where: dict[str, Any], lr: str, cost: str) -> None:
    found = results(claim(**where))
    assert headline(found, (), "en").startswith(
        f"Going from 2 to 8 layers at lr = {lr}, the plain network lost {cost} points"
    )
    assert headline(found, (), "zh").startswith(f"从 2 层加深到 8 层（lr = {lr}），")
    words = Words("en")
    hero = gallery.hero(found, Estimates(found), words)
    assert hero is not None
    (view,) = (view for view in content.views(found, words) if hero.key == f"hero-{view.key}")
    assert str(view.further["lr"]) == lr
    assert hero.about == f"Here learning rate = {lr}."
    assert hero.notes == ("The 2 other values have sections of their own below.",)
    title: dict[str, Any] = figures(found, ())["hero"]["title"]
    assert f"Here learning rate = {lr}." in title["subtitle"]


def test_one_value_of_an_axis_needs_no_name() -> None:
    document = {**DOCUMENT, "parts": {"main": {**DOCUMENT["parts"]["main"], "axes": {"depth": [2, 8], "lr": [0.1]}}}}
    plan = expand(StudySpec.model_validate(document))
    records = {
        cell.run_id: record_of(plan.runs[cell.run_id], {"train_accuracy": accuracy(0.1, cell.axes["depth"], cell.seed)})
        for cell in plan.cells
    }
    found = Results(plan=plan, records=records, load_table=lambda run_id, name: None)
    assert headline(found, (), "en").startswith("Going from 2 to 8 layers, ")
    hero = gallery.hero(found, Estimates(found), Words("en"))
    assert hero is not None
    assert (hero.about, hero.notes) == ("", ())


def selection(missing: int = 0) -> Results:
    """The rate 0.1 wins in arm plain; in arm skip 0.5 has the best mean, yet lost a run, so that 0.01 wins."""
    parts = {"main": {**DOCUMENT["parts"]["main"], "axes": {"depth": [2, 8]}}}
    tuning = {"grid": [0.01, 0.1, 0.5], "validation": 30, "seeds": 2}
    plan = expand(selection_study(StudySpec.model_validate({**DOCUMENT, "parts": parts, "tuning": tuning})))
    means = {"plain": {0.01: 0.5, 0.1: 0.8, 0.5: 0.6}, "skip": {0.01: 0.7, 0.1: 0.4, 0.5: 0.9}}
    records = {}
    for cell in plan.cells[missing:]:
        figures: Any = {
            "validation_accuracy": means[cell.arm][cell.axes["lr"]] + 0.01 * (cell.seed - 10_000.5),
            "train_accuracy": 0.9,
        }
        if (cell.arm, cell.axes["lr"], cell.seed, cell.axes["depth"]) == ("skip", 0.5, 10_000, 8):
            figures = "diverged"
        records[cell.run_id] = record_of(plan.runs[cell.run_id], figures)
    return Results(plan=plan, records=records, load_table=lambda run_id, name: None)


def test_a_selection_leads_with_what_won() -> None:
    found = selection()
    assert is_selection(found.study)
    assert [each.choice.value for each in candidates(found) if each.choice] == [0.1, 0.01]
    assert headline(found, (), "en") == (
        "Chosen for each arm by mean validation accuracy, lr of: plain, 0.1 (80.0%); skip, 0.01 (70.0%)."
    )
    assert headline(found, (), "zh") == "按验证准确率的均值为各组选定的 lr：plain，0.1（80.0%）；skip，0.01（70.0%）。"
    assert gallery.hero(found, Estimates(found), Words("en")) is None
    page = render(found, judge(found), command="x").decode()
    shown = page[page.index('<section id="tuned">') : page.index('<section id="part-main-0">')]
    assert "Which lr won" in shown
    text = re.sub(r"<[^>]+>", " ", shown)
    assert re.search(r"plain.*0\.1\s+\(80\.0%\).*skip.*0\.01\s+\(70\.0%\)", text, re.DOTALL)
    assert "1 of 12 runs ended without a figure" in text


def test_a_selection_that_is_not_done_chooses_nothing() -> None:
    found = selection(missing=1)
    assert headline(found, (), "en").startswith(
        "Chosen for each arm by mean validation accuracy, lr of: plain, not chosen yet (missing runs: 1); skip, 0.01"
    )
    assert "Not chosen yet; missing runs: 1." in render(found, (), command="x").decode()


def test_an_ordinary_study_with_the_axis_is_no_selection() -> None:
    assert not is_selection(results().study)
    assert candidates(results()) == ()
