"""The table of `gpu`: rows that are kept as they come, and what the GPU's memory is asked for between them."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table.

    Attributes:
        what: in words.
        images_s: images a second.
        times: of the plain reference's.
        peak_mib: memory that torch held of the GPU at most; None on the CPU.
        same_bits: whether its losses are those of the steps without graphs; None where it has none.
    """

    what: str
    images_s: float
    times: float | None = None
    peak_mib: float | None = None
    same_bits: bool | None = None

    def __str__(self) -> str:
        times = f"{self.times:8.2f}x" if self.times is not None else " " * 9
        peak = f"{self.peak_mib:9,.0f} MiB" if self.peak_mib is not None else " " * 13
        bits = {None: "", True: "  same bits as without", False: "  OTHER BITS than without"}[self.same_bits]
        return f"{self.what:48} {self.images_s:12,.0f} images/s {times} {peak}{bits}"


@dataclass(kw_only=True)
class Table:
    """Rows, printed and written as they come: what was measured is there, whatever happens then.

    Attributes:
        device: its name.
        out: the file; None writes none.
        until: time of `time.perf_counter` from which on nothing new begins.
        rows: so far.
        left_out: what there was no time for.
        failed: what raised, and with what.
    """

    device: str
    out: Path | None
    until: float
    rows: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, what: str, make: Callable[[], Row], *, need_s: float = 0.0) -> Row | None:
        """A row, made now; None where there is no time for it, of which it needs about so many seconds, or it fails."""
        if time.perf_counter() + need_s > self.until:
            self.left_out.append(what)
            return None
        free()
        try:
            row = make()
        except Exception as error:  # of whatever kind: the other rows are still worth having
            self.failed.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            print(f"{what:48} FAILED", flush=True)
            return None
        self.rows.append(row)
        print(row, flush=True)
        self.write()
        return row

    def write(self) -> None:
        """The same in numbers."""
        if self.out is None:
            return
        held: dict[str, Any] = {"device": self.device, "torch": torch.__version__}
        held |= {"rows": [asdict(row) for row in self.rows], "left_out": self.left_out, "failed": self.failed}
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def free() -> None:
    """What the row before held is no part of the next one's memory: cycles hold tensors, and torch keeps blocks."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_mib(device: str) -> float | None:
    """MiB that torch held of a GPU at most.

    Not what tensors took of it: a recorded graph keeps its memory, which no tensor has between two replays.
    """
    return torch.cuda.max_memory_reserved() / 2**20 if device == "cuda" else None


def wait(device: str) -> None:
    """Until the device has done what it was told."""
    if device == "cuda":
        torch.cuda.synchronize()
