"""Runs that the driver hands out together, and what is known of them from earlier tries."""

from __future__ import annotations

from dataclasses import dataclass

from depthscope.study.expand import Task


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """Runs that are handed out together.

    Attributes:
        task: the runs.
        deaths: workers that it has cost, the last ones without getting further.
        step: the furthest that a run of it was seen to get.
        dead: leases of it that may be taken over.
    """

    task: Task
    deaths: int = 0
    step: int = 0
    dead: frozenset[str] = frozenset()


def remedy_of(exit_code: int | None) -> str:
    """What to do about a worker that died, by its exit code: -N for signal N, None where it is not known."""
    if exit_code in (None, -9):  # SIGKILL is what a system that runs out of memory sends
        return "it may have run out of memory: try fewer workers (--workers 1) or a smaller batch"
    return "look for what ends the process: os._exit in the study's own code, or a crash in a compiled module"


def rough_cost(task: Task) -> float:
    """For the order only: the longest first, so that no worker is left with a long run at the end."""
    spec = task.specs[0]
    length = spec.steps if spec.steps is not None else spec.epochs or 0
    return float(spec.depth * spec.width * (length + 1) * len(task.specs))
