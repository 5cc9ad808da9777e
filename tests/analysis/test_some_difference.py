"""At least one of several differences meets a bound: a truth table, with the arithmetic by hand."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from depthscope.analysis.finding import Finding
from depthscope.analysis.findings import judge
from depthscope.analysis.verdict_words import verdict_sentence
from depthscope.study.claims import SomeDifferenceClaim
from depthscope.study.study import Arm

ARMS = tuple(
    Arm(name=name, set=fields)
    for name, fields in (
        ("plain", {"shortcut": "none"}),
        ("one", {"gain": 0.8}),
        ("two", {"gain": 0.9}),
        ("three", {"gain": 1.0}),
    )
)
BASE = [0.90, 0.92, 0.94]
# Differences to BASE: mean m, standard deviation .01 each, so that the half width at coverage c is t_c .01 / sqrt(3).
SHAPE = [-0.01, 0.0, 0.01]


def half(level: float) -> float:
    return float(stats.t.ppf(0.5 + level / 2, 2)) * 0.01 / 3**0.5


def column(mean: float) -> list[float]:
    return [base + mean + each for base, each in zip(BASE, SHAPE, strict=True)]


def claim(than: float = -0.1, expect: str = "at_least", **more: Any) -> SomeDifferenceClaim:
    return SomeDifferenceClaim.model_validate(
        {
            "kind": "some_difference", "name": "c", "text": {"en": "x"}, "part": "main", "metric": "train_accuracy",
            "unit": "accuracy", "expect": expect, "than": than, "b": {"arm": "plain", "where": {"depth": "min"}},
            "a": [{"arm": arm.name, "where": {"depth": "max"}} for arm in ARMS[1:]], **more,
        }
    )  # fmt: skip


@pytest.fixture
def said(make_results: Any, table: Any) -> Any:
    def make(deep: dict[str, list[Any]], asked: SomeDifferenceClaim | None = None) -> Finding:
        values = {(arm.name, depth): list(BASE) for arm in ARMS for depth in (2, 8)}
        values |= {(name, 8): found for name, found in deep.items()}
        (finding,) = judge(make_results(table(values), asked or claim(), arms=ARMS))
        return finding

    return make


def test_one_that_meets_the_bound_supports_and_is_named(said: Any) -> None:
    """The first of three is tried at 1 - .05/3 (half .0454), the others then at 1 - .05/2 and fall short."""
    found = said({"one": column(-0.04), "two": column(-0.09), "three": column(-0.3)})
    assert (found.verdict, found.num_met, found.num_judged) == ("supported", 1, 3)
    first, second, third = found.estimates[:3]
    assert (first.level, second.level, third.level) == pytest.approx((1 - 0.05 / 3, 0.975, 0.975))
    assert (first.low, second.low) == pytest.approx((-0.04 - half(1 - 0.05 / 3), -0.09 - half(0.975)))
    assert first.low > -0.1 > second.low
    assert found.reason.startswith(
        "1 of 3 meet it: training accuracy: one, depth 8 minus plain, depth 2 = −4.0 points ["
    )
    assert "Asked: for any of the 3 at least −10.0 points. So: supported." in found.reason
    assert "3 个中有 1 个符合：" in found.reasons["zh"]


def test_holm_finds_more_than_bonferroni_and_no_interval_shown_contradicts_it(said: Any) -> None:
    """At 1 - .05/3 the second reaches -.1009, at 1 - .05/2 its half is .0362 and it is met."""
    found = said({"one": column(-0.02), "two": column(-0.06), "three": column(-0.3)})
    assert -0.06 - half(1 - 0.05 / 3) < -0.1 < -0.06 - half(0.975)
    assert found.num_met == 2
    assert all(each.low >= -0.1 for each in found.estimates[:2])


def test_without_one_it_is_undecided_and_the_nearest_is_told(said: Any) -> None:
    """A difference that its own interval would put beyond the bound is one chance of three."""
    mean = -0.1 + (half(0.95) + half(1 - 0.05 / 3)) / 2
    found = said({"one": column(-0.3), "two": column(mean), "three": column(-0.4)})
    assert (found.verdict, found.num_met) == ("undecided", 0)
    assert found.estimates[0].name.startswith("train_accuracy: two")
    assert found.estimates[0].level == pytest.approx(1 - 0.05 / 3)
    assert found.reason.startswith("none of 3 is shown to meet it; nearest: training accuracy: two, depth 8 minus")
    (headline,) = verdict_sentence([found.model_copy(update={"confirmatory": True})], "en")
    assert "is undecided: none of 3 is shown to meet it; nearest two, depth 8, difference −" in headline


def test_all_refuted_at_the_single_level_refute(said: Any) -> None:
    means = [-0.1 - half(0.95) - 1e-4, -0.3, -0.4]
    deep = {arm.name: column(mean) for arm, mean in zip(ARMS[1:], means, strict=True)}
    found = said(deep)
    assert found.verdict == "refuted"
    assert {each.level for each in found.estimates[:3]} == {0.95}
    assert said(deep | {"one": column(-0.1 - half(0.95) + 1e-4)}).verdict == "undecided"


def test_at_most_goes_the_other_way(said: Any) -> None:
    deep = {"one": column(0.3), "two": column(-0.2), "three": column(0.4)}
    found = said(deep, claim(than=-0.1, expect="at_most"))
    assert (found.verdict, found.num_met, found.estimates[0].value) == ("supported", 1, pytest.approx(-0.2))


@pytest.mark.parametrize("lost", ["diverged", "failed", None])
def test_an_alternative_without_its_runs_keeps_no_other_from_support_but_keeps_refutation_away(
    said: Any, lost: str | None
) -> None:
    gone = [lost, *column(-0.3)[1:]]
    assert said({"one": column(-0.02), "two": gone, "three": column(-0.3)}).verdict == "supported"
    assert said({"one": column(-0.3), "two": [lost] * 3, "three": column(-0.3)}).verdict == "undecided"
    # One that lost a seed is not supported by the others, however good they are.
    assert said({"one": column(-0.3), "two": [lost, *column(0.0)[1:]], "three": column(-0.3)}).num_met == 0


def test_the_side_that_all_are_compared_with_must_be_there(said: Any, make_results: Any, table: Any) -> None:
    values = {(arm.name, depth): list(BASE) for arm in ARMS for depth in (2, 8)}
    values["plain", 2] = [None, *BASE[1:]]  # type: ignore[list-item]
    (finding,) = judge(make_results(table(values), claim(), arms=ARMS))
    assert finding.verdict == "undecided"
    assert "1 of 12 runs are missing" in finding.reason


def test_the_pairings_are_one_for_each_alternative(said: Any) -> None:
    found = said({"one": column(-0.04), "two": column(-0.09), "three": column(-0.3)})
    assert [each.a for each in found.pairing] == ["one, depth 8", "two, depth 8", "three, depth 8"]
    assert {each.b for each in found.pairing} == {"plain, depth 2"}
