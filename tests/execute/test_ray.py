"""Ray on loopback: equal tables, and nothing lost when a worker or a whole node is killed."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")

from depthscope.core.errors import UserError
from depthscope.execute import contract
from depthscope.execute.driver import drive
from depthscope.execute.order import Settings
from depthscope.execute.ray import Ray
from depthscope.execute.remaining import remaining
from depthscope.execute.tell import Note
from depthscope.record.events import Ended, News, Resumed, Retried, Started
from depthscope.record.folder import write_study
from depthscope.record.lease import holder
from depthscope.study.expand import Plan
from depthscope.study.resources import DEFAULT, Resources
from depthscope.train.build import Context

# Ray leaves sockets and files of its own to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

TextOf = Callable[[str], str]
Serial = Callable[[str], tuple[Plan, dict[str, object]]]
Contents = Callable[[Plan, Path], dict[str, object]]


def handler(*_: Any) -> None:
    """One of ours."""


@pytest.fixture(scope="module")
def executor() -> Iterator[Ray]:
    """A cluster of two cores on this machine, for all tests here; and a handler that was set before it began."""
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with Ray(None, 2) as ray:
            yield ray
    finally:
        signal.signal(signal.SIGTERM, before)


def settings(plan: Plan) -> Settings:
    return Settings(min_gap_s=0.0, study=(plan.study.name, plan.study.size))


def test_the_tables_of_a_cluster_are_those_of_one_process(
    executor: Ray, text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents
) -> None:
    plan, whole = serial(text_of("numpy"))
    left, _, _ = remaining(plan, tmp_path)
    # Without a study.toml it is not the driver's folder. The second is connected already: it does not end the cluster.
    with pytest.raises(UserError, match="does not see the study's folder"), Ray() as second:
        drive(left, tmp_path, Context(), executor=second, settings=settings(plan))
    write_study(tmp_path, plan.study)
    news: list[News] = []
    drive(left, tmp_path, Context(device="auto"), executor=executor, on_event=news.append, settings=settings(plan))
    assert contents(plan, tmp_path) == whole
    for kind in (Started, Ended):
        assert sorted(each.run_id for each in news if isinstance(each, kind)) == sorted(plan.runs)


def test_a_handler_of_the_end_outlives_the_start_of_a_cluster(executor: Ray) -> None:
    assert executor.slots == 2
    assert signal.getsignal(signal.SIGTERM) is handler


def test_what_no_machine_has_is_refused_here_and_told_where_a_machine_may_join(
    executor: Ray,
) -> None:
    with pytest.raises(UserError, match=r"gpus = 99: no machine there has that much \(2 CPUs, 0 GPUs, .* GB\)"):
        executor.check({Resources(gpus=99)})
    executor.check({DEFAULT, Resources(cpus=2, memory_gb=0.01)})
    with Ray() as joined:  # not started by it
        joined.check({Resources(gpus=99)})
        words: queue.SimpleQueue[object] = queue.SimpleQueue()
        joined.connect(words.put)
        future = joined.needing(Resources(gpus=99)).submit(len, "")
        word = words.get(timeout=60)
        joined.shutdown(cancel_futures=True)
        assert isinstance(word, Note)
        assert "gpus = 99: no machine there has" in word.text
        assert future.exception(timeout=60) is not None


def once_in_training(
    plan: Plan, folder: Path, act: Callable[[int], Any], parent: int | None = None
) -> threading.Thread:
    """A thread that acts once, on the process of a run that has been saved; of those of `parent`, if given."""

    def watch() -> None:
        while threading.main_thread().is_alive():
            for run_id in plan.runs:
                claim = holder(folder, run_id)
                if claim is None or claim.step == 0:
                    continue
                if parent is None or parent_of(claim.pid) == parent:
                    act(claim.pid)
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


@pytest.mark.slow
def test_the_contract(executor: Ray) -> None:
    def same() -> Ray:
        return Ray()  # the fixture's cluster

    for check in (*contract.CHECKS, contract.check_death):
        check(same)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_a_worker_killed_in_mid_run(
    engine: str, executor: Ray, text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents
) -> None:
    plan, whole = serial(text_of(engine))
    write_study(tmp_path, plan.study)
    news: list[News] = []
    thread = once_in_training(plan, tmp_path, lambda pid: os.kill(pid, signal.SIGKILL))
    left, _, _ = remaining(plan, tmp_path)
    drive(left, tmp_path, Context(), executor=executor, on_event=news.append, settings=settings(plan))
    thread.join()
    assert contents(plan, tmp_path) == whole
    assert any(isinstance(each, Retried) for each in news)
    assert any(isinstance(each, Resumed) and each.step > 0 for each in news)
