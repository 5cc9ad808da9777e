"""What training ResNet-110 and -1202 takes of memory, with and without activation checkpointing.

    python benchmarks/memory.py [--only 110|1202] [--times 3]

Each figure is of a process of its own on one thread: the engine of a study makes its steps as a worker makes them, and
what the process holds at most in them, beyond what it held when the network and the data were there, is told. Gradients
and the optimizer's memory are in it; so is what the kernels load and take while they work. Beside it stands what the
library says before a run (`train.memory`): that is an upper bound for bfloat16. It counts tensors, and an allocator
holds more: once more it is measured with each tensor in pages of its own, which go when it goes (glibc alone).
`--times` is of ResNet-110; ResNet-1202 is measured once, with the time of a single step.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import platform
import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from growth import resident_mib
from pairs import figure
from training import spec as step_spec

from depthscope.execute.pages import keep_pages
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.cost import cost
from depthscope.train.state import Standing
from depthscope.train.torch_loop import run

BATCHES = (128, 64, 32, 16)
PRECISIONS = ("float32", "bfloat16")
RESERVE = 1024.0
"""MiB that are left to the rest of the machine, and that a process takes for its libraries."""


_MMAP_THRESHOLD = -3
"""Name of a setting in glibc's malloc.h. Once it is set, it no longer moves to the size of what was freed."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often a depth is measured, and steps that are timed after the first one."""

    times: int
    steps: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """Of one process.

    Attributes:
        before: MiB that it held before the first step.
        peak: MiB that it held at most from there on.
        step_s: median seconds of the processor of a step, the first one not counted.
        losses: of all steps, as exact text.
    """

    before: float
    peak: float
    step_s: float
    losses: tuple[str, ...]

    @property
    def rise(self) -> float:
        """MiB that the steps took."""
        return self.peak - self.before


def spec(depth: int, precision: str, *, checkpointing: bool, batch: int) -> RunSpec:
    """That of `training`, with or without checkpointing."""
    changed = {"model_options": {"checkpointing": checkpointing}, "batch_size": batch}
    return RunSpec.model_validate(step_spec(depth, precision).model_dump() | changed)


def predicted(of: RunSpec) -> float:
    """MiB that steps take beyond the weights and the data, as the library says before a run."""
    memory = cost(of).memory
    return (memory.gradients + memory.optimizer + memory.activations + memory.copies) / 2**20


def batch_that_fits(depth: int, available: float | None) -> int:
    """The largest batch that can be trained without checkpointing in so many MiB (None: unknown, taken for enough).

    Raises:
        SystemExit: none fits.
    """
    for batch in BATCHES:
        need = 1.25 * predicted(spec(depth, "float32", checkpointing=False, batch=batch)) + 2 * RESERVE
        if available is None or need <= available:
            return batch
    raise SystemExit(f"memory: ResNet-{depth} at batch {batch} wants {need:,.0f} MiB, free are {available:,.0f}.")


def available_mib() -> float | None:
    """What the system could give; None where it does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable:")), None)


def alone(of: RunSpec, steps: int, *, own_pages: bool = False) -> Found:
    """A run's first steps in a process of its own; see `measure`."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(there, of, steps, own_pages), daemon=True)
    process.start()
    there.close()
    try:
        found: Found = here.recv()
    except EOFError:
        process.join()
        raise SystemExit(f"memory: the process of ResNet-{of.depth} ended with {process.exitcode}.") from None
    process.join()
    return found


def _serve(pipe: Connection, of: RunSpec, steps: int, own_pages: bool) -> None:
    pipe.send(measure(of, steps, own_pages=own_pages))


def measure(of: RunSpec, steps: int, *, own_pages: bool) -> Found:
    """In this process: the first step and so many timed ones.

    Args:
        of: the run.
        steps: how many are timed.
        own_pages: give each large tensor pages of its own; else pages are kept for the next ones, as a worker does.
    """
    if own_pages:
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 2**18)
    else:
        keep_pages()
    standing = Standing()
    events = run([of], Context(device="cpu"), {}, standing)
    next(events)  # "started": the network and the data are there, and no step is done
    _settle()
    _bound()
    before, spent = resident_mib("VmRSS"), []
    for _ in range(1 + steps):
        began, step = time.process_time(), standing.step
        while standing.step == step:
            event = next(events)
        spent.append(time.process_time() - began)
    peak = resident_mib()
    # The state is taken behind the peak: it copies the tensors.
    losses = event.take()[0].tensors["epoch.losses"].tolist()
    return Found(
        before=before,
        peak=peak,
        step_s=statistics.median(spent[1:]),
        losses=tuple(float(each).hex() for each in losses),
    )


def _settle() -> None:
    """What building took and is free again goes back to the system, where it tells, and the peak begins anew."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another system than Linux, another library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _bound() -> None:
    """More than there is, is refused to this process, and not taken from another."""
    free = available_mib()
    if free is not None:
        most = int((resident_mib("VmSize") + free - RESERVE) * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def kept(
    depth: int, precision: str, batch: int, found: Mapping[bool, Sequence[Found]], own: Mapping[bool, Found]
) -> None:
    """Keep a record of each way, and in the second what checkpointing spares and costs against the first.

    Args:
        depth: of the network.
        precision: it trains in.
        batch: examples of a step.
        found: checkpointing or not -> what was measured.
        own: the same, with each tensor in pages of its own; empty where that was not measured.
    """
    rise = {way: statistics.median(each.rise for each in some) for way, some in found.items()}
    step_s = {way: statistics.median(each.step_s for each in some) for way, some in found.items()}
    for way, some in found.items():
        facts: dict[str, float | str] = {
            "predicted, MiB": round(predicted(spec(depth, precision, checkpointing=way, batch=batch))),
            "peak of the process, MiB": round(statistics.median(each.peak for each in some)),
            "step, s": round(step_s[way], 2),
        }
        if way:
            bits = {each.losses for both in found.values() for each in both}
            facts |= {
                "memory, of that without": round(rise[True] / rise[False], 3),
                "step, of that without": round(step_s[True] / step_s[False], 2),
                "losses": "the same bits as without" if len(bits) == 1 else "OTHER BITS than without",
            }
        if own:
            facts |= {
                "each tensor in pages of its own, MiB": round(own[way].rise),
                "step then, s": round(own[way].step_s, 2),
            }
        if way and own:
            facts["memory then, of that without"] = round(own[True].rise / own[False].rise, 3)
        figure(
            f"memory-{depth}-{precision}{'-checkpointing' if way else ''}",
            f"memory that training ResNet-{depth} takes, batch {batch}, {precision}"
            + (", activation checkpointing" if way else ""),
            [round(each.rise, 1) for each in some],
            unit="MiB",
            want=None,
            clock="–",
            facts=facts,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, choices=(110, 1202))
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    plans = {110: Plan(times=asked.times, steps=3), 1202: Plan(times=1, steps=1)}
    for depth, plan in plans.items():
        if asked.only not in (None, depth):
            continue
        batch = batch_that_fits(depth, available_mib())
        for precision in PRECISIONS:
            ways = {way: spec(depth, precision, checkpointing=way, batch=batch) for way in (False, True)}
            found = {way: [alone(of, plan.steps) for _ in range(plan.times)] for way, of in ways.items()}
            glibc = platform.libc_ver()[0] == "glibc"
            own = {way: alone(of, plan.steps, own_pages=True) for way, of in ways.items()} if glibc else {}
            kept(depth, precision, batch, found, own)


if __name__ == "__main__":
    main()
