"""Families of claims, and the document that is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from depthscope.analysis.findings import findings_document, judge
from depthscope.analysis.intervals import paired_t_interval, proportion_interval, t_interval
from depthscope.analysis.verdicts import against
from depthscope.analysis.wording import METRIC_NAMES, counted, quantity, spoken, spread
from depthscope.record.schema import SUMMARY
from depthscope.study.claims import DifferenceClaim, DifferenceInDifferencesClaim, LevelClaim, Select

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults, MakeTable


def claim(name: str, arm: str, than: float = 0.0, *, confirmatory: bool = True) -> DifferenceClaim:
    return DifferenceClaim(
        name=name,
        text={"en": name},
        part="main",
        metric="train_loss",
        unit="nats",
        confirmatory=confirmatory,
        kind="difference",
        a=Select(arm=arm, where={"depth": "max"}),
        b=Select(arm=arm, where={"depth": "min"}),
        expect="at_least",
        than=than,
    )


# Paired differences with known two-sided p values: plain .4 .5 .6 (t = 8.66, p = .0131),
# res .1 .3 .2 (t = 3.46, p = .0742).
VALUES = {
    ("plain", 8): [1.4, 1.5, 1.6],
    ("plain", 2): [1.0, 1.0, 1.0],
    ("res", 8): [1.1, 1.3, 1.2],
    ("res", 2): [1.0, 1.0, 1.0],
}


def test_one_confirmatory_claim_is_judged_at_95(make_results: MakeResults, table: MakeTable) -> None:
    results = make_results(table(VALUES, "train_loss"), claim("a", "plain"), claim("b", "res", confirmatory=False))
    first, second = judge(results)
    assert (first.confirmatory, first.verdict, first.estimates[0].level) == (True, "supported", 0.95)
    assert (second.confirmatory, second.verdict, second.estimates[0].level) == (False, "undecided", 0.95)


def test_holm_steps_down(make_results: MakeResults, table: MakeTable) -> None:
    """The smaller p .0131 is held against .025 and passes; then .0742 against .05 fails."""
    first, second = judge(make_results(table(VALUES, "train_loss"), claim("a", "plain"), claim("b", "res")))
    assert (first.verdict, first.estimates[0].level) == ("supported", 0.975)
    assert (second.verdict, second.estimates[0].level) == ("undecided", 0.95)


def test_a_refuted_claim_leaves_the_family_too(make_results: MakeResults, table: MakeTable) -> None:
    """Plain minus 1 has p = .0131 on the wrong side, res plus .1 p = .035: under .05 once the first has left."""
    claims = [claim("a", "plain", than=1.0), claim("b", "res", than=-0.1)]
    first, second = judge(make_results(table(VALUES, "train_loss"), *claims))
    assert (first.verdict, first.estimates[0].level) == ("refuted", 0.975)
    assert (second.verdict, second.estimates[0].level) == ("supported", 0.95)


def test_holm_stops_where_the_smallest_fails(make_results: MakeResults, table: MakeTable) -> None:
    """Four claims: .0131 is over .05 / 4, so nothing is decided, and no interval is clear of its bound."""
    claims = [claim("a", "plain"), claim("b", "res"), claim("c", "res", -0.001), claim("d", "res", 0.001)]
    findings = judge(make_results(table(VALUES, "train_loss"), *claims))
    assert {finding.verdict for finding in findings} == {"undecided"}
    assert {finding.estimates[0].level for finding in findings} == {1 - 0.05 / 4}
    assert findings[0].estimates[0].low < 0 < findings[0].estimates[0].high  # type: ignore[operator]
    assert "98.8% CI" in findings[0].reason


def test_the_changes_behind_a_double_difference_are_held_to_the_coverage_of_the_family(
    make_results: MakeResults, table: MakeTable
) -> None:
    """Of three such claims none is decided: plain's own change, clear of 0 at 95%, is not shown so beside the word."""
    deep, shallow = {"depth": "max"}, {"depth": "min"}
    double = DifferenceInDifferencesClaim(
        name="a", text={"en": "x"}, part="main", metric="train_loss", unit="nats", confirmatory=True,
        kind="difference_in_differences",
        first=(Select(arm="plain", where=deep), Select(arm="plain", where=shallow)),
        second=(Select(arm="res", where=deep), Select(arm="res", where=shallow)),
        expect="at_least", than=0.0,
    )  # fmt: skip
    claims = [double.model_copy(update={"name": name}) for name in "abc"]
    for finding in judge(make_results(table(VALUES, "train_loss"), *claims)):
        assert finding.verdict == "undecided"
        _, plain, _ = finding.estimates
        assert {each.level for each in finding.estimates} == {1 - 0.05 / 3}
        # Half width 7.649 * .1 / sqrt(3) = .4416 (at 95% .248); the effect size beside it covers as much.
        assert (plain.low, plain.high) == pytest.approx((0.0584, 0.9416), abs=1e-3)
        assert {each.effect.level for each in finding.estimates if each.effect} == {1 - 0.05 / 3}


def test_every_interval_of_a_corrected_family_names_its_own_coverage(
    make_results: MakeResults, table: MakeTable
) -> None:
    """A difference, a median and a count over seeds, none of them decided: all at 1 - .05/3, and said so."""
    common: dict[str, Any] = {"text": {"en": "x"}, "part": "main", "metric": "train_loss", "confirmatory": True}
    cells = (Select(arm="plain", where={"depth": "max"}),)
    level: dict[str, Any] = {**common, "kind": "level", "cells": cells, "expect": "at_most", "than": 1.45}
    values = {key: column * 3 if key != ("res", 8) else [1.0, 2.0, 0.5] * 3 for key, column in VALUES.items()}
    values["plain", 8] = [1.4, 1.5, None, *values["plain", 8][3:]]  # type: ignore[list-item]
    findings = judge(
        make_results(
            table(values, "train_loss"),
            claim("a", "res"),
            LevelClaim(name="b", statistic="median", **level),
            LevelClaim(name="c", statistic="every_seed", **{**level, "than": 9.0}),
            seeds=9,
        )
    )
    for finding in findings:
        assert finding.verdict == "undecided"
        assert finding.estimates[0].level == pytest.approx(1 - 0.05 / 3)
        for text in finding.reasons.values():
            assert "98.3% CI" in text
            assert "95% CI" not in text
    fraction = findings[2].estimates[0]
    assert fraction.low == pytest.approx((0.05 / 6) ** (1 / 8))  # 8 of 8 seeds at that coverage


@pytest.mark.parametrize(("level", "told"), [(0.95, "95% CI"), (0.975, "97.5% CI"), (1 - 0.05 / 4, "98.8% CI")])
def test_coverage_in_words(level: float, told: str) -> None:
    shown = [
        spread(paired_t_interval({0: 1.0, 1: 2.0}, {0: 0.5, 1: 1.0}, level=level), "en"),
        spread(t_interval([1.0, 2.0] * 5, level=level), "zh"),
        counted(proportion_interval(3, 4, level=level), "zh"),
    ]
    assert all(told in each for each in shown)


@pytest.mark.parametrize("studies", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_family_wise_error_under_the_null(studies: int, make_results: MakeResults, table: MakeTable) -> None:
    """Two true nulls: some claim is supported wrongly in at most 5% of studies (one-sided: 2.5% at most)."""
    rng = np.random.default_rng(11)
    wrong, decided = 0, 0
    for _ in range(studies):
        draws = rng.normal(size=(4, 3)).tolist()
        values = dict(zip(VALUES, draws, strict=True))
        findings = judge(make_results(table(values, "train_loss"), claim("a", "plain"), claim("b", "res")))
        wrong += any(finding.verdict == "supported" for finding in findings)
        decided += any(finding.verdict != "undecided" for finding in findings)
        for finding in findings:
            first = finding.estimates[0]
            clear = against(first.low, first.high, "at_least", 0.0)
            assert clear == finding.verdict
    two_errors = 2 * (0.05 * 0.95 / studies) ** 0.5
    assert decided / studies <= 0.05 + two_errors
    assert wrong / studies <= 0.025 + two_errors


def test_claims_of_other_sizes_are_left_out(make_results: MakeResults, table: MakeTable) -> None:
    other = claim("b", "res").model_copy(update={"sizes": ("full",)})
    findings = judge(make_results(table(VALUES, "train_loss"), claim("a", "plain"), other))
    assert [finding.claim for finding in findings] == ["a"]


def test_document(make_results: MakeResults, table: MakeTable) -> None:
    results = make_results(table(VALUES, "train_loss"), claim("a", "plain"))
    document = findings_document(results, judge(results), {"numpy": "2"})
    again = json.loads(json.dumps(document, allow_nan=False))
    assert set(again) == {"schema", "study", "provenance", "findings", "diagnoses"}
    assert [(each["arm"], each["shallow"], each["deep"]) for each in again["diagnoses"]] == [
        ("plain", 2, 8),
        ("res", 2, 8),
    ]
    assert again["study"]["name"] == "made-up"
    assert again["provenance"] == {"numpy": "2"}
    (finding,) = again["findings"]
    assert {"claim", "kind", "confirmatory", "family", "verdict", "margin", "estimates", "pairing"} <= set(finding)
    assert {"name", "value", "low", "high", "n", "unit"} <= set(finding["estimates"][0])
    assert finding["estimates"][0]["values"] == pytest.approx([0.4, 0.5, 0.6])


def test_reason_is_made_of_the_numbers(make_results: MakeResults, table: MakeTable) -> None:
    (finding,) = judge(make_results(table(VALUES, "train_loss"), claim("a", "plain")))
    assert finding.reason == (
        "training loss: plain, depth 8 minus plain, depth 2 = 0.500 nats [95% CI 0.252 to 0.748, 3 seeds]. "
        "Asked: at least 0 nats. So: supported."
    )
    assert finding.reasons["zh"] == (
        "训练损失（plain，深度 8 减 plain，深度 2）：0.500 nats [95% CI 0.252 至 0.748，3 个种子]。"
        "要求：不小于 0 nats。结论：成立。"
    )


def test_every_metric_has_a_spoken_name() -> None:
    for names in METRIC_NAMES.values():
        assert set(names) == set(SUMMARY)
    assert spoken("unknown_metric: mean of x", "en") == "unknown_metric: mean of x"


@pytest.mark.parametrize(
    ("value", "unit", "more", "shown"),
    [
        (-0.00001, "accuracy", {"change": True, "signed": True}, "0.0 points"),
        (0.2314, "accuracy", {"change": True, "signed": True}, "+23.1 points"),
        (0.2314, "accuracy", {}, "23.1%"),
        (12.34, "nats", {}, "12.3 nats"),
        (0.001234, "nats", {}, "0.00123 nats"),
        (0.0845, "nats", {"scale": 0.29}, "0.085 nats"),
        (-0.0001, "nats", {"scale": 1.0}, "0.00 nats"),
        (4e-16, "", {}, "4e−16"),
        (0.0, "nats", {"signed": True}, "0 nats"),
        (12345.0, "", {}, "1.23e+04"),
    ],
)
def test_quantities(value: float, unit: str, more: dict[str, Any], shown: str) -> None:
    assert quantity(value, unit, "en", **more) == shown
