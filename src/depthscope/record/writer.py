"""Writes one run's record from its events. Nothing else writes in a run's folder."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from depthscope.core.files import write_bytes
from depthscope.record.events import Ended, Event, Rows, Started
from depthscope.record.folder import run_folder
from depthscope.record.schema import SUMMARY, TABLES, Digests, Provenance, RunRecord, Timings
from depthscope.study.run import RunSpec


class RunWriter:
    """Hears a run's events, keeps its rows, and writes all at the end; `run.json` last.

    A folder without `run.json` is a run that was not finished: it is done again.
    """

    def __init__(self, folder: Path, spec: RunSpec, provenance: Provenance, claims_digest: str | None = None) -> None:
        self._at = run_folder(folder, spec.run_id)
        self._spec = spec
        self._provenance = provenance
        self._claims_digest = claims_digest
        self._started: Started | None = None
        self._rows: dict[str, dict[str, list[Any]]] = {}

    def hear(self, event: Event) -> None:
        """Take in one event of this run."""
        assert event.run_id == self._spec.run_id
        match event:
            case Started():
                self._started = event
            case Rows(table=table, columns=columns):
                assert len({len(column) for column in columns.values()}) == 1, f"{table}: columns of unequal length"
                kept = self._rows.setdefault(table, {name: [] for name in TABLES[table].names})
                for name in kept:
                    kept[name].extend(columns[name])
            case _:
                pass

    def finish(self, ended: Ended, timings: Timings) -> RunRecord:
        """Write the tables, then the record, and return it.

        A figure that is not finite (the test loss of a network that overflows) is left out of the
        summary: there it is a missing value. In the tables it stands as it was measured.

        Raises:
            UserError: the folder cannot be written.
        """
        tables = {}
        for name, columns in sorted(self._rows.items()):
            content = encode(name, columns)
            write_bytes(self._at / f"{name}.parquet", content)
            tables[name] = hashlib.sha256(content).hexdigest()
        for name in TABLES.keys() - tables.keys():  # of an earlier record, which this one replaces
            (self._at / f"{name}.parquet").unlink(missing_ok=True)
        started = self._started
        summary = {name: float(value) for name, value in ended.summary.items() if isfinite(value)}
        assert summary.keys() <= SUMMARY.keys(), f"{summary.keys() - SUMMARY.keys()} is not in SUMMARY"
        digests = started.digests if started else Digests()
        record = RunRecord(
            run_id=self._spec.run_id,
            spec=self._spec,
            outcome=ended.outcome,
            summary=summary,
            parameters=started.parameters if started else None,
            layers=started.layers if started else (),
            digests=digests.model_copy(update={"final": ended.final}),
            claims_digest=self._claims_digest,
            tables=tables,
            provenance=self._provenance,
            timings=timings,
        ).sealed()
        write_bytes(self._at / "run.json", (record.model_dump_json(indent=1) + "\n").encode())
        return record


def encode(table: str, columns: Mapping[str, list[Any]]) -> bytes:
    """The table as parquet. Equal columns give equal bytes under one version of pyarrow."""
    schema = TABLES[table]
    sink = io.BytesIO()
    pq.write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema), sink, compression="zstd")
    return sink.getvalue()
