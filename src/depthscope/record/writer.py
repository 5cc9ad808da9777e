"""Writes one run's weights, checkpoints and record from its events. Nothing else writes there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from math import isfinite
from pathlib import Path
from typing import Any

from depthscope.core.files import place_new, staged
from depthscope.record.checkpoint import Checkpoint, delete_checkpoint, write_checkpoint
from depthscope.record.events import Ended, Event, Rows, Started, State, Weights
from depthscope.record.folder import run_fault, run_folder
from depthscope.record.provenance import resumed_from
from depthscope.record.schema import TABLES, Digests, Provenance, RunRecord, Timings
from depthscope.record.tables import encode
from depthscope.record.weights import delete_weights, write_weights
from depthscope.study.metrics import is_metric
from depthscope.study.run import RunSpec


def check_run_folder(folder: Path, run_id: str) -> None:
    """See that a record can be written, before a run is trained for it.

    Raises:
        RunFolderError: a folder stands where a file of the record belongs. What is in it, only its owner knows.
    """
    at = run_folder(folder, run_id)
    for path in (at / "run.json", *(at / f"{table}.parquet" for table in TABLES), *at.glob("weights-*.safetensors")):
        if path.is_dir():
            raise run_fault(folder, run_id, OSError(errno.EISDIR, f"{path.name} is a folder"))


class RunWriter:
    """Hears a run's events, writes its weights as they come, keeps its rows for the end; `run.json` last.

    A folder without `run.json` is a run that was not finished: it goes on from its checkpoint, or is done again.

    Args:
        folder: the study's.
        spec: the run.
        provenance: where and with what it is done now.
        claims_digest: of the claims that the study declares now.
        resumed: the checkpoint that the run goes on from.
    """

    def __init__(
        self,
        folder: Path,
        spec: RunSpec,
        provenance: Provenance,
        claims_digest: str | None = None,
        *,
        resumed: Checkpoint | None = None,
    ) -> None:
        self._folder = folder
        self._at = run_folder(folder, spec.run_id)
        self._spec = spec
        self.provenance = resumed_from(resumed.state.step, resumed.provenance, provenance) if resumed else provenance
        self._claims_digest = claims_digest
        self._started: Started | None = resumed.started if resumed else None
        self._earlier = resumed.timings if resumed else None
        self._rows: dict[str, dict[str, list[Any]]] = {}
        self._weights: dict[str, str] = dict(resumed.weights) if resumed else {}
        for table, columns in (resumed.rows if resumed else {}).items():
            self._rows[table] = {name: list(column) for name, column in columns.items()}

    def hear(self, event: Event) -> None:
        """Take in one event of this run.

        Raises:
            UserError: weights that cannot be written.
        """
        assert event.run_id == self._spec.run_id
        match event:
            case Started():
                self._started = event
            case Rows(table=table, columns=columns):
                assert len({len(column) for column in columns.values()}) == 1, f"{table}: columns of unequal length"
                kept = self._rows.setdefault(table, {name: [] for name in TABLES[table].names})
                for name in kept:
                    kept[name].extend(columns[name])
            case Weights(step=step, tensors=tensors):
                name, self._weights[name] = write_weights(self._folder, self._spec.run_id, step, tensors)
            case _:
                pass

    def save(self, state: State, timings: Timings) -> None:
        """Write a checkpoint of the run: its state, and all rows heard so far.

        Args:
            state: taken at a safe point whose rows were heard.
            timings: of this part of the run; those of earlier parts are added.

        Raises:
            UserError: the folder cannot be written or the disk is full. The last checkpoint still stands.
        """
        assert self._started is not None, "a run that has not started has nothing to save"
        checkpoint = Checkpoint(
            spec=self._spec,
            state=state,
            started=self._started,
            rows=self._rows,
            timings=self._sum(timings),
            provenance=self.provenance,
            weights=self._weights,
        )
        write_checkpoint(self._folder, checkpoint)

    def finish(self, ended: Ended, timings: Timings, *, replacing: bool = False) -> RunRecord | None:
        """Write the tables, then the record, and return it; then delete the checkpoint.

        All files are on the disk before the first is given its name: where the disk is full, what stood still stands.
        The checkpoint of a run that failed is kept: what failed it (memory, a lost machine) may be mended, and
        the run then goes on. (Where its code is mended, the run starts anew: see `train.state`.)

        A figure that is not finite (the test loss of a network that overflows) is left out of the
        summary: there it is a missing value. In the tables it stands as it was measured.

        Args:
            ended: how the run ended.
            timings: of this part of the run; those of earlier parts are added.
            replacing: whether a record that stands is taken away: one that failed, is damaged, or has fewer measures
                than are asked for. Only for who holds the run's lease. Without it a record that stands is never
                replaced: another driver came first, nothing is written, and None is returned.

        Raises:
            UserError: the folder cannot be written.
        """
        contents = {name: encode(name, columns) for name, columns in sorted(self._rows.items())}
        record = self._record(
            ended, timings, {name: hashlib.sha256(each).hexdigest() for name, each in contents.items()}
        )
        path = self._at / "run.json"
        with contextlib.ExitStack() as stack:
            new = {
                name: stack.enter_context(staged(self._at / f"{name}.parquet", content))
                for name, content in contents.items()
            }
            new_record = stack.enter_context(staged(path, (record.model_dump_json(indent=1) + "\n").encode()))
            if replacing:
                path.unlink(missing_ok=True)
            for name in TABLES:
                # Looked at each time, so that a late writer does not put its tables under another's record.
                if path.exists():
                    return None
                if name in new:
                    os.replace(new[name], self._at / f"{name}.parquet")
                else:  # of an earlier record, which this one replaces
                    (self._at / f"{name}.parquet").unlink(missing_ok=True)
            if not place_new(new_record, path):
                return None
        if ended.outcome.status != "failed":
            delete_checkpoint(self._folder, self._spec.run_id)
            delete_weights(self._folder, self._spec.run_id, keep=record.weights)
        return record

    def _record(self, ended: Ended, timings: Timings, tables: dict[str, str]) -> RunRecord:
        started = self._started
        summary = {name: float(value) for name, value in ended.summary.items() if isfinite(value)}
        unknown = [name for name in summary if not is_metric(name)]
        assert not unknown, f"{unknown} is not in SUMMARY"
        digests = started.digests if started else Digests()
        return RunRecord(
            run_id=self._spec.run_id,
            spec=self._spec,
            outcome=ended.outcome,
            summary=summary,
            parameters=started.parameters if started else None,
            layers=started.layers if started else (),
            derived=dict(started.derived) if started else {},
            chance_loss=started.chance_loss if started else None,
            samples=ended.samples,
            digests=digests.model_copy(update={"final": ended.final}),
            claims_digest=self._claims_digest,
            tables=tables,
            weights=dict(self._weights),
            provenance=self.provenance,
            timings=self._sum(timings),
        ).sealed()

    def _sum(self, timings: Timings) -> Timings:
        return self._earlier.then(timings) if self._earlier else timings
