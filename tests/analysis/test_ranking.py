"""Rankings against an example by hand, lost runs, and all pairs compared at once against a slow twin."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from tests.analysis.conftest import BASE, record_of

from depthscope.analysis.ranking import RankedArm, Ranking, rankings
from depthscope.analysis.simultaneous import compare_all, inverse_trigamma
from depthscope.analysis.table import Results
from depthscope.study.expand import expand
from depthscope.study.study import Arm, Part, StudySpec

NAMES = ("plain", "good", "near", "bad")
SPREAD = (-0.01, 0.0, 0.01)


def ranked(
    deep: dict[str, list[Any]],
    shallow: dict[str, list[Any]] | None = None,
    *,
    metric: str = "train_accuracy",
    counts: dict[str, int] | None = None,
    **more: Any,
) -> Ranking:
    """The ranking of arms with these figures by seed at depth 8; a word is how a run ended, None a missing one."""
    names = list(deep)
    study = StudySpec(
        name="made-up",
        title={"en": "made up"},
        base=BASE,
        seeds=max(len(column) for column in deep.values()),
        parts={
            "main": Part.model_validate(
                {
                    "arms": [Arm(name=name, set={"gain": 0.5 + at / 10}) for at, name in enumerate(names)],
                    "axes": {"depth": [2, 8]},
                    "ranked": metric,
                    **more,
                }
            )
        },
    )
    plan = expand(study)
    records = {}
    for cell in plan.cells:
        column = deep[cell.arm] if cell.axes["depth"] == 8 else (shallow or deep)[cell.arm]
        found = column[cell.seed]
        if found is not None:
            count = (counts or {}).get(cell.arm, 100) * cell.axes["depth"]
            figures = found if isinstance(found, str) else {metric: found}
            records[cell.run_id] = record_of(plan.runs[cell.run_id], figures, parameters=count)
    (found,) = rankings(Results(plan=plan, records=records, load_table=lambda run_id, name: None))
    return found


def around(mean: float, *shifts: float) -> list[float]:
    return [mean + shift for shift in shifts or SPREAD]


def row(found: Ranking, arm: str) -> RankedArm:
    return next(each for each in found.arms if each.arm == arm)


DEEP = {
    "plain": around(0.5, -0.01, 0.02, -0.01),
    "good": around(0.9),
    "near": around(0.899, 0.0, -0.01, 0.01),
    "bad": around(0.1, 0.01, 0.0, -0.01),
}


def test_by_hand() -> None:
    """Good and near cannot be told apart; all else is clear by 40 standard deviations."""
    found = ranked(DEEP, {name: around(0.95) for name in NAMES}, counts={"plain": 100, "good": 103})
    assert [(each.arm, each.place, each.low, each.high) for each in found.arms] == [
        ("good", 1, 1, 2),
        ("near", 2, 1, 2),
        ("plain", 3, 3, 3),
        ("bad", 4, 4, 4),
    ]
    assert (found.num_pairs, found.num_settled, found.depths, found.baseline) == (6, 5, (2, 8), "plain")
    good, plain = row(found, "good"), row(found, "plain")
    # s = .01: 4.3027 * .01 / sqrt(3) = .02484
    assert (good.deepest.estimate.low, good.deepest.estimate.high) == pytest.approx((0.87516, 0.92484), abs=1e-5)
    assert good.change is not None
    assert good.change.values == pytest.approx((-0.05, -0.05, -0.05))
    assert plain.change is not None
    assert plain.change.value == pytest.approx(-0.45)
    assert good.from_baseline is not None
    assert good.from_baseline.values == pytest.approx((0.4, 0.38, 0.42))
    assert plain.from_best is not None
    assert plain.from_best.value == pytest.approx(-0.4)
    assert (good.from_best, plain.from_baseline) == (None, None)
    assert [cell.excess for cell in good.cells] == pytest.approx([0.03, 0.03])
    assert [cell.parameters for cell in good.cells] == [206, 824]
    assert [cell.excess for cell in plain.cells] == [0.0, 0.0]


def test_of_a_loss_the_smallest_is_first() -> None:
    assert [each.arm for each in ranked(DEEP, metric="train_loss").arms] == ["bad", "plain", "near", "good"]
    assert row(ranked(DEEP, metric="train_loss"), "bad").high == 1


def test_an_order_that_is_not_settled_says_so() -> None:
    rng = np.random.default_rng(3)
    found = ranked({name: list(rng.normal(0.9, 0.01, 3)) for name in NAMES})
    assert found.num_settled == 0
    assert {(each.low, each.high) for each in found.arms} == {(1, 4)}
    assert [each.place for each in found.arms] == [1, 2, 3, 4]


def test_equal_figures_share_a_place_and_settle_nothing_by_themselves() -> None:
    """Four arms without any spread: there is nothing to measure chance by, and .1 beside 1 three times is no proof."""
    found = ranked({"plain": [1.0] * 3, "good": [1.0] * 3, "near": [1.0] * 3, "bad": [0.1] * 3})
    assert [each.place for each in found.arms] == [1, 1, 1, 4]
    assert found.num_settled == 0
    # Beside arms that do scatter, equal differences are taken to scatter as much as those.
    found = ranked(DEEP | {"full": [1.0] * 3, "whole": [1.0] * 3})
    assert [(each.arm, each.place) for each in found.arms[:3]] == [("full", 1), ("whole", 1), ("good", 3)]
    assert (row(found, "full").low, row(found, "full").high) == (1, 2)


def test_lost_runs_stand_last_and_are_never_found_better() -> None:
    found = ranked(DEEP | {"some": ["diverged", 0.99, 0.98], "all": ["diverged"] * 3})
    assert [each.arm for each in found.arms] == ["good", "near", "plain", "bad", "some", "all"]
    assert [each.deepest.num_lost for each in found.arms] == [0, 0, 0, 0, 1, 3]
    assert (row(found, "all").low, row(found, "all").high) == (5, 6)  # below the four that lost none
    assert (row(found, "some").low, row(found, "some").high) == (1, 6)  # survivors above all others prove nothing
    assert row(found, "good").low == 1
    assert row(found, "all").deepest.estimate.value is None


@pytest.mark.parametrize("seeds", [1, 3])
def test_what_lost_runs_decide_is_counted_apart_from_what_figures_show(seeds: int) -> None:
    found = ranked({name: column[:seeds] for name, column in DEEP.items()} | {"all": ["diverged"] * seeds})
    assert found.num_by_loss == 4  # facts of the runs that were made, of one seed too
    assert found.num_settled == (0 if seeds == 1 else 5)
    assert (row(found, "all").low, row(found, "good").high) == (5, 4 if seeds == 1 else 2)


def test_a_survivor_may_confirm_that_its_arm_is_worse() -> None:
    found = ranked(DEEP | {"some": ["diverged", 0.101, 0.099]})
    assert row(found, "some").low >= 3


@pytest.mark.parametrize("status", ["failed", None])
def test_what_says_nothing_is_compared_with_none(status: str | None) -> None:
    found = ranked(DEEP | {"bad": [status, 0.1, 0.11]})
    bad = row(found, "bad")
    assert (bad.low, bad.high) == (1, 4)
    assert row(found, "good").high == 3
    assert bad.place == 4
    assert bad.deepest.num_lost == (status == "failed")
    assert bad.deepest.census.missing == (status is None)


def test_an_arm_that_the_study_leaves_out_at_the_greatest_depth_has_no_rank() -> None:
    found = ranked(DEEP, exclude=[{"arm": "bad", "depth": 8}])
    assert [each.arm for each in found.arms] == ["good", "near", "plain"]


def test_further_axes_are_ranked_apart_and_other_parts_not_at_all(make_results: Any) -> None:
    assert rankings(make_results(lambda cell: {"train_accuracy": 1.0})) == ()


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.9), (0.9, 0.7), (1.1, 1.0), (1e-9, 3e-10)])
def test_equal_differences_have_no_variance_whatever_rounding_makes_of_them(a: float, b: float) -> None:
    """The variance of .1 three times is 2.9e-34 in floating point: no proof, and no part of a prior."""
    same = {name: dict.fromkeys(range(3), value) for name, value in (("a", a), ("b", b), ("c", a - 0.2 * b))}
    assert compare_all(same).above == frozenset()
    assert compare_all(same).prior.typical is None
    rng = np.random.default_rng(0)
    others = {str(at): dict(enumerate(rng.normal(0.5, 0.01, 3))) for at in range(3)}
    found = compare_all(others | same)
    variances = [
        np.var([x[seed] - y[seed] for seed in range(3)], ddof=1)
        for x, y in combinations((others | same).values(), 2)
        if x in others.values()
    ]
    assert found.prior.typical == pytest.approx(math.exp(np.log(variances).mean()))


def slow(columns: dict[str, list[float]]) -> tuple[set[tuple[str, str]], float, float]:
    """All pairs without arrays, tables or the library's t interval: Smyth's formulas and Holm's as they are printed."""
    n, num_arms = len(next(iter(columns.values()))), len(columns)
    pairs = list(combinations(columns, 2))
    means, s2 = {}, {}
    for a, b in pairs:
        differences = [x - y for x, y in zip(columns[a], columns[b], strict=True)]
        means[a, b] = sum(differences) / n
        s2[a, b] = sum((each - means[a, b]) ** 2 for each in differences) / (n - 1)
    d = n - 1
    z = [math.log(each) - special.digamma(d / 2) + math.log(d / 2) for each in s2.values()]
    center = sum(z) / len(z)
    excess = sum((each - center) ** 2 for each in z) / (len(z) - 1) - special.polygamma(1, d / 2)
    most = (num_arms - 2) / 4
    if excess <= 0:
        d0, s0 = most, math.exp(center)
    else:
        grid = np.exp(np.linspace(-14, 14, 400_001))  # trigamma(d0 / 2) = excess, by looking it up
        whole = 2 * float(grid[np.abs(special.polygamma(1, grid) - excess).argmin()])
        s0 = math.exp(center + special.digamma(whole / 2) - math.log(whole / 2))
        d0 = min(whole, most)
    p = {}
    for a, b in pairs:
        variance = max(s2[a, b], (d0 * s0 + d * s2[a, b]) / (d0 + d))
        statistic = means[a, b] * math.sqrt(n / variance)
        p[a, b] = stats.t.sf(statistic, d0 + d)
        p[b, a] = stats.t.sf(-statistic, d0 + d)
    found: set[tuple[str, str]] = set()
    for pair in sorted(p, key=lambda pair: p[pair]):
        if p[pair] * (len(p) - len(found)) > 0.05:
            break
        found.add(pair)
    return found, d0, s0


@pytest.mark.parametrize("seed", range(6))
def test_all_pairs_are_those_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = (3, 5)[seed % 2]
    scatter = (0.01, 0.01, 0.01, 0.02, 0.02, 0.1, 0.1) if seed < 4 else (0.05,) * 7
    columns = {f"arm{at}": list(0.1 * at + rng.normal(0, each, n)) for at, each in enumerate(scatter)}
    real = compare_all({name: dict(enumerate(column)) for name, column in columns.items()})
    above, d0, s0 = slow(columns)
    assert real.above == above
    assert (real.prior.df, real.prior.variance) == pytest.approx((d0, s0), rel=1e-3)
    assert 0 < len(real.above) < real.num_pairs == 21


@pytest.mark.parametrize("value", [1e-8, 0.01, 1.0, 20.0, 1e6])
def test_trigamma_backwards(value: float) -> None:
    assert float(special.polygamma(1, inverse_trigamma(value))) == pytest.approx(value, rel=1e-9)


def test_scatter_that_is_alike_lends_degrees_of_freedom_and_other_scatter_does_not() -> None:
    rng = np.random.default_rng(0)
    alike = {str(at): dict(enumerate(rng.normal(0, 1, 5))) for at in range(16)}
    apart = {str(at): dict(enumerate(rng.normal(0, 10.0 ** -(at // 2), 5))) for at in range(16)}
    assert compare_all(alike).prior.df == 3.5  # a quarter of the arms beyond two, and no more
    assert compare_all(apart).prior.df < 1.0
    assert compare_all({"a": {0: 1.0, 1: 2.0}, "b": {0: 1.5, 1: 2.0}}).prior.df == 0.0
    assert compare_all({"a": {0: 1.0}, "b": {1: 2.0}}).num_pairs == 0
