"""What the CUDA path does, in one table: steps, memory, augmentation, CUDA graphs, several runs a GPU.

    python benchmarks/gpu.py [--seconds 420] [--out FOLDER] [--rehearse]

Each row tells images a second and, of the plain reference on the same GPU (`plain_cifar`, with torch's own settings:
float32, channels first, one image after another through the augmentation on the CPU), how many times as fast that is;
and the memory that torch held of the GPU at most. Rows with graphs also tell whether the losses of their steps are, bit
for bit, those of the same steps without. Images are made up. What does not fit into the seconds is left out, and said;
what fails is said, and the rest goes on. `--rehearse` goes the same way on the CPU, small and without graphs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import studies
import torch
import training
from gpu_table import Row, Table, free, peak_mib, wait
from plain_cifar import Training, batch_of

from depthscope.study.run import RunSpec
from depthscope.train.augment import Windows
from depthscope.train.build import Context
from depthscope.train.exact import exact
from depthscope.train.state import Standing
from depthscope.train.torch_loop import Run

BATCH = 128


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is measured.

    Attributes:
        device: cuda or cpu.
        depths: of the networks.
        precisions: of the engine's steps.
        warm: steps before the first that is timed.
        rounds: how often a rate is measured.
        round_s: seconds of a round, which has a step at least.
        graphs: whether CUDA graphs are there.
        checked: steps whose bits are compared; they go past the end of an epoch, whose last batch is smaller.
        workers: runs at a time, ascending.
        study: the study that they train.
    """

    device: str
    depths: tuple[int, ...]
    precisions: tuple[str, ...]
    warm: int
    rounds: int
    round_s: float
    graphs: bool
    checked: int
    workers: tuple[int, ...]
    study: str


def gpu(*, bfloat16: bool) -> Scale:
    """All of it. A study has six runs: more workers than that find nothing to do."""
    return Scale(
        device="cuda",
        depths=(20, 56),
        precisions=("float32", "bfloat16") if bfloat16 else ("float32",),
        warm=10,
        rounds=5,
        round_s=1.5,
        graphs=True,
        checked=7,
        workers=(1, 2, 3, 6),
        # Long enough that the start of the processes, each with a CUDA context of its own, does not count.
        study=_changed(studies.SWEEP, {"epochs = 1": "epochs = 30"} | ({} if bfloat16 else {"bfloat16": "float32"})),
    )


def _changed(text: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


REHEARSAL = Scale(
    device="cpu",
    depths=(8,),
    precisions=("float32", "bfloat16"),
    warm=1,
    rounds=1,
    round_s=0.0,
    graphs=False,
    checked=1,
    workers=(1,),
    study=_changed(
        studies.SWEEP, {"width = 16": "width = 4", f"num_train = {128 * studies.SWEEP_STEPS}": "num_train = 128"}
    ),
)


def rate(work: Callable[[], object], scale: Scale, num: int) -> float:
    """Images a second, the median of the rounds, of work on `num` images."""
    for _ in range(scale.warm):
        work()
    found = []
    for _ in range(scale.rounds):
        wait(scale.device)
        began, done = time.perf_counter(), 0
        while not done or time.perf_counter() - began < scale.round_s:
            work()
            done += 1
        wait(scale.device)
        found.append(num * done / (time.perf_counter() - began))
    return statistics.median(found)


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
    """A run of the engine, step by step, with the losses of its steps. `exact` is for the caller to enter."""

    def __init__(self, scale: Scale, depth: int, precision: str, *, graphs: bool, num: int = 40 * BATCH) -> None:
        changed = {"data_options": {"num_train": num, "num_test": 0, "image_size": 32}, "epochs": 500, "lr": 0.01}
        spec = RunSpec.model_validate(training.spec(depth, precision).model_dump() | changed)
        self.standing = Standing()
        self.run = Run(spec, Context(device=scale.device, graphs=graphs), None, self.standing)
        self._losses: list[torch.Tensor] = []
        passes = self.run.passes

        def heard(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
            found = passes(x, y)
            self._losses.append(found[0])  # which stays on the device: nothing waits for it
            return found

        self.run.passes = heard
        self.events = self.run.events()

    def step(self) -> None:
        begin = self.standing.step
        while self.standing.step == begin:
            next(self.events)

    def losses(self) -> list[float]:
        """Of all steps so far."""
        return [loss.item() for loss in self._losses]


def steps(scale: Scale, table: Table) -> None:
    """Training steps without graphs: the reference, then ours in each precision."""
    for depth in scale.depths:

        def plain(depth: int = depth) -> Row:
            found = rate(Moved(scale.device, depth).step, scale, BATCH)
            return Row(what=_plain(depth), images_s=found, times=1.0, peak_mib=peak_mib(scale.device))

        table.add(_plain(depth), plain)
        for precision in scale.precisions:
            _engine(scale, table, depth, precision, graphs=False)


def graphs(scale: Scale, table: Table) -> None:
    """The steps again, recorded. Last of all: a recording that fails may leave the device unusable to this process."""
    for depth in scale.depths:
        for precision in scale.precisions:
            _engine(scale, table, depth, precision, graphs=True)


def _plain(depth: int) -> str:
    return f"ResNet-{depth}: plain reference"


def _engine(scale: Scale, table: Table, depth: int, precision: str, *, graphs: bool) -> None:
    def make() -> Row:
        with exact(1):
            same = same_bits(scale, depth, precision) if graphs else None
            free()
            found = rate(Engine(scale, depth, precision, graphs=graphs).step, scale, BATCH)
        beside = next((row.images_s for row in table.rows if row.what == _plain(depth)), None)
        times = found / beside if beside else None
        return Row(what=what, images_s=found, times=times, peak_mib=peak_mib(scale.device), same_bits=same)

    what = f"ResNet-{depth}: {precision}" + (", graphs" if graphs else "")
    table.add(what, make)


def same_bits(scale: Scale, depth: int, precision: str) -> bool:
    """Whether steps with graphs have the losses of those without."""
    found = []
    for graphs in (False, True):
        engine = Engine(scale, depth, precision, graphs=graphs, num=2 * BATCH + BATCH // 2)
        for _ in range(scale.checked):
            engine.step()
        found.append(engine.losses())
    # As text: a loss that is no number is itself, too.
    return [each.hex() for each in found[0]] == [each.hex() for each in found[1]]


def augmentation(scale: Scale, table: Table) -> None:
    images, _ = training.images()
    draw = torch.Generator().manual_seed(0)
    chosen = torch.randint(0, len(images), (BATCH,), generator=draw)
    names = "augmentation: one image at a time on the CPU", "augmentation: batches on the device"

    def one_by_one() -> Row:
        found = rate(lambda: batch_of(images, chosen, 4, draw).to(scale.device), scale, BATCH)
        return Row(what=names[0], images_s=found, times=1.0)

    plain = table.add(names[0], one_by_one)

    def batches() -> Row:
        windows = Windows(torch.randn(len(images), 3, 40, 40, generator=draw).to(scale.device), 32, 32)
        dy, dx = torch.randint(0, 9, (2, BATCH), generator=draw).to(scale.device)
        flip = (torch.rand(BATCH, generator=draw) < 0.5).to(scale.device)
        there = chosen.to(scale.device)
        found = rate(lambda: windows.take(there, dy, dx, flip), scale, BATCH)
        return Row(what=names[1], images_s=found, times=found / plain.images_s if plain else None)

    table.add(names[1], batches)


def several(scale: Scale, table: Table) -> None:
    """Studies of six runs by so many processes that share the device, from the first run to the last."""
    specs = studies.runs_of(scale.study)
    num = sum(int(str(spec.data_options["num_train"])) * (spec.epochs or 0) for spec in specs)
    need_s = 60.0 if scale.device == "cuda" else 0.0
    alone: float | None = None
    for workers in scale.workers:
        what = f"a study, {workers} runs at a time, {specs[0].precision}"

        def make(workers: int = workers, what: str = what, alone: float | None = alone) -> Row:
            speed = num / studies.study(scale.study, device=scale.device, workers=workers).runs
            times = 1.0 if workers == 1 else speed / alone if alone else None
            return Row(what=what, images_s=speed, times=times)

        began = time.perf_counter()
        row = table.add(what, make, need_s=need_s)
        if row and workers == 1:
            alone, need_s = row.images_s, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--out", type=Path, help="folder for gpu.json, the same in numbers")
    parser.add_argument("--rehearse", action="store_true")
    asked = parser.parse_args()
    if not asked.rehearse and not torch.cuda.is_available():
        print("gpu: no CUDA device here; wanted one (torch.cuda.is_available()).", file=sys.stderr)
        raise SystemExit(2)
    began = time.perf_counter()
    if asked.rehearse:
        scale, name = REHEARSAL, "CPU, a rehearsal"
    else:
        # Emulated it would be there, and slow: nothing is learned of it.
        scale = gpu(bfloat16=torch.cuda.is_bf16_supported(including_emulation=False))
        name = torch.cuda.get_device_name()
    table = Table(device=name, out=asked.out and asked.out / "gpu.json", until=began + asked.seconds)
    for part in (augmentation, steps, several, *([graphs] if scale.graphs else [])):
        part(scale, table)
    table.write()
    print(f"\n{name}, torch {torch.__version__}, {time.perf_counter() - began:.0f} s")
    if "bfloat16" not in scale.precisions:
        print("no bfloat16: this GPU does not have it")
    if table.left_out:
        print(f"left out, for want of time: {'; '.join(table.left_out)}")
    for each in table.failed:
        print(f"FAILED {each}")
    if table.failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
