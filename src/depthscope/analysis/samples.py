"""The values of one metric in the cells that a claim speaks of, with what is missing and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from depthscope.analysis.notes import ABSENT, Lang, note
from depthscope.analysis.table import BEFORE_TRAINING, ResultRow, Results
from depthscope.study.claims import Select


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The runs of one arm at one place of the axes, over seeds.

    Attributes:
        arm: name of the arm.
        axes: values of the part's axes.
        rows: one a seed, ascending.
    """

    arm: str
    axes: Mapping[str, Any]
    rows: tuple[ResultRow, ...]

    @property
    def label(self) -> str:
        """Such as `plain, depth 56`."""
        return ", ".join([self.arm, *(f"{key} {value}" for key, value in self.axes.items())])

    def by_seed(self, metric: str) -> dict[int, float | None]:
        """The value by seed of the metric; None where the run gives none."""
        return {row.cell.seed: row.value(metric) for row in self.rows}


@dataclass(frozen=True, kw_only=True)
class Census:
    """What became of the runs behind a judgement.

    Attributes:
        total: runs that the claim asks for.
        missing: not done yet.
        diverged: ended with a loss that is not finite, or above the bound (1000 times that of a guess); none
            where the metric was measured before training.
        failed: ended by an error.
        unmeasured: completed, and without the metric; or without one that was measured before training.
    """

    total: int
    missing: int
    diverged: int
    failed: int
    unmeasured: int

    @property
    def silent(self) -> int:
        """Runs that say nothing at all of the metric: missing, failed or unmeasured."""
        return self.missing + self.failed + self.unmeasured

    def notes(self, lang: Lang) -> list[str]:
        """One phrase for each kind of absent value."""
        counts = {key: getattr(self, key) for key in ABSENT}
        return [note(key, lang, k=count, n=self.total) for key, count in counts.items() if count]


def samples(results: Results, part: str, select: Select) -> tuple[Sample, ...]:
    """The cells that a selection means, each with its seeds, in the study's order."""
    return group(results.select(part, select))


def group(rows: Iterable[ResultRow]) -> tuple[Sample, ...]:
    """Rows that differ in their seed alone, together; groups in the order of their first row."""
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[ResultRow]] = {}
    for row in rows:
        cell = row.cell
        key = (cell.part, cell.arm, tuple((name, repr(value)) for name, value in cell.axes.items()))
        groups.setdefault(key, []).append(row)
    return tuple(
        Sample(arm=found[0].cell.arm, axes=found[0].cell.axes, rows=tuple(sorted(found, key=lambda row: row.cell.seed)))
        for found in groups.values()
    )


def status(row: ResultRow, metric: str | None = None) -> str:
    """`missing`, `completed`, `diverged` or `failed`; as far as it concerns this metric, where one is given.

    What was measured before training is as complete in a run that diverged as in any.
    """
    if row.record is None:
        return "missing"
    found = row.record.outcome.status
    return "completed" if found == "diverged" and metric in BEFORE_TRAINING else found


def census(found: Iterable[Sample], metric: str) -> Census:
    """Count what became of the runs of these samples."""
    rows = [row for sample in found for row in sample.rows]
    kinds = [status(row, metric) for row in rows]
    return Census(
        total=len(rows),
        missing=kinds.count("missing"),
        diverged=kinds.count("diverged"),
        failed=kinds.count("failed"),
        unmeasured=sum(status(row, metric) == "completed" and row.value(metric) is None for row in rows),
    )


def mean_by_seed(found: tuple[Sample, ...], metric: str) -> dict[int, float | None]:
    """The mean by seed of the metric over several cells; None where one of them has no value.

    A selection that leaves an axis free speaks of the average over that axis, seed by seed.
    """
    columns = [sample.by_seed(metric) for sample in found]
    out: dict[int, float | None] = {}
    for seed in sorted({seed for column in columns for seed in column}):
        values = [column.get(seed) for column in columns]
        known = [value for value in values if value is not None]
        out[seed] = sum(known) / len(known) if known and len(known) == len(values) else None
    return out


def place(found: tuple[Sample, ...]) -> str:
    """The samples' common name."""
    if len(found) == 1:
        return found[0].label
    return f"{found[0].arm}, mean of {len(found)} cells"
