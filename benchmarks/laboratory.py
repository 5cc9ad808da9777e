"""The spiral, ten seeds on one core: the laboratory's engine against a textbook's loop, layer by layer, seed by seed.

    python benchmarks/laboratory.py [--pairs 12]

The reference computes in float64, as a textbook does; ours in the precision of the bundled study, float32.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from pairs import measured
from plain_spiral import PlainStack

from depthscope.data.synthetic import spiral
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.numpy_loop import EVERY, run
from depthscope.train.state import Standing

SEEDS = 10
STEPS = 2 * EVERY
"""Of a turn: the engine tells where it stands every `EVERY` updates."""


def spec(depth: int, shortcut: str, seed: int) -> RunSpec:
    return RunSpec.model_validate(
        {
            "backend": "numpy",
            "family": "mlp",
            "activation": "tanh",
            "depth": depth,
            "width": 16,
            "shortcut": shortcut,
            "init": "gaussian",
            "gain": 0.72,
            "data": "spiral",
            "optimizer": "adam",
            "lr": 1e-3,
            "steps": 1_000_000,
            "seed": seed,
        }
    )


def plain(depth: int, shortcut: str) -> Callable[[], None]:
    """The textbook's steps, one seed after another."""
    splits = [spiral(seed).train for seed in range(SEEDS)]
    stacks = [
        PlainStack(split.x, split.y, depth=depth, width=16, residual=shortcut != "none", seed=seed)
        for seed, split in enumerate(splits)
    ]

    def work() -> None:
        for stack in stacks:
            for _ in range(STEPS):
                stack.step()

    return work


def ours(depth: int, shortcut: str) -> Callable[[], None]:
    """The engine's steps, all seeds side by side, as its worker runs them."""
    standing = Standing()
    events = run([spec(depth, shortcut, seed) for seed in range(SEEDS)], Context(device="cpu"), {}, standing)

    def work() -> None:
        begin = standing.step
        while standing.step < begin + STEPS:
            next(events)

    return work


def main(pairs: int) -> None:
    for depth, shortcut in ((8, "identity"), (48, "none"), (48, "identity")):
        kind = "residual" if shortcut == "identity" else "plain"
        measured(
            f"spiral-{depth}-{kind}",
            f"{STEPS} full-batch steps of {SEEDS} seeds, {kind} depth {depth}, width 16, 150 points",
            partial(plain, depth, shortcut),
            partial(ours, depth, shortcut),
            want=4,
            pairs=pairs,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=12)
    main(parser.parse_args().pairs)
