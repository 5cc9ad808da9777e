"""The table of arms: one row a cell of the study, its seeds together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthscope.analysis import samples
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import bounds_of, t_interval
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import Results
from depthscope.analysis.units import unit_in

METRICS = ("train_accuracy", "test_accuracy", "train_loss", "test_loss", "train_loss_running")
"""The metrics of the table, where a run has them."""


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """One arm at one place of the axes, over its seeds.

    Attributes:
        part: name of the part.
        arm: name of the arm.
        axes: values of the part's axes.
        parameters: number of trained parameters; None while no record tells.
        num_runs: runs asked for.
        n: runs completed.
        num_missing: runs not done.
        num_diverged: runs whose loss was not finite, or above the bound (1000 times that of a guess).
        num_failed: runs that ended by an error.
        num_stopped_early: completed runs that the recipe's declared rule ended.
        steps: fewest and most updates of the completed runs; None without any.
        estimates: metric -> mean with its t interval over the completed runs (what was
            measured before training: over the diverged ones too); a metric that no run has is left out.
        cpu_s: CPU time of all the cell's records together, in seconds; None without any.
        wall_s: wall time, likewise.
    """

    part: str
    arm: str
    axes: Mapping[str, Any]
    parameters: int | None
    num_runs: int
    n: int
    num_missing: int
    num_diverged: int
    num_failed: int
    num_stopped_early: int
    steps: tuple[int, int] | None
    estimates: Mapping[str, Estimate]
    cpu_s: float | None
    wall_s: float | None


def summarise(results: Results, metrics: Sequence[str] = METRICS) -> tuple[CellSummary, ...]:
    """A row for each cell, in the study's order.

    Args:
        results: plan and records.
        metrics: keys of a run's summary to average.
    """
    return tuple(_summary(found, metrics) for found in samples.group(results.rows))


def _summary(found: Sample, metrics: Sequence[str]) -> CellSummary:
    records = [row.record for row in found.rows if row.record is not None]
    completed = [record for record in records if record.outcome.status == "completed"]
    parameters = {record.parameters for record in records if record.parameters is not None}
    statuses = [samples.status(row) for row in found.rows]
    estimates = {}
    for metric in metrics:
        values = list(found.by_seed(metric).values())
        if any(value is not None for value in values):
            unit = unit_in(found.rows, metric)
            estimates[metric] = t_interval(values, name=f"{metric}: {found.label}", unit=unit, bounds=bounds_of(metric))
    steps = [record.outcome.step for record in completed]
    return CellSummary(
        part=found.rows[0].cell.part,
        arm=found.arm,
        axes=found.axes,
        parameters=parameters.pop() if len(parameters) == 1 else None,
        num_runs=len(found.rows),
        n=len(completed),
        num_missing=statuses.count("missing"),
        num_diverged=statuses.count("diverged"),
        num_failed=statuses.count("failed"),
        num_stopped_early=sum(record.outcome.stopped_early for record in completed),
        steps=(min(steps), max(steps)) if steps else None,
        estimates=estimates,
        cpu_s=sum(record.timings.cpu_s for record in records) if records else None,
        wall_s=sum(record.timings.wall_s for record in records) if records else None,
    )
