"""What is left to do of a plan: the plan minus the records. That is all of resuming a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from depthscope.record.reader import Damage, read_records
from depthscope.record.schema import RunRecord
from depthscope.study.expand import Plan, Task


def remaining(plan: Plan, folder: Path) -> tuple[list[Task], dict[str, RunRecord], tuple[Damage, ...]]:
    """(tasks left, records that stand, damaged records) of a plan in a folder.

    A run is left to do when it has no record, a damaged one, a failed one, or one with fewer measures
    than are asked for. A diverged run is done: it would diverge again.
    """
    records, damaged = read_records(folder, list(plan.runs))
    done = {
        run_id
        for run_id, record in records.items()
        if record.answers(plan.runs[run_id]) and record.outcome.status != "failed"
    }
    left = [task for each in plan.tasks if (task := each.only(set(plan.runs) - done)) is not None]
    return [_with_measures_kept(task, records) for task in left], records, damaged


def _with_measures_kept(task: Task, records: Mapping[str, RunRecord]) -> Task:
    """The task with all measures that its records hold already: a record done again must not lose any."""
    held = [records[spec.run_id].spec for spec in task.specs if spec.run_id in records]
    return replace(task, specs=tuple(spec.measured_as(*task.specs, *held) for spec in task.specs))
