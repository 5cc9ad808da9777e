"""Several drivers on one folder: the work is shared, every run is recorded exactly once, and one that sleeps loses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import depthscope
from depthscope.core.errors import UserError
from depthscope.execute.driver import drive
from depthscope.execute.order import Order, Settings
from depthscope.execute.remaining import remaining
from depthscope.execute.tell import told_to
from depthscope.execute.worker import do_task
from depthscope.record.events import DoneElsewhere, Ended, News, Progress
from depthscope.record.folder import run_folder, write_study
from depthscope.record.lease import acquire, holder
from depthscope.record.reader import read_record
from depthscope.record.schema import RunRecord
from depthscope.study.expand import Plan, expand
from depthscope.study.toml import parse
from depthscope.train.build import Context

TextOf = Callable[[str], str]
Serial = Callable[[str], tuple[Plan, dict[str, object]]]
Contents = Callable[[Plan, Path], dict[str, object]]

DRIVER = """
import sys, time
from pathlib import Path
from depthscope.execute.driver import drive
from depthscope.execute.remaining import remaining
from depthscope.execute.order import Settings
from depthscope.study.expand import expand
from depthscope.study.toml import parse
from depthscope.train.build import Context
folder, lease_s, trace = Path(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
plan = expand(parse((folder / "study.toml").read_text(), source="study.toml"))

def hear(event):
    with trace.open("a") as file:
        file.write(f"{type(event).__name__} {event.run_id}\\n")

print("ready", flush=True)
sys.stdin.readline()
left = remaining(plan, folder)[0]
drive(left, folder, Context(), settings=Settings(lease_s=lease_s, min_gap_s=0.0), on_event=hear)
"""


def start(folder: Path, lease_s: float, trace: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRIVER, str(folder), str(lease_s), str(trace)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def told(trace: Path) -> Counter[tuple[str, str]]:
    """(kind of event, run_id) -> how often a driver told it."""
    lines = trace.read_text().splitlines() if trace.exists() else []
    return Counter((kind, run_id) for kind, run_id in map(str.split, lines))


def go(*children: subprocess.Popen[str]) -> None:
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()


def recorded(folder: Path, plan: Plan) -> Counter[str]:
    """run_id -> how often a worker wrote its record, by the log that all of them append to."""
    logs = {run_id: (run_folder(folder, run_id) / "log.txt").read_text() for run_id in plan.runs}
    return Counter(
        {run_id: sum(line.endswith(" recorded") for line in log.splitlines()) for run_id, log in logs.items()}
    )


def together(times: int, text: str, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    plan, whole = serial(text)
    shared = 0
    for at in range(times):
        folder = tmp_path / f"{at}"
        write_study(folder, plan.study)
        traces = [tmp_path / f"{at}-{each}" for each in "ab"]
        children = [start(folder, 60.0, trace) for trace in traces]
        go(*children)
        for child in children:
            child.communicate()
        assert [child.returncode for child in children] == [0, 0]
        assert contents(plan, folder) == whole
        assert recorded(folder, plan) == dict.fromkeys(plan.runs, 1)
        for one, other in (traces, traces[::-1]):
            # Each driver tells the end of each run that it had to do, once: its own, or the other's.
            mine, theirs = told(one), told(other)
            for run_id in plan.runs:
                assert mine["Ended", run_id] + theirs["Ended", run_id] == 1
                assert mine["Ended", run_id] + mine["DoneElsewhere", run_id] <= 1
        shared += all(any(kind == "Ended" for kind, _ in told(trace)) for trace in traces)
    assert shared >= times // 2, "one of the drivers did all the work, nearly always"


def test_two_drivers_record_each_run_once(text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    together(2, text_of("numpy"), tmp_path, serial, contents)


@pytest.mark.slow
def test_two_drivers_twenty_times(text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    together(20, text_of("numpy"), tmp_path, serial, contents)


def in_training(plan: Plan, folder: Path) -> str | None:
    """A run that somebody holds and has saved."""
    claims = {run_id: holder(folder, run_id) for run_id in plan.runs}
    return next((run_id for run_id, claim in claims.items() if claim is not None and claim.step > 0), None)


def test_a_driver_stopped_past_its_lease_loses_it_and_drops_its_work(
    text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(signal, "SIGSTOP"):
        pytest.skip("processes cannot be stopped here")
    plan, whole = serial(text_of("numpy"))
    write_study(tmp_path, plan.study)
    trace = tmp_path.parent / "stopped"
    sleeper = start(tmp_path, 1.0, trace)
    go(sleeper)
    while True:  # until it stands still in training: a run may end between the look and the stop
        assert sleeper.poll() is None
        if not in_training(plan, tmp_path):
            continue
        sleeper.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED)
        held = in_training(plan, tmp_path)
        if held and read_record(tmp_path, held) is None:
            break
        sleeper.send_signal(signal.SIGCONT)
    news: list[News] = []
    # This process counts as another machine: that the sleeper's process is there must not be what keeps its lease.
    monkeypatch.setattr("depthscope.record.holder.this_machine", lambda: "another machine")
    settings = Settings(lease_s=1.0, min_gap_s=0.0)
    drive(remaining(plan, tmp_path)[0], tmp_path, Context(), settings=settings, on_event=news.append)
    assert held in {each.run_id for each in news if isinstance(each, Ended)}
    assert contents(plan, tmp_path) == whole
    sleeper.send_signal(signal.SIGCONT)
    sleeper.communicate()
    assert sleeper.returncode == 0
    assert contents(plan, tmp_path) == whole
    assert recorded(tmp_path, plan) == dict.fromkeys(plan.runs, 1)
    assert told(trace)["Ended", held] == 0
    assert told(trace)["DoneElsewhere", held] == 1


def test_runs_of_another_driver_are_waited_for_and_shown(tiny: Plan, tmp_path: Path) -> None:
    """The other driver gives signs of life, then records: its end is told as its own."""
    run_id = tiny.tasks[0].specs[0].run_id
    other = acquire(tmp_path, run_id, token="other")
    assert other is not None
    other.beat(10, 30)
    news: list[News] = []

    def hear(event: News) -> None:
        news.append(event)
        if isinstance(event, Progress) and event.run_id == run_id:
            # It is seen at work: now it ends its run, as another process would.
            assert other is not None
            other.release()
            only = tiny.tasks[0].only({run_id})
            assert only is not None
            with told_to(None):
                (done,) = do_task(Order(task=only, folder=tmp_path, context=Context(), token="other again"))
            assert done.outcome is not None

    drive(remaining(tiny, tmp_path)[0], tmp_path, Context(), on_event=hear, settings=Settings(lease_s=1.0))
    assert [each for each in news if isinstance(each, Progress) and each.run_id == run_id] == [
        Progress(run_id=run_id, step=10, num_steps=30, text="another driver is at step 10 of 30")
    ]
    assert [each.run_id for each in news if isinstance(each, DoneElsewhere)] == [run_id]
    assert sorted(each.run_id for each in news if isinstance(each, Ended)) == sorted(set(tiny.runs) - {run_id})
    assert remaining(tiny, tmp_path)[0] == []


def test_a_failed_run_that_another_driver_tried_again_is_not_tried_a_third_time(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depthscope.train import numpy_loop

    (task,) = [tiny.tasks[0].only({tiny.tasks[0].specs[0].run_id})]
    assert task is not None
    (spec,) = task.specs
    monkeypatch.setattr(numpy_loop, "fit", lambda *args, **kwargs: 1 / 0)
    drive([task], tmp_path, Context())
    first = read_record(tmp_path, spec.run_id)
    assert isinstance(first, RunRecord)
    failed = {spec.run_id: first.checksum}
    # Both drivers saw the first failure when they began.
    for token, elsewhere in (("one", False), ("two", True)):
        (done,) = do_task(Order(task=task, folder=tmp_path, context=Context(), token=token, failed=failed))
        assert done.outcome is not None
        assert (done.outcome.status, done.elsewhere) == ("failed", elsewhere)
        later = read_record(tmp_path, spec.run_id)
        assert isinstance(later, RunRecord)
        failed = failed if later.checksum != first.checksum else {}


def test_a_folder_deleted_in_mid_run_is_told_and_stays_deleted(tiny_text: str, tmp_path: Path) -> None:
    plan = expand(parse(tiny_text.replace("steps = 30", "steps = 100000"), source="tiny.toml"))
    folder = tmp_path / "study"

    def move(event: News) -> None:
        if isinstance(event, Progress) and folder.exists():
            folder.rename(tmp_path / "moved")

    with pytest.raises(UserError, match="was deleted or moved while runs were being written"):
        drive(remaining(plan, folder)[0], folder, Context(), on_event=move, settings=Settings(min_gap_s=0.0))
    assert not folder.exists()


def test_status_shows_who_is_at_work(tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_study(tmp_path, tiny.study)
    first, second, third = list(tiny.runs)[:3]
    for run_id, token in ((first, "a"), (second, "b")):
        lease = acquire(tmp_path, run_id, token=token, lease_s=60.0)
        assert lease is not None
        lease.beat(7, 30)
    found = depthscope.status(tmp_path)
    assert [(each.run_id, each.step, each.num_steps, each.alive) for each in found.running] == [
        (first, 7, 30, True),
        (second, 7, 30, True),
    ]
    assert found.counts["missing"] == len(tiny.runs)
    # Seen from another machine, only a file's date can tell.
    monkeypatch.setattr("depthscope.record.holder.this_machine", lambda: "another machine")
    path = run_folder(tmp_path, second) / "lease-1.json"
    os.utime(path, (path.stat().st_mtime - 100,) * 2)
    found = depthscope.status(tmp_path)
    assert [(each.run_id, each.alive) for each in found.running] == [(first, True), (second, False)]
    assert third not in {each.run_id for each in found.running}


def test_a_clock_that_jumps_back_does_no_harm(
    text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, whole = serial(text_of("numpy"))
    now = iter(range(10**9, 0, -1000))

    class Back:
        @staticmethod
        def now(zone: object) -> datetime:
            return datetime.fromtimestamp(next(now), UTC)

    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    monkeypatch.setattr("depthscope.execute.portion.datetime", Back)
    monkeypatch.setattr("depthscope.record.sinks.datetime", Back)
    settings = Settings(min_gap_s=0.0, lease_s=1.0)
    drive(remaining(plan, tmp_path)[0], tmp_path, Context(), settings=settings)
    assert contents(plan, tmp_path) == whole
