"""The arms of a part in the order of one figure at the greatest depth, with the ranks that the seeds leave possible.

**The order** is that of the means. Runs that were lost stand last: an arm that lost more runs at the greatest depth
(they diverged or failed) stands below one that lost fewer, whatever its survivors show. Equal arms share a place.

**The ranks that remain.** A place alone is no result: between three seeds chance decides it. So all pairs are
compared seed by seed, together (`simultaneous`), and an arm has the ranks from 1 + (arms that are surely better) to
N - (arms that are surely worse). With 95% no such interval misses its arm's true rank, as each is made of pairs whose
errors are controlled together (Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91). Where no pair
is settled every interval is 1 to N, and the page says that the order is open.

**Runs without a figure.** One that diverged says that it is worse than any that ended. An arm whose every run diverged
stands surely below each arm that lost none: a fact of the runs that were made, as a claim on every seed is one. Of an
arm that lost some, the survivors may confirm that it is worse and never show it better. A run that is missing, failed
or lacks the figure says nothing, and its arm is compared with none.

**What is not corrected.** The intervals of means and differences in the table are each by itself at 95%. The arm that
is best here was chosen by these seeds, so that its lead over the others is a little too large on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthscope.analysis import samples
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import bounds_of, paired_t_interval, t_interval
from depthscope.analysis.samples import Census, Sample
from depthscope.analysis.simultaneous import compare_all
from depthscope.analysis.table import Results
from depthscope.analysis.units import unit_in
from depthscope.study.metrics import worse_side
from depthscope.study.study import Part

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class RankedCell:
    """One arm at one depth.

    Attributes:
        depth: as the axis says; None where the part has no such axis.
        estimate: mean over seeds with its t interval.
        by_seed: the figures that there are.
        census: what became of the runs.
        parameters: of the network; None while no record tells.
        excess: parameters over those of the baseline at the same depth, minus 1; None where either is not known.
        tuned: the tuned field's value, where one was tuned.
    """

    depth: int | float | None
    estimate: Estimate
    by_seed: Mapping[int, float]
    census: Census
    parameters: int | None
    excess: float | None
    tuned: Any = None

    @property
    def num_lost(self) -> int:
        """Runs that diverged or failed."""
        return self.census.diverged + self.census.failed


@dataclass(frozen=True, kw_only=True)
class RankedArm:
    """One row of a ranking.

    Attributes:
        arm: its name.
        place: 1 for the best; arms that cannot be told apart by their figures share one.
        low: the best rank that comparing all pairs leaves possible.
        high: the worst.
        cells: by depth, ascending; the last decides.
        change: figure at the greatest depth minus that at the smallest, paired; None with one depth.
        from_baseline: figure minus that of the baseline at the greatest depth, paired; None for the baseline.
        from_best: likewise of the arm in the first place; None for that arm.
    """

    arm: str
    place: int
    low: int
    high: int
    cells: tuple[RankedCell, ...]
    change: Estimate | None
    from_baseline: Estimate | None
    from_best: Estimate | None

    @property
    def deepest(self) -> RankedCell:
        """The cell that decides."""
        return self.cells[-1]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The arms of one part, at one place of its further axes.

    Attributes:
        part: name of the part.
        further: values of the axes other than depth.
        metric: what is ranked by.
        unit: of the metric.
        depths: ascending; empty where the part has no axis of depth.
        baseline: name of the arm that others are compared with.
        arms: best first.
        num_pairs: pairs of arms.
        num_settled: those of which one is surely better, as its figures show.
        num_by_loss: those of which one is better because the other's every run diverged and none of its own did: no
            inference, and known from one seed.
    """

    part: str
    further: Mapping[str, Any]
    metric: str
    unit: str
    depths: tuple[int | float, ...]
    baseline: str
    arms: tuple[RankedArm, ...]
    num_pairs: int
    num_settled: int
    num_by_loss: int


def rankings(results: Results) -> tuple[Ranking, ...]:
    """A ranking for each part that asks for one and each place of its further axes, in the study's order."""
    return tuple(
        found for name, part in results.study.parts.items() if part.ranked for found in _of(results, name, part)
    )


def _of(results: Results, name: str, part: Part) -> Iterator[Ranking]:
    places: dict[str, list[Sample]] = {}
    for found in samples.group(row for row in results.rows if row.cell.part == name):
        places.setdefault(repr(_further(found)), []).append(found)
    for cells in places.values():
        yield _ranking(results, name, part, cells)


def _further(found: Sample) -> dict[str, Any]:
    return {axis: value for axis, value in found.axes.items() if axis != "depth"}


def _ranking(results: Results, name: str, part: Part, cells: Sequence[Sample]) -> Ranking:
    metric = part.ranked
    assert metric is not None
    depths = sorted({found.axes["depth"] for found in cells if "depth" in found.axes})
    by_arm: dict[str, list[Sample]] = {}
    for found in cells:
        by_arm.setdefault(found.arm, []).append(found)
    for column in by_arm.values():
        column.sort(key=lambda found: found.axes.get("depth", 0))
    # An arm that the study leaves out at the greatest depth has no rank there.
    by_arm = {arm: column for arm, column in by_arm.items() if not depths or column[-1].axes["depth"] == depths[-1]}
    baseline = part.baseline or part.arms[0].name
    counts = {found.axes.get("depth"): _parameters(found) for found in by_arm.get(baseline, ())}
    ranked = {arm: tuple(_cell(results, each, metric, counts) for each in column) for arm, column in by_arm.items()}
    deepest = {arm: column[-1] for arm, column in ranked.items()}
    shown, lost = _shown_better(deepest, metric), _better_by_loss(deepest)
    better = shown | lost
    order = sorted(ranked, key=lambda arm: _merit(deepest[arm], metric), reverse=True)
    best = order[0]
    return Ranking(
        part=name,
        further=_further(cells[0]),
        metric=metric,
        unit=unit_in([row for found in cells for row in found.rows], metric),
        depths=tuple(depths),
        baseline=baseline,
        arms=tuple(
            RankedArm(
                arm=arm,
                place=1 + sum(_merit(deepest[other], metric) > _merit(deepest[arm], metric) for other in order),
                low=1 + sum((other, arm) in better for other in order),
                high=len(order) - sum((arm, other) in better for other in order),
                cells=ranked[arm],
                change=_minus(ranked[arm][-1], ranked[arm][0], metric) if len(ranked[arm]) > 1 else None,
                from_baseline=_difference(deepest, arm, baseline, metric),
                from_best=_difference(deepest, arm, best, metric),
            )
            for arm in order
        ),
        num_pairs=len(order) * (len(order) - 1) // 2,
        num_settled=len(shown),
        num_by_loss=len(lost),
    )


def _cell(results: Results, found: Sample, metric: str, counts: Mapping[Any, int | None]) -> RankedCell:
    values = found.by_seed(metric)
    depth = found.axes.get("depth")
    parameters, standard = _parameters(found), counts.get(depth)
    return RankedCell(
        depth=depth,
        estimate=t_interval(
            list(values.values()),
            level=LEVEL,
            name=f"{metric}: {found.label}",
            unit=unit_in(found.rows, metric),
            bounds=bounds_of(metric),
        ),
        by_seed={seed: value for seed, value in values.items() if value is not None},
        census=samples.census([found], metric),
        parameters=parameters,
        excess=parameters / standard - 1.0 if parameters is not None and standard else None,
        tuned=_tuned(results, found),
    )


def _tuned(results: Results, found: Sample) -> Any:
    """The tuned field's value at a cell, of an arm for which one was chosen."""
    tuned, cell = results.study.tuned, found.rows[0].cell
    if tuned is None or (cell.part, cell.arm) not in {(choice.part, choice.arm) for choice in tuned.choices}:
        return None
    field, _, option = tuned.field.partition(".")
    value = getattr(found.rows[0].spec, field)
    return value[option] if option else value


def _parameters(found: Sample) -> int | None:
    counts = {row.record.parameters for row in found.rows if row.record is not None}
    return counts.pop() if len(counts) == 1 else None


def _merit(cell: RankedCell, metric: str) -> tuple[bool, int, float]:
    """What arms are sorted by, the larger the better: with a figure at all, fewer runs lost, the better mean."""
    value = cell.estimate.value
    up = worse_side(metric) == "down"
    return value is not None, -cell.num_lost, 0.0 if value is None else value if up else -value


def _shown_better(cells: Mapping[str, RankedCell], metric: str) -> frozenset[tuple[str, str]]:
    """(a, b) of the pairs in which a is surely better than b, as the figures of both show."""
    heard = _heard(cells)
    above = compare_all({arm: cell.by_seed for arm, cell in heard.items()}, level=LEVEL).above
    better = above if worse_side(metric) == "down" else frozenset((b, a) for a, b in above)
    return frozenset((a, b) for a, b in better if not heard[a].census.diverged)


def _better_by_loss(cells: Mapping[str, RankedCell]) -> frozenset[tuple[str, str]]:
    """(a, b) of the pairs in which no run of a diverged and every one of b did, so that b has no figures to compare."""
    heard = _heard(cells)
    gone = [arm for arm, cell in heard.items() if cell.census.diverged == cell.census.total]
    whole = [arm for arm, cell in heard.items() if not cell.census.diverged]
    return frozenset((a, b) for a in whole for b in gone)


def _heard(cells: Mapping[str, RankedCell]) -> dict[str, RankedCell]:
    """The arms each of whose runs said something: it gave the figure or diverged."""
    return {arm: cell for arm, cell in cells.items() if not cell.census.silent}


def _difference(cells: Mapping[str, RankedCell], arm: str, other: str, metric: str) -> Estimate | None:
    return _minus(cells[arm], cells[other], metric) if other in cells and other != arm else None


def _minus(a: RankedCell, b: RankedCell, metric: str) -> Estimate:
    return paired_t_interval(
        dict(a.by_seed), dict(b.by_seed), level=LEVEL, name=f"{metric}: difference", unit=a.estimate.unit
    )
