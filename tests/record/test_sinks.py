"""The logs of a run: what they say, that they never double a row, and that none of it can cost a run."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from depthscope.core.errors import MissingDependencyError, UserError
from depthscope.record.event_file import EventFile, export_missing, readable_name
from depthscope.record.events import Ended, Progress, Rows, Started
from depthscope.record.folder import run_folder, write_study
from depthscope.record.schema import Digests, Outcome, RunRecord
from depthscope.record.sinks import LogFile, Sink, check_logs, open_sinks
from depthscope.study.expand import expand
from depthscope.study.run import RunSpec
from depthscope.study.toml import load

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
DONE = Outcome(status="completed", step=10)


def progress(spec: RunSpec, step: int, text: str) -> Progress:
    return Progress(run_id=spec.run_id, step=step, num_steps=10, text=text)


def started(spec: RunSpec) -> Started:
    return Started(run_id=spec.run_id, layers=(), parameters=1234, digests=Digests(), num_steps=10)


def log_file(folder: Path, spec: RunSpec, *seconds: float, resumed_at: int | None = None) -> LogFile:
    """A log whose clock shows these seconds after noon, a reading each."""
    readings = iter(seconds)
    return LogFile(folder, spec, resumed_at=resumed_at, clock=lambda: BEGIN + timedelta(seconds=next(readings)))


def lines(folder: Path, spec: RunSpec) -> list[str]:
    return (run_folder(folder, spec.run_id) / "log.txt").read_text().splitlines()


# ---- the text file ------------------------------------------------------------------------------------


def test_a_log_tells_a_run_that_was_killed_and_went_on(tmp_path: Path, spec: RunSpec) -> None:
    first = log_file(tmp_path, spec, 0, 1, 2, 3, 4)
    first.hear(started(spec))
    first.hear(progress(spec, 5, "epoch 1: loss 0.500"))
    first.saved(5)
    first.hear(progress(spec, 7, "never seen again"))  # the kill comes here
    second = log_file(tmp_path, spec, 60, 61, 62, 63, resumed_at=5)
    second.hear(progress(spec, 10, "epoch 2: loss 0.250"))
    second.hear(Ended(run_id=spec.run_id, outcome=DONE))
    second.saved(10)
    second.close()
    found = lines(tmp_path, spec)
    assert re.match(r"2026-01-01T12:00:00Z started: backend=numpy .* family=mlp depth=4 width=8 ", found[0])
    assert found[1:4] == [
        "2026-01-01T12:00:01Z 1,234 parameters, 10 steps",
        "2026-01-01T12:00:02Z step 5 of 10: epoch 1: loss 0.500",
        "2026-01-01T12:00:03Z checkpoint saved at step 5",
    ]
    assert found[4].startswith("2026-01-01T12:01:00Z resumed from step 5: backend=numpy ")
    assert found[5:] == [
        "2026-01-01T12:01:01Z step 10 of 10: epoch 2: loss 0.250",
        "2026-01-01T12:01:02Z ended: completed at step 10",
        "2026-01-01T12:01:03Z recorded",
    ]


def test_a_log_says_why_a_run_failed_on_one_line_and_whose_record_stands(tmp_path: Path, spec: RunSpec) -> None:
    log = log_file(tmp_path, spec, 0, 1, 2)
    outcome = Outcome(status="failed", step=3, reason="ValueError: first\nsecond")
    log.hear(Ended(run_id=spec.run_id, outcome=outcome))
    log.close()
    assert lines(tmp_path, spec)[1:] == [
        "2026-01-01T12:00:01Z ended: failed at step 3: ValueError: first second",
        "2026-01-01T12:00:02Z not recorded here: the record of another driver stands",
    ]


def test_a_clock_set_back_is_told(tmp_path: Path, spec: RunSpec) -> None:
    log = log_file(tmp_path, spec, 0, -3600)
    log.saved(5)
    assert lines(tmp_path, spec)[1:] == [
        "2026-01-01T11:00:00Z (the clock went back by 3,600 s)",
        "2026-01-01T11:00:00Z checkpoint saved at step 5",
    ]


def test_a_disk_that_takes_no_log_costs_no_run(tmp_path: Path, spec: RunSpec) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    (tmp_path / "tensorboard").write_text("and here")
    both = open_sinks(tmp_path, spec, ("tensorboard",))
    both.hear(started(spec))
    both.saved(5)
    both.close()


def test_a_log_brings_no_folder_back(tmp_path: Path, spec: RunSpec) -> None:
    folder = tmp_path / "out"
    log = log_file(folder, spec, 0, 1)
    folder.mkdir()
    log.saved(5)
    assert len(lines(folder, spec)) == 2
    shutil.rmtree(folder)
    log = log_file(folder, spec, 0, 1)
    log.saved(5)
    log.close()
    assert not folder.exists()


# ---- TensorBoard ----------------------------------------------------------------------------------------


def metrics(spec: RunSpec, *steps: int, value: Callable[[int], float | None] = lambda step: 1 / (3 + step)) -> Rows:
    columns: dict[str, list[Any]] = {
        "step": list(steps) * 2,
        "split": ["train"] * len(steps) + ["test"] * len(steps),
        "quantity": ["loss"] * (2 * len(steps)),
        "value": [value(step) for step in steps] * 2,
    }
    return Rows(run_id=spec.run_id, table="metrics", columns=columns)


def scalars(at: Path) -> dict[str, list[tuple[int, float]]]:
    """By tag: (step, value) of every point, by TensorBoard's own reader."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = module.EventAccumulator(str(at), size_guidance={"tensors": 0, "scalars": 0})
    found.Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def wanted(*rows: Rows) -> dict[str, list[tuple[int, float]]]:
    """The same points, straight from metrics rows."""
    points: dict[str, list[tuple[int, float]]] = {}
    for each in rows:
        columns = each.columns
        for step, split, quantity, value in zip(*(columns[name] for name in columns), strict=True):
            points.setdefault(f"{split}/{quantity}", []).append((step, float(np.float32(value))))
    return points


def test_event_files_hold_what_stands_and_nothing_twice(tmp_path: Path, spec: RunSpec) -> None:
    pytest.importorskip("tensorboard")
    first, lost, second = metrics(spec, 1, 2), metrics(spec, 3), metrics(spec, 3, 4)
    at = tmp_path / "tensorboard" / readable_name(tmp_path, spec)
    killed = EventFile(tmp_path, spec, {})
    killed.hear(first)
    assert not at.exists()
    killed.saved(2)
    assert scalars(at) == wanted(first)
    killed.hear(lost)  # in no checkpoint
    resumed = EventFile(tmp_path, spec, {"metrics": first.columns})
    resumed.hear(second)
    resumed.saved(4)
    assert scalars(at) == wanted(first, second)
    with pytest.raises(FileNotFoundError):
        killed.saved(3)  # one that was asleep past its lease: its file is gone, and stays so
    resumed.hear(metrics(spec, 5))  # another driver's record stands
    resumed.close()
    assert scalars(at) == wanted(first, second)


def test_a_clock_set_back_mixes_no_points(tmp_path: Path, spec: RunSpec) -> None:
    pytest.importorskip("tensorboard")
    readings = iter([1e9, 1e9 - 3600])
    sink = EventFile(tmp_path, spec, {}, clock=lambda: next(readings))
    for step in (1, 2):
        sink.hear(metrics(spec, step))
        sink.saved(step)
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = module.EventAccumulator(str(tmp_path / "tensorboard" / spec.run_id))
    found.Reload()
    assert [each.wall_time for each in found.Scalars("train/loss")] == [1e9, 1e9]


def test_values_that_are_not_finite_are_kept_and_missing_ones_left_out(tmp_path: Path, spec: RunSpec) -> None:
    pytest.importorskip("tensorboard")
    values = {1: float("nan"), 2: None, 3: float("-inf"), 4: 1e300}
    sink = EventFile(tmp_path, spec, {})
    sink.hear(metrics(spec, 1, 2, 3, 4, value=values.__getitem__))
    sink.saved(4)
    (step, nan), *others = scalars(tmp_path / "tensorboard" / spec.run_id)["test/loss"]
    assert (step, np.isnan(nan)) == (1, True)
    assert others == [(3, -np.inf), (4, np.inf)]


def test_recorded_runs_without_event_files_get_them_from_their_tables_once(
    tmp_path: Path, spec: RunSpec, write: Callable[..., RunRecord]
) -> None:
    pytest.importorskip("tensorboard")
    write()
    export_missing(tmp_path, [spec])
    at = tmp_path / "tensorboard" / spec.run_id
    assert scalars(at) == {
        "train/loss": [(0, float(np.float32(1.1))), (10, 0.5)],
        "h_norm/000.stem": [(0, 2.0)],
        "h_norm/001.head": [(0, 3.0)],
    }
    files = sorted(at.iterdir())
    export_missing(tmp_path, [spec])
    assert sorted(at.iterdir()) == files


def test_every_run_of_a_study_has_a_readable_name_of_its_own(tmp_path: Path) -> None:
    study = load("spiral", "smoke")
    plan = expand(study)
    write_study(tmp_path, study)
    names = {run_id: readable_name(tmp_path, spec) for run_id, spec in plan.runs.items()}
    assert len(set(names.values())) == len(plan.runs)
    cell = plan.cells[0]
    axes = "".join(f"-{axis}-{value}" for axis, value in cell.axes.items())
    assert names[cell.run_id] == f"{cell.part}-{cell.arm}{axes}-seed-{cell.seed}-{cell.run_id[:8]}"
    assert all(re.fullmatch(r"[A-Za-z0-9_.=+-]+", name) for name in names.values())


def test_a_log_that_is_a_pipe_is_not_waited_for(tmp_path: Path, spec: RunSpec) -> None:
    at = run_folder(tmp_path, spec.run_id)
    at.mkdir(parents=True)
    os.mkfifo(at / "log.txt")
    sink = open_sinks(tmp_path, spec)
    sink.saved(1)
    sink.close()


# ---- asking for them --------------------------------------------------------------------------------------


def test_an_unknown_log_and_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    check_logs(())
    with pytest.raises(UserError, match=r"unknown log 'tensorbord'. Did you mean 'tensorboard'\?"):
        check_logs(["tensorbord"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'depthscope\[tensorboard\]'"):
        check_logs(["tensorboard"])


def test_both_are_sinks(tmp_path: Path, spec: RunSpec) -> None:
    each: Sink
    for each in (LogFile(tmp_path, spec), EventFile(tmp_path, spec, {})):
        each.close()
