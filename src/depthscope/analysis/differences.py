"""Claims on differences between two selections, and on differences of those. The rules stand in `judging`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from depthscope.analysis import samples
from depthscope.analysis.effects import with_effect
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import bounds_of, paired_t_interval, t_interval
from depthscope.analysis.levels import each_once
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
from depthscope.study.claims import DifferenceClaim, DifferenceInDifferencesClaim, Expect, NoDegradationClaim, Select
from depthscope.study.metrics import worse_side

Side = tuple[Sample, ...]
Pair = tuple[Side, Side]
"""The cells on either side of a minus sign."""


def judge_difference(
    results: Results, claim: DifferenceClaim | DifferenceInDifferencesClaim | NoDegradationClaim, level: float
) -> Judgement:
    """The mean over seeds of a paired difference, or of a difference of two."""
    cells = [
        (samples.samples(results, claim.part, a), samples.samples(results, claim.part, b)) for a, b in _minus(claim)
    ]
    columns = [tuple(samples.mean_by_seed(found, claim.metric) for found in pair) for pair in cells]
    names = [f"{claim.metric}: {_short(pair)}" for pair in cells]
    scale = scale_of_operands(value for pair in columns for column in pair for value in column.values())
    made_from: list[Estimate]
    if len(cells) == 1:
        judged = paired_t_interval(*columns[0], level=level, name=names[0], unit=claim.unit)
        made_from = means(zip(cells[0], columns[0], strict=True), claim.metric, claim.unit)
    else:
        changes = [_subtract(*pair) for pair in columns]
        name = f"{claim.metric}: ({_short(cells[0])}) minus ({_short(cells[1])})"
        judged = paired_t_interval(*changes, level=level, name=name, unit=claim.unit, scale=scale)
        made_from = [
            with_effect(paired_t_interval(*pair, level=level, name=name, unit=claim.unit))
            for pair, name in zip(columns, names, strict=True)
        ]
    counts = samples.census(each_once([found for pair in cells for found in pair]), claim.metric)
    said = divergence(cells, claim.metric, claim.expect)
    verdict = of_survivors(against(judged.low, judged.high, claim.expect, claim.than, scale), said)
    return Judgement(
        verdict="undecided" if counts.silent else verdict,
        estimates=(with_effect(noted(judged, counts, said)), *made_from),
        num_judged=1,
        census=counts,
        said=said,
    )


def means(columns: Iterable[tuple[Side, dict[int, float | None]]], metric: str, unit: str) -> list[Estimate]:
    """The mean of each side of a difference, with its own interval."""
    return [
        t_interval(list(column.values()), name=f"{metric}: {samples.place(found)}", unit=unit, bounds=bounds_of(metric))
        for found, column in columns
    ]


def divergence(cells: Sequence[Pair], metric: str, expect: Expect) -> tuple[Says, ...]:
    """What the runs that diverged say: those before a minus sign with the metric's worse side, the others opposed."""
    worst = diverged_value(metric)
    said: set[Says] = set()
    for at, pair in enumerate(cells):
        for side, found in enumerate(pair):
            sign = 1.0 if at == side else -1.0  # (first.a - first.b) - (second.a - second.b): + - - +
            if any(samples.status(row, metric) == "diverged" for sample in found for row in sample.rows):
                said.add(divergence_says(None if worst is None else sign * worst, expect))
    return tuple(sorted(said))


def _minus(
    claim: DifferenceClaim | DifferenceInDifferencesClaim | NoDegradationClaim,
) -> tuple[tuple[Select, Select], ...]:
    """The selections on either side of each minus sign: of a worsening, with the sign that makes worse positive."""
    if isinstance(claim, DifferenceInDifferencesClaim):
        return claim.first, claim.second
    falls = isinstance(claim, NoDegradationClaim) and worse_side(claim.metric) == "down"
    return ((claim.b, claim.a),) if falls else ((claim.a, claim.b),)


def _subtract(a: dict[int, float | None], b: dict[int, float | None]) -> dict[int, float | None]:
    out: dict[int, float | None] = {}
    for seed in sorted({*a, *b}):
        left, right = a.get(seed), b.get(seed)
        out[seed] = None if left is None or right is None else left - right
    return out


def _short(pair: Pair) -> str:
    return f"{samples.place(pair[0])} minus {samples.place(pair[1])}"
