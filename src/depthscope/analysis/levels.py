"""Claims on levels, and on the ratio of a level to theory. The rules stand in `judging`."""

from __future__ import annotations

from collections.abc import Sequence

from depthscope.analysis import samples
from depthscope.analysis.expected import expected
from depthscope.analysis.finding import Estimate, Verdict
from depthscope.analysis.intervals import median_ends, median_interval, proportion_interval
from depthscope.analysis.notes import joined, note
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import ResultRow, Results
from depthscope.analysis.verdicts import (
    Judgement,
    Says,
    against,
    all_hold,
    diverged_value,
    divergence_says,
    noted,
    of_survivors,
)
from depthscope.study.claims import LevelClaim, TheoryClaim


def judge_every_seed(results: Results, claim: LevelClaim, level: float) -> Judgement:
    """Whether every run satisfies, counted by seed.

    The cells of a seed share its data, its batch order and often its initial tensors, so that they are
    no independent trials: the interval of the fraction is over seeds. A seed satisfies where all its
    cells do, and does not where one is seen not to; else it is left out of the count.
    """
    found = _cells(results, claim)
    by_seed: dict[int, list[bool | None]] = {}
    for sample in found:
        for row in sample.rows:
            by_seed.setdefault(row.cell.seed, []).append(_satisfies(row, claim))
    known = {seed: False not in facts for seed, facts in sorted(by_seed.items()) if False in facts or None not in facts}
    num_runs = sum(fact is not None for seed in known for fact in by_seed[seed])
    several = num_runs > len(known)
    judged = proportion_interval(
        sum(known.values()),
        len(known),
        level=level,
        name=f"{claim.metric}: fraction of seeds that satisfy the claim",
    )
    phrases = [judged.note] if judged.note else []
    if len(known) < len(by_seed):
        phrases.append(note("seeds_not_seen", k=len(by_seed) - len(known), n=len(by_seed)))
    if several:
        phrases.append(note("runs_of_seeds", n=num_runs))
    judged = judged.model_copy(
        update={
            "values": tuple(float(each) for each in known.values()),
            "num_runs": num_runs if several else None,
            "note": joined(phrases),
        }
    )
    if False in known.values():
        verdict: Verdict = "refuted"
    else:
        verdict = "supported" if known and len(known) == len(by_seed) else "undecided"
    counts = samples.census(found, claim.metric)
    medians = (_median_of(sample, claim, 0.95) for sample in found)
    return Judgement(verdict=verdict, estimates=(noted(judged, counts), *medians), num_judged=1, census=counts)


def judge_median(results: Results, claim: LevelClaim, level: float) -> Judgement:
    """The median over seeds of each cell."""
    found = _cells(results, claim)
    counts = samples.census(found, claim.metric)
    estimates, verdicts = [], []
    told: set[Says] = set()
    for sample in found:
        said = _taken_out(sample, claim)
        told |= said
        estimates.append(noted(_median_of(sample, claim, level), samples.census([sample], claim.metric), said))
        known = [value for value in _values(sample, claim) if value is not None]
        low, high = median_ends(known, level) or (None, None)
        verdicts.append(of_survivors(against(low, high, claim.expect, claim.than), said))
    return Judgement(
        verdict="undecided" if counts.silent else all_hold(verdicts),
        estimates=tuple(estimates),
        num_judged=len(estimates),
        census=counts,
        said=tuple(sorted(told)),
    )


def judge_theory(results: Results, claim: TheoryClaim, level: float) -> Judgement:
    """The median over seeds of measured / expected, in each cell."""
    found = samples.samples(results, claim.part, claim.cell)
    counts = samples.census(found, claim.metric)
    said: tuple[Says, ...] = ("unknown",) if counts.diverged else ()
    judged, made_from = [], []
    verdicts: list[Verdict] = []
    for sample in found:
        theory = expected(sample.rows[0].spec, claim.metric)
        measured = list(sample.by_seed(claim.metric).values())
        ratios = [None if value is None or not theory else value / theory for value in measured]
        ratio = median_interval(ratios, level=level, name=f"{claim.metric}: measured / expected, {sample.label}")
        over = against(ratio.low, ratio.high, "at_least", 1.0 - claim.tolerance)
        under = against(ratio.low, ratio.high, "at_most", 1.0 + claim.tolerance)
        verdicts.append(
            "refuted" if "refuted" in (over, under) else "supported" if over == under == "supported" else "undecided"
        )
        own = samples.census([sample], claim.metric)
        judged.append(noted(ratio, own, said if own.diverged else ()))
        made_from.append(median_interval(measured, name=f"{claim.metric}: measured, {sample.label}", unit=claim.unit))
        made_from.append(
            Estimate(
                name=f"{claim.metric}: expected, {sample.label}",
                value=theory,
                n=0,
                unit=claim.unit,
                method=None if theory is None else "closed form",
                note=note("no_closed_form") if theory is None else None,
            )
        )
    return Judgement(
        verdict="undecided" if counts.silent else of_survivors(all_hold(verdicts), said),
        estimates=(*judged, *made_from),
        num_judged=len(judged),
        census=counts,
        said=said,
    )


def _cells(results: Results, claim: LevelClaim) -> tuple[Sample, ...]:
    return each_once([samples.samples(results, claim.part, select) for select in claim.cells])


def each_once(groups: Sequence[tuple[Sample, ...]]) -> tuple[Sample, ...]:
    """All samples, one that two selections share only once."""
    kept: list[Sample] = []
    for found in groups:
        kept += [sample for sample in found if sample not in kept]
    return tuple(kept)


def _satisfies(row: ResultRow, claim: LevelClaim) -> bool | None:
    """Whether a run satisfies the claim; None where it says nothing."""
    value = _value(row, claim)
    if value is None:
        return None
    return value >= claim.than if claim.expect == "at_least" else value <= claim.than


def _value(row: ResultRow, claim: LevelClaim) -> float | None:
    """The metric, or its far end for a run whose divergence violates the claim."""
    worst = diverged_value(claim.metric)
    if samples.status(row, claim.metric) == "diverged" and divergence_says(worst, claim.expect) == "against":
        return worst
    return row.value(claim.metric)


def _taken_out(sample: Sample, claim: LevelClaim) -> set[Says]:
    """What the runs that diverged say, where they have no place in the order."""
    said = divergence_says(diverged_value(claim.metric), claim.expect)
    some = any(samples.status(row, claim.metric) == "diverged" for row in sample.rows)
    return {said} if some and said != "against" else set()


def _median_of(sample: Sample, claim: LevelClaim, level: float) -> Estimate:
    values = _values(sample, claim)
    return median_interval(values, level=level, name=f"{claim.metric}: median of {sample.label}", unit=claim.unit)


def _values(sample: Sample, claim: LevelClaim) -> list[float | None]:
    return [_value(row, claim) for row in sample.rows]
