"""The verb that tells where a study's folder stands: status. The command line mirrors it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from depthscope.execute.remaining import remaining
from depthscope.record.folder import read_study
from depthscope.record.lease import holder, silence
from depthscope.record.reader import Damage
from depthscope.record.run_maps import RunMap, standing
from depthscope.study.expand import Plan, expand
from depthscope.study.study import StudySpec


@dataclass(frozen=True, kw_only=True)
class Running:
    """A run that a driver holds, on this machine or another.

    Attributes:
        run_id: the run.
        step: updates done when it last gave a sign of life.
        num_steps: updates of the whole run; 0 until it is known.
        silent_s: seconds since then, by the dates of files: between two machines their clocks' difference is in it.
        alive: False where its process is known to be gone, or was silent for longer than its lease. The next
            driver takes it over, from its last checkpoint.
    """

    run_id: str
    step: int
    num_steps: int
    silent_s: float
    alive: bool


@dataclass(frozen=True, kw_only=True)
class Status:
    """Where a folder stands.

    Attributes:
        study: what it holds.
        plan: its runs.
        counts: number of runs by status: completed, diverged, failed, damaged, missing.
        failed: run_id -> reason of the failed runs, in the plan's order.
        damaged: the records that cannot be trusted, with the reason.
        running: runs under way, in the plan's order; most of them count as missing until they are recorded.
        left: run_ids of what is to do or under way.
        maps: where each map of the completed runs stands, in the plan's order.
        num_maps: maps that the plan asks for, but for those of runs that diverged, which have none.
    """

    study: StudySpec
    plan: Plan
    counts: dict[str, int]
    failed: dict[str, str]
    damaged: tuple[Damage, ...]
    running: tuple[Running, ...] = ()
    left: frozenset[str] = frozenset()
    maps: tuple[RunMap, ...] = ()
    num_maps: int = 0

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return not any(self.counts[status] for status in ("failed", "damaged", "missing")) and not self.maps_left

    @property
    def maps_left(self) -> tuple[RunMap, ...]:
        """Maps of completed runs that are not whole, those among them that could not be made."""
        return tuple(each for each in self.maps if not each.complete)

    @property
    def map_counts(self) -> dict[str, int]:
        """Number of maps by status: completed, failed, in part, missing (of which some wait for their run)."""
        counts = {
            "completed": sum(each.complete for each in self.maps),
            "failed": sum(each.fault is not None for each in self.maps),
            "in part": sum(each.fault is None and each.record is not None for each in self.maps_left),
        }
        return {**counts, "missing": self.num_maps - sum(counts.values())}


def status(folder: str | Path) -> Status:
    """Where a study's folder stands; also while another process is filling it.

    Raises:
        UserError: the folder holds no study.
    """
    folder = Path(folder)
    study = read_study(folder)
    planned = expand(study)
    left, records, damaged = remaining(planned, folder)
    to_do = {spec.run_id for task in left for spec in task.specs}
    counts = dict.fromkeys(("completed", "diverged", "failed", "damaged", "missing"), 0)
    for record in records.values():
        counts[record.outcome.status] += 1
    counts["damaged"] = len(damaged)
    counts["missing"] = len(planned.runs) - sum(counts.values())
    held = [each for run_id in planned.runs if (each := _running(folder, run_id)) is not None]
    # A worker that was killed between a run's record and the end of its lease leaves one that nobody will take over.
    running = [each for each in held if each.alive or each.run_id in to_do]
    diverged = {run_id for run_id, record in records.items() if record.outcome.status == "diverged"}
    failed = {
        run_id: records[run_id].outcome.reason or ""
        for run_id in planned.runs
        if run_id in records and records[run_id].outcome.status == "failed"
    }
    return Status(
        study=study,
        plan=planned,
        counts=counts,
        failed=failed,
        damaged=damaged,
        running=tuple(running),
        left=frozenset(to_do),
        maps=standing(planned, folder, records),
        num_maps=sum(len(specs) for run_id, specs in planned.maps.items() if run_id not in diverged),
    )


def is_held(folder: Path, run_id: str) -> bool:
    """Whether a driver that is alive is at work on a run."""
    found = _running(folder, run_id)
    return found is not None and found.alive


def _running(folder: Path, run_id: str) -> Running | None:
    try:
        claim, silent_s = holder(folder, run_id), silence(folder, run_id)
    except OSError:
        return None
    if claim is None or silent_s is None:
        return None
    alive = not claim.is_dead if claim.is_here else silent_s < claim.lease_s
    return Running(run_id=run_id, step=claim.step, num_steps=claim.num_steps, silent_s=silent_s, alive=alive)
