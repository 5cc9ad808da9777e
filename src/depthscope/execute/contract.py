"""What every executor keeps, as checks that anybody can run on their own.

    for check in CHECKS:
        check(MyExecutor)

Each takes a function that makes the executor, with two workers where it has any, and raises AssertionError
where a promise is broken. What is submitted are functions of this module, so that a worker can import them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, wait

from depthscope.core.errors import FaultsError, UserError
from depthscope.execute.executor import TaskExecutor
from depthscope.execute.tell import Note, tell
from depthscope.study.resources import Resources

Make = Callable[[], TaskExecutor]


def check_results(make: Make) -> None:
    """Each future holds its own task's result, also through `map`; slots is a number of 1 or more."""
    with make() as executor:
        assert executor.slots >= 1
        futures = {number: executor.submit(_square, number) for number in range(20)}
        assert {number: future.result() for number, future in futures.items()} == {n: n * n for n in range(20)}
        assert list(executor.map(_square, range(5))) == [0, 1, 4, 9, 16]
        assert executor.needing(Resources(cpus=1.0)).submit(_square, 7).result() == 49


def check_errors(make: Make) -> None:
    """An error comes through as it was raised, also one of several arguments, and the executor goes on."""
    with make() as executor:
        error = executor.submit(_fail, "bad input").exception()
        assert type(error) is UserError
        assert str(error) == "bad input"
        faults = executor.submit(_fault).exception()
        assert isinstance(faults, FaultsError)
        assert faults.faults == (("a.b", "is wrong"),)
        assert executor.submit(_fail_strangely).exception() is not None
        assert executor.submit(_square, 3).result() == 9


def check_words(make: Make) -> None:
    """What a task tells arrives in order, and before its future is done."""
    with make() as executor:
        heard: list[object] = []
        executor.connect(heard.append)
        executor.submit(_tell, "a").result()
        assert heard == [Note(f"a {number}") for number in range(50)]
        executor.submit(_tell, "b").result()
        assert heard[50:] == [Note(f"b {number}") for number in range(50)]
        executor.connect(None)
        executor.submit(_tell, "c").result()
        assert len(heard) == 100


def check_shutdown(make: Make) -> None:
    """After `shutdown` what was submitted is done, and nothing more is taken."""
    executor = make()
    futures = [executor.submit(_square, number) for number in range(6)]
    executor.shutdown()
    assert [future.result(timeout=0) for future in futures] == [0, 1, 4, 9, 16, 25]
    try:
        executor.submit(_square, 1)
    except RuntimeError:
        return
    raise AssertionError("a task was taken after shutdown")


def check_stop(make: Make) -> None:
    """`stop` does not wait for tasks at work, and no future is left open."""
    executor = make()
    if executor.slots == 1:
        return  # what works in this thread is over when it can be stopped
    futures = [executor.submit(_last_for_ever) for _ in range(8)]  # most of them still wait
    executor.stop()
    assert not wait(futures, timeout=60).not_done


def check_death(make: Make) -> None:
    """A worker that dies breaks its own task alone. Only for executors whose tasks work in other processes."""
    with make() as executor:
        before = [executor.submit(_square, number) for number in range(4)]
        doomed = [executor.submit(_die) for _ in range(2)]
        after = [executor.submit(_square, number) for number in range(4)]
        assert all(isinstance(future.exception(), BrokenExecutor) for future in doomed)
        assert [future.result() for future in before + after] == [0, 1, 4, 9] * 2


CHECKS: tuple[Callable[[Make], None], ...] = (check_results, check_errors, check_words, check_shutdown, check_stop)
"""For every executor."""


def _square(number: int) -> int:
    return number * number


def _fail(words: str) -> None:
    raise UserError(words)


def _fault() -> None:
    raise FaultsError("a file", [("a.b", "is wrong")])


def _fail_strangely() -> None:
    class Local(Exception):  # no other process can know this class
        pass

    raise Local("strange")


def _tell(words: str) -> None:
    for number in range(50):
        tell(Note(f"{words} {number}"))


def _last_for_ever() -> None:
    while True:
        pass


def _die() -> None:
    os._exit(9)
