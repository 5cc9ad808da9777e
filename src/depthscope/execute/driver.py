"""The driver: what is left of a plan, handed out until nothing is."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from depthscope.core.errors import UserError
from depthscope.execute.executors import processes
from depthscope.execute.worker import Done, do_task
from depthscope.record.events import Event
from depthscope.record.reader import Damage, read_records
from depthscope.record.schema import RunRecord
from depthscope.study.expand import Plan, Task
from depthscope.train.build import Context
from depthscope.train.start import portions

OnEvent = Callable[[Event], None]

WORKER_DIED = (
    "a worker process died or could not start. What is finished is kept, and the same call continues. It may have run "
    "out of memory: try fewer workers (--workers 1). In a script of your own, call depthscope.run under "
    "`if __name__ == '__main__':`, since each worker imports the script, or with workers=1."
)


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
    held = {name for spec in task.specs if spec.run_id in records for name in records[spec.run_id].spec.measures}
    measures = tuple(sorted(held.union(*(spec.measures for spec in task.specs))))
    return Task(tuple(spec.model_copy(update={"measures": measures}) for spec in task.specs))


def drive(
    tasks: list[Task],
    folder: Path,
    context: Context,
    *,
    workers: int,
    on_event: OnEvent,
    claims_digest: str | None = None,
) -> list[Done]:
    """Do the tasks, the longest first, and return what became of each run.

    Args:
        tasks: from `remaining`.
        folder: the study's folder.
        context: device, data and threads of each worker.
        workers: 1 works in this process; more starts that many processes.
        on_event: hears starts, progress and ends, in this process.
        claims_digest: of the claims that the study declares now; kept in the records.

    Raises:
        KeyboardInterrupt: passed on after the workers were stopped. What is recorded stays.
        UserError: a worker met bad input, or died.
    """
    ready = sorted((each for task in tasks for each in portions(task)), key=_rough_cost, reverse=True)
    if workers == 1 or len(ready) <= 1:
        return [each for task in ready for each in do_task(task, folder, context, claims_digest, on_event)]
    done: list[Done] = []
    with _pool(min(workers, len(ready)), on_event) as pool:
        futures: set[Future[list[Done]]] = {
            pool.submit(do_task, task, folder, context, claims_digest) for task in ready
        }
        while futures:
            finished, futures = wait(futures, return_when=FIRST_COMPLETED)
            for future in finished:
                done += future.result()
    return done


def _rough_cost(task: Task) -> float:
    """For the order only: the longest first, so that no worker is left with a long run at the end."""
    spec = task.specs[0]
    length = spec.steps if spec.steps is not None else spec.epochs or 0
    return float(spec.depth * spec.width * (length + 1) * len(task.specs))


@contextlib.contextmanager
def _pool(workers: int, on_event: OnEvent) -> Iterator[ProcessPoolExecutor]:
    channel: Any = multiprocessing.get_context("spawn").Queue()
    pool = processes(workers, channel)
    stop = threading.Event()

    def listen() -> None:
        while not (stop.is_set() and channel.empty()):
            with contextlib.suppress(queue.Empty):
                on_event(channel.get(timeout=0.1))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield pool
        pool.shutdown()
    except BaseException as error:
        # A task may have minutes to go: stop the workers now. Records are atomic, so nothing is half written.
        # (ProcessPoolExecutor has a public way to do this only from Python 3.14 on.)
        running = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        for process in running:
            process.join()
        if isinstance(error, OSError | BrokenExecutor):
            raise UserError(WORKER_DIED) from error
        raise
    finally:
        stop.set()
        # A worker stopped in the middle of a message leaves the channel waiting for its end.
        listener.join(timeout=2)
        channel.close()
