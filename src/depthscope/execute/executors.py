"""Executors: where tasks run. Each is a `concurrent.futures.Executor`; we write no scheduler."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from depthscope.execute.worker import prepare_process


def processes(workers: int, channel: Any) -> ProcessPoolExecutor:
    """Worker processes that report to `channel`.

    Spawned, not forked: a forked child inherits locks of threads that it does not have (BLAS, torch).
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=prepare_process, initargs=(channel,))


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
