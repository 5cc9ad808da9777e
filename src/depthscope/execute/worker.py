"""One task in a worker: hear its events, write its records."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
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
    """Called once in each worker process: where to report, and who handles Ctrl-C (the driver alone).

    A worker whose driver was killed would wait for work for ever: a thread watches for the driver's end.
    """
    global _channel
    _channel = channel
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_the_driver() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_the_driver, daemon=True).start()


def do_task(
    task: Task, folder: Path, context: Context, claims_digest: str | None = None, report: Report | None = None
) -> list[Done]:
    """Do all runs of a task and write their records into `folder`.

    The records are written when the task is done: runs that train side by side share its time equally,
    and that is known only then.

    Args:
        task: the runs.
        folder: the study's.
        context: device, data and threads.
        claims_digest: of the claims that the study declares now; kept in the records.
        report: hears starts, progress and ends; None sends them to the driver's process.
    """
    tell = report or _to_channel
    done: list[Done] = []
    writers: dict[str, RunWriter] = {}
    ends: list[Ended] = []
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(limits=context.threads, user_api="blas"):
        for event in run_task(task, context):
            if event.run_id not in writers:
                spec = next(spec for spec in task.specs if spec.run_id == event.run_id)
                device = context.device if spec.backend == "torch" else "cpu"
                facts = provenance(device=device, threads=context.threads, group_size=len(task.specs))
                writers[event.run_id] = RunWriter(folder, spec, facts, claims_digest)
            if isinstance(event, Ended):
                ends.append(event)
            elif isinstance(event, Started | Progress):
                tell(event)
            writers[event.run_id].hear(event)
    share = len(task.specs)
    wall_s, cpu_s = (time.perf_counter() - wall) / share, (time.process_time() - cpu) / share
    for end in ends:
        timings = Timings(wall_s=wall_s, cpu_s=cpu_s, started=started)
        record = writers[end.run_id].finish(end, timings)
        tell(end)
        done.append(Done(record.run_id, record.outcome.status, record.outcome.reason))
    return done


def _to_channel(event: Event) -> None:
    if _channel is not None:
        _channel.put(event)
