"""One claim, judged at one level of confidence. The rules in a table:

| claim | judged by | supported | refuted |
| --- | --- | --- | --- |
| difference (in differences) | paired t interval over seeds | all of it satisfies | all of it violates |
| level, every seed | each observed (cell, seed) | all satisfy, none is absent | any violates |
| level, median | order-statistics interval of each cell's median | all satisfy | any wholly violates |
| ratio to theory | the same, of measured / expected | all within 1 +- tolerance | any wholly outside |

Else it is undecided. Without spread (two values or more, all exactly equal) the value itself decides;
one value never does.

A run that is missing leaves a claim undecided (a violation that was seen still refutes "every seed").
A run that diverged has no figure. Its pair is dropped from a difference, and told. For a level claim
it has been worse than any bound: it violates "accuracy is at least" and "loss is at most". Of the
opposite claims ("accuracy is at most") it says nothing: "every seed" can then no longer be supported.
A run that failed, or lacks the metric, says nothing either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from depthscope.analysis import samples
from depthscope.analysis.expected import expected
from depthscope.analysis.finding import Estimate, Verdict
from depthscope.analysis.intervals import (
    bounds_of,
    has_no_spread,
    median_ends,
    median_interval,
    paired_t_interval,
    proportion_interval,
    t_interval,
)
from depthscope.analysis.samples import Census, Sample
from depthscope.analysis.table import Results
from depthscope.study.claims import (
    Claim,
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    Expect,
    LevelClaim,
    Select,
    TheoryClaim,
)

NO_CLOSED_FORM = "no closed form for this run"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict with what it was made from.

    Attributes:
        verdict: see the module's table.
        estimates: the judged estimate (or, for several cells, estimates) first, then what it was made from.
        num_judged: how many of the estimates carry the verdict.
        census: what became of the runs.
    """

    verdict: Verdict
    estimates: tuple[Estimate, ...]
    num_judged: int
    census: Census


def judge_claim(results: Results, claim: Claim, level: float = 0.95) -> Judgement:
    """Judge a claim from the records, with intervals of this coverage."""
    match claim:
        case DifferenceClaim() | DifferenceInDifferencesClaim():
            return _difference(results, claim, level)
        case LevelClaim(statistic="every_seed"):
            return _every_seed(results, claim, level)
        case LevelClaim():
            return _median(results, claim, level)
        case TheoryClaim():
            return _theory(results, claim, level)


def against(low: float | None, high: float | None, expect: Expect, than: float) -> Verdict:
    """The verdict of an interval on a bound; without an interval undecided.

    >>> against(0.1, 0.3, "at_least", 0.0), against(-0.1, 0.3, "at_least", 0.0), against(0.1, 0.3, "at_most", 0.0)
    ('supported', 'undecided', 'refuted')
    """
    if low is None or high is None:
        return "undecided"
    if expect == "at_most":
        low, high, than = -high, -low, -than
    if low >= than:
        return "supported"
    return "refuted" if high < than else "undecided"


def ends(estimate: Estimate) -> tuple[float | None, float | None]:
    """The interval; where all values are equal, the value as both its ends."""
    if estimate.low is None and has_no_spread(estimate):
        return estimate.value, estimate.value
    return estimate.low, estimate.high


def _difference(results: Results, claim: DifferenceClaim | DifferenceInDifferencesClaim, level: float) -> Judgement:
    def chosen(select: Select) -> tuple[Sample, ...]:
        return samples.samples(results, claim.part, select)

    pairs = ((claim.a, claim.b),) if isinstance(claim, DifferenceClaim) else (claim.first, claim.second)
    cells = [(chosen(a), chosen(b)) for a, b in pairs]
    columns = [tuple(samples.mean_by_seed(found, claim.metric) for found in pair) for pair in cells]
    names = [f"{claim.metric}: {samples.place(a)} minus {samples.place(b)}" for a, b in cells]
    made_from: list[Estimate]
    if len(cells) == 1:
        judged = paired_t_interval(*columns[0], level=level, name=names[0], unit=claim.unit)
        made_from = [
            t_interval(
                list(column.values()),
                name=f"{claim.metric}: {samples.place(found)}",
                unit=claim.unit,
                bounds=bounds_of(claim.metric),
            )
            for found, column in zip(cells[0], columns[0], strict=True)
        ]
    else:
        changes = [_subtract(*pair) for pair in columns]
        name = f"{claim.metric}: ({_short(cells[0])}) minus ({_short(cells[1])})"
        judged = paired_t_interval(changes[0], changes[1], level=level, name=name, unit=claim.unit)
        made_from = [
            paired_t_interval(*pair, name=name, unit=claim.unit) for pair, name in zip(columns, names, strict=True)
        ]
    counts = samples.census(_each_once(cells), claim.metric)
    verdict = against(*ends(judged), claim.expect, claim.than)
    return Judgement(
        verdict="undecided" if counts.missing else verdict,
        estimates=(_noted(judged, counts), *made_from),
        num_judged=1,
        census=counts,
    )


def _every_seed(results: Results, claim: LevelClaim, level: float) -> Judgement:
    found = _level_cells(results, claim)
    satisfied = []
    for sample in found:
        for row in sample.rows:
            value = row.value(claim.metric)
            if value is None and samples.status(row) == "diverged" and _divergence_violates(claim):
                satisfied.append(False)
            elif value is not None:
                satisfied.append(value >= claim.than if claim.expect == "at_least" else value <= claim.than)
    counts = samples.census(found, claim.metric)
    judged = proportion_interval(
        sum(satisfied), len(satisfied), level=level, name=f"{claim.metric}: fraction of runs that satisfy the claim"
    ).model_copy(update={"values": tuple(float(each) for each in satisfied)})
    if satisfied and not all(satisfied):
        verdict: Verdict = "refuted"
    else:
        verdict = "supported" if satisfied and len(satisfied) == counts.total else "undecided"
    medians = (_median_of(sample, claim, 0.95) for sample in found)
    return Judgement(verdict=verdict, estimates=(_noted(judged, counts), *medians), num_judged=1, census=counts)


def _median(results: Results, claim: LevelClaim, level: float) -> Judgement:
    found = _level_cells(results, claim)
    counts = samples.census(found, claim.metric)
    estimates, verdicts = [], []
    for sample in found:
        estimates.append(_noted(_median_of(sample, claim, level), samples.census([sample], claim.metric)))
        known = [value for value in _values(sample, claim) if value is not None]
        low, high = median_ends(known, level) or (None, None)
        verdicts.append(against(low, high, claim.expect, claim.than))
    return Judgement(
        verdict="undecided" if counts.missing else _all_hold(verdicts),
        estimates=tuple(estimates),
        num_judged=len(estimates),
        census=counts,
    )


def _median_of(sample: Sample, claim: LevelClaim, level: float) -> Estimate:
    values = _values(sample, claim)
    return median_interval(values, level=level, name=f"{claim.metric}: median of {sample.label}", unit=claim.unit)


def _values(sample: Sample, claim: LevelClaim) -> list[float | None]:
    """The metric by seed, with a diverged run that violates the claim at the far end of all values."""
    worst = -math.inf if claim.expect == "at_least" else math.inf
    return [
        worst if samples.status(row) == "diverged" and _divergence_violates(claim) else row.value(claim.metric)
        for row in sample.rows
    ]


def _theory(results: Results, claim: TheoryClaim, level: float) -> Judgement:
    found = samples.samples(results, claim.part, claim.cell)
    counts = samples.census(found, claim.metric)
    judged, made_from = [], []
    verdicts: list[Verdict] = []
    for sample in found:
        theory = expected(sample.rows[0].spec, claim.metric)
        measured = list(sample.by_seed(claim.metric).values())
        ratios = [None if value is None or not theory else value / theory for value in measured]
        ratio = median_interval(ratios, level=level, name=f"{claim.metric}: measured / expected, {sample.label}")
        low, high = ends(ratio)
        over = against(low, high, "at_least", 1.0 - claim.tolerance)
        under = against(low, high, "at_most", 1.0 + claim.tolerance)
        verdicts.append(
            "refuted" if "refuted" in (over, under) else "supported" if over == under == "supported" else "undecided"
        )
        judged.append(_noted(ratio, samples.census([sample], claim.metric)))
        made_from.append(median_interval(measured, name=f"{claim.metric}: measured, {sample.label}", unit=claim.unit))
        made_from.append(
            Estimate(
                name=f"{claim.metric}: expected, {sample.label}",
                value=theory,
                n=0,
                unit=claim.unit,
                method=None if theory is None else "closed form",
                note=NO_CLOSED_FORM if theory is None else None,
            )
        )
    return Judgement(
        verdict="undecided" if counts.missing else _all_hold(verdicts),
        estimates=(*judged, *made_from),
        num_judged=len(judged),
        census=counts,
    )


def _level_cells(results: Results, claim: LevelClaim) -> tuple[Sample, ...]:
    return _each_once([tuple(samples.samples(results, claim.part, select) for select in claim.cells)])


def _each_once(groups: Sequence[Sequence[tuple[Sample, ...]]]) -> tuple[Sample, ...]:
    """All samples, one that two selections share only once."""
    kept: list[Sample] = []
    for pair in groups:
        for found in pair:
            kept += [sample for sample in found if sample not in kept]
    return tuple(kept)


def _divergence_violates(claim: LevelClaim) -> bool:
    """Whether a diverged run breaks the claim: "accuracy is at least" and "loss is at most" do break."""
    return (claim.expect == "at_most") == ("loss" in claim.metric)


def _all_hold(verdicts: Sequence[Verdict]) -> Verdict:
    if "refuted" in verdicts:
        return "refuted"
    return "supported" if verdicts and set(verdicts) == {"supported"} else "undecided"


def _subtract(a: dict[int, float | None], b: dict[int, float | None]) -> dict[int, float | None]:
    out: dict[int, float | None] = {}
    for seed in sorted({*a, *b}):
        left, right = a.get(seed), b.get(seed)
        out[seed] = None if left is None or right is None else left - right
    return out


def _short(pair: tuple[tuple[Sample, ...], tuple[Sample, ...]]) -> str:
    return f"{samples.place(pair[0])} minus {samples.place(pair[1])}"


def _noted(estimate: Estimate, counts: Census) -> Estimate:
    """The estimate, its note joined with what became of the runs."""
    notes = [*([estimate.note] if estimate.note else []), *counts.notes("en")]
    return estimate.model_copy(update={"note": "; ".join(notes) or None})
