"""A study under way, on stderr: a board that is drawn anew, or sparse lines where there is no terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from depthscope import api
from depthscope.api.places import group_name, run_names
from depthscope.cli.mapline import MapLine
from depthscope.cli.pace import Line, Pace, clock_words, rough_weights

MAX_LINES = 8
"""Runs under way that the board shows by name."""

MAX_NOTES = 20
"""Lines of one kind (a failure, a lost worker, ...) that are printed; more are counted only."""

QUIET_S = 300.0
"""Without a terminal a line comes at every tenth of the runs, and when none came for this long."""


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[api.Watcher]:
    """Who hears of a study: the board, or with `quiet` (JSON is wanted) nothing but what a person must read."""
    console = Console(stderr=True, markup=False, highlight=False)
    if quiet:
        yield api.Watcher(on_note=lambda line: console.print(Text(line, style="yellow")))
        return
    board = Board(console)
    try:
        yield board.watcher()
    finally:
        board.close()


class Board:
    """Keeps what was heard, and draws it: the study's bar, then a line for each run or group of seeds under way.

    Events come from the thread that listens to the workers, drawing is done by another: `_lock` guards the state, and
    nothing is printed while it is held.
    """

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._lock = threading.Lock()
        self._pace: Pace | None = None
        self._maps = MapLine(clock)
        self._mapped = False
        self._title = ""
        self._workers = ""
        self._names: dict[str, str] = {}
        self._lines: dict[str, Line] = {}
        self._key_of: dict[str, str] = {}  # of the line that a run is shown in
        self._groups: set[str] = set()
        self._units: dict[str, str] = {}
        self._done_before = ""
        self._tenth = 0
        self._counts = dict.fromkeys(("failed", "diverged", "by another driver", "resumed", "handed out again"), 0)
        self._noted: dict[str, int] = {}
        self._last_note: tuple[str, str] | None = None
        self._download: tuple[int, int | None] | None = None
        self._began = self._told = clock()
        self._closed = False
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4)  # last: it draws once

    def watcher(self) -> api.Watcher:
        """What `api.run` tells the board through."""
        return api.Watcher(
            on_plan=self.on_plan,
            on_event=self.on_event,
            on_map=self.on_map,
            on_note=self.on_note,
            on_download=self.on_download,
        )

    def close(self) -> None:
        """Leave the study's own bar on the screen and nothing else; also after Ctrl-C."""
        self._closed = True
        if self._live.is_started:
            self._live.stop()

    # ---- what is heard --------------------------------------------------------------------------------

    def on_plan(self, planned: api.Plan, left: Collection[str], workers: int) -> None:
        """The study, the runs to do, and how many workers do them; of a second study after the first is over."""
        with self._lock:
            over = self._study(self._pace, over=True) if self._pace is not None else []
            self._key_of, self._groups, self._lines, self._noted = {}, set(), {}, {}
            self._counts, self._last_note, self._tenth = dict.fromkeys(self._counts, 0), None, 0
            for task in planned.tasks:
                # Trained side by side, so that a line stands for all of them.
                together = task.specs[0].backend == "numpy" and len(task.specs) > 1
                for spec in task.specs:
                    self._key_of[spec.run_id] = task.specs[0].run_id if together else spec.run_id
                if together:
                    self._groups.add(task.specs[0].run_id)
            self._names = run_names(planned)
            for cell in planned.cells:
                self._names.setdefault(f"group {self._key_of[cell.run_id]}", group_name(cell))
            self._units = {
                run_id: "images/s" if spec.data in ("cifar10", "images") else "examples/s"
                for run_id, spec in planned.runs.items()
            }
            self._title, self._maps, self._mapped = planned.study.name, MapLine(self._clock), bool(planned.maps)
            self._pace = Pace(rough_weights([planned.runs[run_id] for run_id in left]))
            self._workers = f"{workers} worker{'s' if workers > 1 else ''}"
            done = len(planned.runs) - len(left)
            self._done_before = f", {done} already done" if done else ""
            self._began = self._told = self._clock()
        if self._console.is_interactive and over:
            self._console.print(*over, sep="\n")
        if not self._console.is_interactive:
            runs = "1 run" if len(left) == 1 else f"{len(left)} runs"
            self._console.print(Text(f"{self._title}: {runs} to do with {self._workers}{self._done_before}"))
        self._start()  # not before: bad input must leave nothing on the screen but its one line

    def on_note(self, line: str) -> None:
        """A line that the person should read."""
        self._console.print(Text(line, style="yellow"))

    def on_download(self, done: int, total: int | None) -> None:
        """Bytes of the real data that have come."""
        with self._lock:
            self._download = (done, total)
        self._start()

    def on_event(self, event: api.News) -> None:
        """Something happened to a run."""
        with self._lock:
            said = list(self._hear(event))
        for line in said:
            self._console.print(line)

    def on_map(self, news: api.MapNews) -> None:
        """Something happened to a map of a run."""
        with self._lock:
            name = self._names.get(news.run_id, news.run_id)
            said = list(self._maps.hear(news, name, interactive=self._console.is_interactive))
        for line in said:
            self._console.print(line)

    def _hear(self, event: api.News) -> Iterator[Text]:
        assert self._pace is not None
        now, run_id = self._clock(), event.run_id
        match event:
            case api.Started():
                self._line(run_id, now).move(run_id, 0, event.num_steps, now)
                self._pace.start(run_id, 0.0, now)
            case api.Resumed():
                self._counts["resumed"] += 1
                line = self._line(run_id, now)
                line.move(run_id, event.step, event.num_steps, now)
                line.text = words = f"resumed at step {event.step:,}"
                self._pace.start(run_id, event.step / max(event.num_steps, 1), now)
                if not self._console.is_interactive:
                    yield from self._note(run_id, "resumed", words, style="")
            case api.Progress():
                line = self._line(run_id, now)
                line.move(run_id, event.step, event.num_steps, now, event.examples)
                line.text = event.text or line.text
                self._pace.move(run_id, event.step / max(event.num_steps, 1))
            case api.Retried():
                self._counts["handed out again"] += 1
                yield from self._note(run_id, "again", f"handed out again: {event.reason}")
                self._leave(run_id)
            case api.Ended() | api.DoneElsewhere():
                self._leave(run_id)
                self._pace.end(run_id, now)
                outcome = event.outcome
                if isinstance(event, api.DoneElsewhere):
                    self._counts["by another driver"] += 1
                if outcome.status != "completed":
                    self._counts[outcome.status] += 1
                    yield from self._note(run_id, outcome.status, f"{outcome.status}: {outcome.reason}")
        yield from self._sparse(now)

    def _line(self, run_id: str, now: float) -> Line:
        key = self._key_of.get(run_id, run_id)
        return self._lines.setdefault(key, Line(now))

    def _leave(self, run_id: str) -> None:
        key = self._key_of.get(run_id, run_id)
        if key in self._lines and not self._lines[key].leave(run_id):
            del self._lines[key]

    def _note(self, run_id: str, kind: str, words: str, style: str = "yellow") -> Iterator[Text]:
        """A line about a run; one for the seeds of a group that are told the same, one after the other."""
        key = self._key_of.get(run_id, run_id)
        together = kind in ("again", "resumed")
        if together and self._last_note == (key, words):
            return
        self._last_note = (key, words)
        self._noted[kind] = self._noted.get(kind, 0) + 1
        if self._noted[kind] <= MAX_NOTES:
            name = self._names.get(f"group {key}" if together and key in self._groups else run_id, run_id)
            yield Text(f"{name} {words}", style=style)
        elif self._noted[kind] == MAX_NOTES + 1:
            yield Text("... further lines like this are left out; `depthscope status` names them", style=style)

    def _sparse(self, now: float) -> Iterator[Text]:
        pace = self._pace
        assert pace is not None
        if self._console.is_interactive or not pace.total:
            return
        tenth = pace.ended * 10 // pace.total
        if tenth > self._tenth or now - self._told >= QUIET_S:
            self._tenth, self._told = tenth, now
            under_way = f", {len(pace.running)} under way" if pace.running else ""
            left = pace.left(now, self._lines.values())
            words = f", about {clock_words(left)} left" if left else ""
            yield Text(f"{pace.ended} of {pace.total} runs done{under_way}{words}")

    # ---- what is drawn ----------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._console.is_interactive and not self._live.is_started and not self._closed:
            self._live.start()

    def render(self) -> Group:
        """The board as it stands."""
        with self._lock:
            parts: list[Any] = []
            if self._download and self._pace is None:
                done, total = self._download
                size = f" of {total / 1e6:,.0f}" if total else ""
                parts.append(Text(f"downloading the data: {done / 1e6:,.0f}{size} MB"))
            if self._pace is not None:
                parts += self._study(self._pace, over=self._closed)
                if not self._closed and self._pace.ended < self._pace.total:
                    parts += self._under_way(self._pace)
                parts += self._maps.render(over=self._closed)
            return Group(*parts)

    def _study(self, pace: Pace, *, over: bool) -> list[Any]:
        now = self._clock()
        row = Table.grid(padding=(0, 1))
        left = pace.left(now, self._lines.values())
        times = f"{clock_words(now - self._began)} elapsed"
        if not over:
            if pace.ended == pace.total:
                times += "" if self._mapped else ", the page is being made"
            elif left is not None:
                times += f", about {clock_words(left)} left"
        row.add_row(
            Text(self._title, style="bold"),
            ProgressBar(total=1.0, completed=pace.fraction, width=24),
            Text(f"{pace.ended}/{pace.total} runs"),
            Text(f"· {times}"),
            Text(f"· {self._workers}{self._done_before}", style="dim"),
        )
        counts = ", ".join(f"{number:,} {name}" for name, number in self._counts.items() if number)
        return [row, Text(f"  {counts}", style="yellow")] if counts else [row]

    def _under_way(self, pace: Pace) -> list[Any]:
        if not self._lines and not pace.ended:
            return [Text("  the workers are starting", style="dim")]
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=48)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True, overflow="ellipsis", style="dim")
        for key, line in list(self._lines.items())[:MAX_LINES]:
            run_id = next(iter(line.members))
            many = len(line.members) > 1
            name = f"{self._names.get(f'group {key}', key)}, {len(line.members)} seeds" if many else self._names[run_id]
            rate = line.rate()
            table.add_row(
                Text(f"  {name}"),
                ProgressBar(total=1.0, completed=line.fraction, width=12),
                Text(f"{line.step:,}/{line.num_steps:,}" if line.num_steps else "measuring"),
                Text(f"{rate:,.0f} {self._units.get(run_id, 'examples/s')}" if rate else ""),
                Text(line.text),
            )
        more = len(self._lines) - MAX_LINES
        return [table, Text(f"  and {more} more under way", style="dim")] if more > 0 else [table]
