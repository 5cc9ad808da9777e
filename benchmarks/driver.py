"""What the driver costs: one-second runs on two workers, against the time that the work alone takes.

    python benchmarks/driver.py [--runs 200] [--executor processes|ray] [--workers 2] [--work busy|sleep]

A run's second is spent in a data set of the user's own, on a clock, so that it is a second on any machine; what the
engine, the worker, the leases, the records and the board cost comes on top. Workers write down when their work began
and how long it took. The ideal is the sum of that over the workers; the overhead is what the time from the first
second's begin to the last run's end is above it. Starting the workers, and the page, are told apart.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rich.console import Console

import depthscope
from depthscope import api
from depthscope.cli.progress import Board
from depthscope.core.files import read_text
from depthscope.data.synthetic import spiral
from depthscope.record.reader import read_records

WORKED, DRIVER = "DEPTHSCOPE_BENCHMARK_WORKED", "DEPTHSCOPE_BENCHMARK_DRIVER"


def one_second(*, number: int, seconds: float, busy: bool) -> Any:
    """A small spiral that takes `seconds` to make, in a worker; `number` tells the runs apart.

    The driver makes every data set once before it starts, to see that it can be made: there it takes no time.
    """
    begin, clock = time.time(), time.perf_counter()
    made = spiral(0, points_per_arm=8)
    if os.environ[DRIVER] != str(os.getpid()):
        with (Path(os.environ[WORKED]) / f"{number}-{os.getpid()}-{time.monotonic_ns()}").open("w") as file:
            if busy:
                while time.perf_counter() - clock < seconds:
                    pass
            else:
                time.sleep(max(0.0, seconds - (time.perf_counter() - clock)))
            file.write(f"{begin!r} {time.perf_counter() - clock!r}")
    return made


def study(runs: int, seconds: float, busy: bool) -> str:
    """As many runs as asked, each an arm of its own: seeds of one arm would train side by side."""
    options = f"seconds = {seconds}, busy = {str(busy).lower()}"
    arms = "".join(
        f'[[parts.main.arms]]\nname = "run-{number}"\nset = {{ data_options = {{ number = {number}, {options} }} }}\n'
        for number in range(runs)
    )
    return f"""
name = "one-second"
title = {{ en = "Runs of one second" }}
seeds = 1
[base]
backend = "numpy"
family = "mlp"
depth = 2
width = 4
activation = "tanh"
init = "gaussian"
data = "driver:one_second"
steps = 1
[parts.main]
{arms}"""


class Memory:
    """Resident memory of this process, in MB, sampled by a thread."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _sample(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._end.wait(0.25):
            self.samples.append(int(read_text(Path("/proc/self/statm"), 1000).split()[1]) * page / 1e6)


class Stopwatch:
    """Hears of a study as the terminal's board does, and keeps when it was planned, began and ended."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.planned = self.last = 0.0
        self.ends = self._left = 0
        self.memory = Memory()

    def watcher(self) -> api.Watcher:
        return api.Watcher(on_plan=self._plan, on_event=self._event, on_note=print)

    def _plan(self, planned: api.Plan, left: Collection[str], workers: int) -> None:
        self.planned, self._left = time.time(), len(left)
        self.memory.__enter__()
        self._board.on_plan(planned, left, workers)

    def _event(self, event: api.News) -> None:
        self._board.on_event(event)
        if isinstance(event, api.Ended):
            self.last = time.time()
            self.ends += 1
            if self.ends == self._left:
                self.memory.__exit__()  # the page is made in this process, too


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--executor", choices=("processes", "ray"), default="processes")
    parser.add_argument("--work", choices=("busy", "sleep"), default="busy")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nothing, contextlib.ExitStack() as stack:
        at = Path(scratch)
        (at / "worked").mkdir()
        os.environ |= {WORKED: str(at / "worked"), DRIVER: str(os.getpid())}
        path = at / "study.toml"
        path.write_text(study(asked.runs, asked.seconds, asked.work == "busy"))
        board = Board(Console(file=nothing, force_terminal=True, width=120))
        stack.callback(board.close)
        watch = Stopwatch(board)
        begin = time.time()
        depthscope.run(
            path, out=at / "out", workers=asked.workers, executor=asked.executor, watcher=watch.watcher()
        )  # fmt: skip
        end = time.time()
        worked = [tuple(map(float, each.read_text().split())) for each in (at / "worked").iterdir()]
        records, damaged = read_records(at / "out", list(api.plan(path).runs))
    assert len(records) == len(worked) == watch.ends == asked.runs, (len(records), len(worked), watch.ends)
    assert not damaged
    ideal = sum(took for _, took in worked) / asked.workers
    own = sum(record.timings.wall_s for record in records.values()) / asked.workers
    first, last = min(began for began, _ in worked), watch.last
    quarter = max(len(watch.memory.samples) // 4, 1)
    early, late = (
        statistics.median(part) for part in (watch.memory.samples[:quarter], watch.memory.samples[-quarter:])
    )
    print(f"{asked.runs} runs of {asked.seconds:g} s ({asked.work}), {asked.workers} workers, {asked.executor}")
    for words, seconds, note in (
        ("ideal", ideal, "work / workers"),
        ("the runs by their records", own, f"the engine takes {100 * (own / ideal - 1):.2f}% of that"),
        ("from the first to the last", last - first, f"overhead {100 * ((last - first) / ideal - 1):.2f}%"),
        (
            "with the workers' start",
            last - watch.planned,
            f"overhead {100 * ((last - watch.planned) / ideal - 1):.2f}%",
        ),
        ("before that", watch.planned - begin, "plan, checks"),
        ("after that", end - last, "end of the workers, page"),
    ):
        print(f"  {words:28}{seconds:8.2f} s   {note}")
    print(f"  driver's memory: {early:.1f} MB in the first quarter, {late:.1f} MB in the last ({late - early:+.1f})")


if __name__ == "__main__":
    main()
