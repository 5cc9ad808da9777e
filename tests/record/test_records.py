"""Writer and reader: what was written comes back, and what was damaged is told and hurts nothing else."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Rows
from depthscope.record.folder import run_folder
from depthscope.record.provenance import provenance
from depthscope.record.reader import Damage, read_record, read_records, read_table
from depthscope.record.schema import (
    SCHEMA_VERSION,
    SUMMARY,
    Digests,
    LayerFacts,
    Outcome,
    Provenance,
    RunRecord,
    Timings,
)
from depthscope.record.schema import TABLES as SCHEMAS
from depthscope.record.writer import RunWriter, encode
from depthscope.study.run import RunSpec

Write = Callable[..., RunRecord]
METRICS: dict[str, list[Any]] = {"step": [0], "split": ["train"], "quantity": ["loss"], "value": [1.5]}


def columns_of(folder: Path, run_id: str, table: str) -> dict[str, list[Any]]:
    found = read_table(folder, run_id, table)
    assert found is not None
    return dict(found.to_pydict())


# ---- round trips ------------------------------------------------------------------------------------


def test_what_was_written_comes_back(tmp_path: Path, spec: RunSpec, write: Write) -> None:
    written = write()
    assert read_record(tmp_path, spec.run_id) == written
    assert (written.run_id, written.spec, written.parameters) == (spec.run_id, spec, 99)
    assert (written.digests.final, written.digests.data) == ("bb", "aa")
    assert written.layers[0].shape == (8,)
    assert sorted(item.name for item in run_folder(tmp_path, spec.run_id).iterdir()) == [
        "layers.parquet",
        "metrics.parquet",
        "run.json",
    ]
    assert columns_of(tmp_path, spec.run_id, "metrics")["value"] == [1.1, 0.5]
    found = read_table(tmp_path, spec.run_id, "layers")
    assert found is not None
    assert found.schema.equals(SCHEMAS["layers"])
    assert read_table(tmp_path, spec.run_id, "gradcheck") is None


def test_a_run_without_a_record_is_missing(tmp_path: Path, spec: RunSpec) -> None:
    assert read_record(tmp_path, spec.run_id) is None
    assert read_record(tmp_path / "nowhere", spec.run_id) is None
    assert read_table(tmp_path, spec.run_id, "metrics") is None
    run_folder(tmp_path, spec.run_id).mkdir(parents=True)
    (run_folder(tmp_path, spec.run_id) / "metrics.parquet").write_bytes(b"left by a run that was killed")
    assert read_record(tmp_path, spec.run_id) is None


def test_rows_come_together_in_the_order_heard(tmp_path: Path, spec: RunSpec) -> None:
    writer = RunWriter(tmp_path, spec, provenance(device="cpu", threads=1))
    for step in range(3):
        writer.hear(Rows(run_id=spec.run_id, table="metrics", columns={**METRICS, "step": [step]}))
    record = writer.finish(
        Ended(run_id=spec.run_id, outcome=Outcome(status="failed", step=2, reason="an error", remedy="mend it")),
        Timings(wall_s=0, cpu_s=0, started=""),
    )
    assert columns_of(tmp_path, spec.run_id, "metrics")["step"] == [0, 1, 2]
    # It failed before it started: what is not known is missing, not zero.
    assert (record.parameters, record.layers, record.digests, record.summary) == (None, (), Digests(), {})
    assert read_record(tmp_path, spec.run_id) == record


FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(codec="utf-8"), max_size=6)
MAYBE = st.none() | NAMES
RECORDS = st.builds(
    RunRecord,
    run_id=NAMES,
    spec=st.builds(
        RunSpec,
        backend=st.just("numpy"),
        family=st.just("mlp"),
        depth=st.integers(1, 99),
        width=st.integers(1, 99),
        activation=st.just("tanh"),
        init=st.just("gaussian"),
        data=st.just("spiral"),
        steps=st.integers(0, 99),
        seed=st.integers(0, 2**31 - 1),
        lr=st.floats(1e-300, 1e300),
    ),
    outcome=st.builds(
        Outcome,
        status=st.sampled_from(["completed", "diverged", "failed"]),
        step=st.integers(0, 2**40),
        stopped_early=st.booleans(),
        reason=MAYBE,
        remedy=MAYBE,
    ),
    summary=st.dictionaries(st.sampled_from(sorted(SUMMARY)), FINITE),
    parameters=st.none() | st.integers(0, 2**50),
    layers=st.lists(
        st.builds(
            LayerFacts,
            index=st.integers(0, 999),
            name=NAMES,
            kind=NAMES,
            weight=MAYBE,
            shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    digests=st.builds(Digests, init=st.dictionaries(NAMES, NAMES, max_size=2), data=MAYBE, order=MAYBE, final=MAYBE),
    tables=st.dictionaries(NAMES, NAMES, max_size=2),
    provenance=st.builds(
        Provenance,
        depthscope=NAMES,
        python=NAMES,
        numpy=NAMES,
        torch=MAYBE,
        platform=NAMES,
        processor=NAMES,
        device=NAMES,
        threads=st.integers(1, 99),
    ),
    timings=st.builds(Timings, wall_s=FINITE, cpu_s=FINITE, started=NAMES),
)


@settings(max_examples=100, deadline=None)
@given(RECORDS)
def test_records_survive_json(record: RunRecord) -> None:
    sealed = record.sealed()
    again = RunRecord.model_validate_json(sealed.model_dump_json(indent=1))
    assert again == sealed
    assert again.is_intact
    assert again.spec.run_id == record.spec.run_id
    json.loads(sealed.model_dump_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert not record.is_intact


def test_equal_runs_give_equal_bytes(tmp_path: Path, spec: RunSpec, write: Write) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = write(folder=one, wall_s=1.0), write(folder=two, wall_s=2.0)
    for table in ("metrics", "layers"):
        read = [(run_folder(at, spec.run_id) / f"{table}.parquet").read_bytes() for at in (one, two)]
        assert read[0] == read[1]
    assert first.tables == second.tables
    # Timings differ, and they stand in run.json alone.
    assert first.model_copy(update={"timings": second.timings, "checksum": second.checksum}) == second


def test_another_value_gives_another_file() -> None:
    assert encode("metrics", METRICS) == encode("metrics", dict(reversed(METRICS.items())))
    assert encode("metrics", METRICS) != encode("metrics", {**METRICS, "value": [1.5 + 1e-12]})
    assert encode("metrics", {**METRICS, "value": [None]}) != encode("metrics", {**METRICS, "value": [math.nan]})


# ---- values that are not finite -----------------------------------------------------------------------


@pytest.mark.parametrize("status", ["diverged", "completed"])
def test_a_run_that_overflowed_can_always_be_recorded(tmp_path: Path, spec: RunSpec, write: Write, status: str) -> None:
    tables = {
        "metrics": {**METRICS, "step": [0, 1, 2, 3], "split": ["train"] * 4, "quantity": ["loss"] * 4}
        | {"value": [math.nan, math.inf, -math.inf, None]},
        "layers": {"step": [0], "layer": [0], "name": ["stem"], "quantity": ["dh_norm"], "value": [math.inf]},
    }
    summary = {"train_loss": math.inf, "test_loss": math.nan, "train_accuracy": 0.1}
    written = write(tables=tables, summary=summary, outcome=Outcome(status=status, step=3))  # type: ignore[arg-type]
    # In the summary such a value is missing; in the tables it stands as it was measured, apart from what is missing.
    assert written.summary == {"train_accuracy": 0.1}
    assert read_record(tmp_path, spec.run_id) == written
    text = (run_folder(tmp_path, spec.run_id) / "run.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    nan, inf, minus, none = columns_of(tmp_path, spec.run_id, "metrics")["value"]
    assert math.isnan(nan)
    assert (inf, minus, none) == (math.inf, -math.inf, None)
    assert columns_of(tmp_path, spec.run_id, "layers")["value"] == [math.inf]


# ---- damage -------------------------------------------------------------------------------------------


def edit(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("cut short", lambda at: os.truncate(at / "metrics.parquet", 100), "metrics.parquet was altered or cut short"),
    ("emptied", lambda at: (at / "layers.parquet").write_bytes(b""), "layers.parquet was altered or cut short"),
    ("table gone", lambda at: (at / "layers.parquet").unlink(), "layers.parquet cannot be read (No such file"),
    ("json cut", lambda at: os.truncate(at / "run.json", 200), "run.json is not a whole record"),
    ("json empty", lambda at: (at / "run.json").write_bytes(b""), "run.json is not a whole record"),
    ("not UTF-8", lambda at: (at / "run.json").write_bytes(b"\xff\xfe"), "run.json is not a whole record"),
    ("no object", lambda at: (at / "run.json").write_text("[1, 2]"), "run.json is not a whole record"),
    ("endless", lambda at: (at / "run.json").write_text("[" * 99_999), "run.json is not a whole record"),
    ("a folder", lambda at: ((at / "run.json").unlink(), (at / "run.json").mkdir()), "run.json cannot be read"),
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
        lambda at: edit(at / "run.json", lambda each: each.update(schema_version=2, more="fields")),
        f"run.json has schema version 2; this Depthscope reads {SCHEMA_VERSION}",
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


@pytest.mark.parametrize("file", ["metrics.parquet", "run.json"])
def test_a_full_disk_loses_nothing_that_stood(
    tmp_path: Path, spec: RunSpec, write: Write, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    standing = write()
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).name == file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        write(wall_s=9.0)
    assert read_record(tmp_path, spec.run_id) == standing
    with pytest.raises(UserError, match="No space left on device"):
        write(of=spec.model_copy(update={"seed": 1}))
    assert read_record(tmp_path, spec.model_copy(update={"seed": 1}).run_id) is None


# ---- what the writer takes in ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        Rows(run_id="0" * 16, table="metrics", columns=METRICS),
        Rows(run_id="", table="metrics", columns={**METRICS, "step": [1, 2]}),
    ],
    ids=["another run's", "unequal columns"],
)
def test_rows_that_cannot_be_right(tmp_path: Path, spec: RunSpec, rows: Rows) -> None:
    writer = RunWriter(tmp_path, spec, provenance(device="cpu", threads=1))
    with pytest.raises(AssertionError):
        writer.hear(Rows(run_id=rows.run_id or spec.run_id, table=rows.table, columns=rows.columns))


def test_a_figure_without_definition(write: Write) -> None:
    with pytest.raises(AssertionError, match="trian_loss"):
        write(summary={"trian_loss": 1.0})


def test_a_record_answers_for_its_measures(spec: RunSpec, write: Write) -> None:
    record = write()
    assert record.answers(spec)
    assert record.answers(spec.model_copy(update={"measures": ()}))
    assert not record.answers(spec.model_copy(update={"measures": ("gradcheck", "layers")}))
    assert not record.answers(spec.model_copy(update={"seed": 1}))


def test_provenance_names_no_person_and_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = provenance(device="cpu", threads=2, group_size=3)
    assert (found.device, found.threads, found.group_size) == ("cpu", 2, 3)
    assert all((found.depthscope, found.python, found.numpy, found.platform, found.processor))
    text = found.model_dump_json()
    assert os.uname().nodename not in text
    assert str(Path.home()) not in text
