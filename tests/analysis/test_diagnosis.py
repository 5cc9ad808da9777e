"""Degradation, overfitting and divergence, told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from depthscope.analysis.diagnosis import Diagnosis, Side, diagnose, tell_apart
from depthscope.analysis.table import Results
from depthscope.record.schema import Outcome

if TYPE_CHECKING:
    from tests.analysis.conftest import Figures, MakeResults

    from depthscope.study.expand import Cell

UP, DOWN, FLAT = [0.2, 0.25, 0.3], [-0.2, -0.25, -0.3], [0.3, -0.3, 0.1]
NONE, FEW, DOWN_7 = [0.0] * 7, [0.0] * 5, [-0.2, -0.25, -0.3, -0.22, -0.21, -0.26, -0.28]


def diagnosed(changes: dict[str, list[float]], deep_statuses: list[str] | None = None) -> Diagnosis:
    """The diagnosis of changes by seed, over shallow figures of which each seed has its own."""
    num = len(next(iter(changes.values()), UP))
    base = [0.5, 2.5, 1.5, 1.25, 0.75, 2.0, 1.0][:num]
    shallow = Side(
        statuses=dict.fromkeys(range(num), "completed"),
        figures={metric: dict(enumerate(base)) for metric in changes},
    )
    figures: dict[str, dict[int, float | None]] = {
        metric: {seed: base[seed] + change for seed, change in enumerate(values)} for metric, values in changes.items()
    }
    statuses = dict(enumerate(deep_statuses or ["completed"] * num))
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
        ("overfitting", {"train_accuracy": NONE, "test_accuracy": DOWN_7}),
        ("undecided", {"train_accuracy": FEW, "test_accuracy": DOWN_7[:5]}),
        ("overfitting", {"train_loss": DOWN, "test_loss": UP}),
        ("none", {"train_loss": DOWN, "test_accuracy": UP}),
        ("none", {"train_loss": DOWN, "test_accuracy": UP, "test_loss": UP}),
        ("none", {"train_accuracy": NONE}),
        ("none", {"train_accuracy": NONE, "test_accuracy": NONE}),
        ("undecided", {"train_accuracy": FEW}),
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
    assert "not finite, or above 1000 times that of a guess" in found.text["en"]
    assert "高于随机猜测的 1000 倍" in found.text["zh"]
    assert "2 of 3 deep runs diverged" in found.text["en"]
    assert "3 次深层运行中有 2 次发散" in found.text["zh"]


@pytest.mark.parametrize(
    ("shallow", "deep", "kind"),
    [
        (["diverged"] * 3, ["diverged"] * 3, "recipe"),
        (["diverged", "diverged", "completed"], ["diverged"] * 3, "recipe"),
        (["diverged", "missing", "missing"], ["diverged", "completed", "missing"], "recipe"),
        (["diverged", "completed", "completed"], ["diverged"] * 3, "divergence"),
        (["completed"] * 3, ["diverged"] * 3, "divergence"),
        (["diverged"] * 3, ["completed"] * 3, "undecided"),
    ],
)
def test_a_recipe_that_diverges_at_both_depths_is_no_effect_of_depth(
    shallow: list[str], deep: list[str], kind: str
) -> None:
    made = [Side(statuses=dict(enumerate(each)), figures={}) for each in (shallow, deep)]
    found = tell_apart(made[0], made[1])
    assert found.kind == kind
    assert ("the recipe diverges at both depths, which is no effect of depth" in found.text["en"]) == (kind == "recipe")
    assert ("在两种深度下都发散" in found.text["zh"]) == (kind == "recipe")


@pytest.mark.parametrize("changes", [[0.2, 0.2001], [-0.2, -0.2001], [0.2]])
def test_two_pairs_decide_nothing(changes: list[float]) -> None:
    """.2 and .2001: a t interval of two that is far from 0, and still two."""
    found = diagnosed({"train_loss": changes})
    assert found.kind == "undecided"
    assert "fewer than 3 seeds have results at both depths" in found.text["en"]
    assert "不足 3 个" in found.text["zh"]
    assert diagnosed({"train_loss": [0.2, 0.2001, 0.2002]}).kind == "degradation"


def test_the_text_says_which_training_loss() -> None:
    running = diagnosed({"train_loss_running": UP})
    assert "training loss (running mean of the last epoch) +0.250 nats" in running.text["en"]
    assert "训练损失（最后一个 epoch 的运行平均）" in running.text["zh"]


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
        "Degradation: the deeper network fits its own training data worse (training loss (clean pass after "
        "the last step) +0.250 nats [97.5% CI 0.071 to 0.429, 3 seeds]; training accuracy (clean pass after the last "
        "step) −25.0 points [97.5% CI −42.9 to −7.1, 3 seeds]; 97.5%: loss and accuracy are two chances to find harm, "
        "corrected by Bonferroni). Whether a larger budget would help is not told: "
        "fewer than 3 seeds have the curves of both depths."
    )
    assert found.text["zh"] == (
        "退化：更深的网络对自己的训练数据拟合得更差（训练损失（最后一步之后的完整评估） "
        "+0.250 nats [97.5% CI 0.071 至 0.429，3 个种子]；"
        "训练准确率（最后一步之后的完整评估） −25.0 个百分点 [97.5% CI −42.9 至 −7.1，3 个种子]；"
        "97.5%：损失与准确率是发现危害的两次机会，按 Bonferroni 校正）。"
        "更大的预算是否有帮助无从判断：两种深度都有曲线的种子不足 3 个。"
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
        width, depth = cell.axes["width"], cell.axes["depth"]
        return {"train_loss": 1.0 + 0.01 * cell.seed * depth + (0.1 if width == 16 else -0.1) * depth}

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


def sides(
    shallow: dict[str, list[float | None]], deep: dict[str, list[float | None]], stopped: tuple[int, int] = (0, 0)
) -> tuple[Side, Side]:
    """Two sides whose runs all completed, and how many of each stopped early."""
    made = []
    for figures, num in zip((shallow, deep), stopped, strict=True):
        seeds = range(len(next(iter(figures.values()))))
        columns = {metric: dict(enumerate(values)) for metric, values in figures.items()}
        made.append(Side(statuses=dict.fromkeys(seeds, "completed"), figures=columns, num_stopped_early=num))
    return made[0], made[1]


# A stop at a loss of .01: the deep runs take larger steps over it and land a little higher, on every seed.
LANDED: dict[str, list[float | None]] = {"train_loss": [0.0090, 0.0091, 0.0092, 0.0090, 0.0091, 0.0092, 0.0090]}
HIGHER: dict[str, list[float | None]] = {"train_loss": [0.0097, 0.0098, 0.0099, 0.0098, 0.0098, 0.0099, 0.0097]}


@pytest.mark.parametrize("stopped", [(7, 7), (1, 0), (0, 1)])
def test_a_loss_that_a_stop_pins_is_left_out(stopped: tuple[int, int]) -> None:
    accuracies: dict[str, list[float | None]] = {"train_accuracy": [0.99, 0.98, 0.99, 0.98, 0.99, 0.97, 0.99]}
    better: dict[str, list[float | None]] = {"train_accuracy": [1.0, 0.99, 1.0, 0.99, 1.0, 0.99, 1.0]}
    found = tell_apart(*sides({**LANDED, **accuracies}, {**HIGHER, **better}, stopped))
    assert found.kind == "none"
    assert [each.name for each in found.evidence] == ["train_accuracy: deep minus shallow"]
    assert found.evidence[0].level == 0.95  # one test, no correction
    assert f"training loss left out: {sum(stopped)} of 14 runs stopped early" in found.text["en"]
    assert f"不看训练损失：14 次运行中有 {sum(stopped)} 次提前停止" in found.text["zh"]
    without = tell_apart(*sides(LANDED, HIGHER, stopped))
    assert (without.kind, without.evidence) == ("undecided", ())


def test_a_worse_accuracy_after_stops_is_still_a_degradation() -> None:
    shallow: dict[str, list[float | None]] = {**LANDED, "train_accuracy": [1.0] * 7}
    deep: dict[str, list[float | None]] = {**HIGHER, "train_accuracy": [0.5, 0.6, 0.55, 0.5, 0.6, 0.55, 0.5]}
    assert tell_apart(*sides(shallow, deep, (7, 0))).kind == "degradation"


def test_two_sides_that_fit_everything_are_no_degradation() -> None:
    """Without stops too: of runs that are all right on every example a higher loss is less confidence."""
    fitted: dict[str, list[float | None]] = {"train_accuracy": [1.0] * 7}
    found = tell_apart(*sides({**LANDED, **fitted}, {**HIGHER, **fitted}))
    assert found.kind == "none"
    assert "training loss left out: every training example is fitted on both sides" in found.text["en"]
    assert "last step) 0.0 points [7 seeds, all equal]" in found.text["en"]
    tested = tell_apart(*sides({**fitted, "test_accuracy": [0.9] * 7}, {**fitted, "test_accuracy": [0.7] * 7}))
    assert tested.kind == "overfitting"


def test_few_seeds_that_fit_everything_are_told() -> None:
    fitted: dict[str, list[float | None]] = {"train_accuracy": [1.0] * 3}
    some = {key: values[:3] for key, values in LANDED.items()}, {key: values[:3] for key, values in HIGHER.items()}
    found = tell_apart(*sides({**some[0], **fitted}, {**some[1], **fitted}))
    assert found.kind == "undecided"
    assert "both networks fit every training example on every seed" in found.text["en"]
    assert "都拟合了全部训练样本" in found.text["zh"]


def test_a_run_without_a_figure_is_not_one_that_fits() -> None:
    partly: dict[str, list[float | None]] = {"train_accuracy": [1.0] * 6 + [None]}
    found = tell_apart(*sides({**LANDED, **partly}, {**HIGHER, "train_accuracy": [1.0] * 7}))
    assert found.kind == "degradation"  # the loss counts


def test_two_training_figures_share_the_error() -> None:
    """Mean .1, s .04, n 3: t 4.33, beyond 4.3027 (95%) and within 6.2053 (97.5%)."""
    loss: dict[str, list[float | None]] = {"train_loss": [0.06, 0.10, 0.14]}
    nothing: dict[str, list[float | None]] = {"train_loss": [0.0] * 3}
    assert tell_apart(*sides(nothing, loss)).kind == "degradation"
    both = tell_apart(
        *sides({**nothing, "train_accuracy": [0.5] * 3}, {**loss, "train_accuracy": [0.4, 0.6, 0.5]}),
    )
    assert both.kind == "undecided"
    assert [each.level for each in both.evidence] == [0.975, 0.975]


def test_stops_are_read_from_the_records(make_results: MakeResults) -> None:
    results = make_results(lambda cell: {"train_loss": 0.009 + 0.0001 * cell.axes["depth"] * (1 + cell.seed % 2)})
    assert {each.diagnosis.kind for each in diagnose(results)} == {"undecided"}
    outcome = Outcome(status="completed", step=7, stopped_early=True)
    records = {key: record.model_copy(update={"outcome": outcome}) for key, record in results.records.items()}
    found = diagnose(Results(plan=results.plan, records=records, load_table=results.load_table))
    assert all("6 of 6 runs stopped early" in each.diagnosis.text["en"] for each in found)


@pytest.mark.parametrize(("deep_guess", "num"), [(0.693, 2), (0.65, 2), (0.416, 0)])
def test_depths_at_which_a_guess_costs_otherwise_are_not_compared(
    make_results: MakeResults, deep_guess: float, num: int
) -> None:
    """Copying over 30 steps asks less a step than over 10: that its loss is lower is no help from depth."""
    results = make_results(lambda cell: {"train_loss": 0.6 - (0.02 + 0.001 * cell.seed) * cell.axes["depth"]})
    records = {
        key: record.model_copy(update={"chance_loss": deep_guess if record.spec.depth == 8 else 0.693})
        for key, record in results.records.items()
    }
    found = diagnose(Results(plan=results.plan, records=records, load_table=results.load_table))
    assert [each.diagnosis.kind for each in found] == ["none"] * num
