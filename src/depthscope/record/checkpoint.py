"""Checkpoints: all that a run needs to go on as if it had never stopped.

In a run's folder:

checkpoint.json                        the point of commitment: what the checkpoint is of, and the SHA-256 of its files
checkpoint-<step>.safetensors          the state's tensors
checkpoint-<step>.<table>.parquet      the rows up to the step

Weights that the run has kept so far (`record.weights`) stay as they are; the checkpoint lists them.

The files of a new checkpoint are written first, then `checkpoint.json` is replaced in one step, then the
files of the old one are deleted. So a kill at any moment leaves the old checkpoint or the new one whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import safetensors
import safetensors.numpy
from pydantic import Field, ValidationError

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes, write_bytes
from depthscope.record.events import Started, State
from depthscope.record.folder import run_folder
from depthscope.record.reader import Damage
from depthscope.record.schema import MEASURES, TABLES, Columns, Digests, LayerFacts, Provenance, Timings, checksum_of
from depthscope.record.tables import decode, encode
from depthscope.record.weights import weights_fault
from depthscope.study.run import Frozen, RunSpec

CHECKPOINT_VERSION = 1
"""Counted up when what a checkpoint holds, or what an engine reads into it, changes."""

_MANIFEST = "checkpoint.json"

_OWN = re.compile(r"checkpoint-[0-9]+\.(safetensors|[a-z_]+\.parquet)")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A run at a step, and what was heard of it so far.

    Attributes:
        spec: the run, with the measures that its rows hold.
        state: from which its engine goes on.
        started: what the run is made of, as told at its start.
        rows: table -> its rows so far.
        weights: file -> SHA-256 of the weights that it kept so far.
        timings: up to here, of all parts of the run.
        provenance: of the part that saved it; earlier parts are in its `resumed`.
    """

    spec: RunSpec
    state: State
    started: Started
    rows: Mapping[str, Columns]
    timings: Timings
    provenance: Provenance
    weights: Mapping[str, str] = field(default_factory=dict)


class _Manifest(Frozen):
    """`checkpoint.json`; `checksum` is the digest of all the rest."""

    checkpoint_version: int = CHECKPOINT_VERSION
    spec: RunSpec
    measures_version: int = MEASURES
    step: int
    num_steps: int
    position: dict[str, Any]
    parameters: int
    layers: tuple[LayerFacts, ...]
    derived: dict[str, float] = Field(default_factory=dict)
    chance_loss: float | None = None
    digests: Digests
    timings: Timings
    provenance: Provenance
    files: dict[str, str]
    weights: dict[str, str] = Field(default_factory=dict)
    checksum: str = ""


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a run's checkpoint in place of its last one.

    Args:
        folder: the study's.
        checkpoint: the floats in `state.position` are finite; others belong in `state.tensors`.

    Raises:
        UserError: the folder cannot be written or the disk is full. The last checkpoint still stands.
    """
    state, started = checkpoint.state, checkpoint.started
    at = run_folder(folder, checkpoint.spec.run_id)
    tensors = {name: np.array(value, order="C") for name, value in state.tensors.items()}
    contents = {f"checkpoint-{state.step}.safetensors": safetensors.numpy.save(tensors)}
    for table, columns in sorted(checkpoint.rows.items()):
        contents[f"checkpoint-{state.step}.{table}.parquet"] = encode(table, dict(columns))
    manifest = _Manifest(
        spec=checkpoint.spec,
        step=state.step,
        num_steps=started.num_steps,
        position=dict(state.position),
        parameters=started.parameters,
        layers=started.layers,
        derived=dict(started.derived),
        chance_loss=started.chance_loss,
        digests=started.digests,
        timings=checkpoint.timings,
        provenance=checkpoint.provenance,
        files={name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        weights=dict(checkpoint.weights),
    )
    manifest = manifest.model_copy(update={"checksum": checksum_of(manifest.model_dump(mode="json"))})
    before = _named(at)
    for name in (*contents, _MANIFEST):
        # A pipe or the like in a name of ours was found as damage: it gives way, as a damaged file does.
        with contextlib.suppress(OSError):
            if not stat.S_ISREG((at / name).lstat().st_mode):
                (at / name).unlink()
    try:
        for name, content in contents.items():
            write_bytes(at / name, content)
        write_bytes(at / _MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode())
    except UserError:
        # On a full disk each attempt would leave some files, at a step of its own.
        if before is not None:
            _delete(at, contents.keys() - before)
        raise
    # What the replaced manifest named, and no more: another driver may be writing a checkpoint of this run, too.
    _delete(at, (before or set()) - contents.keys())


def read_checkpoint(folder: Path, spec: RunSpec) -> Checkpoint | Damage | None:
    """The checkpoint of a run; None where there is none, Damage where the run cannot go on from it and starts anew.

    It is refused where it is of another run or of other measures than `spec` asks for (their rows up to the
    step would be missing, or those after it), made by a Depthscope that measured or saved something else, or
    not whole. Another version of torch or NumPy is no reason: see `Provenance.resumed`.
    """
    run_id = spec.run_id
    at = run_folder(folder, run_id)
    try:
        text = read_bytes(at / _MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Damage(run_id, f"{_MANIFEST} cannot be read ({error.strerror or error})")
    manifest = _parse(text, spec)
    if isinstance(manifest, str):
        return Damage(run_id, f"{_MANIFEST} {manifest}")
    if why := weights_fault(folder, run_id, manifest.weights):
        return Damage(run_id, why)
    contents: dict[str, bytes] = {}
    for name, wanted in manifest.files.items():
        if not _OWN.fullmatch(name):  # not whatever file of this machine a manifest may name
            return Damage(run_id, f"{_MANIFEST} names files that are no checkpoint's")
        try:
            contents[name] = read_bytes(at / name)
        except OSError as error:
            return Damage(run_id, f"{name} cannot be read ({error.strerror or error})")
        if hashlib.sha256(contents[name]).hexdigest() != wanted:
            return Damage(run_id, f"{name} was altered or cut short")
    try:
        tensors = safetensors.numpy.load(contents.pop(f"checkpoint-{manifest.step}.safetensors"))
        rows = {name.split(".")[1]: decode(content) for name, content in contents.items()}
        if any(set(columns) != set(TABLES[table].names) for table, columns in rows.items()):
            raise ValueError
    except (safetensors.SafetensorError, pa.ArrowInvalid, LookupError, ValueError):
        return Damage(run_id, f"{_MANIFEST} names files that are no checkpoint's")
    return Checkpoint(
        spec=manifest.spec,
        state=State(run_id=run_id, step=manifest.step, position=manifest.position, tensors=tensors),
        started=Started(
            run_id=run_id,
            layers=manifest.layers,
            derived=manifest.derived,
            chance_loss=manifest.chance_loss,
            parameters=manifest.parameters,
            digests=manifest.digests,
            num_steps=manifest.num_steps,
        ),
        rows=rows,
        timings=manifest.timings,
        provenance=manifest.provenance,
        weights=manifest.weights,
    )


def delete_checkpoint(folder: Path, run_id: str) -> None:
    """Remove all files of a run's checkpoint, and what a killed writer left of one."""
    at = run_folder(folder, run_id)
    with contextlib.suppress(OSError):
        (at / _MANIFEST).unlink()  # first: files that nothing names are no damage
    tidy(folder, run_id)


def tidy(folder: Path, run_id: str) -> None:
    """Remove what no checkpoint needs: a killed writer left it. Only for who has just taken the run's lease."""
    at = run_folder(folder, run_id)
    needed = _named(at)
    if needed is None:
        return
    # The hidden ones are what `write_bytes` was at when it was killed.
    for pattern in ("checkpoint-*", ".checkpoint*", ".weights-*"):
        for path in at.glob(pattern):
            if path.name not in needed:
                with contextlib.suppress(OSError):
                    path.unlink()


def _parse(text: bytes, spec: RunSpec) -> _Manifest | str:
    """The manifest, or what is wrong with it."""
    try:
        version = json.loads(text)["checkpoint_version"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return "is not a whole checkpoint"
    if version != CHECKPOINT_VERSION:
        return f"has version {version}; this Depthscope reads {CHECKPOINT_VERSION}"
    try:
        manifest = _Manifest.model_validate_json(text)
        intact = manifest.checksum == checksum_of(json.loads(text))
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        return f"is not a checkpoint of this Depthscope (at {place or 'the top'})"
    except ValueError:  # a position that is not finite
        intact = False
    if not intact:
        return "was altered"
    if manifest.spec.run_id != spec.run_id:
        return "is the checkpoint of another run"
    if manifest.measures_version != MEASURES:
        return f"holds measures of version {manifest.measures_version}; this Depthscope measures version {MEASURES}"
    if (manifest.spec.measures, manifest.spec.measure_steps) != (spec.measures, spec.measure_steps):
        held, asked = (_measures(each) for each in (manifest.spec, spec))
        return f"holds other measures ({held}) than are asked for ({asked})"
    return manifest


def _measures(spec: RunSpec) -> str:
    """The measures of a run in words, with the steps that were asked for beside the usual ones."""
    steps = f" at steps {', '.join(map(str, spec.measure_steps))} too" if spec.measure_steps else ""
    return (", ".join(spec.measures) or "none") + steps


def _named(at: Path) -> set[str] | None:
    """The files that the checkpoint which stands needs; None where that is not known."""
    try:
        return {str(name) for name in json.loads(read_bytes(at / _MANIFEST))["files"]}
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def _delete(at: Path, names: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):  # what is left over does no harm
            if _OWN.fullmatch(name):  # not whatever a manifest that was altered may name
                (at / name).unlink()
