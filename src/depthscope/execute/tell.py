"""How a task, wherever it works, tells the driver what happens: an executor says where `tell` leads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from depthscope.record.events import News

Hear = Callable[[object], None]


@dataclass(frozen=True)
class Note:
    """A line that the person should read."""

    text: str


@dataclass(frozen=True, kw_only=True)
class MapProgress:
    """Points of a map were found.

    Attributes:
        number: of the map among the jobs.
        done: points that are there, of all kinds.
        total: points that the map has.
        before: points that were there when the work began.
        seconds: that those found now took their worker.
    """

    number: int
    done: int
    total: int
    before: int
    seconds: float = 0.0


_hear: ContextVar[Hear | None] = ContextVar("hear", default=None)


def tell(word: News | Note) -> None:
    """Tell whoever listens to the task that works here; nobody, where no executor runs it."""
    hear = _hear.get()
    if hear is not None:
        hear(word)


@contextlib.contextmanager
def told_to(hear: Hear | None) -> Iterator[None]:
    """What is told inside goes to `hear`; for executors, around the function that was submitted."""
    before = _hear.set(hear)
    try:
        yield
    finally:
        _hear.reset(before)
