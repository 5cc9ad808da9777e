"""Runs of a worker that are trained side by side: their events heard, their checkpoints written, their time shared."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from depthscope.core.errors import UserError
from depthscope.execute.held import HeldLeases
from depthscope.execute.tell import Note, tell
from depthscope.execute.work import Work
from depthscope.record.checkpoint import Checkpoint
from depthscope.record.events import Ended, Event, Progress, Resumed, SafePoint, Started, Weights
from depthscope.record.provenance import change_of_versions, provenance
from depthscope.record.schema import Timings
from depthscope.record.sinks import Sink, open_sinks
from depthscope.record.writer import RunWriter
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.start import run_task

TELL_EVERY_S = 0.2
"""Seconds between words on the progress of one task: a fast network makes hundreds of steps in that time."""

_CHEAP_S = 0.1
"""A checkpoint that took longer to write makes the gap to the next one longer, in proportion."""


@dataclass
class _Run:
    """A run under way."""

    spec: RunSpec
    writer: RunWriter
    sink: Sink

    def hear(self, event: Event) -> None:
        self.writer.hear(event)
        self.sink.hear(event)


class Portion:
    """Runs that are trained side by side, from one step on."""

    def __init__(self, work: Work, held: HeldLeases, task: Task, checkpoints: dict[str, Checkpoint]) -> None:
        self._work, self._held, self._task = work, held, task
        self._settings = work.order.settings
        self._from = checkpoints
        self._runs: dict[str, _Run] = {}
        self._started = now()
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
                    states.clear()
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
        if isinstance(event, Weights):
            self._held.check_folder()  # one that was taken away must not come back for their sake
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
        self._runs.pop(run_id).sink.close()
        self._work.lose(self._held, run_id)

    def _timings(self) -> Timings:
        return Timings(wall_s=self._wall_s, cpu_s=self._cpu_s, started=self._started)


def now() -> str:
    """The time in UTC, for people to read."""
    return datetime.now(UTC).isoformat(timespec="seconds")
