"""A run's tables as an event file, which TensorBoard opens: `<folder>/tensorboard/<readable name>/`.

The file holds the rows of the last checkpoint or of the record, and never one more: a run that goes on writes its
file anew from its checkpoint, so no row is ever there twice.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes
from depthscope.record.events import Event, Rows
from depthscope.record.folder import STUDY_FILE, read_study
from depthscope.record.reader import read_table
from depthscope.record.schema import Columns
from depthscope.study.expand import expand
from depthscope.study.run import RunSpec

FOLDER = "tensorboard"

_PATTERN = "events.out.tfevents.*"


class EventFile:
    """A `record.sinks.Sink` that writes scalars: `train/loss`, ..., and `dh_norm/003.block1`, ... a layer.

    Values are single precision, as TensorBoard shows them; the tables keep them whole.
    """

    def __init__(
        self, folder: Path, spec: RunSpec, rows: Mapping[str, Columns], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._at = folder / FOLDER / readable_name(folder, spec)
        self._waiting = [(table, columns) for table, columns in rows.items()]
        self._clock = clock
        self._now = 0.0
        self._path: Path | None = None
        self._off = False

    def hear(self, event: Event) -> None:
        """Keep the rows until they stand."""
        if isinstance(event, Rows) and not self._off:
            self._waiting.append((event.table, event.columns))

    def saved(self, step: int) -> None:
        """Write what was heard."""
        del step
        if self._off:
            return
        waiting, self._waiting = self._waiting, []
        try:
            self._write(waiting)
        except OSError:
            # A record cut short hides all that comes after it. Without the file, a later `--log` makes it from the
            # tables; and this run writes no more.
            self._off = True
            if self._path is not None:
                with contextlib.suppress(OSError):
                    self._path.unlink()
            raise

    def close(self) -> None:
        """Forget the rows that do not stand."""
        self._waiting = []

    def _write(self, waiting: list[tuple[str, Columns]]) -> None:
        # Not tensorboard's EventFileWriter: it keeps a thread and names the machine in the file's name, and it makes
        # the file again where the driver that took over this run has removed it. What follows is refused there.
        from tensorboard.compat.proto.event_pb2 import Event as Entry
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._now = max(self._now, self._clock())  # TensorBoard sorts by it: a clock set back must not mix the steps
        if self._path is None:
            self._at.mkdir(parents=True, exist_ok=True)
            for earlier in self._at.glob(_PATTERN):
                earlier.unlink(missing_ok=True)
            self._path = self._at / f"events.out.tfevents.{int(self._now):010d}.{secrets.token_hex(4)}"
            with self._path.open("xb") as file:
                RecordWriter(file).write(Entry(wall_time=self._now, file_version="brain.Event:2").SerializeToString())
        by_step: dict[int, list[Summary.Value]] = {}
        for table, columns in waiting:
            for step, tag, value in _scalars(table, columns):
                by_step.setdefault(step, []).append(Summary.Value(tag=tag, simple_value=value))
        with self._path.open("r+b") as file:
            file.seek(0, 2)
            writer = RecordWriter(file)
            for step, values in by_step.items():
                entry = Entry(wall_time=self._now, step=step, summary=Summary(value=values))
                writer.write(entry.SerializeToString())


def export_missing(folder: Path, specs: Iterable[RunSpec]) -> None:
    """Event files of recorded runs that have none: they were done without, or by a driver that kept none.

    Raises:
        OSError: the folder cannot be written.
        UserError: a table cannot be read.
    """
    for spec in specs:
        if next((folder / FOLDER / readable_name(folder, spec)).glob(_PATTERN), None) is not None:
            continue
        tables = {name: read_table(folder, spec.run_id, name) for name in ("metrics", "layers")}
        sink = EventFile(folder, spec, {name: table.to_pydict() for name, table in tables.items() if table is not None})
        sink.saved(0)


def _scalars(table: str, columns: Columns) -> Iterator[tuple[int, str, float]]:
    """(step, tag, value) of each row that has a step and a value."""
    if table == "metrics":
        tags = (f"{split}/{quantity}" for split, quantity in _rows(columns, "split", "quantity"))
    elif table == "layers":
        tags = (
            f"{quantity}/{layer:03d}.{name}" for quantity, layer, name in _rows(columns, "quantity", "layer", "name")
        )
    else:
        return
    for (step, value), tag in zip(_rows(columns, "step", "value"), tags, strict=True):
        if value is not None:
            with np.errstate(over="ignore"):
                yield int(step), tag, float(np.float32(value))


def _rows(columns: Columns, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(columns[name] for name in names), strict=True)


def readable_name(folder: Path, spec: RunSpec) -> str:
    """A run's name in TensorBoard: its first place in the study, and the start of its run_id, which makes it unique.

    The run_id alone where the folder's study does not name the run.
    """
    try:
        text = read_bytes(folder / STUDY_FILE)
        found = _names(folder, text).get(spec.run_id)
    except (OSError, UserError):
        found = None
    return found or spec.run_id


@lru_cache(maxsize=1)
def _names(folder: Path, text: bytes) -> dict[str, str]:
    del text  # the key of the cache: another study in this folder has other names
    names: dict[str, str] = {}
    for cell in expand(read_study(folder)).cells:
        axes = "".join(f"-{axis}-{value}" for axis, value in cell.axes.items())
        words = f"{cell.part}-{cell.arm}{axes}-seed-{cell.seed}"
        # The name of a folder on every system: a value of an axis may be any text.
        names.setdefault(cell.run_id, f"{re.sub(r'[^A-Za-z0-9_.=+-]+', '_', words)[:120]}-{cell.run_id[:8]}")
    return names
