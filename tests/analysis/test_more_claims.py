"""Truth tables of no degradation (non-inferiority) and of one way along an axis."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from depthscope.analysis.finding import Finding
from depthscope.analysis.verdict_words import verdict_sentence
from depthscope.study.claims import MonotoneClaim, NoDegradationClaim, Select

Values = dict[tuple[str, int], list[Any]]
COMMON: dict[str, Any] = {"name": "c", "text": {"en": "x"}, "part": "main"}


def no_degradation(metric: str, margin: float) -> NoDegradationClaim:
    return NoDegradationClaim(
        kind="no_degradation",
        metric=metric,
        unit="accuracy" if "accuracy" in metric else "nats",
        a=Select(arm="plain", where={"depth": "max"}),
        b=Select(arm="plain", where={"depth": "min"}),
        margin=margin,
        **COMMON,
    )


def monotone(direction: str, within: float = 0.0, metric: str = "train_loss", **more: Any) -> MonotoneClaim:
    return MonotoneClaim.model_validate(
        {
            "kind": "monotone",
            "metric": metric,
            "arm": "plain",
            "direction": direction,
            "within": within,
            **COMMON,
            **more,
        }
    )


# Worsening .01, .02, .03: mean .02, half width 4.3027 * .01 / sqrt(3) = .02484: from -.0048 to .0448.
WORSE = [0.01, 0.02, 0.03]
BASE = [0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("margin", "verdict"), [(0.05, "supported"), (0.0449, "supported"), (0.0447, "undecided"), (0.001, "undecided")]
)
@pytest.mark.parametrize(("metric", "sign"), [("train_loss", 1), ("test_accuracy", -1)])
def test_a_margin(found: Any, metric: str, sign: int, margin: float, verdict: str) -> None:
    """The same worsening of a loss (up) and of an accuracy (down) has the same verdict and the same numbers."""
    deep = [base + sign * worse for base, worse in zip(BASE, WORSE, strict=True)]
    finding: Finding = found(no_degradation(metric, margin), {("plain", 8): deep, ("plain", 2): BASE}, metric)
    judged = finding.estimates[0]
    assert (judged.value, judged.low, judged.high) == pytest.approx((0.02, -0.00484, 0.04484), abs=1e-5)
    assert finding.verdict == verdict
    assert (finding.expect, finding.margin, finding.kind) == ("at_most", margin, "no_degradation")
    first = "plain, depth 8" if sign > 0 else "plain, depth 2"
    assert judged.name.startswith(f"{metric}: {first} minus")


def test_a_worsening_beyond_the_margin_refutes(found: Any) -> None:
    deep = [base + 0.1 + worse for base, worse in zip(BASE, WORSE, strict=True)]
    finding = found(no_degradation("train_loss", 0.05), {("plain", 8): deep, ("plain", 2): BASE}, "train_loss")
    assert finding.verdict == "refuted"
    assert "worse by at most 0.0500 nats (the margin)" in finding.reason
    assert "no evidence" not in finding.reason


def test_lack_of_power_is_no_evidence_of_absence_and_says_so(found: Any) -> None:
    """An interval over 0 and the margin, though the mean is no worsening at all."""
    finding = found(
        no_degradation("train_loss", 0.1), {("plain", 8): [0.2, 0.5, 0.8], ("plain", 2): [0.5] * 3}, "train_loss"
    )
    assert finding.verdict == "undecided"
    assert "lack of power is no evidence that there is none" in finding.reason
    assert "功效不足" in finding.reasons["zh"]


@pytest.mark.parametrize(("seeds", "verdict"), [(1, "undecided"), (3, "undecided"), (5, "undecided"), (6, "supported")])
def test_equal_values_that_are_few_say_so_and_blame_no_power(found: Any, seeds: int, verdict: str) -> None:
    finding = found(
        no_degradation("train_accuracy", 0.1),
        {("plain", 8): [1.0] * seeds, ("plain", 2): [1.0] * seeds},
        "train_accuracy",
    )
    assert finding.verdict == verdict
    assert "power" not in finding.reason
    many = "values that are all equal have no interval with fewer than 6 seeds; run 6 or more" in finding.reason
    assert many == (seeds in (3, 5))
    assert ("one seed has no interval; run 3 or more" in finding.reason) == (seeds == 1)
    assert ("少于 6 个种子便没有区间" in finding.reasons["zh"]) == many


def test_an_improvement_is_called_one(found: Any) -> None:
    """Of an accuracy (down is worse): it rises by 10, 11 and 12 points."""
    finding = found(
        no_degradation("train_accuracy", 0.02),
        {("plain", 8): [0.6, 0.61, 0.62], ("plain", 2): [0.5] * 3},
        "train_accuracy",
    )
    assert finding.reason.startswith(
        "worsening (training accuracy of plain, depth 2 minus that of plain, depth 8) = "
        "−11.0 points [95% CI −13.5 to −8.5, 3 seeds]: that is, better by 11.0 points. "
    )
    assert "−11.0 个百分点 [95% CI −13.5 至 −8.5，3 个种子]，即改善了 11.0 个百分点。" in finding.reasons["zh"]
    (said,) = verdict_sentence([finding.model_copy(update={"confirmatory": True})], "en")
    assert said.endswith("is supported: better by 11.0 points [95% CI 8.5 to 13.5, 3 seeds].")


@pytest.mark.parametrize("metric", ["train_loss", "train_accuracy"])
def test_a_deep_run_that_diverged_keeps_support_away_and_a_shallow_one_refutation(found: Any, metric: str) -> None:
    good: Values = {("plain", 8): ["diverged", *BASE], ("plain", 2): [0.5, *BASE]}
    assert found(no_degradation(metric, 0.5), good, metric).verdict == "undecided"
    swapped = {("plain", 8): [0.5, *BASE], ("plain", 2): ["diverged", *BASE]}
    assert (
        found(no_degradation(metric, 0.5), swapped, metric).verdict == "undecided"
    )  # all differences are 0: no interval
    spread: Values = {("plain", 8): [0.5, 0.51, 0.62, 0.73], ("plain", 2): ["diverged", 0.5, 0.6, 0.7]}
    assert found(no_degradation(metric, 0.5), spread, metric).verdict == "supported"


def along(rows: dict[int, list[Any]], **more: Any) -> tuple[Values, dict[str, Any]]:
    values = {("plain", depth): column for depth, column in rows.items()}
    num = len(next(iter(rows.values())))
    return values | {("res", depth): [None] * num for depth in rows}, {"axes": {"depth": sorted(rows)}, **more}


# Steps .2/.3/.4 and .1/.2/.3: means .3 and .2, half width .2484 each: the second holds 0 (from -.0484).
RISING = {2: [0.0, 0.1, 0.2], 4: [0.2, 0.4, 0.6], 8: [0.3, 0.6, 0.9]}


@pytest.mark.parametrize(
    ("direction", "within", "verdict"),
    [
        ("increasing", 0.05, "supported"),
        ("increasing", 0.04, "undecided"),
        ("increasing", 0.0, "undecided"),
        ("decreasing", 0.0, "undecided"),  # a step of -.3 +- .4388 at 97.5% may be 0
    ],
)
def test_every_step_must_keep_its_way(found: Any, direction: str, within: float, verdict: str) -> None:
    values, more = along(RISING)
    finding: Finding = found(monotone(direction, within), values, "train_loss", **more)
    assert finding.verdict == verdict
    assert finding.num_judged == 2
    sign = 1 if direction == "increasing" else -1
    assert [each.value for each in finding.estimates[:2]] == pytest.approx([sign * 0.3, sign * 0.2])
    level = 0.95 if verdict == "supported" else 0.975
    assert [each.level for each in finding.estimates[:2]] == [level] * 2
    assert finding.estimates[0].low == pytest.approx(sign * 0.3 - stats.t.ppf(0.5 + level / 2, 2) * 0.1 / 3**0.5)


def test_the_headline_shows_the_step_that_comes_nearest_to_going_back(found: Any) -> None:
    values, more = along(RISING)  # steps of .3 and .2
    finding = found(monotone("increasing", 0.05, confirmatory=True), values, "train_loss", **more)
    (sentence,) = verdict_sentence([finding], "en")
    assert sentence.startswith("The confirmatory claim “x” is supported: smallest step ")
    assert "0.2" in sentence
    assert "0.3" not in sentence.partition("[")[0]


def test_one_step_back_refutes_at_a_corrected_level(found: Any) -> None:
    """A step of -.3 with half width .2484 at 95% and .3583 at 97.5%: alone it refutes, as one of two it does not."""
    back = {2: [0.5, 0.6, 0.7], 4: [0.3, 0.3, 0.3]}
    values, more = along(back)
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "refuted"
    values, more = along({**back, 8: [0.9, 1.0, 0.95]})
    undecided = found(monotone("increasing"), values, "train_loss", **more)
    assert undecided.verdict == "undecided"
    assert all(each.high >= 0 for each in undecided.estimates[:2])  # none is clear of the bound beside the word
    values, more = along({2: [1.5, 1.6, 1.7], 4: [0.3, 0.3, 0.3], 8: [0.9, 1.0, 0.95]})
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "refuted"


def test_a_plateau_is_not_a_rise_but_keeps_a_slack(found: Any) -> None:
    values, more = along({2: [0.1] * 6, 4: [0.2] * 6, 8: [0.2] * 6})
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "supported"  # at least 0: it is
    values, more = along({2: [0.1] * 3, 4: [0.2] * 3, 8: [0.2] * 3})
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "undecided"  # three equal values


def test_the_axis_is_in_ascending_order_whatever_the_files(found: Any) -> None:
    values, more = along({16: [0.7, 0.8, 0.95], 2: [0.1, 0.2, 0.3], 8: [0.4, 0.5, 0.62]})
    more["axes"] = {"depth": [16, 2, 8]}
    finding = found(monotone("increasing"), values, "train_loss", **more)
    assert finding.verdict == "supported"
    assert [each.name for each in finding.estimates[:2]] == [
        "train_loss: plain, depth 8 minus 2",
        "train_loss: plain, depth 16 minus 8",
    ]


def test_a_missing_run_leaves_it_undecided_and_divergence_takes_its_side(found: Any) -> None:
    rising: dict[int, list[Any]] = {2: [0.1, 0.2, 0.3, 0.4], 4: [0.6, 0.75, 0.8, 0.9]}
    values, more = along({2: rising[2], 4: [*rising[4][:3], None]})
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "undecided"
    values, more = along({2: rising[2], 4: [*rising[4][:3], "diverged"]})
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "supported"  # it rose beyond bounds
    values, more = along({2: [*rising[2][:3], "diverged"], 4: rising[4]})
    assert found(monotone("increasing"), values, "train_loss", **more).verdict == "undecided"
