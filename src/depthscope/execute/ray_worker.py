"""What works on a Ray cluster: the wrapper of a task, and the mailbox through which its words come back."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from typing import Any

from depthscope.execute.executor import portable
from depthscope.execute.tell import told_to


def environment() -> dict[str, str]:
    """What workers take over from here: where data lies, and user code."""
    return {name: value for name, value in os.environ.items() if name.startswith("DEPTHSCOPE_")}


def mailbox(ray: Any) -> Any:
    """An actor that keeps the words of tasks until they are fetched; on this machine, whose end ends all anyway."""
    options: dict[str, Any] = {"num_cpus": 0}
    with contextlib.suppress(Exception):  # a client of a distant cluster is on none of its machines
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id=here, soft=True)
    return ray.remote(Mailbox).options(**options).remote()


class Mailbox:
    """One call after the other: so a task's words keep their order, which an asynchronous actor does not promise."""

    def __init__(self) -> None:
        self._words: list[bytes] = []

    def put(self, word: bytes) -> None:
        """Keep a word."""
        self._words.append(word)

    def take(self) -> list[bytes]:
        """All words since the last call."""
        words, self._words = self._words, []
        return words


def work(mailbox: Any, path: list[str], environment: dict[str, str], task: bytes) -> tuple[str, bytes]:
    """In a worker: the task's result, or its error as the driver will raise it."""
    import ray

    sys.path.extend(each for each in path if each not in sys.path)
    os.environ.update(environment)
    last: list[Any] = []

    def hear(word: object) -> None:
        last[:] = [mailbox.put.remote(pickle.dumps(word))]

    try:
        fn, args, kwargs = pickle.loads(task)
        with told_to(hear):
            result = pickle.dumps(fn(*args, **kwargs))
        kind = "result"
    except Exception as error:
        kind, result = "error", pickle.dumps(portable(error))
    with contextlib.suppress(Exception):  # words are for watching only
        ray.get(last)  # sent before the end is
    return kind, result
