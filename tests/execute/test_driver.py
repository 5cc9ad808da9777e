"""The driver: everything once, only what is missing, equal whatever the engine, and no loss on interruption."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from depthscope.core.errors import UserError
from depthscope.execute.driver import drive
from depthscope.execute.executor import TaskExecutor, WorkerLostError
from depthscope.execute.processes import Processes
from depthscope.execute.remaining import remaining
from depthscope.record.events import Ended, Event, Started
from depthscope.record.folder import run_folder
from depthscope.study.expand import Plan, Task, expand
from depthscope.study.toml import parse
from depthscope.train.build import Context


def nothing(event: Event) -> None:
    del event


def do(plan: Plan, folder: Path, executor: TaskExecutor | None = None, on_event: Any = nothing) -> None:
    left, _, _ = remaining(plan, folder)
    drive(left, folder, Context(), executor=executor, on_event=on_event)


def tables(plan: Plan, folder: Path) -> dict[str, bytes]:
    return {
        f"{run_id}/{path.name}": path.read_bytes()
        for run_id in plan.runs
        for path in sorted(run_folder(folder, run_id).glob("*.parquet"))
    }


def test_every_run_is_recorded_once_and_nothing_is_left(tiny: Plan, tmp_path: Path) -> None:
    heard: list[Event] = []
    do(tiny, tmp_path, on_event=heard.append)
    left, records, damaged = remaining(tiny, tmp_path)
    assert (left, damaged) == ([], ())
    assert set(records) == set(tiny.runs)
    assert all(record.outcome.status == "completed" for record in records.values())
    for kind in (Started, Ended):
        assert sorted(event.run_id for event in heard if isinstance(event, kind)) == sorted(tiny.runs)


def test_the_same_study_twice_gives_byte_identical_tables(tiny: Plan, tmp_path: Path) -> None:
    do(tiny, tmp_path / "a")
    do(tiny, tmp_path / "b")
    first = tables(tiny, tmp_path / "a")
    assert len(first) == 2 * len(tiny.runs)
    assert first == tables(tiny, tmp_path / "b")


def spoil(run_id: str, at: Path, how: str) -> None:
    folder = run_folder(at, run_id)
    folder.parent.mkdir(exist_ok=True)
    match how:
        case "a file":
            folder.write_text("not a folder")
        case "a link to nowhere":
            folder.symlink_to("nowhere")
        case name:
            (folder / name).mkdir(parents=True)


def test_folders_that_cannot_be_used_are_told_when_the_other_runs_are_done(tiny: Plan, tmp_path: Path) -> None:
    ways = ("a file", "a link to nowhere", "run.json", "layers.parquet", "lease-1.json")
    bad = list(tiny.runs)[: len(ways)]
    for run_id, how in zip(bad, ways, strict=True):
        spoil(run_id, tmp_path, how)
    with pytest.raises(UserError) as told:
        do(tiny, tmp_path)
    lines = str(told.value).splitlines()
    assert len(lines) == len(bad)
    for line, run_id in zip(lines, sorted(bad), strict=True):
        assert line.startswith(f"{run_folder(tmp_path, run_id)}: cannot be used (")
        assert line.endswith("Delete the run's folder, and the run is done anew.")
    assert set(remaining(tiny, tmp_path)[1]) == set(tiny.runs) - set(bad)
    # The remedy that is told is one.
    for run_id in bad:
        at = run_folder(tmp_path, run_id)
        at.unlink() if at.is_symlink() or at.is_file() else shutil.rmtree(at)
    do(tiny, tmp_path)
    assert set(remaining(tiny, tmp_path)[1]) == set(tiny.runs)


def test_a_folder_spoilt_while_its_run_trains_costs_that_run_alone(tiny: Plan, tmp_path: Path) -> None:
    bad = next(iter(tiny.runs))

    def on_event(event: Event) -> None:
        if isinstance(event, Started) and event.run_id == bad:
            (run_folder(tmp_path, bad) / "run.json").mkdir()

    with pytest.raises(UserError, match=rf"{bad}: cannot be used .*Delete the run's folder"):
        do(tiny, tmp_path, on_event=on_event)
    assert set(remaining(tiny, tmp_path)[1]) == set(tiny.runs) - {bad}


def test_worker_processes_give_the_tables_of_one_process(tiny: Plan, tmp_path: Path) -> None:
    heard: list[Event] = []
    do(tiny, tmp_path / "one")
    with Processes(2) as executor:
        do(tiny, tmp_path / "two", executor, on_event=heard.append)
    assert tables(tiny, tmp_path / "one") == tables(tiny, tmp_path / "two")
    assert sorted(event.run_id for event in heard if isinstance(event, Ended)) == sorted(tiny.runs)


def test_a_seed_alone_equals_the_seed_in_the_group(tiny: Plan, tmp_path: Path) -> None:
    do(tiny, tmp_path / "all")
    alone = dataclasses.replace(tiny, tasks=tuple(Task((task.specs[2],)) for task in tiny.tasks))
    do(alone, tmp_path / "alone")
    found = tables(tiny, tmp_path / "alone")
    assert len(found) == 2 * len(tiny.tasks)
    assert found.items() <= tables(tiny, tmp_path / "all").items()


def test_a_seed_alone_equals_the_seed_in_a_group_that_others_leave_early(tiny_text: str, tmp_path: Path) -> None:
    text = tiny_text.replace("steps = 30", "steps = 300\nstop_loss = 0.1").replace("width = 4", "width = 12")
    plan = expand(parse(text, source="tiny.toml"))
    do(plan, tmp_path / "all")
    _, records, _ = remaining(plan, tmp_path / "all")
    assert len({record.outcome.step for record in records.values()}) > 2, "the seeds were to stop at different steps"
    unmeasured = plan.study.model_copy(update={"base": {**plan.study.base, "measures": []}})
    for name, part_of in (("alone", plan), ("unmeasured", expand(unmeasured))):
        tasks = tuple(Task((spec,)) for task in part_of.tasks for spec in task.specs)
        do(dataclasses.replace(part_of, tasks=tasks), tmp_path / name)
        found = tables(plan, tmp_path / name)
        assert len(found) >= len(plan.runs)
        assert found.items() <= tables(plan, tmp_path / "all").items()


def test_only_what_is_missing_or_damaged_is_done_again(tiny: Plan, tmp_path: Path) -> None:
    do(tiny, tmp_path)
    whole = tables(tiny, tmp_path)
    gone, cut = list(tiny.runs)[:2]
    shutil.rmtree(run_folder(tmp_path, gone))
    metrics = run_folder(tmp_path, cut) / "metrics.parquet"
    metrics.write_bytes(metrics.read_bytes()[:-10])
    left, _, damaged = remaining(tiny, tmp_path)
    assert sorted(spec.run_id for task in left for spec in task.specs) == sorted([gone, cut])
    assert [each.run_id for each in damaged] == [cut]
    do(tiny, tmp_path)
    assert tables(tiny, tmp_path) == whole


def test_asking_for_more_measures_does_the_runs_that_lack_them(tiny: Plan, tmp_path: Path) -> None:
    study = tiny.study.model_copy(update={"base": {**tiny.study.base, "measures": []}})
    do(expand(study), tmp_path)
    left, records, _ = remaining(tiny, tmp_path)
    assert set(records) == set(tiny.runs)
    assert sum(len(task.specs) for task in left) == len(tiny.runs)


def test_a_run_done_again_for_one_more_measure_keeps_those_that_it_had(tiny: Plan, tmp_path: Path) -> None:
    do(tiny, tmp_path)
    study = tiny.study.model_copy(update={"base": {**tiny.study.base, "measures": ["gradcheck"]}})
    do(expand(study), tmp_path)
    _, records, _ = remaining(tiny, tmp_path)
    assert {record.spec.measures for record in records.values()} == {("gradcheck", "layers")}
    assert all({"gradcheck", "layers", "metrics"} == set(record.tables) for record in records.values())
    assert not remaining(tiny, tmp_path)[0]


def test_an_interruption_keeps_what_is_finished_and_the_same_call_continues(tiny: Plan, tmp_path: Path) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Ended):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(tiny, tmp_path / "cut", on_event=interrupt)
    left, records, damaged = remaining(tiny, tmp_path / "cut")
    assert len(records) == 1
    assert not damaged
    assert left
    do(tiny, tmp_path / "cut")
    do(tiny, tmp_path / "whole")
    assert tables(tiny, tmp_path / "cut") == tables(tiny, tmp_path / "whole")


def test_a_diverged_run_is_a_record_and_the_study_goes_on(tiny_text: str, tmp_path: Path) -> None:
    text = tiny_text.replace("lr = 0.01", "lr = 1e30").replace('"adam"', '"sgd"')
    plan = expand(parse(text, source="tiny.toml"))
    do(plan, tmp_path)
    left, records, _ = remaining(plan, tmp_path)
    assert not left
    outcomes = [record.outcome for record in records.values()]
    assert {outcome.status for outcome in outcomes} == {"diverged"}
    assert all(1 <= outcome.step <= 30 and outcome.reason and outcome.remedy for outcome in outcomes)


@pytest.mark.parametrize(
    ("exit_code", "remedy"), [(-9, "out of memory"), (None, "out of memory"), (3, "os._exit"), (-11, "os._exit")]
)
def test_only_a_kill_is_laid_to_memory(exit_code: int | None, remedy: str, tiny: Plan, tmp_path: Path) -> None:
    class Deadly(TaskExecutor):
        slots = 1

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(WorkerLostError("its worker process died (somehow)", exit_code))
            return future

    drive(remaining(tiny, tmp_path)[0], tmp_path, Context(), executor=Deadly())
    _, records, _ = remaining(tiny, tmp_path)
    outcomes = [record.outcome for record in records.values()]
    assert len(outcomes) == len(tiny.runs)
    assert all(remedy in str(outcome.remedy) for outcome in outcomes)
    assert {outcome.reason for outcome in outcomes} == {
        "the worker died 3 times on it (its worker process died (somehow))"
    }


def test_a_failed_run_is_a_record_and_is_tried_again(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depthscope.train import numpy_loop

    with monkeypatch.context() as patch:
        patch.setattr(numpy_loop, "fit", lambda *args, **kwargs: 1 / 0)
        do(tiny, tmp_path)
    _, records, _ = remaining(tiny, tmp_path)
    assert {record.outcome.status for record in records.values()} == {"failed"}
    assert "ZeroDivisionError" in str(next(iter(records.values())).outcome.reason)
    do(tiny, tmp_path)
    left, records, _ = remaining(tiny, tmp_path)
    assert not left
    assert {record.outcome.status for record in records.values()} == {"completed"}
