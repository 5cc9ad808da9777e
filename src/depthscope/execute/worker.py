"""One task in a worker: hold its leases, hear its events, write its checkpoints and records."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from threadpoolctl import threadpool_limits

from depthscope.core.errors import UserError
from depthscope.execute.held import HeldLeases
from depthscope.execute.order import Done, Order
from depthscope.execute.tell import Note, tell
from depthscope.record.checkpoint import Checkpoint, read_checkpoint
from depthscope.record.events import Ended, Event, Progress, Resumed, SafePoint, Started
from depthscope.record.folder import STUDY_FILE
from depthscope.record.lease import acquire
from depthscope.record.provenance import change_of_versions, provenance
from depthscope.record.reader import Damage, read_record
from depthscope.record.schema import RunRecord, Timings
from depthscope.record.sinks import Sink, open_sinks
from depthscope.record.writer import RunWriter, remove_record
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, choose_device
from depthscope.train.start import portions, run_task

TELL_EVERY_S = 0.2
"""Seconds between words on the progress of one task: a fast network makes hundreds of steps in that time."""

_CHEAP_S = 0.1
"""A checkpoint that took longer to write makes the gap to the next one longer, in proportion."""


def do_task(order: Order) -> list[Done]:
    """Do the runs of an order that nobody else holds or has done, and write their records.

    Returns:
        What became of each run, in the order in which it was known.

    Raises:
        UserError: bad input, or a folder that cannot be written. Other records and checkpoints stand.
    """
    _check_folder(order)
    context = order.context
    if context.device == "auto" or order.settings.study is not None:
        # On another machine than the driver's. `auto` is a GPU for runs that ask for one: a cluster gives them theirs.
        torch, gpus = order.task.specs[0].backend == "torch", order.task.resources.gpus
        wanted = "cpu" if context.device == "auto" and not gpus else context.device
        context = replace(context, device=choose_device(wanted) if torch else "cpu")
    work = _Work(order, context)
    with threadpool_limits(limits=context.threads, user_api="blas"):
        work.do()
    return work.done


def stands(record: RunRecord | Damage | None, spec: RunSpec, failed: Mapping[str, str]) -> bool:
    """Whether a record leaves nothing to do; `failed` as in `Order`. A diverged run is done: it would diverge again."""
    if not isinstance(record, RunRecord) or not record.answers(spec):
        return False
    return record.outcome.status != "failed" or failed.get(spec.run_id) != record.checksum


def write_failure(order: Order, ended: Sequence[Ended]) -> list[Done]:
    """Records of runs that no worker could end. Called by the driver, with the leases of the dead in `order.dead`."""
    work = _Work(order, order.context)
    work.fail({each.run_id: each for each in ended})
    return work.done


def _check_folder(order: Order) -> None:
    if order.settings.study is None:
        return
    try:
        held = tomllib.loads((order.folder / STUDY_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        held = {}
    if (held.get("name"), held.get("size", "")) != order.settings.study:
        raise UserError(
            f"a worker does not see the study's folder {order.folder}. Workers on several machines need a folder that "
            "all of them share, at the same path: choose one with --out."
        )


@dataclass
class _Run:
    """A run under way."""

    spec: RunSpec
    writer: RunWriter
    sink: Sink

    def hear(self, event: Event) -> None:
        self.writer.hear(event)
        self.sink.hear(event)


@dataclass
class _Work:
    order: Order
    context: Context
    done: list[Done] = field(default_factory=list)
    _noted: bool = False

    def do(self) -> None:
        """All runs of the order that can be had."""
        with self._take() as held:
            checkpoints = {spec.run_id: self._checkpoint(spec) for spec in self._specs}
            found = {run_id: each for run_id, each in checkpoints.items() if each is not None}
            states = {run_id: each.state for run_id, each in found.items()}
            if self._specs:
                for portion in portions(replace(self.order.task, specs=self._specs), states):
                    _Portion(self, held, portion, found).do()

    def fail(self, ended: Mapping[str, Ended]) -> None:
        with self._take() as held:
            facts = provenance(device="cpu", threads=self.context.threads)
            now = Timings(wall_s=0.0, cpu_s=0.0, started=_now())
            for spec in self._specs:
                writer = RunWriter(self.order.folder, spec, facts, self.order.settings.claims_digest)
                self.record(held, spec, writer, ended[spec.run_id], now)

    def _take(self) -> HeldLeases:
        """Leases of what is left to do; what is not, is answered."""
        order, leases = self.order, {}
        specs: list[RunSpec] = []
        lease_s = order.settings.lease_s
        self.seen: dict[str, str | None] = {}
        try:
            for spec in order.task.specs:
                run_id = spec.run_id
                lease = acquire(order.folder, run_id, token=order.token, lease_s=lease_s, dead=order.dead)
                # Looked at when the run is held: whoever held it before may just have recorded it.
                record = read_record(order.folder, run_id)
                if isinstance(record, RunRecord) and stands(record, spec, order.failed):
                    self.done.append(Done(run_id=run_id, outcome=record.outcome, elsewhere=True))
                    if lease is not None:
                        lease.release()
                elif lease is None:
                    self.done.append(Done(run_id=run_id))
                else:
                    leases[run_id] = lease
                    specs.append(spec)
                    self.seen[run_id] = record.checksum if isinstance(record, RunRecord) else None
        except BaseException:
            for lease in leases.values():
                lease.release()
            raise
        self._specs = tuple(specs)
        return HeldLeases(order.folder, leases, lease_s)

    def _checkpoint(self, spec: RunSpec) -> Checkpoint | None:
        found = read_checkpoint(self.order.folder, spec)
        if isinstance(found, Damage):
            tell(Note(f"run {found.run_id}: {found.reason}; it starts anew."))
            return None
        return found

    def record(self, held: HeldLeases, spec: RunSpec, writer: RunWriter, ended: Ended, timings: Timings) -> bool:
        """Write a run's record and let the run go. False where it is another's."""
        folder, run_id = self.order.folder, spec.run_id
        record: RunRecord | None = None
        if held.holds(run_id):
            there = read_record(folder, run_id)
            is_new = isinstance(there, RunRecord) and there.checksum != self.seen[run_id]
            if not (is_new and stands(there, spec, self.order.failed)):
                remove_record(folder, run_id)  # now, and not at the start: until here an old record stood
                record = writer.finish(ended, timings)
        written = record is not None
        if record is None:
            there = read_record(folder, run_id)
            record = there if isinstance(there, RunRecord) and stands(there, spec, self.order.failed) else None
        held.release(run_id)
        if written:
            tell(ended)
        outcome = record.outcome if record else None
        self.done.append(Done(run_id=run_id, outcome=outcome, elsewhere=not written and record is not None))
        return written

    def note_unsaved(self, error: UserError) -> None:
        """A checkpoint that cannot be written is a pity; the run goes on. Told once a task."""
        if not self._noted:
            self._noted = True
            tell(Note(f"a checkpoint was not written, the run goes on without it: {error}"))


class _Portion:
    """Runs that are trained side by side, from one step on."""

    def __init__(self, work: _Work, held: HeldLeases, task: Task, checkpoints: Mapping[str, Checkpoint]) -> None:
        self._work, self._held, self._task = work, held, task
        self._settings = work.order.settings
        self._from = {spec.run_id: checkpoints[spec.run_id] for spec in task.specs if spec.run_id in checkpoints}
        self._runs: dict[str, _Run] = {}
        self._started = _now()
        self._clock = (time.perf_counter(), time.process_time())
        self._wall_s = self._cpu_s = 0.0
        self._saved_at = time.monotonic()
        self._cost = 0.0
        self._num_steps = 0
        self._told_at, self._told_step = time.monotonic(), 0

    def do(self) -> None:
        """Train, until all are recorded or lost."""
        states = {run_id: each.state for run_id, each in self._from.items()}
        try:
            for event in run_task(self._task, self._work.context, states):
                if not self._runs:
                    self._open()
                self._share_time()
                if isinstance(event, SafePoint):
                    self._safe_point(event)
                elif event.run_id in self._runs:
                    self._hear(self._runs[event.run_id], event)
                if not self._runs:
                    return
        finally:
            for run in self._runs.values():
                run.sink.close()

    def _open(self) -> None:
        """Writers and logs. At the first event, and not before: only then is torch loaded, and its version known."""
        order, context = self._work.order, self._work.context
        for spec in self._task.specs:
            device = context.device if spec.backend == "torch" else "cpu"
            facts = provenance(device=device, threads=context.threads, group_size=len(self._task.specs))
            begun = self._from.get(spec.run_id)
            writer = RunWriter(order.folder, spec, facts, self._settings.claims_digest, resumed=begun)
            sink = open_sinks(
                order.folder,
                spec,
                self._settings.logs,
                resumed_at=begun.state.step if begun else None,
                rows=begun.rows if begun else None,
            )
            self._runs[spec.run_id] = _Run(spec, writer, sink)
            if begun:
                step, self._num_steps = begun.state.step, begun.started.num_steps
                self._held.stands(spec.run_id, step, self._num_steps)
                tell(Resumed(run_id=spec.run_id, step=step, num_steps=self._num_steps))
                if change := change_of_versions(writer.provenance):
                    tell(Note(f"run {spec.run_id} goes on from its checkpoint with a change: {change}."))
        self._from.clear()

    def _share_time(self) -> None:
        """The time since the last event, in equal shares to the runs that are under way. All began together."""
        before, self._clock = self._clock, (time.perf_counter(), time.process_time())
        self._wall_s += (self._clock[0] - before[0]) / len(self._runs)
        self._cpu_s += (self._clock[1] - before[1]) / len(self._runs)

    def _hear(self, run: _Run, event: Event) -> None:
        run.hear(event)
        match event:
            case Started():
                self._num_steps = event.num_steps
                self._held.stands(event.run_id, 0, event.num_steps)
                tell(event)
            case Progress():
                self._held.stands(event.run_id, event.step, event.num_steps)
                now = time.monotonic()
                # All runs that stand at a step, or none: a fraction of each is shown.
                if event.step == self._told_step or now - self._told_at >= TELL_EVERY_S:
                    self._told_at, self._told_step = now, event.step
                    tell(event)
            case Ended():
                del self._runs[event.run_id]
                try:
                    if self._work.record(self._held, run.spec, run.writer, event, self._timings()):
                        run.sink.saved(event.outcome.step)
                finally:
                    run.sink.close()
            case _:
                pass

    def _safe_point(self, point: SafePoint) -> None:
        for run_id in [each for each in self._runs if self._held.is_lost(each)]:
            self._drop(run_id)
        gap = time.monotonic() - self._saved_at
        min_gap = self._settings.min_gap_s * max(1.0, self._cost / _CHEAP_S)
        if not (point.epoch_end and gap >= min_gap) and gap < self._settings.checkpoint_s:
            return
        begin = time.monotonic()
        for run_id in [each for each in point.run_ids if each in self._runs and not self._held.holds(each)]:
            self._drop(run_id)
        if self._runs:
            self._save(point)
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - begin

    def _save(self, point: SafePoint) -> None:
        for state in point.take():
            run = self._runs.get(state.run_id)
            if run is None:
                continue
            try:
                run.writer.save(state, self._timings())
            except UserError as error:
                self._held.check_folder()
                self._work.note_unsaved(error)
            else:
                run.sink.saved(state.step)
                self._held.stands(state.run_id, state.step, self._num_steps)
                self._held.beat(state.run_id)

    def _drop(self, run_id: str) -> None:
        """Another took the run over, while this process was stopped or its folder away: what it does will be equal."""
        self._held.check_folder()
        self._runs.pop(run_id).sink.close()
        self._held.release(run_id)
        self._work.done.append(Done(run_id=run_id))

    def _timings(self) -> Timings:
        return Timings(wall_s=self._wall_s, cpu_s=self._cpu_s, started=self._started)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
