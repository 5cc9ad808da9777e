"""Whole studies on two cores, against the plain loops of the same networks, one after another. By the clock.

    python benchmarks/studies.py [--only sweep|quick] [--pairs 2] [--full]

`sweep` trains six networks for some steps on images that are made up. `quick` is a sample of `depthscope run cifar10
--size quick`: one seed of three. What a study pays once, from the command to its first run and from its last run to the
end of its page, counts by that share; the facts tell what was measured before that. `--full` does the whole study
instead, once (half an hour). Ours runs in two processes of one
thread each, as `depthscope run` does. The reference of `sweep` has torch's two threads, as a textbook's loop does; that
of `quick` has one thread, and two for comparison: on its small images the second one is of little use.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pairs import kept
from plain_cifar import Training

import depthscope
from depthscope import api
from depthscope.study.run import RunSpec
from depthscope.study.toml import read_source
from depthscope.train import torch_loop
from depthscope.train.build import Context, load_data
from depthscope.train.measures import Measures
from depthscope.train.state import Standing

CORES = 2
SWEEP_STEPS = 24
SEEDS = 1, 3
"""Of the sample, and of the study."""

SWEEP = f"""
name = "sweep"
title = {{ en = "Six networks" }}
seeds = 1
[base]
backend = "torch"
precision = "bfloat16"
family = "cifar_resnet"
width = 16
norm = "batch"
activation = "relu"
init = "he_fan_in"
data = "images"
data_options = {{ num_train = {128 * SWEEP_STEPS}, num_test = 0, image_size = 32 }}
augment = "crop_flip"
padding = 4
batch_size = 128
optimizer = "sgd"
optimizer_options = {{ momentum = 0.9, weight_decay = 1e-4 }}
lr = 0.1
epochs = 1
[parts.main]
axes = {{ depth = [8, 14, 20] }}
arms = [{{ name = "plain", set = {{ shortcut = "none" }} }}, {{ name = "A", set = {{ shortcut = "A" }} }}]
"""


@dataclass(frozen=True, kw_only=True)
class Took:
    """Seconds of the clock: from the command to the first run, of all runs, and from the last run to the end."""

    begin: float
    runs: float
    end: float

    def counted(self, share: float) -> float:
        """With what is paid once by the share of the study that was run."""
        return (self.begin + self.end) * share + self.runs


class Stopwatch:
    """When the first run began and the last one ended."""

    def __init__(self) -> None:
        self.first = self.last = 0.0

    def hear(self, event: api.News) -> None:
        self.first = self.first or time.perf_counter()
        if isinstance(event, api.Ended):
            self.last = time.perf_counter()


def study(
    text: str,
    *,
    size: str | None = None,
    seeds: int | None = None,
    data: str | None = None,
    device: str = "cpu",
    workers: int = CORES,
) -> Took:
    """A whole study in a folder of its own, its page included."""
    heard = Stopwatch()
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "study.toml").write_text(text, encoding="utf-8")
        began = time.perf_counter()
        depthscope.run(
            Path(scratch) / "study.toml",
            out=Path(scratch) / "out",
            size=size,
            seeds=seeds,
            data=data,
            device=device,
            workers=workers,
            watcher=api.Watcher(on_event=heard.hear),
        )
        ended = time.perf_counter()
    return Took(begin=heard.first - began, runs=heard.last - heard.first, end=ended - heard.last)


def runs_of(text: str, *, size: str | None = None, seeds: int | None = None) -> list[RunSpec]:
    """What a study would run."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "study.toml"
        path.write_text(text, encoding="utf-8")
        return list(api.plan(path, size=size, seeds=seeds).runs.values())


def loops(specs: Sequence[RunSpec], data: str | None, *, threads: int) -> float:
    """The plain loops of these runs, one after another; seconds of the clock, reading the images not counted."""
    torch.set_num_threads(threads)
    spent = 0.0
    for spec in specs:
        loaded = load_data(spec, Context(device="cpu", data_root=Path(data) if data else None))
        x, y = _bytes(loaded.train.x), torch.from_numpy(loaded.train.y)
        test = (_bytes(loaded.test.x), torch.from_numpy(loaded.test.y)) if loaded.test is not None else None
        steps = (spec.epochs or 0) * -(-len(y) // (spec.batch_size or len(y)))
        began = time.perf_counter()
        training = Training(
            x,
            y,
            depth=spec.depth,
            width=spec.width,
            residual=spec.shortcut != "none",
            padding=spec.padding,
            batch_size=spec.batch_size or len(y),
        )
        for _ in range(steps):
            training.step()
        training.evaluate(x, y)
        if test is not None:
            training.evaluate(*test)
        spent += time.perf_counter() - began
    return spent


def parts_of(specs: Sequence[RunSpec], data: str | None) -> dict[str, float]:
    """Shares of the processor's time of these runs in one process: updates, measuring layers in float64, judging."""
    torch.set_num_threads(1)
    parts = {
        "updates, %": (torch_loop.Run, "_update"),
        "measuring layers, %": (Measures, "profile"),
        "judging, %": (torch_loop, "clean_pass"),
    }
    spent = dict.fromkeys(parts, 0.0)
    context = Context(device="cpu", data_root=Path(data) if data else None)
    with contextlib.ExitStack() as stack:
        for name, (place, function) in parts.items():
            stack.enter_context(_timed(place, function, spent, name))
        began = time.process_time()
        for spec in specs:
            for _ in torch_loop.run([spec], context, {}, Standing()):
                pass
        whole = time.process_time() - began
    return {name: round(100 * each / whole, 1) for name, each in spent.items()}


@contextlib.contextmanager
def _timed(place: Any, name: str, spent: dict[str, float], part: str) -> Iterator[None]:
    """Inside, the time that a function takes is added to a part's."""
    plain = getattr(place, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.process_time()
        try:
            return plain(*args, **kwargs)
        finally:
            spent[part] += time.process_time() - began

    setattr(place, name, timed)
    try:
        yield
    finally:
        setattr(place, name, plain)


def _bytes(x_NCHW: Any) -> torch.Tensor:
    """Images as files hold them: [N, H, W, C], bytes. What they show does not change the time."""
    x = torch.from_numpy(x_NCHW).permute(0, 2, 3, 1)
    return x.contiguous() if x.dtype == torch.uint8 else torch.zeros(x.shape, dtype=torch.uint8)


def sweep(pairs: int) -> None:
    """Six networks at full width."""
    specs = runs_of(SWEEP)
    took = [(loops(specs, None, threads=CORES), study(SWEEP)) for _ in range(pairs)]
    kept(
        "sweep",
        f"six networks of 8 to 20 layers, {SWEEP_STEPS} steps each in bfloat16 and judged, on two cores: two processes "
        "of one thread, against the plain loop on two threads; the start of the processes and the page not counted",
        [(reference, ours.runs) for reference, ours in took],
        want=2.7,
        clock="wall",
        facts={
            "start, s": round(max(ours.begin for _, ours in took), 2),
            "page, s": round(max(ours.end for _, ours in took), 2),
            **parts_of(specs, None),
        },
    )


def quick(pairs: int, data: str | None, *, full: bool) -> None:
    """The quick study on CIFAR-10, or a sample of it."""
    seeds = SEEDS[1] if full else SEEDS[0]
    share = seeds / SEEDS[1]
    text = read_source("cifar10")[1]
    specs = runs_of(text, size="quick", seeds=seeds)
    took = []
    for _ in range(1 if full else pairs):
        one, two = (loops(specs, data, threads=threads) for threads in (1, CORES))
        took.append((one, two, study(text, size="quick", seeds=seeds, data=data)))
    sample = "" if full else f", a sample: {seeds} seed of {SEEDS[1]}"
    kept(
        "quick-full" if full else "quick",
        f"`run cifar10 --size quick` on two cores, against the plain loops one after another on one{sample}",
        [(one, ours.counted(share)) for one, _, ours in took],
        want=3.5,
        clock="wall",
        facts={
            "runs": len(specs),
            "start, s": round(max(ours.begin for *_, ours in took), 2),
            "page, s": round(max(ours.end for *_, ours in took), 2),
            "ratio against plain loops on two threads": round(
                statistics.median(two / ours.counted(share) for _, two, ours in took), 2
            ),
            **parts_of([spec for spec in specs if spec.shortcut == "none"], data),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("sweep", "quick"))
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="the whole quick study, once")
    parser.add_argument("--data", help="folder that holds CIFAR-10")
    asked = parser.parse_args()
    if asked.only != "quick":
        sweep(asked.pairs)
    if asked.only != "sweep":
        quick(asked.pairs, asked.data, full=asked.full)


if __name__ == "__main__":
    main()
