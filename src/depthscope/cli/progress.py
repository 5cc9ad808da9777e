"""A study under way, on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from depthscope.api import Watcher


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Watcher]:
    """A bar of runs done, on stderr; where that is no terminal, a line at every tenth of them."""
    console = Console(stderr=True, markup=False, highlight=False)
    if quiet:
        yield Watcher(on_note=lambda line: console.print(Text(line, style="yellow")))
        return
    columns = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs ·"),
        TimeElapsedColumn(),
        TextColumn("elapsed ·"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
    )
    bars = Progress(*columns, console=console, refresh_per_second=4)
    try:
        yield _Board(bars).watcher()
    finally:
        if bars.live.is_started:
            bars.stop()


class _Board:
    """Keeps the bar: the runs that ended, and a fraction for each that is under way."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._names: dict[str, str] = {}
        self._under_way: dict[str, float] = {}
        self._ended = 0
        self._total = 0
        self._bar: Any = None
        self._download: Any = None

    def watcher(self) -> Watcher:
        return Watcher(on_plan=self._plan, on_event=self._event, on_note=self._note, on_download=self._bytes)

    def _plan(self, planned: Any, left: int, workers: int) -> None:
        for cell in planned.cells:
            axes = " ".join(f"{key} {value}" for key, value in cell.axes.items())
            self._names[cell.run_id] = f"{cell.part}: {cell.arm} {axes} seed {cell.seed}"
        done = len(planned.runs) - left
        note = f"{workers} worker{'s' if workers > 1 else ''}" + (f", {done} already done" if done else "")
        self._total = left
        if self._bars.console.is_terminal:  # not before: bad input must leave nothing on the screen but its one line
            self._bars.start()
        self._bar = self._bars.add_task(planned.study.name, total=left, note=note)

    def _note(self, line: str) -> None:
        self._bars.console.print(Text(line, style="yellow"))

    def _event(self, event: Any) -> None:
        name = self._names.get(event.run_id, event.run_id)
        outcome = getattr(event, "outcome", None)
        if outcome is not None:
            self._under_way.pop(event.run_id, None)
            self._ended += 1
            tenths = [self._ended * 10 // self._total, (self._ended - 1) * 10 // self._total]
            if not self._bars.console.is_terminal and tenths[0] > tenths[1]:
                self._bars.console.print(f"{self._ended} of {self._total} runs done")
            if outcome.status != "completed":
                self._bars.console.print(Text(f"{name} {outcome.status}: {outcome.reason}", style="yellow"))
        elif hasattr(event, "step") and event.num_steps:
            self._under_way[event.run_id] = event.step / event.num_steps
        note = f"{name} {event.text}" if getattr(event, "text", "") else None
        done = self._ended + sum(self._under_way.values())
        if note:
            self._bars.update(self._bar, note=note)
        self._bars.update(self._bar, completed=round(done, 1))

    def _bytes(self, done: int, total: int | None) -> None:
        if self._download is None:
            if self._bars.console.is_terminal:
                self._bars.start()
            self._download = self._bars.add_task("download, MB", total=None, note="CIFAR-10")
        self._bars.update(
            self._download, completed=round(done / 1e6), total=None if total is None else round(total / 1e6)
        )
