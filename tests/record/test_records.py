"""Writer and reader: what was written comes back, equal runs as equal bytes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.record.conftest import PROVENANCE

from depthscope.record.events import Ended, Rows, Started
from depthscope.record.folder import run_folder
from depthscope.record.provenance import provenance
from depthscope.record.reader import read_record, read_table
from depthscope.record.schema import (
    SUMMARY,
    Digests,
    LayerFacts,
    Outcome,
    Provenance,
    RunRecord,
    Timings,
    checksum_of,
)
from depthscope.record.schema import TABLES as SCHEMAS
from depthscope.record.tables import encode
from depthscope.record.writer import RunWriter
from depthscope.study.run import RunSpec

Write = Callable[..., RunRecord]
METRICS: dict[str, list[Any]] = {"step": [0], "split": ["train"], "quantity": ["loss"], "value": [1.5]}


def columns_of(folder: Path, run_id: str, table: str) -> dict[str, list[Any]]:
    found = read_table(folder, run_id, table)
    assert found is not None
    return dict(found.to_pydict())


# ---- what came later --------------------------------------------------------------------------------


def test_chance_and_samples_are_kept_and_a_record_without_them_reads(tmp_path: Path, spec: RunSpec) -> None:
    writer = RunWriter(tmp_path, spec, PROVENANCE)
    writer.hear(Started(run_id=spec.run_id, layers=(), parameters=1, digests=Digests(), num_steps=10, chance_loss=3.25))
    done = Ended(run_id=spec.run_id, outcome=Outcome(status="completed", step=10), samples=("ab", "", "\n"))
    assert writer.finish(done, Timings(wall_s=1.0, cpu_s=1.0, started="")) is not None
    found = read_record(tmp_path, spec.run_id)
    assert isinstance(found, RunRecord)
    assert (found.chance_loss, found.samples) == (3.25, ("ab", "", "\n"))
    path = run_folder(tmp_path, spec.run_id) / "run.json"
    older = {
        name: each for name, each in json.loads(path.read_text()).items() if name not in ("chance_loss", "samples")
    }
    path.write_text(json.dumps({**older, "checksum": checksum_of(older)}))
    found = read_record(tmp_path, spec.run_id)
    assert isinstance(found, RunRecord)
    assert (found.chance_loss, found.samples) == (None, ())


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
    assert record is not None
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


@settings(max_examples=100)
@given(RECORDS)
def test_records_survive_json(record: RunRecord) -> None:
    sealed = record.sealed()
    again = RunRecord.model_validate_json(sealed.model_dump_json(indent=1))
    assert again == sealed
    assert again.checksum == checksum_of(json.loads(sealed.model_dump_json(indent=1)))
    assert again.spec.run_id == record.spec.run_id
    json.loads(sealed.model_dump_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record.checksum != checksum_of(record.model_dump(mode="json"))


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
