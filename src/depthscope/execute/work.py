"""What a worker has taken of an order: whose leases it holds, what it goes on from, and the records that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from depthscope.core.errors import UserError
from depthscope.execute.held import HeldLeases
from depthscope.execute.order import Done, Order
from depthscope.execute.tell import Note, tell
from depthscope.record.checkpoint import Checkpoint, delete_checkpoint, read_checkpoint, tidy
from depthscope.record.events import Ended
from depthscope.record.folder import RunFolderError, run_fault
from depthscope.record.lease import acquire
from depthscope.record.reader import Damage, read_record
from depthscope.record.schema import RunRecord, Timings
from depthscope.record.writer import RunWriter, check_run_folder
from depthscope.study.run import RunSpec
from depthscope.train.build import Context


def stands(record: RunRecord | Damage | None, spec: RunSpec, failed: Mapping[str, str]) -> bool:
    """Whether a record leaves nothing to do; `failed` as in `Order`. A diverged run is done: it would diverge again."""
    if not isinstance(record, RunRecord) or not record.answers(spec):
        return False
    return record.outcome.status != "failed" or failed.get(spec.run_id) != record.checksum


@dataclass
class Work:
    """An order under way.

    Attributes:
        order: what was asked.
        context: device, data and threads, as they are here.
        done: what became of each run so far.
        specs: the runs that `take` could have.
    """

    order: Order
    context: Context
    done: list[Done] = field(default_factory=list)
    specs: tuple[RunSpec, ...] = ()
    _seen: dict[str, str | None] = field(default_factory=dict)
    _noted: bool = False

    def take(self) -> HeldLeases:
        """Leases of what is left to do; what is not, is answered."""
        order, leases = self.order, {}
        specs: list[RunSpec] = []
        lease_s = order.settings.lease_s
        try:
            for spec in order.task.specs:
                run_id = spec.run_id
                try:
                    lease = acquire(order.folder, run_id, token=order.token, lease_s=lease_s, dead=order.dead)
                except RunFolderError as error:  # other runs are none the worse
                    self.done.append(Done(run_id=run_id, fault=str(error)))
                    continue
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
                    try:
                        check_run_folder(order.folder, run_id)
                    except RunFolderError as error:
                        self.done.append(Done(run_id=run_id, fault=str(error)))
                        leases.pop(run_id).release()
                        continue
                    specs.append(spec)
                    self._seen[run_id] = record.checksum if isinstance(record, RunRecord) else None
        except BaseException:
            for lease in leases.values():
                lease.release()
            raise
        self.specs = tuple(specs)
        return HeldLeases(order.folder, leases, lease_s)

    def checkpoint(self, spec: RunSpec) -> Checkpoint | None:
        """What a run goes on from; a checkpoint that is refused is told."""
        tidy(self.order.folder, spec.run_id)
        found = read_checkpoint(self.order.folder, spec)
        if isinstance(found, Damage):
            tell(Note(f"run {found.run_id}: {found.reason}; it starts anew."))
            return None
        return found

    def record(self, held: HeldLeases, spec: RunSpec, writer: RunWriter, ended: Ended, timings: Timings) -> bool:
        """Write a run's record and let the run go. False where it is another's, or the run's folder cannot be used."""
        folder, run_id = self.order.folder, spec.run_id
        try:
            return self._record(held, spec, writer, ended, timings)
        except UserError as error:
            held.release(run_id)
            told = run_fault(folder, run_id, error.__cause__) if isinstance(error.__cause__, OSError) else error
            if not isinstance(told, RunFolderError):
                raise
            self.done.append(Done(run_id=run_id, fault=str(told)))
            return False

    def _record(self, held: HeldLeases, spec: RunSpec, writer: RunWriter, ended: Ended, timings: Timings) -> bool:
        folder, run_id = self.order.folder, spec.run_id
        record: RunRecord | None = None
        if held.holds(run_id):
            there = read_record(folder, run_id)
            is_new = isinstance(there, RunRecord) and there.checksum != self._seen[run_id]
            if not (is_new and stands(there, spec, self.order.failed)):
                record = writer.finish(ended, timings, replacing=True)
        written = record is not None
        if record is None:
            there = read_record(folder, run_id)
            record = there if isinstance(there, RunRecord) and stands(there, spec, self.order.failed) else None
            self._clear(run_id)
        held.release(run_id)
        if written:
            tell(ended)
        outcome = record.outcome if record else None
        self.done.append(Done(run_id=run_id, outcome=outcome, elsewhere=not written and record is not None))
        return written

    def lose(self, held: HeldLeases, run_id: str) -> None:
        """Another took the run over, while this process was stopped or its folder away: what it does will be equal."""
        held.check_folder()
        self._clear(run_id)
        held.release(run_id)
        self.done.append(Done(run_id=run_id))

    def _clear(self, run_id: str) -> None:
        """Stopped amid a save, a worker ends that when it wakes: no checkpoint is left beside another's record."""
        there = read_record(self.order.folder, run_id)
        if isinstance(there, RunRecord) and there.outcome.status != "failed":
            delete_checkpoint(self.order.folder, run_id)

    def note_unsaved(self, error: UserError) -> None:
        """A checkpoint that cannot be written is a pity; the run goes on. Told once a task."""
        if not self._noted:
            self._noted = True
            tell(Note(f"a checkpoint was not written, the run goes on without it: {error}"))
