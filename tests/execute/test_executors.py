"""Every executor keeps the contract, one of somebody else's too; Ray's is in test_ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from depthscope.core.errors import MissingDependencyError, UserError
from depthscope.execute import contract
from depthscope.execute.executor import Serial, TaskExecutor, WorkerLostError
from depthscope.execute.executors import check_executor, make_executor
from depthscope.execute.processes import Processes
from depthscope.execute.tell import told_to


class Threads(TaskExecutor):
    """What somebody else may write: threads, in a few lines. They cannot be stopped, so that check is not theirs."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2)

    @property
    def slots(self) -> int:
        return 2

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._pool.submit(self._run, fn, *args, **kwargs)

    def _run(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with told_to(self._hear):
            return fn(*args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


@pytest.mark.parametrize("make", [Serial, lambda: Processes(2)], ids=["serial", "processes"])
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_contract(check: Callable[[contract.Make], None], make: contract.Make) -> None:
    check(make)


@pytest.mark.parametrize("check", [each for each in contract.CHECKS if each is not contract.check_stop])
def test_the_contract_holds_for_a_foreign_executor(check: Callable[[contract.Make], None]) -> None:
    check(Threads)


def test_a_worker_that_dies_breaks_its_own_task_alone() -> None:
    contract.check_death(lambda: Processes(2))


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ((os._exit, 3), 3, "exit code 3"),
        ((os.abort,), -6, "signal 6, SIGABRT"),
        ((signal.raise_signal, signal.SIGTERM), 143, "exit code 143"),
    ],
    ids=["exit", "crash", "asked to end"],
)
def test_a_worker_that_dies_is_told_by_how(how: tuple[Any, ...], code: int, words: str) -> None:
    with Processes(1) as executor, pytest.raises(WorkerLostError) as lost:
        executor.submit(*how).result()
    assert lost.value.exit_code == code
    assert str(lost.value) == f"its worker process died ({words})"


def test_bad_choices_are_told_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"unknown executor 'proceses'. Did you mean 'processes'\?.*ray, serial"):
        check_executor("proceses", None, None)
    with pytest.raises(UserError, match="workers: wanted a whole number of 1 or more, got 0"):
        check_executor("serial", 0, None)
    with pytest.raises(UserError, match="only executor ray has one"):
        check_executor("processes", 2, "auto")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'depthscope\[ray\]'"):
        check_executor("ray", None, None)


@pytest.mark.parametrize("address", ["here", "here:", ":1", "here:x", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_told(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match="wanted HOST:PORT"):
        check_executor("ray", None, address)


def test_an_address_where_nothing_answers_is_told_at_once() -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"address 127\.0\.0\.1:1: nothing answers there"):
        check_executor("ray", None, "127.0.0.1:1")


def test_one_worker_works_in_this_process() -> None:
    assert isinstance(make_executor("processes", 1), Serial)
    assert isinstance(make_executor("serial", 8), Serial)
