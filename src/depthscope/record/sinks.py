"""Logs of a run for people: a text file, and event files for TensorBoard. Records never depend on them.

The worker tells a run's sinks what it hears, and each time that what was heard stands (in a checkpoint or in the
record). Timestamps live here alone; deleting a log loses nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from depthscope.core.errors import MissingDependencyError, UserError, unknown_name
from depthscope.core.files import regular
from depthscope.record.events import Ended, Event, Progress, Started
from depthscope.record.folder import run_folder
from depthscope.record.schema import Columns
from depthscope.study.run import RunSpec

LOGS = ("tensorboard",)
"""What may be asked for beside the text file, which every run has."""

_FLUSH_S = 1.0
"""Lines of progress wait this long for company, so that a quick run does not open its log at every epoch."""

Clock = Callable[[], datetime]


class Sink(Protocol):
    """Hears one run. Called by the worker, in this order: `hear` any number of times, `saved`, and so on, `close`."""

    def hear(self, event: Event) -> None:
        """Take in one event of the run."""

    def saved(self, step: int) -> None:
        """All that was heard so far stands: in a checkpoint at this step or, after `Ended`, in the record."""

    def close(self) -> None:
        """Nothing more is coming. Without `saved` after `Ended`, another driver's record stands."""


def check_logs(names: Collection[str]) -> None:
    """Refuse logs that cannot be written, before anything starts.

    Raises:
        UserError: an unknown name.
        MissingDependencyError: the package that it needs is not installed.
    """
    for name in names:
        if name not in LOGS:
            raise UserError(unknown_name("log", name, LOGS))
    if "tensorboard" in names and importlib.util.find_spec("tensorboard") is None:
        raise MissingDependencyError(
            "TensorBoard is not installed, and --log tensorboard needs it: pip install 'depthscope[tensorboard]'."
        )


def open_sinks(
    folder: Path,
    spec: RunSpec,
    logs: Collection[str] = (),
    *,
    resumed_at: int | None = None,
    rows: Mapping[str, Columns] | None = None,
) -> Sink:
    """The logs of a run that starts, or goes on from a checkpoint.

    Args:
        folder: the study's.
        spec: the run's.
        logs: names of `LOGS`.
        resumed_at: step of the checkpoint; None for a run that starts.
        rows: the rows in that checkpoint, by table.
    """
    sinks: list[Sink] = [LogFile(folder, spec, resumed_at=resumed_at)]
    if "tensorboard" in logs:
        from depthscope.record.event_file import EventFile

        sinks.append(EventFile(folder, spec, rows or {}))
    return _All(sinks)


class _All:
    """Several sinks as one. A log is never worth a run: a disk that takes no more of it stops the log alone."""

    def __init__(self, sinks: list[Sink]) -> None:
        self._sinks = sinks

    def hear(self, event: Event) -> None:
        self._each(lambda sink: sink.hear(event))

    def saved(self, step: int) -> None:
        self._each(lambda sink: sink.saved(step))

    def close(self) -> None:
        self._each(lambda sink: sink.close())

    def _each(self, act: Callable[[Sink], None]) -> None:
        for sink in self._sinks:
            with contextlib.suppress(OSError):
                act(sink)


class LogFile:
    """`runs/<run_id>/log.txt`: a line of plain text with its UTC time for each thing that happened.

    Appended to, also by a run that goes on or is done again. The file is not held open: hundreds of runs may
    train side by side.
    """

    def __init__(
        self, folder: Path, spec: RunSpec, *, resumed_at: int | None = None, clock: Clock | None = None
    ) -> None:
        self._path = run_folder(folder, spec.run_id) / "log.txt"
        self._clock = clock or (lambda: datetime.now(UTC))
        self._last: datetime | None = None
        self._waiting: list[str] = []
        self._flushed = -math.inf  # the first thing heard is written at once
        self._ended: Ended | None = None
        fields = " ".join(
            f"{name}={value}" for name, value in spec.model_dump(mode="json", exclude_none=True).items() if value != {}
        )
        self._add(f"{'started' if resumed_at is None else f'resumed from step {resumed_at:,}'}: {fields}")

    def hear(self, event: Event) -> None:
        """Keep a line of progress, the start and the end."""
        match event:
            case Started():
                self._add(f"{event.parameters:,} parameters, {event.num_steps:,} steps")
            case Progress() if event.text:
                self._add(f"step {event.step:,} of {event.num_steps:,}: {event.text}")
            case Ended():
                outcome = event.outcome
                reason = f": {outcome.reason}" if outcome.reason else ""
                early = " (stopped early, by its rule)" if outcome.stopped_early else ""
                self._add(f"ended: {outcome.status} at step {outcome.step:,}{early}{reason}")
                self._ended = event
            case _:
                pass
        if time.monotonic() - self._flushed >= _FLUSH_S:
            self._flush()

    def saved(self, step: int) -> None:
        """Say so, and write what waits."""
        self._add("recorded" if self._ended else f"checkpoint saved at step {step:,}")
        self._ended = None
        self._flush()

    def close(self) -> None:
        """Write what waits."""
        if self._ended:
            self._add("not recorded here: the record of another driver stands")
        self._flush()

    def _add(self, words: str) -> None:
        now = self._clock()
        if self._last is not None and now < self._last:
            self._waiting.append(f"{_stamp(now)} (the clock went back by {(self._last - now).total_seconds():,.0f} s)")
        self._last = now
        self._waiting.append(f"{_stamp(now)} {' '.join(words.split())}")  # a reason may hold line breaks

    def _flush(self) -> None:
        if not self._waiting:
            return
        text = "".join(line + "\n" for line in self._waiting)
        self._waiting.clear()  # also where the disk refuses: a log must not grow in memory
        self._flushed = time.monotonic()
        if not self._path.parents[2].is_dir():
            return  # the study's folder was taken away: it must not come back for the sake of a log
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with regular(self._path, "ab") as file:
            file.write(text.encode(errors="replace"))


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
