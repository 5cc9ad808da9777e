"""Measurement in pairs: a plain reference and ours, turn by turn, each in a process of its own on one thread.

The machine may be shared and noisy: what is told is the ratio within a pair, its median over the pairs, and its least
and greatest value. A record (`Record`) is kept with the machine and the versions; tables are made of records alone.
"""

from __future__ import annotations

import cProfile
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

RECORDS = Path(os.environ.get("BENCH_RECORDS") or Path(__file__).parent / "records")
"""Where records are kept: beside this file, or where the environment says, as for a trial of few pairs."""

PACKAGES = ("depthscope", "torch", "numpy")

Make = Callable[[], Callable[[], object]]
"""Sets up, and gives what is timed. It is pickled by its name: a module's function, or a partial of one."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A figure that was measured.

    Attributes:
        name: short name, the file's.
        what: in words.
        want: what we want, at least of a ratio and at most of anything else; None where nothing was asked.
        pairs: ratios, one a pair: the reference's time over ours, so that more is better. Where nothing stands beside
            ours, the figure itself, one a measurement, in `unit`.
        unit: `times`, or that of a figure of which less is better: `ms`, `%`, `MB`, ...
        clock: `processor` (of one process) or `wall`.
        reference_s: median seconds of the reference; None without one.
        ours_s: median seconds of ours.
        facts: further figures by name; `profile 1`, `profile 2`, ... say where the time of ours went.
        machine: what it was measured on.
        versions: of packages.
        when: the day, UTC.
    """

    name: str
    what: str
    want: float | None
    pairs: list[float]
    clock: str
    reference_s: float | None = None
    ours_s: float | None = None
    unit: str = "times"
    facts: dict[str, float | str] = field(default_factory=dict)
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    when: str = ""

    @property
    def ratio(self) -> float:
        """The median over the pairs."""
        return statistics.median(self.pairs)

    @property
    def met(self) -> bool | None:
        """Whether it is what we want; None where nothing was asked."""
        if self.want is None:
            return None
        return self.ratio >= self.want if self.unit == "times" else self.ratio <= self.want

    def save(self) -> Record:
        """Write it, in place of an older one of that name, and print it."""
        RECORDS.mkdir(parents=True, exist_ok=True)
        (RECORDS / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        print(self, flush=True)
        return self

    def __str__(self) -> str:
        sign = "at least" if self.unit == "times" else "at most"
        wanted = f", wanted {sign} {self.want:g}" if self.want is not None else ""
        seconds = [f"{name} {value:.4g} s" for name, value in self._seconds().items()]
        return (
            f"{self.name}: {self.ratio:.4g} {self.unit} [{min(self.pairs):.4g}, {max(self.pairs):.4g}] of "
            f"{len(self.pairs)}{wanted}" + (f"; {', '.join(seconds)} ({self.clock})" if seconds else "")
        )

    def _seconds(self) -> dict[str, float]:
        both = {"reference": self.reference_s, "ours": self.ours_s}
        return {name: value for name, value in both.items() if value is not None}


def read_records(folder: Path = RECORDS) -> dict[str, Record]:
    """All figures that were kept, by name; how something grows is a record of another kind (`read_growth`)."""
    return {each["name"]: Record(**each) for each in _read(folder) if "kind" not in each}


def read_growth(folder: Path = RECORDS) -> dict[str, dict[str, Any]]:
    """The records of `growth.Growth`, by name."""
    return {each["name"]: each for each in _read(folder) if each.get("kind") == "growth"}


def _read(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def machine() -> str:
    """The processor and how much of it is here."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def measured(
    name: str,
    what: str,
    reference: Make,
    ours: Make,
    *,
    want: float | None,
    pairs: int,
    warm: int = 2,
    work: float = 1.0,
    each: int = 1,
    facts: dict[str, float | str] | None = None,
    profiled: bool = True,
) -> Record:
    """Time two contenders in turns, by the time of their processors, and keep the record.

    Where ours misses what is wanted, one more turn of it is profiled and told among the facts.

    Args:
        name: see `Record`.
        what: see `Record`.
        reference: the plain one.
        ours: ours.
        want: see `Record`.
        pairs: turns that count.
        warm: turns before, that do not.
        work: how many times as much the reference does in its turn as ours does.
        each: how many of the pieces that the record tells seconds of ours does in its turn.
        facts: see `Record`.
        profiled: False where the facts tell already where the time goes.
    """
    with Contender(reference) as plain, Contender(ours) as fast:
        spent = [(plain.turn() / work / each, fast.turn() / each) for _ in range(warm + pairs)][warm:]
        missed = profiled and want is not None and statistics.median(a / b for a, b in spent) < want
        facts = {**(facts or {}), **(fast.profile() if missed else {})}
    return kept(name, what, spent, want=want, clock="processor", facts=facts)


def kept(
    name: str,
    what: str,
    spent: list[tuple[float, float]],
    *,
    want: float | None,
    clock: str,
    facts: dict[str, float | str] | None = None,
) -> Record:
    """The record of (reference, ours) in seconds, one of each a pair."""
    return _made(
        name,
        what,
        [a / b for a, b in spent],
        want=want,
        clock=clock,
        facts=facts,
        reference_s=statistics.median(a for a, _ in spent),
        ours_s=statistics.median(b for _, b in spent),
    )


def figure(
    name: str,
    what: str,
    values: list[float],
    *,
    unit: str,
    want: float | None,
    clock: str,
    facts: dict[str, float | str] | None = None,
) -> Record:
    """The record of a figure of ours that has no reference beside it."""
    return _made(name, what, values, unit=unit, want=want, clock=clock, facts=facts)


def _made(
    name: str, what: str, values: list[float], *, facts: dict[str, float | str] | None = None, **rest: Any
) -> Record:
    return Record(
        name=name,
        what=what,
        pairs=values,
        facts={**(facts or {}), "load": round(os.getloadavg()[0], 2)},
        machine=machine(),
        versions={each: version(each) for each in PACKAGES} | {"python": platform.python_version()},
        when=datetime.now(UTC).date().isoformat(),
        **rest,
    ).save()


class Contender:
    """A process that does one piece of work a turn, and says how much time of the processor it took."""

    def __init__(self, make: Make) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        # Before the process starts: BLAS and torch read it as they load.
        before = {key: os.environ.get(key) for key in _ONE_THREAD}
        os.environ |= _ONE_THREAD
        self._process = context.Process(target=_serve, args=(there, make), daemon=True)
        self._process.start()
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value

    def turn(self) -> float:
        """Seconds of the processor that one piece of work took."""
        self._pipe.send("turn")
        found: float = self._pipe.recv()
        return found

    def profile(self) -> dict[str, float | str]:
        """Where the time of one more turn goes."""
        self._pipe.send("profile")
        found: dict[str, float | str] = self._pipe.recv()
        return found

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join()


_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _serve(pipe: Connection, make: Make) -> None:
    work = make()
    while asked := pipe.recv():
        if asked == "profile":
            pipe.send(profile_of(work))
            continue
        begin = time.process_time()
        work()
        pipe.send(time.process_time() - begin)


def profile_of(work: Callable[[], object], rows: int = 6) -> dict[str, float | str]:
    """Where the time of a piece of work goes: `profile 1`, ... -> a share of it and an operation, the largest first.

    Operations of torch where it was used, and functions otherwise.
    """
    if "torch" in sys.modules:
        import torch

        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            work()
        spent = [(each.self_cpu_time_total, each.key) for each in profiler.key_averages()]
    else:
        collected = cProfile.Profile()
        collected.runcall(work)
        spent = [(each.inlinetime, _function(each.code)) for each in collected.getstats()]
    total = sum(each for each, _ in spent)
    top = sorted(spent, reverse=True)[:rows]
    return {f"profile {at}": f"{took / total:.1%} {name}" for at, (took, name) in enumerate(top, start=1)}


def _function(code: object) -> str:
    if isinstance(code, str):
        return code
    return f"{Path(getattr(code, 'co_filename', '')).name}:{getattr(code, 'co_name', '')}"
