"""What was damaged is told, hurts nothing else, and is mended by doing the run again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from depthscope.core.errors import UserError
from depthscope.record.folder import run_folder
from depthscope.record.reader import Damage, read_record, read_records, read_table
from depthscope.record.schema import SCHEMA_VERSION, RunRecord
from depthscope.study.run import RunSpec

Write = Callable[..., RunRecord]
METRICS: dict[str, list[Any]] = {"step": [0], "split": ["train"], "quantity": ["loss"], "value": [1.5]}


def edit(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def a_pipe_in_place_of(path: Path) -> None:
    """Nobody fills it: whoever read it as a file would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def a_folder_in_place_of(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("cut short", lambda at: os.truncate(at / "metrics.parquet", 100), "metrics.parquet was altered or cut short"),
    ("emptied", lambda at: (at / "layers.parquet").write_bytes(b""), "layers.parquet was altered or cut short"),
    ("table gone", lambda at: (at / "layers.parquet").unlink(), "layers.parquet cannot be read (No such file"),
    ("json cut", lambda at: os.truncate(at / "run.json", 200), "run.json is not a whole record"),
    ("json empty", lambda at: (at / "run.json").write_bytes(b""), "run.json is not a whole record"),
    ("not UTF-8", lambda at: (at / "run.json").write_bytes(b"\xff\xfe"), "run.json is not a whole record"),
    ("no object", lambda at: (at / "run.json").write_text("[1, 2]"), "run.json is not a whole record"),
    ("endless", lambda at: (at / "run.json").write_text("[" * 99_999), "run.json is not a whole record"),
    ("a pipe", lambda at: a_pipe_in_place_of(at / "run.json"), "run.json cannot be read (not a regular file)"),
    ("a table a pipe", lambda at: a_pipe_in_place_of(at / "layers.parquet"), "layers.parquet cannot be read (not a re"),
    ("a folder", lambda at: a_folder_in_place_of(at / "run.json"), "run.json cannot be read"),
    (
        "a better accuracy",
        lambda at: edit(at / "run.json", lambda each: each["summary"].update(train_loss=0.1)),
        "run.json was altered",
    ),
    (
        "another outcome",
        lambda at: edit(at / "run.json", lambda each: each["outcome"].update(status="diverged")),
        "run.json was altered",
    ),
    (
        "no checksum",
        lambda at: edit(at / "run.json", lambda each: each.pop("checksum")),
        "run.json was altered",
    ),
    (
        "an impossible status",
        lambda at: edit(at / "run.json", lambda each: each["outcome"].update(status="fine")),
        "run.json is not a record of this Depthscope (at outcome.status)",
    ),
    (
        "another seed",
        lambda at: edit(at / "run.json", lambda each: each["spec"].update(seed=5)),
        "run.json is the record of another run",
    ),
    (
        "a later schema",
        lambda at: edit(at / "run.json", lambda each: each.update(schema_version=SCHEMA_VERSION + 1, more="fields")),
        f"run.json has schema version {SCHEMA_VERSION + 1}; this Depthscope reads {SCHEMA_VERSION}",
    ),
]


@pytest.mark.parametrize(("act", "reason"), [each[1:] for each in DAMAGES], ids=[each[0] for each in DAMAGES])
def test_damage_is_told_and_hurts_no_other_run(
    tmp_path: Path, spec: RunSpec, write: Write, act: Callable[[Path], object], reason: str
) -> None:
    other = spec.model_copy(update={"seed": 1})
    write()
    standing = write(of=other)
    act(run_folder(tmp_path, spec.run_id))
    records, damaged = read_records(tmp_path, [spec.run_id, other.run_id, "0" * 16])
    assert records == {other.run_id: standing}
    [damage] = damaged
    assert damage.run_id == spec.run_id
    assert damage.reason.startswith(reason)
    # Doing the run again mends it.
    if (run_folder(tmp_path, spec.run_id) / "run.json").is_dir():
        (run_folder(tmp_path, spec.run_id) / "run.json").rmdir()
    again = write()
    assert read_record(tmp_path, spec.run_id) == again


def test_the_record_of_another_run_in_its_place(tmp_path: Path, spec: RunSpec, write: Write) -> None:
    other = spec.model_copy(update={"seed": 1})
    write()
    shutil.copytree(run_folder(tmp_path, spec.run_id), run_folder(tmp_path, other.run_id))
    assert read_record(tmp_path, other.run_id) == Damage(other.run_id, "run.json is the record of another run")


def test_a_table_that_is_no_parquet(tmp_path: Path, spec: RunSpec, write: Write) -> None:
    write()
    path = run_folder(tmp_path, spec.run_id) / "metrics.parquet"
    path.write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(UserError, match="cannot be read as parquet") as told:
        read_table(tmp_path, spec.run_id, "metrics")
    assert len(str(told.value).splitlines()) == 1
    assert "Delete the run's folder to redo it." in str(told.value)


def test_a_run_done_again_leaves_no_table_of_its_first_time(tmp_path: Path, spec: RunSpec, write: Write) -> None:
    write()
    record = write(tables={"metrics": METRICS})
    assert set(record.tables) == {"metrics"}
    assert read_table(tmp_path, spec.run_id, "layers") is None
