"""Truth tables of the verdicts on differences."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from depthscope.analysis.verdicts import against
from depthscope.study.claims import (
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    Select,
)
from depthscope.study.scale import unit_of

Expect = Literal["at_least", "at_most"]
Values = dict[tuple[str, int], list[Any]]


def cell(arm: str, depth: int | str | None = None) -> Select:
    return Select(arm=arm, where={} if depth is None else {"depth": depth})


def difference(than: float, expect: Expect = "at_least", **more: Any) -> DifferenceClaim:
    """Deep minus shallow, of the plain arm."""
    return DifferenceClaim.model_validate(
        {
            "name": "c",
            "text": {"en": "x"},
            "part": "main",
            "metric": "train_accuracy",
            "unit": unit_of(more.get("metric", "train_accuracy")),
            "kind": "difference",
            "a": cell("plain", "max"),
            "b": cell("plain", "min"),
            "expect": expect,
            "than": than,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("low", "high", "expect", "than", "verdict"),
    [
        (0.1, 0.3, "at_least", 0.1, "supported"),
        (0.1, 0.3, "at_least", 0.2, "undecided"),
        (0.1, 0.3, "at_least", 0.3, "undecided"),
        (0.1, 0.3, "at_least", 0.31, "refuted"),
        (0.1, 0.3, "at_most", 0.3, "supported"),
        (0.1, 0.3, "at_most", 0.2, "undecided"),
        (0.1, 0.3, "at_most", 0.09, "refuted"),
        (None, None, "at_most", 0.0, "undecided"),
        (None, 0.3, "at_least", 0.0, "undecided"),
    ],
)
def test_an_interval_against_a_bound(
    low: float | None, high: float | None, expect: Expect, than: float, verdict: str
) -> None:
    assert against(low, high, expect, than) == verdict


# Deep minus shallow is -.20, -.22, -.24: mean -.22, half width 4.3027 * .02 / sqrt(3) = .0497.
FALL: Values = {("plain", 8): [0.7, 0.6, 0.5], ("plain", 2): [0.9, 0.82, 0.74]}


@pytest.mark.parametrize(
    ("than", "expect", "verdict"),
    [
        (-0.1, "at_most", "supported"),
        (-0.2, "at_most", "undecided"),
        (-0.3, "at_most", "refuted"),
        (-0.3, "at_least", "supported"),
        (-0.22, "at_least", "undecided"),
        (0.0, "at_least", "refuted"),
    ],
)
def test_difference(found: Any, than: float, expect: Expect, verdict: str) -> None:
    finding = found(difference(than, expect), FALL)
    judged = finding.estimates[0]
    assert finding.verdict == verdict
    assert (judged.value, judged.low, judged.high) == pytest.approx((-0.22, -0.2697, -0.1703), abs=1e-4)
    assert [each.value for each in finding.estimates[1:]] == pytest.approx([0.6, 0.82])
    assert (finding.margin, finding.expect) == (than, expect)


def test_a_difference_is_paired_by_seed(found: Any) -> None:
    """Seeds scatter by .4 and all fall by about .05: an unpaired interval would span 0."""
    values: Values = {("plain", 8): [0.15, 0.55, 0.94], ("plain", 2): [0.2, 0.6, 1.0]}
    finding = found(difference(0.0, "at_most"), values)
    assert finding.verdict == "supported"
    assert finding.estimates[0].method == "paired t"
    assert finding.estimates[0].high < -0.03


def test_one_seed_is_undecided(found: Any) -> None:
    finding = found(difference(0.0, "at_most"), {("plain", 8): [0.1], ("plain", 2): [0.9]})
    assert (finding.verdict, finding.estimates[0].low) == ("undecided", None)
    assert "single pair" in finding.estimates[0].note
    assert "1 seed, no interval" in finding.reason


@pytest.mark.parametrize(("than", "verdict"), [(0.0, "supported"), (-0.5, "supported"), (-0.51, "refuted")])
def test_six_equal_differences_have_their_medians_interval(found: Any, than: float, verdict: str) -> None:
    finding = found(difference(than, "at_most"), {("plain", 8): [0.5, 0.25] * 3, ("plain", 2): [1.0, 0.75] * 3})
    judged = finding.estimates[0]
    assert (finding.verdict, judged.value, judged.low, judged.high) == (verdict, -0.5, None, None)
    assert judged.method == "order statistics"
    assert judged.note == "no interval: all 6 differences are equal, and enough to decide by their median"
    assert "[6 seeds, all equal]" in finding.reason


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("than", [0.0, -0.51])
def test_few_equal_differences_decide_nothing(found: Any, n: int, than: float) -> None:
    finding = found(difference(than, "at_most"), {("plain", 8): [0.5] * n, ("plain", 2): [1.0] * n})
    judged = finding.estimates[0]
    assert (finding.verdict, judged.value, judged.low, judged.method) == ("undecided", -0.5, None, None)
    assert judged.note == f"no interval: all {n} values are equal, and too few for 95% coverage of a median"
    assert f"−50.0 points [{n} seeds, all equal]" in finding.reason


def test_equal_but_for_rounding_is_equal(found: Any) -> None:
    """.9 - .7, .8 - .6 and .4 - .2 differ in their last places; a t interval of that would decide any claim."""
    deep, shallow = [0.9, 0.8, 0.4], [0.7, 0.6, 0.2]
    assert len({a - b for a, b in zip(deep, shallow, strict=True)}) > 1
    finding = found(difference(0.1), {("plain", 8): deep, ("plain", 2): shallow})
    assert (finding.verdict, finding.estimates[0].low) == ("undecided", None)


def test_missing_runs_leave_it_undecided(found: Any) -> None:
    finding = found(difference(0.0, "at_most"), {("plain", 8): [0.5, 0.24, None], ("plain", 2): [1.0, 0.75, 0.9]})
    assert finding.verdict == "undecided"
    assert "1 of 6 runs are missing" in finding.estimates[0].note
    assert "1 of 6 runs are missing" in finding.reason
    values: Values = {("plain", 8): [0.5, 0.24, "failed"], ("plain", 2): [1.0, 0.75, 0.9]}
    failed = found(difference(0.0, "at_most"), values)
    assert (failed.verdict, failed.estimates[0].n) == ("undecided", 2)
    assert "6 次运行中有 1 次尚缺" in finding.reasons["zh"]


FELL, ROSE, SAME = [0.5, 0.49, 0.51], [1.5, 1.49, 1.51], [0.9, 1.0, 1.1]


@pytest.mark.parametrize(
    ("deep", "shallow", "expect", "says", "verdict"),
    [
        # Accuracy, deep minus shallow, against 0. A diverged deep run would have moved it down.
        (["diverged", *FELL], None, "at_most", "for", "supported"),
        (["diverged", *SAME], None, "at_most", "for", "undecided"),
        (["diverged", *ROSE], None, "at_most", "for", "undecided"),  # not refuted by those that lived
        (["diverged", *ROSE], None, "at_least", "against", "undecided"),  # not supported by those that lived
        (["diverged", *SAME], None, "at_least", "against", "undecided"),
        (["diverged", *FELL], None, "at_least", "against", "refuted"),
        # A diverged shallow run would have moved it up.
        ([0.5, *FELL], "diverged", "at_most", "against", "undecided"),
        ([0.5, *ROSE], "diverged", "at_most", "against", "refuted"),
        ([0.5, *ROSE], "diverged", "at_least", "for", "supported"),
        ([0.5, *FELL], "diverged", "at_least", "for", "undecided"),
        # Both: neither.
        (["diverged", *FELL], "diverged", "at_most", None, "undecided"),
        (["diverged", *ROSE], "diverged", "at_most", None, "undecided"),
        (["diverged"] * 4, None, "at_most", "for", "undecided"),
    ],
)
def test_survivors_never_overrule_what_diverged(
    found: Any, deep: list[Any], shallow: str | None, expect: Expect, says: str | None, verdict: str
) -> None:
    values: Values = {("plain", 8): deep, ("plain", 2): [shallow or 1.0, 1.0, 1.01, 1.02]}
    finding = found(difference(0.0, expect), values)
    assert finding.verdict == verdict
    for each in ("for", "against"):
        told = f"divergence speaks {each} the claim"
        assert (told in finding.estimates[0].note) == (told in finding.reason) == (says in (each, None))
    k = deep.count("diverged") + (shallow is not None)
    assert f"{k} of 8 runs diverged" in finding.reason
    assert f"8 次运行中有 {k} 次发散" in finding.reasons["zh"]


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [("train_loss", "undecided"), ("train_accuracy", "supported"), ("dh_factor_last", "undecided")],
)
def test_which_side_is_worse_is_the_metrics(found: Any, metric: str, verdict: str) -> None:
    """`At most` is what a diverged loss violates and a diverged accuracy satisfies; a factor has no worse side."""
    values: Values = {("plain", 8): ["diverged", *FELL], ("plain", 2): [1.0, 1.0, 1.01, 1.02]}
    assert found(difference(0.0, "at_most", metric=metric), values, metric=metric).verdict == verdict


@pytest.mark.parametrize(
    ("where", "verdict"),
    [(("plain", 8), "undecided"), (("plain", 2), "supported"), (("res", 8), "supported"), (("res", 2), "undecided")],
)
def test_divergence_in_a_difference_in_differences(found: Any, where: tuple[str, int], verdict: str) -> None:
    """(plain deep - plain shallow) - (res deep - res shallow), of accuracy, at least 0: the outer two against it."""
    claim = DifferenceInDifferencesClaim(
        name="c", text={"en": "x"}, part="main", metric="train_accuracy", kind="difference_in_differences",
        first=(cell("plain", 8), cell("plain", 2)), second=(cell("res", 8), cell("res", 2)),
        expect="at_least", than=0.0,
    )  # fmt: skip
    values: Values = {
        ("plain", 8): [0.9, 0.9, 0.91, 0.92],
        ("plain", 2): [0.5, 0.51, 0.5, 0.5],
        ("res", 8): [0.5] * 4,
        ("res", 2): [0.5] * 4,
    }
    assert found(claim, values).verdict == "supported"
    assert found(claim, values | {where: ["diverged", *values[where][1:]]}).verdict == verdict


def test_a_metric_that_was_not_measured_is_told(found: Any) -> None:
    finding = found(difference(0.0, metric="test_accuracy"), FALL)
    assert finding.verdict == "undecided"
    assert "6 of 6 runs lack the metric" in finding.reason


def test_difference_in_differences(found: Any) -> None:
    claim = DifferenceInDifferencesClaim(
        name="c",
        text={"en": "x"},
        part="main",
        metric="train_loss",
        unit="nats",
        kind="difference_in_differences",
        first=(cell("plain", "max"), cell("plain", "min")),
        second=(cell("res", "max"), cell("res", "min")),
        expect="at_least",
        than=0.0,
    )
    # Plain rises by .5 .6 .7, residual by .1 .1 .3; paired by seed: .4 .5 .4.
    values: Values = {
        ("plain", 8): [1.5, 0.8, 3.7],
        ("plain", 2): [1.0, 0.2, 3.0],
        ("res", 8): [1.1, 0.3, 3.3],
        ("res", 2): [1.0, 0.2, 3.0],
    }
    finding = found(claim, values, metric="train_loss")
    judged, first, second = finding.estimates
    assert judged.values == pytest.approx((0.4, 0.5, 0.4))
    # mean .43333, s .057735, half width 4.3027 * .057735 / sqrt(3) = .14342
    assert (judged.low, judged.high) == pytest.approx((0.28991, 0.57676), abs=1e-5)
    assert (first.value, second.value) == pytest.approx((0.6, 1 / 6))
    assert finding.verdict == "supported"
    swapped = claim.model_copy(update={"first": claim.second, "second": claim.first})
    assert found(swapped, values, metric="train_loss").verdict == "refuted"


def test_a_free_axis_is_averaged_seed_by_seed(found: Any) -> None:
    claim = difference(0.0, a=cell("res"), b=cell("plain"))
    values: Values = {
        ("plain", 8): [0.1, 0.3],
        ("plain", 2): [0.3, 0.5],
        ("res", 8): [0.5, 0.8],
        ("res", 2): [0.7, 0.8],
    }
    assert found(claim, values).estimates[0].values == pytest.approx((0.4, 0.4))
    # A seed whose average lacks a cell has no pair.
    values["res", 2][1] = "diverged"
    assert found(claim, values).estimates[0].values == pytest.approx((0.4,))
