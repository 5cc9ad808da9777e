"""The maps of a study's runs, each in `runs/<run_id>/maps/<map_id>/`: which stand, and which could not be made.

A map's folder holds what `record.landscape` says, or `fault.json`: why its last attempt came to nothing.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes, write_json
from depthscope.core.hashing import digest
from depthscope.record.folder import run_folder
from depthscope.record.landscape import MAP_FILE, MapHead, MapRecord, kinds, read_head, read_map
from depthscope.record.schema import RunRecord
from depthscope.record.weights import steps_of
from depthscope.study.expand import Plan
from depthscope.study.landscape import MapSpec

MADE_OF = "weights_files"
"""In a head's facts: digest of the files of weights that the map was made from."""

_FAULT = "fault.json"


@dataclass(frozen=True, kw_only=True)
class RunMap:
    """Where one map of a recorded run stands.

    Attributes:
        run_id: the run.
        spec: what is asked of the map.
        record: the map, whole or in part; None where nothing stands.
        closed: whether all its points lie in one file.
        fault: why the last attempt came to nothing.
    """

    run_id: str
    spec: MapSpec
    record: MapRecord | None = None
    closed: bool = False
    fault: str | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do of it."""
        return self.closed and self.record is not None and self.record.complete


def map_folder(folder: Path, run_id: str, map_id: str) -> Path:
    """Where a map of a run lies."""
    return run_folder(folder, run_id) / "maps" / map_id


def made_of(record: RunRecord, spec: MapSpec) -> str:
    """Digest of the files of weights that a map is made from: those of the end, or of the whole path."""
    names = [f"weights-{step}.safetensors" for step in steps_of(record.weights)]
    return digest([record.weights[name] for name in (names if spec.directions == "trajectory" else names[-1:])])


def is_made_of(head: MapHead, record: RunRecord) -> bool:
    """Whether a map is one of the weights that the run has now: a run that is done anew may have others."""
    return head.source.run_id == record.run_id and head.facts.get(MADE_OF) == made_of(record, head.spec)


def standing(plan: Plan, folder: Path, records: Mapping[str, RunRecord]) -> tuple[RunMap, ...]:
    """Where each map stands that the plan asks for, of the runs that completed, in the plan's order."""
    return tuple(
        each
        for run_id, specs in plan.maps.items()
        if (record := records.get(run_id)) is not None and record.outcome.status == "completed" and record.weights
        for each in read_run_maps(folder, record, specs)
    )


def read_run_maps(folder: Path, record: RunRecord, specs: Sequence[MapSpec]) -> tuple[RunMap, ...]:
    """Where each of the maps of a run stands. One of other weights, or that cannot be read, does not stand."""
    return tuple(_read(folder, record, spec) for spec in specs)


def _read(folder: Path, record: RunRecord, spec: MapSpec) -> RunMap:
    at = map_folder(folder, record.run_id, spec.map_id)
    found, fault, closed = None, None, False
    with contextlib.suppress(UserError):
        head = read_head(at)
        if head is not None and head.spec == spec and is_made_of(head, record):
            found = read_map(at)
            closed = all((at / f"{kind}.parquet").is_file() for kind in kinds(spec))
    if found is None or not closed:
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            told = json.loads(read_bytes(at / _FAULT))
            fault = str(told["reason"]) if told["made_of"] == made_of(record, spec) else None
    return RunMap(run_id=record.run_id, spec=spec, record=found, closed=closed, fault=fault)


def clear(folder: Path, record: RunRecord, spec: MapSpec) -> None:
    """Make a map's folder ready for an attempt: without its fault, and without what cannot go on."""
    at = map_folder(folder, record.run_id, spec.map_id)
    with contextlib.suppress(OSError):
        (at / _FAULT).unlink()
    try:
        head = read_head(at)
        fits = head is not None and head.spec == spec and is_made_of(head, record)
    except UserError:
        fits = False
    if not fits:
        delete_map(folder, record.run_id, spec)


def delete_map(folder: Path, run_id: str, spec: MapSpec) -> None:
    """Remove all of a map."""
    at = map_folder(folder, run_id, spec.map_id)
    with contextlib.suppress(OSError):
        (at / MAP_FILE).unlink()  # first: without it nothing else counts
    shutil.rmtree(at, ignore_errors=True)


def write_fault(folder: Path, record: RunRecord, spec: MapSpec, reason: str) -> None:
    """Keep why a map could not be made, until the next attempt.

    Raises:
        UserError: the folder cannot be written.
    """
    at = map_folder(folder, record.run_id, spec.map_id)
    write_json(at / _FAULT, {"reason": reason, "made_of": made_of(record, spec)})
