"""One task in a worker: hear its events, write its records."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from depthscope.record.events import Ended, Event, Progress, Started
from depthscope.record.provenance import provenance
from depthscope.record.schema import Timings
from depthscope.record.writer import RunWriter
from depthscope.study.expand import Task
from depthscope.train.build import Context
from depthscope.train.start import run_task

Report = Callable[[Event], None]


@dataclass(frozen=True)
class Done:
    """What a worker tells the driver of a run that it has recorded."""

    run_id: str
    status: str
    reason: str | None


_channel: Any = None


def prepare_process(channel: Any) -> None:
    """Called once in each worker process: where to report, and who handles Ctrl-C (the driver alone)."""
    global _channel
    _channel = channel
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def do_task(task: Task, folder: Path, context: Context, report: Report | None = None) -> list[Done]:
    """Do all runs of a task and write their records into `folder`.

    The records are written when the task is done: runs that train side by side share its time equally,
    and that is known only then.
    """
    tell = report or _to_channel
    done: list[Done] = []
    writers: dict[str, RunWriter] = {}
    ends: list[tuple[Ended, float, float]] = []
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(limits=context.threads, user_api="blas"):
        for event in run_task(task, context):
            if event.run_id not in writers:
                spec = next(spec for spec in task.specs if spec.run_id == event.run_id)
                facts = provenance(device=context.device, threads=context.threads, group_size=len(task.specs))
                writers[event.run_id] = RunWriter(folder, spec, facts)
            if isinstance(event, Ended):
                now_wall, now_cpu = time.perf_counter(), time.process_time()
                ends.append((event, now_wall - wall, now_cpu - cpu))
            elif isinstance(event, Started | Progress):
                tell(event)
            writers[event.run_id].hear(event)
    share = len(task.specs)
    for end, wall_s, cpu_s in ends:
        timings = Timings(wall_s=wall_s / share, cpu_s=cpu_s / share, started=started)
        record = writers[end.run_id].finish(end, timings)
        tell(end)
        done.append(Done(record.run_id, record.outcome.status, record.outcome.reason))
    return done


def _to_channel(event: Event) -> None:
    if _channel is not None:
        _channel.put(event)
