"""Claims that at least one of several differences meets a bound. The rules stand in `judging`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from depthscope.analysis import samples
from depthscope.analysis.differences import Pair, divergence, means
from depthscope.analysis.effects import with_effect
from depthscope.analysis.finding import Estimate, Verdict
from depthscope.analysis.intervals import paired_t_interval
from depthscope.analysis.levels import each_once
from depthscope.analysis.rounding import scale_of_operands
from depthscope.analysis.table import Results
from depthscope.analysis.verdicts import Judgement, against, noted, of_survivors
from depthscope.study.claims import Expect, SomeDifferenceClaim

Tried = tuple[Estimate, Verdict]


def judge_some(results: Results, claim: SomeDifferenceClaim, level: float) -> Judgement:
    """Each alternative minus the one that all are compared with, mean over seeds, paired.

    **Support** takes the best of K chances. By Holm's procedure (1979) each of the k that are left gets the coverage
    1 - (1 - level) / k; those that meet the bound leave, and the rest is tried again. So all that are named as meeting
    it do, but for an error of 1 - level at most for any of them. **Refutation** says that no alternative meets it, and
    is that of every one at `level`: it is wrong only where one that meets the bound was refuted by its own interval
    (an intersection-union test; Berger 1982, Technometrics 24). Shown are the intervals that decided, those that
    meet the bound first and then the nearest; of an undecided claim the widest ones, none of which meets it.

    An alternative with runs that are missing or failed is undecided by itself, and keeps no other from being shown.
    """
    side = samples.samples(results, claim.part, claim.b)
    pairs: dict[str, Pair] = {}
    for index, select in enumerate(claim.a):
        pairs[f"a.{index}"] = samples.samples(results, claim.part, select), side
    met, left = _holm(pairs, claim, level)
    verdict: Verdict = "supported" if met else "undecided"
    if not met:
        singly = {key: _try(pair, claim, level) for key, pair in pairs.items()}
        if all(each == "refuted" for _, each in singly.values()):
            verdict, left = "refuted", singly
    order = [
        *sorted(met.values(), key=lambda each: _distance(each[0], claim.expect)),
        *sorted(left.values(), key=lambda each: _distance(each[0], claim.expect)),
    ]
    cells = each_once([found for pair in pairs.values() for found in pair])
    said = {each for pair in pairs.values() for each in divergence([pair], claim.metric, claim.expect)}
    columns = [samples.mean_by_seed(found, claim.metric) for found in (side, *(pair[0] for pair in pairs.values()))]
    sides = [side, *(pair[0] for pair in pairs.values())]
    return Judgement(
        verdict=verdict,
        estimates=(
            *(estimate for estimate, _ in order),
            *means(zip(sides, columns, strict=True), claim.metric, claim.unit),
        ),
        num_judged=len(order),
        num_met=len(met),
        census=samples.census(cells, claim.metric),
        said=tuple(sorted(said)) if verdict == "undecided" else (),
    )


def _holm(
    pairs: Mapping[str, Pair], claim: SomeDifferenceClaim, level: float
) -> tuple[dict[str, Tried], dict[str, Tried]]:
    """(those that meet the bound, the others), each with the interval it was last tried by."""
    met: dict[str, Tried] = {}
    while True:
        left = {key: pair for key, pair in pairs.items() if key not in met}
        tried = {key: _try(pair, claim, 1.0 - (1.0 - level) / len(left)) for key, pair in left.items()}
        now = {key: each for key, each in tried.items() if each[1] == "supported"}
        met |= now
        if not now or len(met) == len(pairs):
            return met, {key: each for key, each in tried.items() if key not in met}


def _try(pair: Pair, claim: SomeDifferenceClaim, level: float) -> Tried:
    columns = [samples.mean_by_seed(found, claim.metric) for found in pair]
    name = f"{claim.metric}: {samples.place(pair[0])} minus {samples.place(pair[1])}"
    found = paired_t_interval(*columns, level=level, name=name, unit=claim.unit)
    scale = scale_of_operands(value for column in columns for value in column.values())
    said = divergence([pair], claim.metric, claim.expect)
    counts = samples.census(each_once(pair), claim.metric)
    verdict = of_survivors(against(found.low, found.high, claim.expect, claim.than, scale), said)
    return with_effect(noted(found, counts, said)), "undecided" if counts.silent else verdict


def _distance(estimate: Estimate, expect: Expect) -> float:
    """What an estimate is sorted by: the nearer to the claimed side the smaller."""
    if estimate.value is None:
        return math.inf
    return -estimate.value if expect == "at_least" else estimate.value
