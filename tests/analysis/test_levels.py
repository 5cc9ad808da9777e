"""Truth tables of the verdicts on levels and on ratios to theory."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from depthscope.study.claims import LevelClaim, Select, TheoryClaim
from depthscope.study.scale import unit_of

Expect = Literal["at_least", "at_most"]
Values = dict[tuple[str, int], list[Any]]


def cell(arm: str, depth: int | str | None = None) -> Select:
    return Select(arm=arm, where={} if depth is None else {"depth": depth})


def level(than: float, statistic: str, expect: Expect = "at_least", **more: Any) -> LevelClaim:
    return LevelClaim.model_validate(
        {
            "name": "c",
            "text": {"en": "x"},
            "part": "main",
            "metric": "train_accuracy",
            "unit": unit_of(more.get("metric", "train_accuracy")),
            "kind": "level",
            "cells": (cell("plain"),),
            "statistic": statistic,
            "expect": expect,
            "than": than,
            **more,
        }
    )


EVERY = [
    ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], "supported", (1.0, 1.0, 1.0), 6),
    ([1.0, 1.0, 1.0], [1.0, 0.99, 1.0], "refuted", (1.0, 0.0, 1.0), 6),
    ([1.0, 1.0, 1.0], [1.0, None, 1.0], "undecided", (1.0, 1.0), 4),
    ([1.0, 1.0, 1.0], [0.99, None, 1.0], "refuted", (0.0, 1.0), 4),
    ([1.0, None, 1.0], [1.0, 0.99, 1.0], "refuted", (1.0, 0.0, 1.0), 5),  # a violation that was seen is known
    ([1.0, 1.0, 1.0], [1.0, "diverged", 1.0], "refuted", (1.0, 0.0, 1.0), 6),
    ([1.0, 1.0, 1.0], [1.0, "failed", 1.0], "undecided", (1.0, 1.0), 4),
    ([None, None, None], [None, None, None], "undecided", (), None),
]


@pytest.mark.parametrize(("shallow", "deep", "verdict", "seeds", "num_runs"), EVERY)
def test_level_on_every_seed(
    found: Any, shallow: list[Any], deep: list[Any], verdict: str, seeds: tuple[float, ...], num_runs: int | None
) -> None:
    finding = found(level(1.0, "every_seed"), {("plain", 2): shallow, ("plain", 8): deep})
    judged = finding.estimates[0]
    assert (finding.verdict, judged.n, judged.values, judged.num_runs) == (verdict, len(seeds), seeds, num_runs)
    assert judged.value == (pytest.approx(sum(seeds) / len(seeds)) if seeds else None)
    assert ("seeds left out" in judged.note) == (len(seeds) < 3)
    assert len(finding.estimates) == 3  # the fraction, then one median a cell


def test_every_seed_shows_the_fraction_of_seeds(found: Any) -> None:
    """Cells of one seed share what the seed draws: 20 runs of 10 seeds are 10 trials, not 20."""
    finding = found(level(1.0, "every_seed"), {("plain", 2): [1.0] * 10, ("plain", 8): [1.0] * 9 + [0.5]})
    judged = finding.estimates[0]
    assert (judged.value, judged.n, judged.method, judged.unit) == (0.9, 10, "Clopper-Pearson", "fraction")
    assert (judged.low, judged.high) == pytest.approx((0.5550, 0.9975), abs=1e-4)
    assert judged.note == "20 runs, together by seed"
    assert "9 of 10 seeds (20 runs) [95% CI 55.5% to 99.7%]" in finding.reason
    assert "10 个种子中的 9 个（20 次运行） [95% CI 55.5% 至 99.7%]" in finding.reasons["zh"]
    assert "every run at least 100.0%" in finding.reason


def test_all_of_ten_seeds_is_no_more_than_ten_can_show(found: Any) -> None:
    finding = found(level(1.0, "every_seed"), {("plain", 2): [1.0] * 10, ("plain", 8): [1.0] * 10})
    assert finding.estimates[0].low == pytest.approx(0.025 ** (1 / 10))  # .6915; twenty trials would give .8316
    assert "10 of 10 seeds (20 runs) [95% CI 69.2% to 100.0%]" in finding.reason
    lone = found(level(1.0, "every_seed", cells=(cell("plain", 8),)), {("plain", 8): [1.0] * 10})
    assert "10 of 10 seeds [95% CI" in lone.reason


@pytest.mark.parametrize(
    ("metric", "expect", "verdict"),
    [
        ("train_accuracy", "at_least", "refuted"),
        ("train_accuracy", "at_most", "undecided"),
        ("train_loss", "at_most", "refuted"),
        ("train_loss", "at_least", "undecided"),
        ("dh_factor_last", "at_least", "undecided"),  # no worse side
        ("dh_factor_last", "at_most", "undecided"),
    ],
)
def test_what_divergence_says_of_a_level(found: Any, metric: str, expect: Expect, verdict: str) -> None:
    claim = level(0.5, "every_seed", expect, metric=metric)
    values: Values = {("plain", 2): [0.5, 0.5], ("plain", 8): [0.5, "diverged"]}
    assert found(claim, values, metric=metric).verdict == verdict


TEN = [0.40, 0.41, 0.45, 0.47, 0.48, 0.49, 0.50, 0.50, 0.52, 0.60]


@pytest.mark.parametrize(
    ("deep", "than", "expect", "verdict"),
    [
        (TEN, 0.55, "at_most", "supported"),  # the interval is [.41, .52]
        (TEN, 0.50, "at_most", "undecided"),
        (TEN, 0.40, "at_most", "refuted"),
        (TEN, 0.41, "at_least", "supported"),
        ([0.5] * 10, 0.5, "at_least", "supported"),
        ([0.5] * 10, 0.6, "at_least", "refuted"),
        ([0.5, 0.5], 0.6, "at_least", "undecided"),  # few equal values are equal by chance
        ([0.5] * 5, 0.5, "at_least", "undecided"),
        ([0.5] * 6, 0.5, "at_least", "supported"),
        ([0.5], 0.4, "at_least", "undecided"),
        ([0.5, 0.6, 0.7], 0.4, "at_least", "undecided"),
        (["diverged"] * 10, 0.1, "at_least", "refuted"),
        (["diverged", *TEN[1:]], 0.41, "at_least", "supported"),
        (["diverged"] * 2 + TEN[2:], 0.3, "at_least", "undecided"),
        (["diverged"] * 9 + [0.9], 0.3, "at_least", "refuted"),
        ([*TEN[:9], None], 0.55, "at_most", "undecided"),
        ([*TEN[:9], "failed"], 0.55, "at_most", "undecided"),
        ([*TEN[:9], "diverged"], 0.55, "at_most", "supported"),
        ([*TEN[:9], "diverged"], 0.35, "at_most", "undecided"),  # it speaks for the claim: survivors cannot refute
    ],
)
def test_level_by_the_median(found: Any, deep: list[Any], than: float, expect: Expect, verdict: str) -> None:
    claim = level(than, "median", expect, cells=(cell("plain", "max"),))
    finding = found(claim, {("plain", 8): deep, ("plain", 2): [1.0] * len(deep)})
    assert finding.verdict == verdict
    assert len(finding.estimates) == 1


@pytest.mark.parametrize(
    ("shallow", "verdict"), [([1.0] * 10, "supported"), ([0.1] * 10, "refuted"), ([0.1] * 5 + [1.0] * 5, "undecided")]
)
def test_all_cells_must_hold(found: Any, shallow: list[float], verdict: str) -> None:
    finding = found(level(0.4, "median"), {("plain", 8): TEN, ("plain", 2): shallow})
    assert finding.verdict == verdict
    assert [each.n for each in finding.estimates] == [10, 10]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.99, 0.98, 1.0, 1.01, 1.02, 1.0], "supported"),
        ([0.99, 0.98, 1.0, 1.01, 1.04, 1.0], "undecided"),
        ([1.1, 1.2, 1.1, 1.3, 1.04, 1.2], "refuted"),
        ([0.9, 0.8, 0.9, 0.7, 0.9, 0.95], "refuted"),
        ([1.0] * 6, "supported"),
        ([1.2] * 6, "refuted"),
        ([1.0, 1.0], "undecided"),
        ([1.2, 1.2], "undecided"),
        ([0.99, 1.0, 1.01], "undecided"),
        ([1.0], "undecided"),
    ],
)
def test_ratio_to_theory(found: Any, ratios: list[float], verdict: str) -> None:
    claim = TheoryClaim(
        name="c",
        text={"en": "x"},
        part="main",
        metric="dh_factor_first",
        kind="theory_ratio",
        cell=cell("plain", "max"),
        tolerance=0.03,
    )
    # Orthogonal linear layers: the factor is the gain itself.
    base = {"activation": "linear", "init": "orthogonal", "gain": 0.5}
    values: Values = {("plain", 8): [0.5 * ratio for ratio in ratios]}
    finding = found(claim, values, metric="dh_factor_first", base=base)
    ratio, measured, theory = finding.estimates
    assert (finding.verdict, finding.margin, finding.expect) == (verdict, 0.03, "within")
    assert ratio.values == pytest.approx(ratios)
    assert (theory.value, theory.method) == (pytest.approx(0.5), "closed form")
    assert measured.value == pytest.approx(0.5 * ratio.value)


def test_no_closed_form_is_undecided_and_told(found: Any) -> None:
    claim = TheoryClaim(
        name="c", text={"en": "x"}, part="main", metric="dh_factor_first", kind="theory_ratio", cell=cell("plain", 8),
        tolerance=0.03,
    )  # fmt: skip
    finding = found(claim, {("plain", 8): [1.0] * 6}, metric="dh_factor_first", base={"activation": "relu"})
    assert (finding.verdict, finding.estimates[0].value, finding.estimates[2].value) == ("undecided", None, None)
    assert "theory has no closed form" in finding.reason
    assert "没有闭式解" in finding.reasons["zh"]
