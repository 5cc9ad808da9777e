"""Executors: where tasks run. Each is a `concurrent.futures.Executor`; we write no scheduler."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

from depthscope.execute.worker import prepare_process

P = ParamSpec("P")
T = TypeVar("T")


class SerialExecutor(Executor):
    """Runs each call at once, in this process."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` and return a future that is already done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def processes(workers: int, channel: Any) -> ProcessPoolExecutor:
    """Worker processes that report to `channel`.

    Spawned, not forked: a forked child inherits locks of threads that it does not have (BLAS, torch).
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=prepare_process, initargs=(channel,))


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
