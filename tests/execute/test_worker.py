"""One order in a worker: what it takes, what it saves, how it shares time, what it does where the disk is full."""

from __future__ import annotations

import errno
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from depthscope.core.errors import UserError
from depthscope.execute import portion
from depthscope.execute.driver import drive
from depthscope.execute.order import Done, Order, Settings
from depthscope.execute.processes import Processes
from depthscope.execute.remaining import remaining
from depthscope.execute.tell import Note, told_to
from depthscope.execute.worker import do_task
from depthscope.record.events import Ended, News, Progress, Resumed, SafePoint, State
from depthscope.record.folder import run_folder
from depthscope.record.lease import acquire, holder
from depthscope.record.reader import read_record
from depthscope.record.schema import RunRecord
from depthscope.record.writer import RunWriter
from depthscope.study.expand import Plan, expand
from depthscope.study.toml import parse
from depthscope.train.build import Context
from depthscope.train.start import run_task

EAGER = Settings(min_gap_s=0.0)


class Stop(Exception):
    pass


def order(plan: Plan, folder: Path, **options: Any) -> Order:
    return Order(**{"task": plan.tasks[0], "folder": folder, "context": Context(), "token": "mine", **options})


def record_of(folder: Path, run_id: str) -> RunRecord:
    record = read_record(folder, run_id)
    assert isinstance(record, RunRecord)
    return record


def test_it_takes_what_nobody_holds_or_has_done(tiny: Plan, tmp_path: Path) -> None:
    first, second, third = (spec.run_id for spec in tiny.tasks[0].specs)
    other = acquire(tmp_path, first, token="other")
    assert other is not None
    alone = tiny.tasks[0].only({second})
    assert alone is not None
    do_task(order(tiny, tmp_path, task=alone))
    before = record_of(tmp_path, second)
    done = do_task(order(tiny, tmp_path))
    assert done[:2] == [Done(run_id=first), Done(run_id=second, outcome=before.outcome, elsewhere=True)]
    assert [(each.run_id, each.elsewhere) for each in done[2:]] == [(third, False)]
    assert record_of(tmp_path, second) == before
    assert other.holds()
    assert holder(tmp_path, third) is None


@pytest.mark.parametrize("settings", [EAGER, Settings(min_gap_s=1e9)], ids=["found when it saves", "found at its end"])
def test_a_lease_lost_in_training_drops_the_run_and_leaves_the_others(
    settings: Settings, tiny: Plan, tmp_path: Path
) -> None:
    first, *rest = (spec.run_id for spec in tiny.tasks[0].specs)
    stolen: list[object] = []

    def steal(word: object) -> None:
        if isinstance(word, Progress) and not stolen:
            stolen.append(acquire(tmp_path, first, token="thief", dead={"mine"}))

    with told_to(steal):
        done = do_task(order(tiny, tmp_path, settings=settings))
    assert stolen[0] is not None
    assert Done(run_id=first) in done
    assert sorted(each.run_id for each in done if each.outcome is not None) == sorted(rest)
    assert read_record(tmp_path, first) is None
    assert [record_of(tmp_path, run_id).outcome.status for run_id in rest] == ["completed"] * 2


def test_time_is_shared_among_the_runs_under_way(tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs side by side, for 12 ticks: one ends after 3, one after 9. Their shares: 1, 1 + 3, 1 + 3 + 3."""
    ids = [spec.run_id for spec in tiny.tasks[0].specs]
    real = run_task

    def quick(task: Any, context: Any, states: Any) -> Any:
        ends = {event.run_id: event for event in real(task, context, states) if isinstance(event, Ended)}
        for tick in range(1, 13):
            yield SafePoint(run_ids=(), step=tick, epoch_end=False, take=tuple)
            clock["now"] += 1
            gone = {3: ids[:1], 9: ids[1:2], 12: ids[2:]}.get(tick, [])
            yield from (ends[run_id] for run_id in gone)

    clock = {"now": 0}
    monkeypatch.setattr(portion, "run_task", quick)
    monkeypatch.setattr(time, "perf_counter", lambda: float(clock["now"]))
    monkeypatch.setattr(time, "process_time", lambda: float(2 * clock["now"]))
    do_task(order(tiny, tmp_path))
    timings = [record_of(tmp_path, run_id).timings for run_id in ids]
    assert [each.wall_s for each in timings] == pytest.approx([1, 4, 7])
    assert [each.cpu_s for each in timings] == pytest.approx([2, 8, 14])


def test_a_checkpoint_is_written_when_it_is_time(tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a second, epochs of five: saved at an epoch's end after the gap, and within one after the minutes."""
    (spec, *_) = tiny.tasks[0].specs
    task = tiny.tasks[0].only({spec.run_id})
    clock = {"now": 0.0}
    saved: list[int] = []
    real = run_task

    def slow(task: Any, context: Any, states: Any) -> Any:
        events = [event for event in real(task, context, states) if not isinstance(event, SafePoint)]
        (ended,) = [event for event in events if isinstance(event, Ended)]
        yield from (event for event in events if event is not ended)
        for step in range(1, 31):
            clock["now"] += 1.0
            state = State(run_id=spec.run_id, step=step, position={}, tensors={})
            yield SafePoint(run_ids=(spec.run_id,), step=step, epoch_end=step % 5 == 0, take=partial(tuple, [state]))
        yield ended

    monkeypatch.setattr(portion, "run_task", slow)
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(RunWriter, "save", lambda self, state, timings: saved.append(state.step))
    for settings, steps in (
        (Settings(min_gap_s=2.0, checkpoint_s=300.0), [5, 10, 15, 20, 25, 30]),
        (Settings(min_gap_s=7.0, checkpoint_s=300.0), [10, 20, 30]),
        (Settings(min_gap_s=2.0, checkpoint_s=4.0), [4, 8, 10, 14, 18, 20, 24, 28, 30]),
        (Settings(min_gap_s=1e9, checkpoint_s=1e9), []),
    ):
        saved.clear()
        do_task(order(tiny, tmp_path, task=task, settings=settings))
        assert saved == steps
        (run_folder(tmp_path, spec.run_id) / "run.json").unlink()


def full(*args: object, **kwargs: object) -> None:
    raise UserError(f"a file: cannot be written ({os.strerror(errno.ENOSPC)}). Free some space.")


def test_a_full_disk_costs_checkpoints_a_word_and_nothing_else(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(RunWriter, "save", full)
    drive(remaining(tiny, tmp_path)[0], tmp_path, Context(), settings=EAGER, on_note=notes.append)
    assert remaining(tiny, tmp_path)[0] == []
    assert len(notes) == len(tiny.tasks)
    assert all("a checkpoint was not written, the run goes on without it" in note for note in notes)


def test_a_record_that_cannot_be_written_is_the_end_and_the_rest_stands(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = RunWriter.finish
    written: list[str] = []

    def finish(self: RunWriter, *args: Any, **options: Any) -> RunRecord | None:
        if len(written) == 4:
            full()
        record = real(self, *args, **options)
        assert record is not None
        written.append(record.run_id)
        return record

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "finish", finish)
        with pytest.raises(UserError, match="No space left"):
            drive(remaining(tiny, tmp_path)[0], tmp_path, Context(), settings=EAGER)
    left, records, damaged = remaining(tiny, tmp_path)
    assert sorted(records) == sorted(written)
    assert not damaged
    assert not list(tmp_path.glob("runs/*/lease-*"))
    news: list[News] = []
    drive(left, tmp_path, Context(), on_event=news.append)
    assert remaining(tiny, tmp_path)[0] == []
    assert sum(isinstance(each, Resumed) for each in news) >= 1  # two of the group of three had their checkpoints


def test_an_interruption_of_processes_releases_their_leases(tiny_text: str, tmp_path: Path) -> None:
    plan = expand(parse(tiny_text.replace("steps = 30", "steps = 1000000"), source="tiny.toml"))

    def interrupt(event: News) -> None:
        if isinstance(event, Progress):
            raise KeyboardInterrupt

    executor = Processes(2)
    with pytest.raises(KeyboardInterrupt):
        drive(remaining(plan, tmp_path)[0], tmp_path, Context(), executor=executor, on_event=interrupt)
    assert not list(tmp_path.glob("runs/*/lease-*"))
    with pytest.raises(RuntimeError):
        executor.submit(len, "it has ended")


def test_a_damaged_checkpoint_is_told_and_the_run_starts_anew(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spec, *_) = tiny.tasks[0].specs
    task = tiny.tasks[0].only({spec.run_id})

    def stop(*args: object, **options: object) -> None:
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "finish", stop)
        with pytest.raises(Stop):
            do_task(order(tiny, tmp_path, task=task, settings=EAGER))
    path = run_folder(tmp_path, spec.run_id) / "checkpoint.json"
    path.write_bytes(path.read_bytes()[:-20])
    heard: list[object] = []
    with told_to(heard.append):
        (done,) = do_task(order(tiny, tmp_path, task=task))
    assert done.outcome is not None
    (note,) = [each for each in heard if isinstance(each, Note)]
    assert note.text == f"run {spec.run_id}: checkpoint.json is not a whole checkpoint; it starts anew."
    assert not any(isinstance(each, Resumed) for each in heard)
