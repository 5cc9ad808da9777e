"""Measurement in pairs: a plain reference and ours, turn by turn, each in a process of its own on one thread.

The machine may be shared and noisy: what is told is the ratio within a pair, its median over the pairs, and its least
and greatest value. A record (`Record`) is kept with the machine and the versions; tables are made of records alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path

RECORDS = Path(__file__).parent / "records"
PACKAGES = ("depthscope", "torch", "numpy")

Make = Callable[[], Callable[[], object]]
"""Sets up, and gives what is timed. It is pickled by its name: a module's function, or a partial of one."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A figure that was measured.

    Attributes:
        name: short name, the file's.
        what: in words.
        want: the ratio that we want; None where nothing was asked.
        pairs: ratios, one a pair: the reference's time over ours, so that more is better.
        clock: `processor` (of one process) or `wall`.
        reference_s: median seconds of the reference.
        ours_s: median seconds of ours.
        facts: further figures by name.
        machine: what it was measured on.
        versions: of packages.
        when: the day, UTC.
    """

    name: str
    what: str
    want: float | None
    pairs: list[float]
    clock: str
    reference_s: float
    ours_s: float
    facts: dict[str, float | str] = field(default_factory=dict)
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    when: str = ""

    @property
    def ratio(self) -> float:
        """The median over the pairs."""
        return statistics.median(self.pairs)

    def save(self) -> Record:
        """Write it, in place of an older one of that name, and print it."""
        RECORDS.mkdir(exist_ok=True)
        (RECORDS / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        wanted = f", wanted {self.want:g}" if self.want else ""
        print(
            f"{self.name}: {self.ratio:.2f} times [{min(self.pairs):.2f}, {max(self.pairs):.2f}] in {len(self.pairs)} "
            f"pairs{wanted}; reference {self.reference_s:.4g} s, ours {self.ours_s:.4g} s ({self.clock})",
            flush=True,
        )
        return self


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
    facts: dict[str, float | str] | None = None,
) -> Record:
    """Time two contenders in turns, by the time of their processors, and keep the record.

    Args:
        name: see `Record`.
        what: see `Record`.
        reference: the plain one.
        ours: ours.
        want: see `Record`.
        pairs: turns that count.
        warm: turns before, that do not.
        work: how many times as much the reference does in its turn as ours does.
        facts: see `Record`.
    """
    with Contender(reference) as plain, Contender(ours) as fast:
        spent = [(plain.turn(), fast.turn()) for _ in range(warm + pairs)][warm:]
    return kept(name, what, [(a / work, b) for a, b in spent], want=want, clock="processor", facts=facts)


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
    return Record(
        name=name,
        what=what,
        want=want,
        pairs=[a / b for a, b in spent],
        clock=clock,
        reference_s=statistics.median(a for a, _ in spent),
        ours_s=statistics.median(b for _, b in spent),
        facts=facts or {},
        machine=machine(),
        versions={each: version(each) for each in PACKAGES} | {"python": platform.python_version()},
        when=datetime.now(UTC).date().isoformat(),
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
        self._pipe.send(True)
        found: float = self._pipe.recv()
        return found

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(False)
        self._process.join()


_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _serve(pipe: Connection, make: Make) -> None:
    work = make()
    while pipe.recv():
        begin = time.process_time()
        work()
        pipe.send(time.process_time() - begin)
