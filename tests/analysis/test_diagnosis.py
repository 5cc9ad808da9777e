"""Degradation, overfitting and divergence, told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from depthscope.analysis.diagnosis import Diagnosis, Side, diagnose, tell_apart

if TYPE_CHECKING:
    from tests.analysis.conftest import Figures, MakeResults

    from depthscope.study.expand import Cell

UP, DOWN, FLAT, NONE = [0.2, 0.25, 0.3], [-0.2, -0.25, -0.3], [0.3, -0.3, 0.1], [0.0, 0.0, 0.0]


def diagnosed(changes: dict[str, list[float]], deep_statuses: list[str] | None = None) -> Diagnosis:
    """The diagnosis of changes by seed, over shallow figures of which each seed has its own."""
    base = [0.5, 2.5, 1.5]
    shallow = Side(
        statuses=dict.fromkeys(range(3), "completed"),
        figures={metric: dict(enumerate(base)) for metric in changes},
    )
    figures: dict[str, dict[int, float | None]] = {
        metric: {seed: base[seed] + change for seed, change in enumerate(values)} for metric, values in changes.items()
    }
    statuses = dict(enumerate(deep_statuses or ["completed"] * 3))
    for seed, status in statuses.items():
        if status != "completed":
            for column in figures.values():
                column[seed] = None
    return tell_apart(shallow, Side(statuses=statuses, figures=figures))


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("degradation", {"train_loss": UP, "test_accuracy": DOWN}),
        ("degradation", {"train_loss": UP, "test_accuracy": UP}),
        ("degradation", {"train_accuracy": DOWN}),
        ("degradation", {"train_loss": FLAT, "train_accuracy": DOWN}),
        ("degradation", {"train_loss_running": UP}),
        ("overfitting", {"train_loss": DOWN, "test_accuracy": DOWN}),
        ("overfitting", {"train_accuracy": NONE, "test_accuracy": DOWN}),
        ("overfitting", {"train_loss": DOWN, "test_loss": UP}),
        ("none", {"train_loss": DOWN, "test_accuracy": UP}),
        ("none", {"train_loss": DOWN, "test_accuracy": UP, "test_loss": UP}),
        ("none", {"train_accuracy": NONE}),
        ("undecided", {"train_loss": FLAT, "test_accuracy": DOWN}),
        ("undecided", {"train_loss": DOWN, "test_accuracy": FLAT}),
        ("undecided", {"train_loss": UP, "train_accuracy": UP}),
        ("undecided", {"test_accuracy": DOWN}),
        ("undecided", {}),
    ],
)
def test_the_rule(kind: str, changes: dict[str, list[float]]) -> None:
    found = diagnosed(changes)
    assert found.kind == kind
    assert set(found.text) == {"en", "zh"}


def test_a_fit_that_test_data_cannot_judge_is_said() -> None:
    found = diagnosed({"train_loss": DOWN, "test_accuracy": FLAT})
    assert found.kind == "undecided"
    assert "fits its training data at least as well" in found.text["en"]
    assert "对训练数据的拟合不差" in found.text["zh"]


def test_divergence_of_half_or_more_comes_first() -> None:
    found = diagnosed({"train_loss": UP}, ["diverged", "diverged", "completed"])
    assert found.kind == "divergence"
    assert "2 of 3 deep runs diverged" in found.text["en"]
    assert "3 次深层运行中有 2 次发散" in found.text["zh"]


def test_a_lone_divergence_is_told_and_the_others_judged() -> None:
    found = diagnosed({"train_loss": UP}, ["diverged", "completed", "completed"])
    assert found.kind == "undecided"  # two seeds .05 apart: the interval spans 0
    assert "1 of 3 deep runs diverged" in found.text["en"]


def test_missing_runs_do_not_hide_divergence() -> None:
    assert diagnosed({"train_loss": UP}, ["diverged", "missing", "missing"]).kind == "divergence"


def test_one_seed_decides_nothing() -> None:
    found = diagnosed({"train_loss": UP}, ["completed", "failed", "failed"])
    assert found.kind == "undecided"
    assert "1 seed, no interval" in found.text["en"]


def test_differences_are_paired_by_seed() -> None:
    """The shallow figures scatter by 2, ten times the change: unpaired, nothing could be told."""
    found = diagnosed({"train_loss": UP})
    assert found.evidence[0].values == pytest.approx((0.2, 0.25, 0.3))


def test_text_is_made_of_the_numbers() -> None:
    found = diagnosed({"train_loss": UP, "train_accuracy": DOWN})
    assert found.text["en"] == (
        "Degradation: the deeper network fits its own training data worse (training loss +0.250 nats "
        "[95% CI 0.126 to 0.374, 3 seeds]; training accuracy −25.0 points [95% CI −37.4 to −12.6, 3 seeds])."
    )
    assert found.text["zh"] == (
        "退化：更深的网络对自己的训练数据拟合得更差（训练损失 +0.250 nats [95% CI 0.126 至 0.374，3 个种子]；"
        "训练准确率 −25.0 个百分点 [95% CI −37.4 至 −12.6，3 个种子]）。"
    )


def test_diagnose_along_the_depth_axis_of_each_arm(make_results: MakeResults) -> None:
    def figures(cell: Cell) -> Figures:
        depth, seed = cell.axes["depth"], cell.seed
        if cell.arm == "plain":
            return {"train_loss": 1.0 + 0.1 * depth + 0.01 * seed * depth}
        return "diverged" if depth == 8 else {"train_loss": 1.0 + 0.01 * seed}

    plain, res = diagnose(make_results(figures, axes={"depth": [2, 4, 8]}))
    assert (plain.part, plain.arm, plain.shallow, plain.deep, dict(plain.axes)) == ("main", "plain", 2, 8, {})
    assert plain.diagnosis.kind == "degradation"
    assert (res.arm, res.diagnosis.kind) == ("res", "divergence")


def test_other_axes_are_kept_apart_and_untrained_runs_left_out(make_results: MakeResults) -> None:
    def figures(cell: Cell) -> Figures:
        return {"train_loss": 1.0 + 0.01 * cell.seed + (cell.axes["width"] == 16) * 0.1 * cell.axes["depth"]}

    axes: dict[str, Any] = {"depth": [2, 8], "width": [8, 16]}
    found = diagnose(make_results(figures, axes=axes))
    kinds = [(each.arm, each.axes["width"], each.diagnosis.kind) for each in found]
    assert kinds == [
        ("plain", 8, "none"),
        ("plain", 16, "degradation"),
        ("res", 8, "none"),
        ("res", 16, "degradation"),
    ]
    assert diagnose(make_results(figures, axes=axes, base={"steps": 0})) == ()
    assert diagnose(make_results(lambda cell: {}, axes={}, base={"depth": 4})) == ()
