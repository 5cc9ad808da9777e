"""Group training: the same bits alone and in a group, watched or not, whoever leaves when."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab import (
    Adam,
    Departure,
    Momentum,
    Optimizer,
    Report,
    Stack,
    StopRule,
    evaluate,
    fit,
    init_params,
    profile,
)

Array = NDArray[Any]
Ends = dict[int, tuple[Departure, float, float, dict[str, Array]]]
"""By seed: how it left, its loss and accuracy then, its parameters then."""


def train(
    stack: Stack,
    seeds: Sequence[int],
    spiral: Any,
    *,
    optimizer: Optimizer | None = None,
    lr: float = 2e-3,
    num_steps: int = 30,
    points: int = 50,
    measured: Collection[int] = (),
    gain: float = 0.72,
    **settings: Any,
) -> tuple[Ends, list[Report]]:
    x, y = spiral(seeds, points)
    params = init_params(stack, seeds, gain=gain, dtype=np.float32)
    ends: Ends = {}
    reports = []
    for report in fit(
        stack,
        params,
        x,
        y,
        optimizer=optimizer or Adam(),
        lr=lambda step: lr,
        num_steps=num_steps,
        at=measured,
        **settings,
    ):
        reports.append(report)
        rows = list(report.members)
        if report.step in measured:
            profile(stack, report.params, x[rows], y[rows], report.step)
        for left in report.departures:
            row = rows.index(left.member)
            own = {name: value[row].copy() for name, value in report.params.items()}
            ends[seeds[left.member]] = (left, report.loss[row], report.accuracy[row], own)
    return ends, reports


def assert_same_bits(one: Ends, other: Ends, seeds: Sequence[int]) -> None:
    for seed in seeds:
        a, b = one[seed], other[seed]
        assert (a[0].step, a[0].reason) == (b[0].step, b[0].reason)
        assert a[1:3] == b[1:3]
        for name, value in a[3].items():
            assert value.tobytes() == b[3][name].tobytes(), (seed, name)


TEN = tuple(range(10))
ADAM, SGD = Adam(), Momentum()


@pytest.mark.parametrize("width", [8, 16, 32, 48])
@pytest.mark.parametrize(
    ("shape", "optimizer"),
    [
        ({}, ADAM),
        ({"shortcut": "identity", "activation": "relu", "norm": "batch"}, SGD),
        ({"shortcut": "identity_2"}, ADAM),
        ({"shortcut": "identity_2", "activation": "relu", "norm": "batch"}, ADAM),
    ],
    ids=["plain", "identity_bn", "identity_2", "two_bn"],
)
def test_alone_equals_in_a_group(width: int, shape: dict[str, Any], optimizer: Optimizer, spiral: Any) -> None:
    stack = Stack(depth=4, width=width, num_inputs=2, num_classes=3, **shape)
    group, _ = train(stack, TEN, spiral, optimizer=optimizer)
    for seed in (0, 3, 9):
        assert_same_bits(group, train(stack, [seed], spiral, optimizer=optimizer)[0], [seed])


@pytest.mark.parametrize("points", [1, 2, 5, 17, 233])
def test_alone_equals_in_a_group_at_odd_sizes(points: int, spiral: Any) -> None:
    stack = Stack(depth=2, width=11, num_inputs=2, num_classes=3, activation="relu", norm="batch")
    group, _ = train(stack, TEN, spiral, points=points, num_steps=12)
    for seed in TEN:
        assert_same_bits(group, train(stack, [seed], spiral, points=points, num_steps=12)[0], [seed])


def test_alone_equals_in_a_group_that_others_leave(spiral: Any) -> None:
    stack = Stack(depth=6, width=16, num_inputs=2, num_classes=3)
    settings: dict[str, Any] = {
        "num_steps": 400,
        "lr": 4e-3,
        "stop": StopRule(loss=0.2, accuracy=0.95, checks=2, every=5),
    }
    group, reports = train(stack, TEN, spiral, **settings)
    assert len({end[0].step for end in group.values()}) > 3, "the trial is worth something only where seeds leave apart"
    assert {len(report.members) for report in reports} >= {10, 1}
    for seed in TEN:
        assert_same_bits(group, train(stack, [seed], spiral, **settings)[0], [seed])
    assert_same_bits(group, train(stack, (9, 4, 7), spiral, **settings)[0], (9, 4, 7))


def test_watching_changes_nothing(spiral: Any) -> None:
    stack = Stack(depth=4, width=16, num_inputs=2, num_classes=3, shortcut="identity")
    stop = StopRule(loss=0.3, accuracy=0.9, checks=2, every=7)
    bare, few = train(stack, TEN, spiral, num_steps=120, stop=stop, every=1000)
    watched, many = train(stack, TEN, spiral, num_steps=120, stop=stop, every=3, measured=(0, 1, 2, 4, 8, 16, 32, 64))
    assert len(many) > len(few)
    assert_same_bits(bare, watched, TEN)


def test_twice_the_same(spiral: Any) -> None:
    stack = Stack(depth=3, width=16, num_inputs=2, num_classes=3)
    assert_same_bits(train(stack, TEN, spiral)[0], train(stack, TEN, spiral)[0], TEN)


def test_the_start_is_not_changed_and_reports_are_read_only(spiral: Any) -> None:
    stack = Stack(depth=2, width=8, num_inputs=2, num_classes=3)
    x, y = spiral([0, 1])
    params = init_params(stack, [0, 1], dtype=np.float32)
    before = {name: value.copy() for name, value in params.items()}
    reports = fit(stack, params, x, y, optimizer=Adam(), lr=lambda step: 0.01, num_steps=5)
    report = next(reports)
    with pytest.raises(ValueError, match="read-only"):
        report.params["head.bias"][0] = 1.0
    list(reports)
    for name, value in before.items():
        np.testing.assert_array_equal(params[name], value)


def test_reports_agree_with_evaluate(spiral: Any) -> None:
    stack = Stack(depth=2, width=8, num_inputs=2, num_classes=3)
    x, y = spiral(TEN)
    params = init_params(stack, TEN, dtype=np.float32)
    for report in fit(stack, params, x, y, optimizer=Adam(), lr=lambda step: 0.01, num_steps=20):
        loss, accuracy = evaluate(stack, report.params, x, y)
        np.testing.assert_allclose(report.loss, loss, rtol=1e-5)
        np.testing.assert_allclose(report.accuracy, accuracy, atol=1 / 150)


@pytest.mark.parametrize("optimizer", [Adam(), Momentum()], ids=["adam", "momentum"])
def test_a_diverging_rate_is_an_outcome(optimizer: Optimizer, spiral: Any) -> None:
    stack = Stack(depth=8, width=16, num_inputs=2, num_classes=3, shortcut="identity_2")
    ends, reports = train(stack, TEN, spiral, optimizer=optimizer, lr=1000.0, num_steps=50)
    assert {end[0].reason for end in ends.values()} == {"diverged"}
    assert reports[-1].step < 50


def test_one_diverges_and_the_others_go_on(spiral: Any) -> None:
    stack = Stack(depth=3, width=16, num_inputs=2, num_classes=3)
    x, y = spiral(TEN)

    def run(rows: list[int], spoilt: int | None) -> dict[int, tuple[Departure, Array]]:
        params = init_params(stack, rows, dtype=np.float32)
        if spoilt is not None:
            params["head.weight"][spoilt] = np.inf
        found = {}
        reports = fit(stack, params, x[rows], y[rows], optimizer=Adam(), lr=lambda step: 0.01, num_steps=20, every=50)
        for report in reports:
            for left in report.departures:
                row = report.members.index(left.member)
                found[rows[left.member]] = (left, report.params["head.weight"][row].copy())
        return found

    clean, dirty = run(list(TEN), None), run(list(TEN), 4)
    assert dirty[4][0] == Departure(member=4, step=0, reason="diverged")
    for seed in set(TEN) - {4}:
        assert dirty[seed][0] == Departure(member=seed, step=20, reason="completed")
        assert clean[seed][1].tobytes() == dirty[seed][1].tobytes()


def test_every_seed_leaves_exactly_once(spiral: Any) -> None:
    stack = Stack(depth=4, width=16, num_inputs=2, num_classes=3)
    stop = StopRule(loss=0.5, accuracy=0.8, checks=1, every=1)
    ends, reports = train(stack, TEN, spiral, num_steps=60, lr=5e-3, stop=stop)
    left = [one.member for report in reports for one in report.departures]
    assert sorted(left) == list(TEN)
    for report in reports:
        rows = {one.member for one in report.departures}
        passed = (report.loss <= 0.5) & (report.accuracy >= 0.8)
        assert {m for m, ok in zip(report.members, passed, strict=True) if ok} <= rows
    assert {end[0].reason for end in ends.values()} <= {"stopped", "completed"}


def test_bad_input_names_the_fault(spiral: Any) -> None:
    stack = Stack(depth=2, width=8, num_inputs=2, num_classes=3)
    x, y = spiral([0, 1])
    params = init_params(stack, [0, 1])

    def start(**changes: Any) -> Report:
        settings: dict[str, Any] = {"optimizer": Adam(), "lr": [0.1, 0.1], "num_steps": 2, **changes}
        return next(fit(stack, settings.pop("params", params), x, y, **settings))

    assert start().step == 0
    with pytest.raises(UserError, match="lr: wanted 3 values, one a step, got 2"):
        start(num_steps=3)
    with pytest.raises(UserError, match=r"params\['head.bias'\]: wanted shape \(2, 3\), got nothing"):
        start(params={name: value for name, value in params.items() if name != "head.bias"})
    with pytest.raises(UserError, match="every"):
        start(every=0)
    with pytest.raises(UserError, match="stop rule"):
        StopRule(loss=0.1, checks=0)
