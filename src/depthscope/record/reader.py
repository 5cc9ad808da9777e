"""Reads records back, and tells what is damaged instead of failing on it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes
from depthscope.record.folder import run_folder
from depthscope.record.schema import SCHEMA_VERSION, RunRecord, checksum_of


@dataclass(frozen=True)
class Damage:
    """A run whose record cannot be trusted, and why. It counts as missing and will be done again."""

    run_id: str
    reason: str


def read_record(folder: Path, run_id: str) -> RunRecord | Damage | None:
    """The record of one run; None where it was not finished, Damage where it was altered or cut."""
    at = run_folder(folder, run_id)
    try:
        text = read_bytes(at / "run.json")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Damage(run_id, f"run.json cannot be read ({error.strerror or error})")
    try:
        document = json.loads(text)
        version = document["schema_version"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return Damage(run_id, "run.json is not a whole record")
    if version != SCHEMA_VERSION:
        return Damage(run_id, f"run.json has schema version {version}; this Depthscope reads {SCHEMA_VERSION}")
    try:
        record = RunRecord.model_validate_json(text)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        return Damage(run_id, f"run.json is not a record of this Depthscope (at {place or 'the top'})")
    if record.run_id != run_id or record.spec.run_id != run_id:
        return Damage(run_id, "run.json is the record of another run")
    try:
        intact = record.checksum == checksum_of(document)
    except ValueError:  # a number that is not finite, which no writer of ours puts there
        intact = False
    if not intact:
        return Damage(run_id, "run.json was altered")
    for name, wanted in record.tables.items():
        try:
            content = read_bytes(at / f"{name}.parquet")
        except OSError as error:
            return Damage(run_id, f"{name}.parquet cannot be read ({error.strerror or error})")
        if hashlib.sha256(content).hexdigest() != wanted:
            return Damage(run_id, f"{name}.parquet was altered or cut short")
    for name in record.weights:
        # Their bytes are looked at where they are used: together they may be gigabytes.
        if not (at / name).is_file():
            return Damage(run_id, f"{name} is missing")
    return record


def read_records(folder: Path, run_ids: list[str]) -> tuple[dict[str, RunRecord], tuple[Damage, ...]]:
    """(the records of these runs that stand, what is damaged)."""
    records: dict[str, RunRecord] = {}
    damaged: list[Damage] = []
    for run_id in run_ids:
        match read_record(folder, run_id):
            case RunRecord() as record:
                records[run_id] = record
            case Damage() as damage:
                damaged.append(damage)
            case None:
                pass
    return records, tuple(damaged)


def read_table(folder: Path, run_id: str, table: str) -> pa.Table | None:
    """One table of a run; None where the run has none.

    Raises:
        UserError: the file is there and cannot be read as parquet.
    """
    path = run_folder(folder, run_id) / f"{table}.parquet"
    try:
        # On this thread: of so small a file, others and the machinery for folders take more time than the reading.
        return pq.ParquetFile(pa.BufferReader(read_bytes(path)), pre_buffer=False).read(use_threads=False)
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowInvalid) as error:
        raise UserError(f"{path}: cannot be read as parquet ({error}). Delete the run's folder to redo it.") from error
