"""The driver of maps: points that are missing, handed out in chunks until all are there."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from depthscope.core.errors import UserError
from depthscope.execute.executor import Serial, TaskExecutor
from depthscope.execute.parcel import remedy_of
from depthscope.execute.points import Found, PointsOrder, find_points, release
from depthscope.execute.tell import MapProgress as MapProgress
from depthscope.execute.tell import Note
from depthscope.record.landscape import MapHead, MapRecord, PointKind, grid_of, kinds, read_points, record_of
from depthscope.record.map_writer import close_map, write_chunk
from depthscope.study.resources import DEFAULT, Resources
from depthscope.train.mapping import Point, Source

CHUNK_S = 3.0
"""Seconds that a chunk of points takes, about: what an interruption may cost, and how often a file is written."""

MAX_DEATHS = 3
"""Workers that a chunk may cost."""


@dataclass(frozen=True, kw_only=True)
class MapJob:
    """A map to make.

    Attributes:
        source: whose landscape; workers in other processes need one that can be pickled.
        head: of `points.prepare`, or as `map_writer.open_map` gave it.
        folder: where the points are kept, see `record.landscape`; None: nowhere.
        resources: what a worker needs.
    """

    source: Source
    head: MapHead
    folder: Path | None = None
    resources: Resources = DEFAULT


@dataclass(frozen=True, kw_only=True)
class MapFault:
    """A map that could not be made, and why. The points that were found stay."""

    reason: str


OnProgress = Callable[[MapProgress], None]


def map_points(
    jobs: Sequence[MapJob],
    executor: TaskExecutor | None = None,
    *,
    on_progress: OnProgress = lambda progress: None,
    on_note: Callable[[str], None] = lambda line: None,
    chunk_s: float = CHUNK_S,
) -> list[MapRecord | MapFault]:
    """Find what is missing of the maps, one after the other, and write it as it comes.

    A point's figures depend on nothing but the map, so that it does not matter who finds it, when, or beside which
    others. A chunk whose worker dies is handed out again.

    Args:
        jobs: the maps.
        executor: where the points are found; None: in this process. It stays open, save where this raises.
        on_progress: hears of each chunk, in this thread, and of each map once before.
        on_note: hears lines that the person should read.
        chunk_s: seconds a chunk, about.

    Returns:
        For each job its record, whole, or why there is none.

    Raises:
        KeyboardInterrupt: passed on after the workers were stopped. What is written stays.
        UserError: a folder cannot be written.
    """
    executor = executor or Serial()
    if not isinstance(executor, Serial):
        release()  # what `prepare` made ready here
    driver = _Driver(jobs, executor, on_progress, on_note, chunk_s)
    try:
        return driver.drive()
    except BaseException:
        executor.stop()
        raise
    finally:
        executor.connect(None)
        release()


@dataclass
class _Chunk:
    number: int
    kind: PointKind
    indices: tuple[int, ...]
    deaths: int = 0


@dataclass
class _Map:
    job: MapJob
    rows: dict[PointKind, dict[int, Point]]
    missing: dict[PointKind, deque[int]]
    before: int
    total: int
    again: deque[_Chunk] = field(default_factory=deque)
    pace: dict[PointKind, float] = field(default_factory=dict)
    fault: str | None = None

    @property
    def done(self) -> int:
        return sum(map(len, self.rows.values()))


class _Driver:
    def __init__(
        self,
        jobs: Sequence[MapJob],
        executor: TaskExecutor,
        on_progress: OnProgress,
        on_note: Callable[[str], None],
        chunk_s: float,
    ) -> None:
        self._executor, self._on_progress, self._on_note, self._chunk_s = executor, on_progress, on_note, chunk_s
        self._maps = [_opened(job) for job in jobs]
        self._at_work: dict[Future[Found], _Chunk] = {}
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()

    def drive(self) -> list[MapRecord | MapFault]:
        self._executor.connect(self._inbox.put)
        for number in range(len(self._maps)):
            self._tell(number)
            for kind in kinds(self._maps[number].job.head.spec):
                self._close(number, kind)  # where a driver was stopped between the last chunk and this
        while self._hand_out() or self._at_work:
            with contextlib.suppress(queue.Empty):
                item = self._inbox.get(timeout=1.0)
                if isinstance(item, Future):
                    self._end(item)
                elif isinstance(item, Note):
                    self._on_note(item.text)
        return [
            MapFault(reason=each.fault) if each.fault is not None else record_of(each.job.head, dict(each.rows))
            for each in self._maps
        ]

    def _hand_out(self) -> bool:
        """Keep the workers busy; whether anything is at work."""
        slots = max(1, self._executor.slots)
        while len(self._at_work) < 2 * slots:
            chunk = self._next(slots)
            if chunk is None:
                break
            job = self._maps[chunk.number].job
            order = PointsOrder(source=job.source, head=job.head, kind=chunk.kind, indices=chunk.indices)
            future = self._executor.needing(job.resources).submit(find_points, order)
            self._at_work[future] = chunk
            future.add_done_callback(self._inbox.put)
            if future.done():
                break  # an executor that works in this thread: hear it first
        return bool(self._at_work)

    def _next(self, slots: int) -> _Chunk | None:
        for number, each in enumerate(self._maps):
            if each.fault is not None:
                continue
            if each.again:
                return each.again.popleft()
            for kind, missing in each.missing.items():
                if missing:
                    num = self._size(each, kind, slots)
                    indices = tuple(missing.popleft() for _ in range(num))
                    return _Chunk(number=number, kind=kind, indices=indices)
        return None

    def _size(self, of: _Map, kind: PointKind, slots: int) -> int:
        """Points of the next chunk: one until it is known how long one takes; fewer at the end, so that all work."""
        if kind not in of.pace:
            return 1
        share = len(of.missing[kind]) // (2 * slots)
        return max(1, min(share, int(self._chunk_s / max(of.pace[kind], 1e-6))))

    def _end(self, future: Future[Any]) -> None:
        chunk = self._at_work.pop(future)
        of = self._maps[chunk.number]
        try:
            found: Found = future.result()
        except BrokenExecutor as error:
            chunk.deaths += 1
            why = str(error) or "its worker died"
            if chunk.deaths >= MAX_DEATHS:
                remedy = remedy_of(getattr(error, "exit_code", None))
                of.fault = f"{_named(of)}: the worker died {chunk.deaths} times on it ({why}). {remedy}"
            else:
                of.again.append(chunk)
                self._on_note(f"{_named(of)}: {why}; {len(chunk.indices)} points are handed out again.")
            return
        except UserError as error:
            of.fault = str(error)
            return
        of.pace[chunk.kind] = found.seconds / len(chunk.indices)
        of.rows[chunk.kind].update(found.rows)
        if of.job.folder is not None:
            write_chunk(of.job.folder, of.job.head, chunk.kind, found.rows)
        self._tell(chunk.number, found.seconds)
        self._close(chunk.number, chunk.kind)

    def _close(self, number: int, kind: PointKind) -> None:
        of = self._maps[number]
        if of.job.folder is not None and len(of.rows[kind]) == grid_of(of.job.head.spec, kind).size:
            close_map(of.job.folder, of.job.head, kind, of.rows[kind])

    def _tell(self, number: int, seconds: float = 0.0) -> None:
        of = self._maps[number]
        self._on_progress(MapProgress(number=number, done=of.done, total=of.total, before=of.before, seconds=seconds))


def _opened(job: MapJob) -> _Map:
    spec = job.head.spec
    rows: dict[PointKind, dict[int, Point]] = {
        kind: dict(read_points(job.folder, job.head, kind)) if job.folder is not None else {} for kind in kinds(spec)
    }
    sizes = {kind: grid_of(spec, kind).size for kind in kinds(spec)}
    return _Map(
        job=job,
        rows=rows,
        missing={kind: deque(each for each in range(sizes[kind]) if each not in rows[kind]) for kind in rows},
        before=sum(map(len, rows.values())),
        total=sum(sizes.values()),
    )


def _named(of: _Map) -> str:
    return f"the map of {of.job.head.source.model}"
