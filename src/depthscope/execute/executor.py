"""What an executor is: where tasks run. Each is a `concurrent.futures.Executor`; we write no scheduler.

The driver needs four things more than `concurrent.futures` has, and `TaskExecutor` names them: how many tasks
to keep going, a way for what tasks `tell` to come back, room for what a task needs of a machine, and an end
at once. `contract` holds what every executor must keep.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Collection
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, final

from depthscope.core.errors import UserError
from depthscope.execute.tell import Hear, told_to
from depthscope.study.resources import Resources


class WorkerLostError(BrokenExecutor):
    """The worker that had a task died, or its machine. The task may be submitted again.

    Args:
        why: one line.
        exit_code: of its process, -N where signal N ended it; None where it is not known.
    """

    def __init__(self, why: str = "", exit_code: int | None = None) -> None:
        super().__init__(why)
        self.exit_code = exit_code


class TaskExecutor(Executor):
    """A `concurrent.futures.Executor` that the driver can use.

    A task whose worker dies ends with `BrokenExecutor` (best `WorkerLostError`), alone: the executor goes on.
    """

    remote: bool = False
    """Whether tasks may work on other machines, which see the study's folder only if it is shared."""

    _hear: Hear | None = None

    @property
    def slots(self) -> int:
        """Tasks that can be at work at once; it may change."""
        raise NotImplementedError

    def connect(self, hear: Hear | None) -> None:
        """Where to bring what tasks `tell`, in any thread: all of a task's words before its future is done."""
        self._hear = hear

    def check(self, wanted: Collection[Resources]) -> None:
        """Refuse tasks that could never start, before anything is written; by default there are none.

        Raises:
            UserError: it has not what they need, and never will.
        """
        del wanted

    def needing(self, resources: Resources) -> Executor:
        """An executor that gives its tasks these resources; by default all tasks are alike."""
        del resources
        return self

    def stop(self) -> None:
        """End all tasks now, finished or not, and the executor with them."""
        self.shutdown(cancel_futures=True)


@final
class Serial(TaskExecutor):
    """In this process: `submit` returns when the task is done."""

    def __init__(self) -> None:
        self._closed = False

    @property
    def slots(self) -> int:
        """One."""
        return 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do the task, and return its future, which is done."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            with told_to(self._hear):
                future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks."""
        self._closed = True


def portable(error: Exception) -> Exception:
    """An error of a task as it is raised where the driver is, with its traceback as a note.

    One that cannot be pickled is told in words.
    """
    words = "".join(traceback.format_exception(error))
    if not isinstance(error, UserError):
        error.add_note(f"In a worker:\n{words}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(words)
    return error
