"""Truth tables of the verdicts on differences."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from depthscope.analysis.judging import against
from depthscope.study.claims import (
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    Select,
)

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
            "unit": "accuracy",
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
def test_without_spread_the_value_decides(found: Any, than: float, verdict: str) -> None:
    finding = found(difference(than, "at_most"), {("plain", 8): [0.5, 0.25], ("plain", 2): [1.0, 0.75]})
    assert (finding.verdict, finding.estimates[0].value, finding.estimates[0].low) == (verdict, -0.5, None)
    assert "all 2 values are equal" in finding.estimates[0].note
    assert "2 seeds, all equal" in finding.reason


def test_missing_runs_leave_it_undecided(found: Any) -> None:
    finding = found(difference(0.0, "at_most"), {("plain", 8): [0.5, 0.24, None], ("plain", 2): [1.0, 0.75, 0.9]})
    assert finding.verdict == "undecided"
    assert "1 of 6 runs are missing" in finding.estimates[0].note
    assert "1 of 6 runs are missing" in finding.reason
    assert "6 次运行中有 1 次尚缺" in finding.reasons["zh"]


def test_diverged_pairs_are_dropped_and_told(found: Any) -> None:
    values: Values = {("plain", 8): ["diverged", 0.5, 0.49, 0.51], ("plain", 2): [1.0] * 4}
    finding = found(difference(0.0, "at_most"), values)
    assert (finding.verdict, finding.estimates[0].n) == ("supported", 3)
    assert finding.estimates[0].note == "1 of 4 pairs left out (no value); 1 of 8 runs diverged"
    all_gone = found(difference(0.0, "at_most"), {("plain", 8): ["diverged"] * 2, ("plain", 2): [1.0, 0.9]})
    assert (all_gone.verdict, all_gone.estimates[0].value) == ("undecided", None)


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
