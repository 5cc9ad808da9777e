"""The executors by name."""

from __future__ import annotations

import os

from depthscope.core.errors import UserError, shown, unknown_name
from depthscope.execute.executor import Serial, TaskExecutor

EXECUTORS = ("serial", "processes", "ray")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_executor(name: str, workers: int | None, address: str | None) -> None:
    """Refuse an executor that cannot be, before anything is written.

    Raises:
        UserError: an unknown name, a number of workers that is none, or an address without Ray.
        MissingDependencyError: Ray is not installed.
    """
    if name not in EXECUTORS:
        raise UserError(unknown_name("executor", name, EXECUTORS))
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise UserError(f"workers: wanted a whole number of 1 or more, got {shown(workers)}.")
    if address is not None and name != "ray":
        raise UserError(f"address {shown(address)}: only executor ray has one, and this is {name}.")
    if name == "ray":
        from depthscope.execute.ray import check_ray

        check_ray(address)


def make_executor(name: str, workers: int, address: str | None = None) -> TaskExecutor:
    """The executor of a name that `check_executor` has passed.

    Args:
        name: one of `EXECUTORS`.
        workers: processes; 1 of `processes` works in this process. Ray, where it is there already, has its own.
        address: of Ray, see `ray.Ray`.

    Raises:
        UserError: Ray does not answer.
    """
    if name == "ray":
        from depthscope.execute.ray import Ray

        return Ray(address, workers)
    if name == "serial" or workers == 1:
        return Serial()
    from depthscope.execute.processes import Processes

    return Processes(workers)
