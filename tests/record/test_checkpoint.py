"""Checkpoints: what was saved comes back, a kill leaves one whole, and what cannot be trusted is refused."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from depthscope.core import files
from depthscope.core.errors import UserError
from depthscope.record import checkpoint as module
from depthscope.record.checkpoint import Checkpoint, delete_checkpoint, read_checkpoint, tidy, write_checkpoint
from depthscope.record.events import Ended, Rows, Started, State
from depthscope.record.folder import run_folder
from depthscope.record.provenance import change_of_versions, resumed_from
from depthscope.record.reader import Damage, read_record
from depthscope.record.schema import Digests, LayerFacts, Outcome, Provenance, Timings, checksum_of
from depthscope.record.tables import encode
from depthscope.record.writer import RunWriter
from depthscope.study.run import RunSpec

FACTS = Provenance(
    depthscope="0.1", python="3.11", numpy="2.0", platform="Linux x86_64", processor="a chip", device="cpu", threads=1
)
ROWS: dict[str, dict[str, list[Any]]] = {
    "metrics": {
        "step": [0, 1, 2, 3],
        "split": ["train"] * 4,
        "quantity": ["loss"] * 4,
        "value": [1.5, None, math.nan, math.inf],
    },
    "layers": {"step": [0], "layer": [0], "name": ["stem"], "quantity": ["h_norm"], "value": [2.0]},
}


def state_of(spec: RunSpec, step: int, **tensors: Any) -> State:
    made: dict[str, Any] = {"model.w": np.full((2, 3), step, np.float32), "model.count": np.array(step)}
    return State(run_id=spec.run_id, step=step, position={"at": step, "share": 0.1}, tensors={**made, **tensors})


def checkpoint_of(spec: RunSpec, step: int = 4, **changes: Any) -> Checkpoint:
    layers = (LayerFacts(index=0, name="stem", kind="linear", shape=(8,)),)
    digests = Digests(init={"w": "00ff"}, data="aa")
    started = Started(run_id=spec.run_id, layers=layers, parameters=9, digests=digests, num_steps=10)
    made: dict[str, Any] = {
        "spec": spec,
        "state": state_of(spec, step),
        "started": started,
        "rows": ROWS,
        "timings": Timings(wall_s=1.0, cpu_s=0.5, started="2026-01-01T00:00:00+00:00"),
        "provenance": FACTS,
    }
    return Checkpoint(**{**made, **changes})


def same(one: object, other: Checkpoint) -> bool:
    if not isinstance(one, Checkpoint):
        return False
    tensors = {name: (value.dtype, value.shape, value.tobytes()) for name, value in other.state.tensors.items()}
    return (
        {name: (value.dtype, value.shape, value.tobytes()) for name, value in one.state.tensors.items()} == tensors
        and (one.state.run_id, one.state.step, one.state.position)
        == (other.state.run_id, other.state.step, other.state.position)
        and {table: encode(table, dict(columns)) for table, columns in one.rows.items()}
        == {table: encode(table, dict(columns)) for table, columns in other.rows.items()}
        and (one.spec, one.started, one.timings, one.provenance)
        == (other.spec, other.started, other.timings, other.provenance)
    )


# ---- round trips ------------------------------------------------------------------------------------

DTYPES = st.sampled_from([np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_])
TENSORS = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(
        lambda name: name != "__metadata__"
    ),
    DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4))),
    max_size=4,
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FINITE | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
COLUMN = st.lists(st.tuples(st.integers(0, 2**40), st.none() | st.floats()), max_size=5)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(TENSORS, st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), JSON, max_size=3), COLUMN)
def test_what_was_saved_comes_back(
    tmp_path: Path, spec: RunSpec, tensors: dict[str, Any], position: dict[str, Any], column: list[Any]
) -> None:
    num = len(column)
    metrics = {
        "step": [step for step, _ in column],
        "split": ["train"] * num,
        "quantity": ["loss"] * num,
        "value": [value for _, value in column],
    }
    state = State(run_id=spec.run_id, step=4, position=position, tensors=tensors)
    made = checkpoint_of(spec, state=state, rows={"metrics": metrics})
    write_checkpoint(tmp_path, made)
    assert same(read_checkpoint(tmp_path, spec), made)


def test_layouts_in_memory_are_no_matter(tmp_path: Path, spec: RunSpec) -> None:
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    made = checkpoint_of(spec, state=state_of(spec, 4, turned=turned))
    write_checkpoint(tmp_path, made)
    read = read_checkpoint(tmp_path, spec)
    assert isinstance(read, Checkpoint)
    np.testing.assert_array_equal(read.state.tensors["turned"], turned)


def test_a_run_without_a_checkpoint(tmp_path: Path, spec: RunSpec) -> None:
    assert read_checkpoint(tmp_path, spec) is None
    (run_folder(tmp_path, spec.run_id)).mkdir(parents=True)
    (run_folder(tmp_path, spec.run_id) / "checkpoint-4.safetensors").write_bytes(b"killed before its checkpoint.json")
    assert read_checkpoint(tmp_path, spec) is None


def test_nothing_of_the_last_one_is_left(tmp_path: Path, spec: RunSpec) -> None:
    at = run_folder(tmp_path, spec.run_id)
    write_checkpoint(tmp_path, checkpoint_of(spec, 4))
    (at / ".checkpoint-4.safetensors.abcdef").write_bytes(b"half")
    tidy(tmp_path, spec.run_id)
    write_checkpoint(tmp_path, checkpoint_of(spec, 8))
    assert sorted(each.name for each in at.iterdir()) == [
        "checkpoint-8.layers.parquet",
        "checkpoint-8.metrics.parquet",
        "checkpoint-8.safetensors",
        "checkpoint.json",
    ]
    delete_checkpoint(tmp_path, spec.run_id)
    assert not list(at.iterdir())


# ---- a stop or a full disk while saving ---------------------------------------------------------------


class Killed(BaseException):
    """As kill -9: nothing is tidied up after it."""


@pytest.mark.parametrize("full", [False, True], ids=["killed", "disk full"])
def test_a_stop_at_any_write_leaves_the_last_checkpoint_or_the_new_one(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    old, new = checkpoint_of(spec, 4), checkpoint_of(spec, 8)
    num_writes = 4
    for at in range(num_writes + 1):
        folder = tmp_path / str(at)
        write_checkpoint(folder, old)
        calls = 0

        def write(path: Path, content: bytes, stop_at: int = at) -> None:
            nonlocal calls
            if calls == stop_at:
                if full:
                    raise UserError("No space left on device")
                path.with_name(f".{path.name}.abcdef").write_bytes(content[: len(content) // 2])
                raise Killed
            calls += 1
            files.write_bytes(path, content)

        with monkeypatch.context() as patch:
            patch.setattr(module, "write_bytes", write)
            if at < num_writes:
                with pytest.raises(UserError if full else Killed):
                    write_checkpoint(folder, new)
            else:
                # Killed after the last write, before the old files were deleted.
                patch.setattr(module, "_delete", lambda *_, **__: None)
                write_checkpoint(folder, new)
        assert calls == at
        assert same(read_checkpoint(folder, spec), new if at == num_writes else old)
        if full and at < num_writes:  # a full disk is not filled further by each attempt
            assert len(list(run_folder(folder, spec.run_id).iterdir())) == num_writes
        # And the next one goes well over what was left behind.
        again = checkpoint_of(spec, 12)
        tidy(folder, spec.run_id)
        write_checkpoint(folder, again)
        assert same(read_checkpoint(folder, spec), again)
        assert len(list(run_folder(folder, spec.run_id).iterdir())) == num_writes


# ---- refused -----------------------------------------------------------------------------------------


def edit(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def pipe(path: Path) -> None:
    """Nobody fills it: whoever read it as a file would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def name_another(path: Path) -> None:
    """A manifest that is whole, and names what is no checkpoint's."""
    manifest = module._Manifest.model_validate_json(path.read_bytes())
    manifest = manifest.model_copy(update={"files": {**manifest.files, "../../../secret": "0" * 64}})
    path.write_text(
        manifest.model_copy(update={"checksum": checksum_of(manifest.model_dump(mode="json"))}).model_dump_json()
    )


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    (
        "tensors cut",
        lambda at: os.truncate(at / "checkpoint-4.safetensors", 60),
        "checkpoint-4.safetensors was altered",
    ),
    (
        "rows altered",
        lambda at: (at / "checkpoint-4.metrics.parquet").write_bytes(b""),
        "checkpoint-4.metrics.parquet w",
    ),
    (
        "rows gone",
        lambda at: (at / "checkpoint-4.layers.parquet").unlink(),
        "checkpoint-4.layers.parquet cannot be read",
    ),
    ("json cut", lambda at: os.truncate(at / "checkpoint.json", 200), "checkpoint.json is not a whole checkpoint"),
    ("json empty", lambda at: (at / "checkpoint.json").write_bytes(b""), "checkpoint.json is not a whole checkpoint"),
    ("no object", lambda at: (at / "checkpoint.json").write_text("[1]"), "checkpoint.json is not a whole checkpoint"),
    ("endless", lambda at: (at / "checkpoint.json").write_text("[" * 99_999), "checkpoint.json is not a whole checkp"),
    (
        "another step",
        lambda at: edit(at / "checkpoint.json", lambda each: each.update(step=5)),
        "checkpoint.json was al",
    ),
    (
        "a position that is not finite",
        lambda at: edit(at / "checkpoint.json", lambda each: each["position"].update(at=math.inf)),
        "checkpoint.json ",
    ),
    (
        "a later version",
        lambda at: edit(at / "checkpoint.json", lambda each: each.update(checkpoint_version=99)),
        "checkpoint.json has version 99; this Depthscope reads 1",
    ),
    (
        "no position",
        lambda at: edit(at / "checkpoint.json", lambda each: each.pop("position")),
        "checkpoint.json is not a checkpoint of this Depthscope (at position)",
    ),
    ("a pipe", lambda at: pipe(at / "checkpoint.json"), "checkpoint.json cannot be read (not a regular file)"),
    ("tensors a pipe", lambda at: pipe(at / "checkpoint-4.safetensors"), "checkpoint-4.safetensors cannot be read"),
    ("a file of the machine", lambda at: name_another(at / "checkpoint.json"), "checkpoint.json names files that are"),
]


@pytest.mark.parametrize(("act", "reason"), [each[1:] for each in DAMAGES], ids=[each[0] for each in DAMAGES])
def test_damage_is_refused_with_a_word(
    tmp_path: Path, spec: RunSpec, act: Callable[[Path], object], reason: str
) -> None:
    write_checkpoint(tmp_path, checkpoint_of(spec))
    act(run_folder(tmp_path, spec.run_id))
    found = read_checkpoint(tmp_path, spec)
    assert isinstance(found, Damage)
    assert (found.run_id, found.reason[: len(reason)]) == (spec.run_id, reason)
    write_checkpoint(tmp_path, checkpoint_of(spec))
    assert isinstance(read_checkpoint(tmp_path, spec), Checkpoint)


def test_the_checkpoint_of_something_else_is_refused(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = spec.model_copy(update={"seed": 1})
    write_checkpoint(tmp_path, checkpoint_of(other))
    run_folder(tmp_path, other.run_id).rename(run_folder(tmp_path, spec.run_id))
    assert read_checkpoint(tmp_path, spec) == Damage(spec.run_id, "checkpoint.json is the checkpoint of another run")
    write_checkpoint(tmp_path, checkpoint_of(spec))
    more = spec.model_copy(update={"measures": ("gradcheck", "layers")})
    reason = "checkpoint.json holds other measures (layers) than are asked for (gradcheck, layers)"
    assert read_checkpoint(tmp_path, more) == Damage(spec.run_id, reason)
    monkeypatch.setattr(module, "MEASURES", 77)
    found = read_checkpoint(tmp_path, spec)
    assert isinstance(found, Damage)
    assert "this Depthscope measures version 77" in found.reason


# ---- the writer ---------------------------------------------------------------------------------------

METRICS: dict[str, list[Any]] = {"split": ["train"], "quantity": ["loss"], "value": [1.5]}
PART = Timings(wall_s=2.0, cpu_s=1.0, started="2026-01-02T00:00:00+00:00")


def rows_at(spec: RunSpec, step: int) -> Rows:
    return Rows(run_id=spec.run_id, table="metrics", columns={"step": [step], **METRICS})


def end_of(spec: RunSpec) -> Ended:
    return Ended(run_id=spec.run_id, outcome=Outcome(status="completed", step=10), final="bb")


def test_a_resumed_run_has_the_record_of_one_that_never_stopped(tmp_path: Path, spec: RunSpec) -> None:
    started = checkpoint_of(spec).started

    def begin(folder: Path) -> RunWriter:
        writer = RunWriter(folder, spec, FACTS, "claims")
        writer.hear(started)
        writer.hear(rows_at(spec, 0))
        return writer

    whole = begin(tmp_path / "whole")
    whole.hear(rows_at(spec, 5))
    expected = whole.finish(end_of(spec), PART)

    stopped = begin(tmp_path / "stopped")
    stopped.save(state_of(spec, 3), PART)
    stopped.hear(rows_at(spec, 5))  # lost
    for step in (4, 5):
        saved = read_checkpoint(tmp_path / "stopped", spec)
        assert isinstance(saved, Checkpoint)
        stopped = RunWriter(tmp_path / "stopped", spec, FACTS, "claims", resumed=saved)
        if step == 4:
            stopped.save(state_of(spec, 4), PART)
    stopped.hear(rows_at(spec, 5))
    record = stopped.finish(end_of(spec), PART)
    assert expected is not None
    assert record is not None
    assert record.tables == expected.tables
    assert record.timings == Timings(wall_s=6.0, cpu_s=3.0, started=PART.started)
    assert [(part.step, part.differs) for part in record.provenance.resumed] == [(3, ()), (4, ())]
    assert change_of_versions(record.provenance) is None
    alike = {"timings": record.timings, "provenance": record.provenance, "checksum": record.checksum}
    assert expected.model_copy(update=alike) == record
    names = sorted(each.name for each in run_folder(tmp_path / "stopped", spec.run_id).iterdir())
    assert names == ["metrics.parquet", "run.json"]


def test_every_part_is_held_against_the_last_and_what_is_not_known_is_no_difference() -> None:
    """Torch 2.11 (loaded by chance in a part before, not known after), then another NumPy, then the first one again."""
    first, second = FACTS.model_copy(update={"torch": "2.11.0"}), FACTS.model_copy(update={"numpy": "2.1"})
    parts = resumed_from(8, resumed_from(4, first, second), FACTS).resumed
    assert [(part.step, part.numpy, part.differs) for part in parts] == [(4, "2.0", ()), (8, "2.1", ("numpy",))]
    times = [Timings(wall_s=each, cpu_s=each, started=f"2026-01-0{each}T00:00:00+00:00") for each in (1, 2, 4)]
    assert times[0].then(times[1]).then(times[2]) == Timings(wall_s=7, cpu_s=7, started=times[0].started)


def test_another_version_since_the_stop_is_told(tmp_path: Path, spec: RunSpec) -> None:
    torch_2_12 = FACTS.model_copy(update={"torch": "2.12.0"})
    write_checkpoint(tmp_path, checkpoint_of(spec, provenance=torch_2_12))
    saved = read_checkpoint(tmp_path, spec)
    assert isinstance(saved, Checkpoint)
    now = FACTS.model_copy(update={"torch": "2.13.0", "device": "cuda"})
    writer = RunWriter(tmp_path, spec, now, resumed=saved)
    assert change_of_versions(writer.provenance) == (
        "to step 4 with torch 2.12.0, device cpu, then with torch 2.13.0, device cuda"
    )
    record = writer.finish(end_of(spec), PART)
    assert record is not None
    (part,) = record.provenance.resumed
    assert (part.step, part.torch, part.device, part.differs) == (4, "2.12.0", "cpu", ("torch", "device"))
    assert read_record(tmp_path, spec.run_id) == record


def test_a_record_is_made_exactly_once(tmp_path: Path, spec: RunSpec) -> None:
    first, late = RunWriter(tmp_path, spec, FACTS), RunWriter(tmp_path, spec, FACTS)
    first.hear(rows_at(spec, 0))
    record = first.finish(end_of(spec), PART)
    late.hear(rows_at(spec, 7))
    assert late.finish(end_of(spec), PART) is None
    assert not list(run_folder(tmp_path, spec.run_id).glob(".*"))
    assert read_record(tmp_path, spec.run_id) == record
    assert late.finish(end_of(spec), PART, replacing=True) is not None


def test_a_full_disk_leaves_the_record_that_is_done_again(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunWriter(tmp_path, spec, FACTS)
    first.hear(rows_at(spec, 0))
    record = first.finish(end_of(spec), PART)
    again = RunWriter(tmp_path, spec, FACTS)
    again.hear(rows_at(spec, 0))
    again.hear(rows_at(spec, 7))
    for write in range(2):  # the table's bytes, then the record's
        fsync, calls = os.fsync, iter(range(9))

        def full(descriptor: int, fsync: Any = fsync, calls: Any = calls, write: int = write) -> None:
            if next(calls) == write:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(UserError, match="No space left on device"):
                again.finish(end_of(spec), PART, replacing=True)
        assert read_record(tmp_path, spec.run_id) == record
        assert not list(run_folder(tmp_path, spec.run_id).glob(".*"))
    assert again.finish(end_of(spec), PART, replacing=True) == read_record(tmp_path, spec.run_id) != record


@pytest.mark.parametrize(("status", "kept"), [("failed", True), ("completed", False), ("diverged", False)])
def test_only_a_run_that_failed_keeps_its_checkpoint(tmp_path: Path, spec: RunSpec, status: Any, kept: bool) -> None:
    made = checkpoint_of(spec)
    write_checkpoint(tmp_path, made)
    outcome = end_of(spec).outcome.model_copy(update={"status": status})
    ended = dataclasses.replace(end_of(spec), outcome=outcome)
    assert RunWriter(tmp_path, spec, FACTS, resumed=made).finish(ended, PART) is not None
    assert (read_checkpoint(tmp_path, spec) is not None) == kept


def test_a_late_writer_leaves_the_files_of_another_checkpoint(tmp_path: Path, spec: RunSpec) -> None:
    write_checkpoint(tmp_path, checkpoint_of(spec, 4))
    half = run_folder(tmp_path, spec.run_id) / "checkpoint-8.safetensors"  # of a driver that took the run over
    half.write_bytes(b"being written")
    write_checkpoint(tmp_path, checkpoint_of(spec, 6))
    assert half.exists()
    tidy(tmp_path, spec.run_id)
    assert not half.exists()
    assert same(read_checkpoint(tmp_path, spec), checkpoint_of(spec, 6))


@pytest.mark.parametrize("at_link", [False, True], ids=["at a table", "at run.json"])
def test_a_full_disk_at_the_end_leaves_the_checkpoint(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, at_link: bool
) -> None:
    made = checkpoint_of(spec)
    write_checkpoint(tmp_path, made)
    writer = RunWriter(tmp_path, spec, FACTS, resumed=made)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link" if at_link else "replace", full)
        with pytest.raises(UserError, match="No space left on device"):
            writer.finish(end_of(spec), PART)
    assert read_record(tmp_path, spec.run_id) is None
    assert same(read_checkpoint(tmp_path, spec), made)
    assert writer.finish(end_of(spec), PART) is not None
