"""One claim, judged at one level of confidence. The rules in a table:

| claim | judged by | supported | refuted |
| --- | --- | --- | --- |
| difference (in differences) | paired t interval over seeds | all of it satisfies | all of it violates |
| level, every seed | each seed: all its observed cells | all satisfy, none is absent | any cell violates |
| level, median | order-statistics interval of each cell's median | all satisfy | any wholly violates |
| ratio to theory | the same, of measured / expected | all within 1 +- tolerance | any wholly outside |

Else it is undecided. What happens to runs that gave no figure, or the same figure:

| case | difference | level, median | level, every seed |
| --- | --- | --- | --- |
| all values equal | interval of the median difference, from 6 seeds on at 95% | likewise | a count as any |
| a run is missing, failed or lacks the metric | undecided | undecided | not supported |
| a run diverged, which speaks against the claim | not supported | takes the far end of the order | violates |
| a run diverged, which speaks for the claim | not refuted | out of the order, and not refuted | not supported |

A run that diverged has no figure, yet it says something: it is worse than any run that ended. "Speaks
against" means that a worse figure there would violate the claim: of "a's loss minus b's is at most m" a
diverged a, of "accuracy is at least" any. Its pair drops out of a difference, whose interval is then of
the survivors. They were selected by the very thing that is judged, so they may confirm what the
diverged runs say and never overrule it: where a diverged run speaks against, the claim is refuted if
the survivors' interval violates it, else undecided; where it speaks for, supported if their interval
satisfies it, else undecided; where both happen, or the metric has no worse side (as the gradient's
factor and a ratio to theory), undecided. The note says how many diverged, and what that speaks for.
A figure that was measured before training (`table.BEFORE_TRAINING`) knows nothing of a later
divergence: it is read from such a run as from any, and there is nothing to tell.

A bound (`than`) is in the metric's own scale: of an accuracy a fraction, .1 for ten points.
"""

from __future__ import annotations

from depthscope.analysis import samples
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import bounds_of, paired_t_interval, t_interval
from depthscope.analysis.levels import each_once, judge_every_seed, judge_median, judge_theory
from depthscope.analysis.rounding import scale_of_operands
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import Results
from depthscope.analysis.verdicts import (
    Judgement,
    Says,
    against,
    diverged_value,
    divergence_says,
    noted,
    of_survivors,
)
from depthscope.study.claims import (
    Claim,
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    LevelClaim,
    Select,
    TheoryClaim,
)


def judge_claim(results: Results, claim: Claim, level: float = 0.95) -> Judgement:
    """Judge a claim from the records, with intervals of this coverage."""
    match claim:
        case DifferenceClaim() | DifferenceInDifferencesClaim():
            return _difference(results, claim, level)
        case LevelClaim(statistic="every_seed"):
            return judge_every_seed(results, claim, level)
        case LevelClaim():
            return judge_median(results, claim, level)
        case TheoryClaim():
            return judge_theory(results, claim, level)


def _difference(results: Results, claim: DifferenceClaim | DifferenceInDifferencesClaim, level: float) -> Judgement:
    def chosen(select: Select) -> tuple[Sample, ...]:
        return samples.samples(results, claim.part, select)

    pairs = ((claim.a, claim.b),) if isinstance(claim, DifferenceClaim) else (claim.first, claim.second)
    cells = [(chosen(a), chosen(b)) for a, b in pairs]
    columns = [tuple(samples.mean_by_seed(found, claim.metric) for found in pair) for pair in cells]
    names = [f"{claim.metric}: {samples.place(a)} minus {samples.place(b)}" for a, b in cells]
    scale = scale_of_operands(value for pair in columns for column in pair for value in column.values())
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
        judged = paired_t_interval(*changes, level=level, name=name, unit=claim.unit, scale=scale)
        made_from = [
            paired_t_interval(*pair, name=name, unit=claim.unit) for pair, name in zip(columns, names, strict=True)
        ]
    counts = samples.census(each_once([found for pair in cells for found in pair]), claim.metric)
    said = _divergence(cells, claim)
    verdict = of_survivors(against(judged.low, judged.high, claim.expect, claim.than, scale), said)
    return Judgement(
        verdict="undecided" if counts.silent else verdict,
        estimates=(noted(judged, counts, said), *made_from),
        num_judged=1,
        census=counts,
        said=said,
    )


def _divergence(
    cells: list[tuple[tuple[Sample, ...], tuple[Sample, ...]]], claim: DifferenceClaim | DifferenceInDifferencesClaim
) -> tuple[Says, ...]:
    """What the runs that diverged say: those of `a` with the metric's worse side, those of `b` with the other."""
    worst = diverged_value(claim.metric)
    said: set[Says] = set()
    for at, pair in enumerate(cells):
        for side, found in enumerate(pair):
            sign = 1.0 if at == side else -1.0  # (first.a - first.b) - (second.a - second.b): + - - +
            if any(samples.status(row, claim.metric) == "diverged" for sample in found for row in sample.rows):
                said.add(divergence_says(None if worst is None else sign * worst, claim.expect))
    return tuple(sorted(said))


def _subtract(a: dict[int, float | None], b: dict[int, float | None]) -> dict[int, float | None]:
    out: dict[int, float | None] = {}
    for seed in sorted({*a, *b}):
        left, right = a.get(seed), b.get(seed)
        out[seed] = None if left is None or right is None else left - right
    return out


def _short(pair: tuple[tuple[Sample, ...], tuple[Sample, ...]]) -> str:
    return f"{samples.place(pair[0])} minus {samples.place(pair[1])}"
