"""The calibrated spiral, in small: what the whole study rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from depthscope.lab import Adam, Momentum, Optimizer, Stack, StopRule, fit, init_params

STOP = StopRule(loss=0.01, accuracy=1.0, checks=3, every=20)


def accuracies(
    stack: Stack, num_seeds: int, spiral: Any, optimizer: Optimizer, lr: float, num_steps: int, **draw: Any
) -> list[float]:
    seeds = range(num_seeds)
    x, y = spiral(seeds)
    params = init_params(stack, seeds, dtype=np.float32, **draw)
    found: dict[int, float] = {}
    for report in fit(stack, params, x, y, optimizer=optimizer, lr=lambda step: lr, num_steps=num_steps, stop=STOP):
        rows = {member: row for row, member in enumerate(report.members)}
        found |= {left.member: float(report.accuracy[rows[left.member]]) for left in report.departures}
    return [found[member] for member in range(num_seeds)]


@pytest.mark.parametrize("shortcut", ["identity", "identity_2"])
@pytest.mark.parametrize("depth", [8, 48])
def test_residual_learns_at_any_depth(depth: int, shortcut: str, spiral: Any) -> None:
    stack = Stack(depth=depth, width=16, num_inputs=2, num_classes=3, shortcut=shortcut)  # type: ignore[arg-type]
    assert accuracies(stack, 10, spiral, Adam(), 1e-3, 1500, gain=0.72) == [1.0] * 10


def test_plain_learns_at_8_and_not_at_48(spiral: Any) -> None:
    shallow, deep = (Stack(depth=depth, width=16, num_inputs=2, num_classes=3) for depth in (8, 48))
    assert np.median(accuracies(shallow, 10, spiral, Adam(), 1e-3, 1500, gain=0.72)) == 1.0
    assert np.median(accuracies(deep, 5, spiral, Adam(), 1e-3, 400, gain=0.72)) <= 0.55


def test_an_orthogonal_plain_net_learns_at_48(spiral: Any) -> None:
    stack = Stack(depth=48, width=16, num_inputs=2, num_classes=3)
    found = accuracies(stack, 3, spiral, Adam(), 5e-4, 800, init="orthogonal", gain=1.0)
    assert found == [1.0] * 3


def test_batch_norm_does_not_save_the_plain_net(spiral: Any) -> None:
    def run(shortcut: str) -> list[float]:
        stack = Stack(
            depth=48,
            width=16,
            num_inputs=2,
            num_classes=3,
            activation="relu",
            norm="batch",
            shortcut=shortcut,  # type: ignore[arg-type]
        )
        return accuracies(stack, 3, spiral, Momentum(), 0.01, 250, gain=2**0.5)

    assert run("identity_2") == [1.0] * 3
    assert np.median(run("none")) < 0.9
