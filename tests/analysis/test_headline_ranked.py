"""The headline of a study that ranks its arms follows the ranking, whichever way it came out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.analysis.conftest import BASE, record_of

from depthscope.analysis.findings import headline, judge
from depthscope.analysis.table import Results
from depthscope.study.expand import expand
from depthscope.study.study import Arm, Part, StudySpec

LABELS: dict[str, dict[Any, str]] = {
    "plain": {"en": "plain", "zh": "普通网络"},
    "good": {"en": "residual", "zh": "残差网络"},
    "near": {"en": "ReLU, He init", "zh": "ReLU，He 初始化"},
    "bad": {"en": "bad", "zh": "差"},
}
SHIFTS = {
    "plain": (-0.01, 0.02, -0.01),
    "good": (-0.01, 0.0, 0.01),
    "near": (0.0, -0.01, 0.01),
    "bad": (0.01, 0.0, -0.01),
}
Figures = dict[str, list[Any]]


def at(**means: float) -> Figures:
    return {name: [mean + shift for shift in SHIFTS[name]] for name, mean in means.items()}


def says(
    deep: Figures, shallow: Figures | None = None, *, metric: str = "train_accuracy", parts: int = 1, **axes: Any
) -> tuple[str, str]:
    """English and Chinese; a word is how a run ended, None a missing run."""
    arms = [
        Arm(name=name, label=LABELS.get(name, {"en": name, "zh": name}), set={"gain": 0.5 + number / 10})
        for number, name in enumerate(deep)
    ]
    depths = [2, 8] if shallow is not None else [8]
    made = {
        f"part-{number}": Part.model_validate(
            {"arms": arms, "axes": {"depth": depths, **axes}, "ranked": metric, "title": {"en": f"Part {number}"}}
        )
        for number in range(parts)
    }
    study = StudySpec(
        name="made-up", title={"en": "made up"}, base=BASE, seeds=len(next(iter(deep.values()))), parts=made
    )
    plan = expand(study)
    records = {}
    for cell in plan.cells:
        found = (deep if cell.axes["depth"] == 8 else shallow or {})[cell.arm][cell.seed]
        if found is not None:
            figures = found if isinstance(found, str) else {metric: found}
            records[cell.run_id] = record_of(plan.runs[cell.run_id], figures, parameters=100)
    results = Results(plan=plan, records=records, load_table=lambda run_id, name: None)
    return headline(results, judge(results), "en"), headline(results, judge(results), "zh")


def shallower(**means: float) -> Figures:
    """Other seeds are the lucky ones: with equal differences there would be nothing to measure chance by."""
    return {
        name: list(reversed(column)) if name != "plain" else column[1:] + column[:1]
        for name, column in at(**means).items()
    }


DEEP = at(plain=0.5, good=0.9, near=0.899, bad=0.1)


def test_who_may_be_the_best_and_what_depth_did() -> None:
    english, chinese = says(DEEP, shallower(plain=0.9, good=0.7, near=0.899, bad=0.8))
    assert english == (
        "Of 4 arms at 8 layers, 2 may be the best by training accuracy: residual and ReLU (He init). "
        "From 2 to 8 layers, 2 degrade (plain and bad), 1 improves and 1 shows no clear change "
        "[each by its own 95% CI, 3 seeds]."
    )
    assert chinese == (
        "在 8 层处，4 组中按训练准确率可能最好的有 2 组：残差网络、ReLU（He 初始化）。"
        "从 2 层加深到 8 层，2 组退化（普通网络、差），1 组改善，1 组看不出变化 [各按自己的 95% CI，3 个种子]。"
    )


def test_of_a_loss_the_other_way_round() -> None:
    english, chinese = says(DEEP, shallower(plain=0.9, good=0.7, near=0.899, bad=0.8), metric="train_loss")
    assert english.startswith("Of 4 arms at 8 layers, bad is the best by training loss. ")
    assert "1 degrades (residual), 2 improve and 1 shows no clear change" in english
    assert chinese.startswith("在 8 层处，4 组中按训练损失最好的是差。")
    assert "1 组退化（残差网络），2 组改善" in chinese


def test_an_open_order_names_nobody() -> None:
    rng = np.random.default_rng(3)
    english, chinese = says({name: list(rng.normal(0.9, 0.01, 3)) for name in LABELS})
    assert english == "By training accuracy the order of the 4 arms at 8 layers is open: no pair is settled."
    assert chinese == "在 8 层处，按训练准确率，4 组的名次尚无定论：没有一对可以分出高下。"


def test_one_seed_settles_nothing_and_changes_nothing() -> None:
    english, _ = says({name: [each[0]] for name, each in DEEP.items()}, {name: [0.9] for name in DEEP})
    assert english == (
        "By training accuracy the order of the 4 arms at 8 layers is open: no pair is settled. "
        "From 2 to 8 layers, 4 show no clear change [each by its own 95% CI, 1 seed]."
    )


def test_a_figure_that_all_reach_ranks_nobody() -> None:
    english, chinese = says({name: [1.0] * 3 for name in LABELS})
    assert english == "All 4 arms at 8 layers have a training accuracy of 100%, which cannot tell them apart."
    assert chinese == "在 8 层处，全部 4 组的训练准确率都是 100%，它无法区分这些组。"
    most = {name: [1.0] * 3 for name in LABELS} | {"bad": [1.0, 1.0, 0.99]}
    assert "cannot tell them apart" not in says(most)[0]


def test_lost_runs_are_told_and_never_an_improvement() -> None:
    found = DEEP | {"some": ["diverged", 0.99, 0.98], "all": ["diverged"] * 3}
    low = at(plain=0.5, good=0.9, near=0.899, bad=0.1) | {"some": [0.1, 0.1, 0.1], "all": [0.9] * 3}
    english, chinese = says(found, low)
    assert english.startswith("Of 6 arms at 8 layers, 3 may be the best by training accuracy: ")
    assert "improve" not in english
    assert english.endswith("; of 2 arms runs diverged or failed (some and all).")
    assert chinese.endswith("；2 组有运行发散或出错（some、all）。")


@pytest.mark.parametrize("missing", [("bad",), tuple(DEEP)])
def test_what_is_missing_is_not_among_the_best(missing: tuple[str, ...]) -> None:
    english, chinese = says(DEEP | {name: [None] * 3 for name in missing})
    if len(missing) == len(DEEP):
        assert english == "None of the 4 arms at 8 layers has a training accuracy."
        assert chinese == "在 8 层处，4 组中没有一组有训练准确率的数值。"
    else:
        assert english.endswith("2 may be the best by training accuracy: residual and ReLU (He init); 1 has no figure.")
        assert chinese.endswith("；1 组没有数值。")


def test_many_arms_are_counted_and_a_part_is_named_where_there_are_several() -> None:
    names = [f"arm-{number}" for number in range(7)]
    rng = np.random.default_rng(1)
    deep = {name: list(0.9 + rng.normal(0, 0.01, 3)) for name in names} | {"bad": list(0.1 + rng.normal(0, 0.01, 3))}
    english, chinese = says(deep, parts=2)
    first, second = english.split(". ")
    assert first.startswith("Part 0: of 8 arms at 8 layers, 7 may be the best by training accuracy: arm-")
    assert first.endswith(" and 4 others")
    assert second == first.replace("Part 0", "Part 1") + "."
    assert "等 7 组" in chinese


def test_further_axes_are_told_at_one_place() -> None:
    english, _ = says(DEEP, lr=[0.1, 0.2])
    assert english.startswith("At lr = 0.1: of 4 arms at 8 layers, 2 may be the best")
    assert "0.2" not in english
