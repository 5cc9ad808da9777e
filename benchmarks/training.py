"""A training step of ResNet-20 and -56, and the augmentation alone.

    python benchmarks/training.py [--only step|augmentation] [--pairs 12]

The reference is `plain_cifar`: the loop of a textbook. Ours is the engine of a study, `train.torch_loop`, as a worker
runs it: what it counts, looks at and keeps is in it. Images are made up; the time does not depend on them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from pairs import Contender, measured
from plain_cifar import Training, batch_of

from depthscope.execute.pages import keep_pages
from depthscope.study.run import RunSpec
from depthscope.train.augment import Windows
from depthscope.train.build import Context
from depthscope.train.state import Standing
from depthscope.train.torch_loop import run

NUM, STEPS = 5000, 2


def images() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return (
        torch.randint(0, 256, (NUM, 32, 32, 3), dtype=torch.uint8, generator=draw),
        torch.randint(0, 10, (NUM,), generator=draw),
    )


def spec(depth: int, precision: str, *, measures: tuple[str, ...] = ()) -> RunSpec:
    return RunSpec.model_validate(
        {
            "backend": "torch",
            "precision": precision,
            "family": "cifar_resnet",
            "depth": depth,
            "width": 16,
            "shortcut": "A",
            "norm": "batch",
            "activation": "relu",
            "init": "he_fan_in",
            "data": "images",
            "data_options": {"num_train": NUM, "num_test": 0, "image_size": 32},
            "augment": "crop_flip",
            "padding": 4,
            "batch_size": 128,
            "optimizer": "sgd",
            "optimizer_options": {"momentum": 0.9, "weight_decay": 1e-4},
            "epochs": 100,
            "measures": measures,
        }
    )


def plain(depth: int, steps: int) -> Callable[[], None]:
    """The textbook's steps."""
    torch.set_num_threads(1)
    training = Training(*images(), depth=depth)

    def work() -> None:
        for _ in range(steps):
            training.step()

    return work


def ours(depth: int, precision: str, steps: int) -> Callable[[], None]:
    """The engine's steps, as its worker runs them."""
    keep_pages()
    standing = Standing()
    events = run([spec(depth, precision)], Context(device="cpu"), {}, standing)

    def work() -> None:
        begin = standing.step
        while standing.step < begin + steps:
            next(events)

    return work


def one_by_one() -> Callable[[], None]:
    """A batch as the loader of a textbook gives it."""
    torch.set_num_threads(1)
    x, _ = images()
    draw = torch.Generator().manual_seed(0)

    def work() -> None:
        for _ in range(4):
            batch_of(x, torch.randint(0, NUM, (128,), generator=draw), 4, draw)

    return work


def windows(flipped: float = 0.5) -> Callable[[], None]:
    """A batch as ours gives it."""
    keep_pages()
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(0)
    made = Windows(torch.randn(NUM, 3, 40, 40, generator=draw), 32, 32)

    def work() -> None:
        for _ in range(40):
            chosen = torch.randint(0, NUM, (128,), generator=draw)
            dy, dx = torch.randint(0, 9, (2, 128), generator=draw)
            made.take(chosen, dy, dx, torch.rand(128, generator=draw) < flipped)

    return work


def copies() -> Callable[[], None]:
    """As many whole images of 32x32 copied as they lie, which is the least that a batch of chosen ones takes."""
    keep_pages()
    draw = torch.Generator().manual_seed(0)
    images_NCHW = torch.randn(NUM, 3, 32, 32, generator=draw).numpy()

    def work() -> None:
        for _ in range(40):
            images_NCHW[torch.randint(0, NUM, (128,), generator=draw).numpy()]

    return work


def shares_of_windows(turns: int) -> dict[str, float | str]:
    """What the time of `windows` goes to: NumPy copies behind an index, which no profiler sees."""
    with Contender(windows) as all_of_it, Contender(partial(windows, 0.0)) as unflipped, Contender(copies) as copied:
        spent = [(each.turn(), unflipped.turn(), copied.turn()) for each in [all_of_it] * (2 + turns)][2:]
    whole, straight, least = (statistics.median(each) for each in zip(*spent, strict=True))
    return {
        "of its time, mirroring, %": round(100 * (1 - straight / whole)),
        "copying windows, %": round(100 * straight / whole),
        "of which copying as many whole images takes, %": round(100 * least / whole),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("step", "augmentation"))
    parser.add_argument("--pairs", type=int, default=12)
    asked = parser.parse_args()
    if asked.only != "step":
        measured(
            "augmentation",
            "crops and flips of 128 images of 32x32, against one image at a time",
            one_by_one,
            windows,
            want=20,
            pairs=asked.pairs,
            work=4 / 40,
            each=40,
            facts=shares_of_windows(asked.pairs),
            profiled=False,
        )
    if asked.only == "augmentation":
        return
    wants: Any = {"bfloat16": 2.5, "float32": 1.5}
    for depth in (20, 56):
        for precision, want in wants.items():
            measured(
                f"step-{depth}-{precision}",
                f"a training step of ResNet-{depth}, batch 128, {precision}",
                partial(plain, depth, STEPS),
                partial(ours, depth, precision, STEPS),
                want=want,
                pairs=asked.pairs,
                each=STEPS,
            )


if __name__ == "__main__":
    main()
