"""What the CUDA path does, in one table: steps, memory, augmentation, CUDA graphs, several runs a GPU.

    python benchmarks/gpu.py [--seconds 420] [--out FOLDER] [--rehearse]

Each row tells images a second and, of the plain reference on the same GPU (`plain_cifar`: float32, channels first, one
image after another through the augmentation on the CPU), how many times as fast that is. Rows with graphs also tell
whether the losses of their steps are, bit for bit, those of the same steps without. Images are made up. What does not
fit into the seconds is left out, and said. `--rehearse` goes the same way on the CPU, small and without graphs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import studies
import torch
import training
from plain_cifar import Training, batch_of

from depthscope.record.events import SafePoint
from depthscope.train.augment import Windows
from depthscope.train.build import Context
from depthscope.train.state import Standing
from depthscope.train.torch_loop import Run


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table; see the module."""

    what: str
    images_s: float
    times: float | None = None
    peak_mib: float | None = None
    same_bits: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is measured."""

    device: str
    depths: tuple[int, ...]
    warm: int
    steps: int
    rounds: int
    graphs: bool
    workers: tuple[int, ...]


GPU = Scale(device="cuda", depths=(20, 56), warm=10, steps=40, rounds=5, graphs=True, workers=(1, 2, 4, 8))
REHEARSAL = Scale(device="cpu", depths=(8,), warm=1, steps=1, rounds=1, graphs=False, workers=(1,))
BATCH = 128


def wait(device: str) -> None:
    """Until the device has done what it was told."""
    if device == "cuda":
        torch.cuda.synchronize()


def rate(work: Callable[[], object], scale: Scale, num: int) -> tuple[float, float | None]:
    """(images a second, the median of the rounds; peak MiB on the device) of work on `num` images."""
    for _ in range(scale.warm):
        work()
    wait(scale.device)
    if scale.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    found = []
    for _ in range(scale.rounds):
        began = time.perf_counter()
        for _ in range(scale.steps):
            work()
        wait(scale.device)
        found.append(num * scale.steps / (time.perf_counter() - began))
    peak = torch.cuda.max_memory_allocated() / 2**20 if scale.device == "cuda" else None
    return statistics.median(found), peak


class Moved(Training):
    """The textbook's loop with its batches sent to the device."""

    def __init__(self, device: str, depth: int) -> None:
        super().__init__(*training.images(), depth=depth)
        self.model.to(device)
        self.device = device

    def step(self) -> float:
        chosen = torch.randint(0, len(self.images), (BATCH,), generator=self.generator)
        x = batch_of(self.images, chosen, self.padding, self.generator).to(self.device)
        y = self.labels[chosen].to(self.device)
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()


class Engine:
    """A run of the engine, step by step, with the losses of its steps."""

    def __init__(self, scale: Scale, depth: int, precision: str, graphs: bool) -> None:
        standing = Standing()
        self.run = Run(training.spec(depth, precision), Context(scale.device, graphs=graphs), None, standing)
        self.events = self.run.events()
        self.standing = standing

    def step(self) -> None:
        begin = self.standing.step
        while self.standing.step < begin + 1:
            next(self.events)

    def losses(self) -> list[float]:
        """Of the epoch's steps so far."""
        while not isinstance(next(self.events), SafePoint):
            pass
        return self.run.tally.values()


def steps(scale: Scale) -> list[Row]:
    rows = []
    for depth in scale.depths:
        plain, peak = rate(Moved(scale.device, depth).step, scale, BATCH)
        rows.append(Row(what=f"ResNet-{depth}: plain reference", images_s=plain, times=1.0, peak_mib=peak))
        for precision in ("float32", "bfloat16"):
            first: list[float] = []
            for graphs in (False, True) if scale.graphs else (False,):
                engine = Engine(scale, depth, precision, graphs)
                for _ in range(scale.warm):
                    engine.step()
                losses = engine.losses()[: scale.warm]
                same = losses == first if graphs else None
                first = losses
                found, peak = rate(engine.step, scale, BATCH)
                what = f"ResNet-{depth}: {precision}" + (", graphs" if graphs else "")
                rows.append(Row(what=what, images_s=found, times=found / plain, peak_mib=peak, same_bits=same))
                print_row(rows[-1])
    return rows


def augmentation(scale: Scale) -> list[Row]:
    images, _ = training.images()
    draw = torch.Generator().manual_seed(0)
    chosen = torch.randint(0, len(images), (BATCH,), generator=draw)
    plain, _ = rate(lambda: batch_of(images, chosen, 4, draw).to(scale.device), scale, BATCH)
    windows = Windows(torch.randn(len(images), 3, 40, 40, generator=draw).to(scale.device), 32, 32)
    dy, dx = torch.randint(0, 9, (2, BATCH), generator=draw).to(scale.device)
    flip = (torch.rand(BATCH, generator=draw) < 0.5).to(scale.device)
    there = chosen.to(scale.device)
    found, _ = rate(lambda: windows.take(there, dy, dx, flip), scale, BATCH)
    return [
        Row(what="augmentation: one image at a time on the CPU", images_s=plain, times=1.0),
        Row(what="augmentation: batches on the device", images_s=found, times=found / plain),
    ]


def several(scale: Scale) -> list[Row]:
    """Studies of six runs by so many processes that share the device, from the first run to the last."""
    rows: list[Row] = []
    for workers in scale.workers:
        text = studies.SWEEP if scale.graphs else studies.SWEEP.replace("width = 16", "width = 4")
        specs = studies.runs_of(text)
        num = sum(int(str(spec.data_options["num_train"])) * (spec.epochs or 0) for spec in specs)
        took = studies.study(text, device=scale.device, workers=workers)
        speed = num / took.runs
        times = speed / rows[0].images_s if rows else 1.0
        rows.append(Row(what=f"a study, {workers} runs at a time, bfloat16", images_s=speed, times=times))
        print_row(rows[-1])
    return rows


def print_row(row: Row) -> None:
    times = f"{row.times:8.2f}x" if row.times is not None else " " * 9
    peak = f"{row.peak_mib:9,.0f} MiB" if row.peak_mib is not None else " " * 13
    bits = {None: "", True: "  same bits as without", False: "  OTHER BITS than without"}[row.same_bits]
    print(f"{row.what:48} {row.images_s:12,.0f} images/s {times} {peak}{bits}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--out", type=Path, help="folder for gpu.json, the same in numbers")
    parser.add_argument("--rehearse", action="store_true")
    asked = parser.parse_args()
    if not asked.rehearse and not torch.cuda.is_available():
        print("gpu: no CUDA device here; wanted one (torch.cuda.is_available()).", file=sys.stderr)
        raise SystemExit(2)
    scale, began = REHEARSAL if asked.rehearse else GPU, time.perf_counter()
    name = "CPU, a rehearsal" if asked.rehearse else torch.cuda.get_device_name()
    rows: list[Row] = []
    left_out = []
    for part in (augmentation, steps, several):
        if time.perf_counter() - began > asked.seconds:
            left_out.append(part.__name__)
            continue
        rows += part(scale)
    print(f"\n{name}, torch {torch.__version__}, {time.perf_counter() - began:.0f} s")
    for row in rows:
        print_row(row)
    if left_out:
        print(f"left out, for want of time: {', '.join(left_out)}")
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        held: dict[str, Any] = {"device": name, "torch": torch.__version__, "rows": [asdict(row) for row in rows]}
        (asked.out / "gpu.json").write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
