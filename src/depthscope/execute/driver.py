"""The driver: what is left of a plan, handed out until all of it is recorded, here or by another driver."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from depthscope.core.errors import UserError
from depthscope.core.files import mend
from depthscope.execute.executor import Serial, TaskExecutor
from depthscope.execute.order import Done, Order, Settings
from depthscope.execute.parcel import Parcel, remedy_of, rough_cost
from depthscope.execute.tell import Note
from depthscope.execute.work import stands
from depthscope.execute.worker import do_task, write_failure
from depthscope.record.events import DoneElsewhere, Ended, News, Progress, Retried
from depthscope.record.folder import run_folder
from depthscope.record.lease import Observer, acquire, gone, holder
from depthscope.record.reader import read_record
from depthscope.record.schema import Outcome, RunRecord
from depthscope.study.expand import Task
from depthscope.train.build import Context
from depthscope.train.start import portions

OnNews = Callable[[News], None]
OnNote = Callable[[str], None]

MAX_DEATHS = 3
"""Workers that a portion may cost without getting further."""

_POLL_S = 1.0
"""Seconds between looks at runs that another driver holds."""


def drive(
    tasks: Iterable[Task],
    folder: Path,
    context: Context,
    *,
    executor: TaskExecutor | None = None,
    on_event: OnNews = lambda event: None,
    on_note: OnNote = lambda line: None,
    settings: Settings | None = None,
) -> None:
    """Do the tasks, the longest first, and return when each of their runs is recorded.

    A portion whose worker dies is handed out again, and goes on from its checkpoints. Runs that another driver
    holds are waited for, and taken over if it gives no more sign of life.

    Args:
        tasks: from `remaining.remaining`.
        folder: the study's folder.
        context: device, data and threads of each worker.
        executor: where the tasks work; None: in this process. It stays open, save where this raises.
        on_event: hears starts, progress and ends, in this thread; the end of each run once.
        on_note: hears lines that the person should read.
        settings: of the study.

    Raises:
        KeyboardInterrupt: passed on after the workers were stopped. What is recorded stays.
        UserError: a worker met bad input, or the folder cannot be written; or, when all else is done, folders of
            single runs could not be used.
    """
    executor = executor or Serial()
    settings = settings or Settings()
    if not executor.remote:
        settings = replace(settings, study=None)
    driver = _Driver(folder, context, executor, on_event, on_note, settings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        driver.drive(tasks)
        driver.check_faults()
    except BaseException as error:
        # A task may have minutes to go: stop the workers now. Files are atomic, so nothing is half written.
        executor.stop()
        driver.let_go()
        if isinstance(error, OSError):
            words = f"{folder}: cannot be read ({error.strerror or error}). {mend(error)}"
            raise UserError(words if folder.is_dir() else gone(folder)) from error
        raise
    finally:
        executor.connect(None)


@dataclass
class _Driver:
    folder: Path
    context: Context
    executor: TaskExecutor
    on_event: OnNews
    on_note: OnNote
    settings: Settings
    _ready: deque[Parcel] = field(default_factory=deque)
    _at_work: dict[Future[list[Done]], tuple[Parcel, Order]] = field(default_factory=dict)
    _elsewhere: dict[str, Parcel] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _faults: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._observer = Observer()
        self._poll_s = min(_POLL_S, self.settings.lease_s / 10)
        self._next_look = 0.0
        self._thread = threading.get_ident()

    def drive(self, tasks: Iterable[Task]) -> None:
        parts = [Parcel(task=portion) for task in tasks for portion in portions(task)]
        self._ready.extend(sorted(parts, key=lambda each: rough_cost(each.task), reverse=True))
        for run_id in (spec.run_id for each in parts for spec in each.task.specs):
            record = read_record(self.folder, run_id)
            if isinstance(record, RunRecord) and record.outcome.status == "failed":
                self._failed[run_id] = record.checksum
        self.executor.connect(self._hear)
        while self._ready or self._at_work or self._elsewhere:
            self._hand_out()
            self._listen()
            if self._elsewhere and time.monotonic() >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + self._poll_s

    def check_faults(self) -> None:
        """Tell the runs whose own folders could not be used.

        Raises:
            UserError: there are some.
        """
        if self._faults:
            raise UserError("\n".join(self._faults[run_id] for run_id in sorted(self._faults)))

    def let_go(self) -> None:
        """Release the leases of workers that were stopped."""
        for portion, order in self._at_work.values():
            for spec in portion.task.specs:
                with contextlib.suppress(UserError, OSError):
                    claim = holder(self.folder, spec.run_id)
                    if claim is not None and claim.token == order.token:
                        lease = acquire(self.folder, spec.run_id, token=secrets.token_hex(8), dead={order.token})
                        if lease is not None:
                            lease.release()

    def _hand_out(self) -> None:
        # Twice the slots, so that none waits for this thread; not all, which a cluster would have to hold.
        while self._ready and len(self._at_work) < 2 * max(1, self.executor.slots):
            portion = self._ready.popleft()
            order = self._order(portion)
            future = self.executor.needing(portion.task.resources).submit(do_task, order)
            self._at_work[future] = portion, order
            future.add_done_callback(self._inbox.put)
            if future.done():
                break  # an executor that works in this thread: hear it first

    def _order(self, portion: Parcel) -> Order:
        failed = {spec.run_id: self._failed[spec.run_id] for spec in portion.task.specs if spec.run_id in self._failed}
        return Order(
            task=portion.task,
            folder=self.folder,
            context=self.context,
            settings=self.settings,
            token=secrets.token_hex(8),
            dead=portion.dead,
            failed=failed,
        )

    def _hear(self, word: object) -> None:
        """A word of a task, in whatever thread it comes."""
        if threading.get_ident() == self._thread:
            self._tell(word)
        else:
            self._inbox.put(word)

    def _listen(self) -> None:
        """Wait for a word or an end, but not past the next look at other drivers' runs; then take all that came."""
        wait = max(0.0, self._next_look - time.monotonic()) if self._elsewhere else 1.0
        with contextlib.suppress(queue.Empty):
            item = self._inbox.get(timeout=wait)
            while True:
                if isinstance(item, Future):
                    self._end(item)
                else:
                    self._tell(item)
                item = self._inbox.get_nowait()

    def _tell(self, word: Any) -> None:
        if isinstance(word, Note):
            self.on_note(word.text)
            return
        if isinstance(word, Ended | DoneElsewhere):
            if word.run_id in self._ended:
                return
            self._ended.add(word.run_id)
        self.on_event(word)

    def _end(self, future: Future[list[Done]]) -> None:
        portion, order = self._at_work.pop(future)
        try:
            done = future.result()
        except BrokenExecutor as error:
            done = self._again(portion, order, error)
        except BaseException:
            self._at_work[future] = portion, order  # for `let_go`
            raise
        for each in done:
            self._settle(each, portion)

    def _settle(self, done: Done, portion: Parcel) -> None:
        if done.fault is not None:
            self._fault(done.run_id, done.fault)
        elif done.outcome is None:
            self._elsewhere[done.run_id] = portion
            self._next_look = min(self._next_look, time.monotonic() + self._poll_s)
        elif done.elsewhere:
            self._tell(DoneElsewhere(run_id=done.run_id, outcome=done.outcome))
        else:
            self._tell(Ended(run_id=done.run_id, outcome=done.outcome))

    def _fault(self, run_id: str, words: str) -> None:
        """A run whose own folder cannot be used: told now, and again when the others are done."""
        self._faults[run_id] = words
        self.on_note(f"{words} The other runs go on.")

    def _again(self, portion: Parcel, order: Order, error: BrokenExecutor) -> list[Done]:
        """Hand a portion out again whose worker died; give it up when it has cost too many."""
        why = str(error) or "its worker died"
        claims = []
        for spec in portion.task.specs:
            with contextlib.suppress(OSError):  # told when the run is tried again
                claims.append(holder(self.folder, spec.run_id))
        step = max((claim.step for claim in claims if claim is not None and claim.token == order.token), default=0)
        deaths = 1 if step > portion.step else portion.deaths + 1
        portion = replace(portion, deaths=deaths, step=max(step, portion.step), dead=portion.dead | {order.token})
        if deaths >= MAX_DEATHS:
            reason = f"the worker died {deaths} times on it ({why})"
            remedy = remedy_of(getattr(error, "exit_code", None))
            outcome = Outcome(status="failed", step=portion.step, reason=reason, remedy=remedy)
            ended = [Ended(run_id=spec.run_id, outcome=outcome) for spec in portion.task.specs]
            return write_failure(self._order(portion), ended)
        self._ready.appendleft(portion)
        for spec in portion.task.specs:
            if spec.run_id not in self._ended:
                self._tell(Retried(run_id=spec.run_id, reason=why))
        return []

    def _look(self) -> None:
        """Runs that another driver holds: recorded by now, still at work, or free to be taken over."""
        freed: dict[int, tuple[Parcel, set[str], set[str]]] = {}
        for run_id, portion in list(self._elsewhere.items()):
            spec = next(spec for spec in portion.task.specs if spec.run_id == run_id)
            if os.path.exists(run_folder(self.folder, run_id) / "run.json"):  # False, too, where it cannot be looked at
                record = read_record(self.folder, run_id)
                if isinstance(record, RunRecord) and stands(record, spec, self._failed):
                    del self._elsewhere[run_id]
                    self._observer.forget(run_id)
                    self._tell(DoneElsewhere(run_id=run_id, outcome=record.outcome))
                    continue
            try:
                claim, expired = self._observer.look(self.folder, run_id)
            except OSError:  # no longer to be read: `acquire` tells why
                claim, expired = None, False
            if claim is None or expired:
                del self._elsewhere[run_id]
                _, run_ids, stamps = freed.setdefault(id(portion), (portion, set(), set()))
                run_ids.add(run_id)
                stamps.update({claim.stamp} if claim else ())
            elif claim.num_steps:
                words = f"another driver is at step {claim.step:,} of {claim.num_steps:,}"
                self._tell(Progress(run_id=run_id, step=claim.step, num_steps=claim.num_steps, text=words))
        for portion, run_ids, stamps in freed.values():
            task = portion.task.only(run_ids)
            assert task is not None
            self._ready.appendleft(replace(portion, task=task, dead=portion.dead | stamps))
        if not self.folder.is_dir():
            raise UserError(gone(self.folder))
