"""The tidy table: one row a cell of the study, joined with the record of its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from depthscope.analysis.landscape import run_figures
from depthscope.record.landscape import MapRecord
from depthscope.record.schema import RunRecord
from depthscope.study.claims import Select
from depthscope.study.expand import Cell, Plan, matching
from depthscope.study.run import RunSpec
from depthscope.study.study import StudySpec

BEFORE_TRAINING = frozenset(
    {
        "dh_factor_first",
        "dw_factor_first",
        "dw_end_log_first",
        "smoothness_first",
        "sharpness_first",
        "gradcheck_complex_median",
        "gradcheck_central_median",
        "gradcheck_five_point_median",
        "train_loss_first",
        "train_loss_start",
        "train_accuracy_start",
        "train_loss_start_batch",
        "train_accuracy_start_batch",
        "construction_loss_change",
        "construction_accuracy_change",
    }
)
"""Figures of the untrained network: what became of the training later changes none of them."""

LoadTable = Callable[[str, str], pa.Table | None]
"""(run_id, table name) -> the table, or None where the run has none."""

LoadMaps = Callable[[str], tuple[MapRecord, ...]]
"""run_id -> the maps that the study asks of the run and that are there, whole or in part, a plane each."""


def no_maps(run_id: str) -> tuple[MapRecord, ...]:
    """Of a study without any."""
    del run_id
    return ()


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """A cell and what its run gave; `record` is None while the run is missing, `figures` are those of its maps."""

    cell: Cell
    spec: RunSpec
    record: RunRecord | None
    figures: Mapping[str, float] = field(default_factory=dict)

    def value(self, metric: str) -> float | None:
        """The metric of a run that completed; None where it is missing, diverged or failed.

        A run that diverged still gives what was measured `BEFORE_TRAINING`.
        """
        if self.record is None:
            return None
        status = self.record.outcome.status
        if status != "completed" and not (status == "diverged" and metric in BEFORE_TRAINING):
            return None
        return self.record.summary.get(metric, self.figures.get(metric))


@dataclass(frozen=True, kw_only=True)
class Results:
    """A plan with its records: the only thing that findings and figures are made from."""

    plan: Plan
    records: Mapping[str, RunRecord]
    load_table: LoadTable
    load_maps: LoadMaps = no_maps

    @property
    def study(self) -> StudySpec:
        """The study that was asked."""
        return self.plan.study

    @cached_property
    def rows(self) -> tuple[ResultRow, ...]:
        """One row a cell, in the study's order."""
        return tuple(
            ResultRow(
                cell=cell,
                spec=self.plan.runs[cell.run_id],
                record=self.records.get(cell.run_id),
                figures=self.map_figures.get(cell.run_id, {}),
            )
            for cell in self.plan.cells
        )

    @cached_property
    def map_figures(self) -> Mapping[str, Mapping[str, float]]:
        """run_id -> figures of its maps, averaged over its planes; of runs whose maps are all there."""
        return {
            run_id: run_figures(self.load_maps(run_id), len(specs))
            for run_id, specs in self.plan.maps.items()
            if run_id in self.records
        }

    def select(self, part: str, select: Select) -> tuple[ResultRow, ...]:
        """The rows that a claim's selection means, by seed."""
        wanted = {id(cell) for cell in matching(self.plan.cells, part, select)}
        return tuple(sorted((row for row in self.rows if id(row.cell) in wanted), key=lambda row: row.cell.seed))

    def tidy(self) -> pa.Table:
        """The table as columns: part, arm, axes, seed, run_id, status, step, parameters, then the metrics."""
        axes = sorted({key for row in self.rows for key in row.cell.axes})
        mapped = {key for figures in self.map_figures.values() for key in figures}
        metrics = sorted(mapped.union(*(record.summary for record in self.records.values())))
        out: dict[str, list[Any]] = {key: [] for key in ("part", "arm", *axes, "seed", "run_id", "status", "step")}
        out |= {key: [] for key in ("stopped_early", "parameters", *metrics)}
        for row in self.rows:
            record = row.record
            out["part"].append(row.cell.part)
            out["arm"].append(row.cell.arm)
            for key in axes:
                value = row.cell.axes.get(key)
                out[key].append(value if isinstance(value, int | float | str | None) else str(value))
            out["seed"].append(row.cell.seed)
            out["run_id"].append(row.cell.run_id)
            out["status"].append(record.outcome.status if record else "missing")
            out["step"].append(record.outcome.step if record else None)
            out["stopped_early"].append(record.outcome.stopped_early if record else None)
            out["parameters"].append(record.parameters if record else None)
            for key in metrics:
                out[key].append(record.summary.get(key, row.figures.get(key)) if record else None)
        return pa.table(out)
