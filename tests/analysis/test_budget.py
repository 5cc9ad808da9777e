"""Still catching up, or degraded: synthetic curves with known answers, and a slow twin of the rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from depthscope.analysis.budget import Curves, Tail, tail_of
from depthscope.analysis.diagnosis import Side, diagnose, tell_apart
from depthscope.analysis.table import Results
from depthscope.record.schema import TABLES

T = 40
Shape = Callable[[float], float]


def curves(shape: Shape, *, seeds: int = 4, steps: int = T, noise: float = 0.002, **more: Any) -> Curves:
    """One point an epoch of ten updates; every seed has its own level and a little noise."""
    rng = np.random.default_rng(round(1e6 * shape(0.0)))
    losses = {
        seed: {10 * at: shape(at / steps) + 0.1 * seed + noise * rng.standard_normal() for at in range(1, steps + 1)}
        for seed in range(seeds)
    }
    return Curves(losses=losses, **more)


def falling(start: float, slope: float) -> Shape:
    return lambda share: start - slope * share


FLAT = falling(0.3, 0.0)


@pytest.mark.parametrize(
    ("deep", "catching_up", "why_not"),
    [
        (falling(1.3, 0.7), True, None),  # gap .3 at the end, .7 less after another budget
        (falling(1.3, 0.45), False, None),  # gap .55, .45 less: not closed
        (falling(0.9, 0.0), False, None),  # flat: degraded
        (falling(0.9, -0.3), False, None),  # getting worse
        (falling(0.29, 0.0), None, "no_gap"),
    ],
)
def test_a_gap_that_shrinks_fast_enough(deep: Shape, catching_up: bool | None, why_not: str | None) -> None:
    found = tail_of(curves(FLAT), curves(deep))
    assert (found.catching_up, found.why_not) == (catching_up, why_not)
    if why_not is None:
        assert (found.since, found.num_steps) == (300, 400)
        change = (deep(1.0) - deep(0.75)) - (FLAT(1.0) - FLAT(0.75))
        values = [each.value for each in found.evidence]
        assert values == pytest.approx([change, deep(1.0) - deep(0.75), deep(1.0) - 0.3 + 4 * change], abs=0.02)


def test_a_gap_that_closes_because_the_shallow_one_gets_worse_is_no_catching_up() -> None:
    found = tail_of(curves(falling(0.2, -0.5)), curves(falling(0.9, 0.0)))
    shrinks, falls, closes = found.evidence
    assert shrinks.high is not None
    assert shrinks.high < 0
    assert closes.high is not None
    assert closes.high < 0
    assert falls.high is not None
    assert falls.high > 0
    assert found.catching_up is False


def ending(gap: list[float], shallow: list[float], deep: list[float]) -> tuple[Curves, Curves]:
    """Runs of 400 updates that end at a loss of .3 and at this gap, and moved by so much since update 300."""
    jitter = [0.001 * seed for seed in range(len(gap))]  # values that are all equal have no interval

    def line(last: float, change: float) -> dict[int, float]:
        return {step: last - change * (400 - step) / 100 for step in range(10, 401, 10)}

    return (
        Curves(losses={seed: line(0.3, each) for seed, each in enumerate(shallow)}),
        Curves(losses={seed: line(0.3 + gap[seed], each + jitter[seed]) for seed, each in enumerate(deep)}),
    )


# The change of the gap, that of the deep loss, and the gap after another budget (four times the stretch). One of them
# is scattered over the seeds, so that its mean is under 0 and its interval holds 0; the other two are far under it.
@pytest.mark.parametrize(
    ("alone", "gap", "shallow", "deep"),
    [
        (0, [1.1, 0.3, -0.3], [0.1, -0.1, -0.25], [-0.2, -0.2, -0.2]),
        (1, [0.5, 0.5, 0.5], [-0.1, 0.1, 0.25], [-0.3, -0.1, 0.05]),
        (2, [2.0, 0.5, 0.5], [0.0, 0.002, 0.001], [-0.4, -0.4, -0.4]),
    ],
)
def test_each_of_the_three_conditions_is_needed_by_its_interval_and_not_its_mean(
    alone: int, gap: list[float], shallow: list[float], deep: list[float]
) -> None:
    found = tail_of(*ending(gap, shallow, deep))
    assert [each.high is not None and each.high < 0 for each in found.evidence] == [at != alone for at in range(3)]
    assert all(each.value is not None and each.value < 0 for each in found.evidence)
    assert found.catching_up is False


@pytest.mark.parametrize(
    ("change", "why_not"),
    [
        ({"stopped": frozenset(range(4))}, "stopped"),
        ({"seeds": 2}, "few"),
        ({"steps": 4}, "short"),  # ten updates a point: a stretch of two
        ({"rates": {0: {at: 0.1 * (1 - at / 401) for at in range(1, 401)}}}, "schedule"),
        ({"rates": {0: {at: 0.1 if at <= 360 else 0.01 for at in range(1, 401)}}}, "schedule"),
    ],
)
def test_where_there_is_no_answer(change: dict[str, Any], why_not: str) -> None:
    steps = change.get("steps", T)
    found = tail_of(curves(FLAT, steps=steps), curves(falling(1.3, 0.7), **change))
    assert found == Tail(catching_up=None, why_not=why_not)  # type: ignore[arg-type]


def test_curves_that_do_not_end_together_give_no_answer() -> None:
    assert tail_of(curves(FLAT, steps=39), curves(falling(1.3, 0.7))).why_not == "short"


def test_a_run_that_fitted_everything_and_stopped_keeps_its_last_loss() -> None:
    """Shallow runs that end at update 200 with .3: as if they had stayed there."""
    whole = curves(FLAT, noise=0.0)
    cut = {seed: {step: value for step, value in curve.items() if step <= 200} for seed, curve in whole.losses.items()}
    deep = curves(falling(1.3, 0.7))
    found, as_if = tail_of(Curves(losses=cut, stopped=frozenset(cut)), deep), tail_of(whole, deep)
    assert (found.catching_up, found.evidence, found.num_held) == (True, as_if.evidence, 4)
    # A deep run that stopped is no longer falling.
    losses = {**deep.losses, 0: {step: value for step, value in deep.losses[0].items() if step <= 200}}
    assert tail_of(whole, Curves(losses=losses, stopped=frozenset({0}))).catching_up is False


def test_the_stretch_begins_after_the_last_change_of_the_rate() -> None:
    """A drop at 3/4: the epoch that ends there had the old rate, and the fall after it belongs to the drop."""
    rates = {0: {at: 0.1 if at <= 300 else 0.01 for at in range(1, 401)}}

    def dropped(share: float) -> float:
        return 1.3 if share <= 0.75 else 0.9

    found = tail_of(curves(FLAT), curves(dropped, rates=rates))
    assert found.since == 310
    assert found.catching_up is False
    assert found.decayed == pytest.approx(0.1)
    # A rate that moves within an epoch leaves the mean of that epoch out as well.
    rates = {0: {at: 0.1 if at <= 305 else 0.01 for at in range(1, 401)}}
    assert tail_of(curves(FLAT), curves(dropped, rates=rates)).since == 320


def twin(shallow: Curves, deep: Curves) -> bool:
    """The rule once more, by scipy's one-sided tests on plain loops, for a constant rate."""
    seeds = sorted(deep.losses)
    end = max(deep.losses[0])
    start = min(step for step in deep.losses[0] if step >= 0.75 * end)
    shrink, fall, after = [], [], []
    for seed in seeds:
        then = deep.losses[seed][start] - shallow.losses[seed][start]
        now = deep.losses[seed][end] - shallow.losses[seed][end]
        shrink.append(now - then)
        fall.append(deep.losses[seed][end] - deep.losses[seed][start])
        after.append(now + (now - then) / (end - start) * end)
    return all(stats.ttest_1samp(each, 0.0, alternative="less").pvalue < 0.025 for each in (shrink, fall, after))


def test_a_twin_says_the_same_of_random_curves() -> None:
    rng = np.random.default_rng(2)
    answers = []
    for _ in range(150):
        slope, noise = rng.uniform(0.2, 0.9), rng.choice([0.002, 0.02, 0.08])
        shallow = curves(falling(0.3, rng.uniform(-0.1, 0.2)), noise=float(noise))
        deep = curves(falling(1.4, slope), noise=0.001)
        found = tail_of(shallow, deep)
        assert found.catching_up is twin(shallow, deep)
        answers.append(found.catching_up)
    assert 20 < sum(map(bool, answers)) < 130  # both answers occur


def sides(deep: Shape, **more: Any) -> tuple[Side, Side]:
    def side(shape: Shape) -> Side:
        made = curves(shape, **more)
        return Side(
            statuses=dict.fromkeys(made.losses, "completed"),
            figures={"train_loss": {seed: curve[max(curve)] for seed, curve in made.losses.items()}},
            curves=made,
        )

    return side(FLAT), side(deep)


def test_a_network_that_was_still_catching_up_is_not_called_degraded() -> None:
    found = tell_apart(*sides(falling(1.3, 0.7)))
    assert found.kind == "budget"
    assert [each.name for each in found.tail] == [
        "train_loss: change of the gap",
        "train_loss: change of the deep loss",
        "train_loss: gap after another budget",
    ]
    english, chinese = found.text["en"], found.text["zh"]
    assert english.startswith("Not enough budget to tell: the deeper network fits its own training data worse")
    assert "Measured from update 300 to 400: the gap in training loss changed by −0.1" in english
    assert "Inferred: at that pace, held for another 400 updates, the gap would come to −0.4" in english
    assert "not that the gap would close" in english
    assert chinese.startswith("训练预算不足以判断")
    assert "推断：若此速度再保持 400 步" in chinese


@pytest.mark.parametrize(
    ("deep", "words"),
    [
        (falling(0.9, 0.0), "The gap is not shown to shrink."),
        (falling(1.3, 0.45), "not shown to close."),
    ],
)
def test_one_that_was_not_is_and_what_its_end_showed_is_told(deep: Shape, words: str) -> None:
    found = tell_apart(*sides(deep))
    assert found.kind == "degradation"
    assert found.text["en"].endswith(words)
    assert found.text["en"].startswith("Degradation: ")


def test_a_flat_end_at_a_lowered_rate_is_no_sign_of_convergence() -> None:
    rates = {seed: {at: 0.1 if at <= 200 else 0.001 for at in range(1, 401)} for seed in range(4)}
    found = tell_apart(*sides(falling(0.9, 0.0), rates=rates))
    assert found.kind == "degradation"
    assert "The learning rate was at 1% of its largest by then" in found.text["en"]
    assert "末段平坦并不代表收敛" in found.text["zh"]


def test_without_curves_it_says_that_it_cannot_tell() -> None:
    shallow, deep = (Side(statuses=each.statuses, figures=each.figures) for each in sides(falling(0.9, 0.0)))
    assert "Whether a larger budget would help is not told: fewer than 3 seeds" in tell_apart(shallow, deep).text["en"]


def test_curves_are_read_from_the_tables_of_the_records(make_results: Any) -> None:
    """Deep runs that end at .6 and fall fast; shallow ones flat at .3; both with small differences between seeds.

    One deep run diverged on its way: its curve ends early, and is none of a run that came to an end.
    """

    def ends(cell: Any) -> dict[str, float] | str:
        if cell.axes["depth"] == 8 and cell.seed == 3:
            return "diverged"
        return {"train_loss": 0.6 + 0.01 * cell.seed if cell.axes["depth"] == 8 else 0.3}

    results = make_results(ends, seeds=4)
    deep = {cell.run_id: cell for cell in results.plan.cells}

    def load(run_id: str, name: str) -> pa.Table:
        cell = deep[run_id]
        rows = []
        for at in range(10, 201 if isinstance(ends(cell), str) else 401, 10):
            loss = 0.3 if cell.axes["depth"] == 2 else 1.3 - (0.7 + 0.001 * cell.seed) * at / 400
            rows += [(at, "train_running", "loss", loss), (at, "train_running", "accuracy", 0.5)]
            rows += [(at, "schedule", "lr", 0.1), (at, "train", "loss", math.nan)]
        return pa.table(dict(zip(TABLES[name].names, zip(*rows, strict=True), strict=True)), schema=TABLES[name])

    found = diagnose(Results(plan=results.plan, records=results.records, load_table=load))
    assert [each.diagnosis.kind for each in found] == ["budget", "budget"]
