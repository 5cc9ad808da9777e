"""Whether a deeper network that trains worse was still catching up when the budget ended.

The rule of `diagnosis` calls a network degraded that ends with a worse fit. A network that is merely slower
ends so too. From the curves of the training loss, with T the number of updates of the runs, t0 near 3/4 T and

    g(t) = loss of the deep run at t  -  loss of the shallow run at t, same seed,

it was still catching up where all three hold, as intervals of paired values over seeds:

1. the gap shrinks:             g(T) - g(t0) lies wholly under 0;
2. because the deep one falls:  deep(T) - deep(t0) lies wholly under 0;
3. soon enough to matter:       g(T) + (g(T) - g(t0)) T / (T - t0), the gap after as many updates again at the pace
                                of that stretch, lies wholly at or under 0.

Each must hold, so that the three together err no more often than one of them (an intersection-union test).

**What is inferred.** A pace that is held for another budget is the most that can be hoped: losses flatten. So
`catching_up` does not say that the gap would close. It says that this budget cannot tell a degraded network from a
slow one, and degradation is not claimed from it. The other way round nothing is inferred either: a flat end is no
proof of convergence, least of all at a learning rate that was lowered before (`decayed`).

A run that the recipe's rule stopped early, because it fitted everything, keeps its last loss from there on: the
deep network is asked whether it would reach what the rule takes for fitted.

**Where there is no answer** (`why_not`): where all deep runs stopped early none was out of budget; a learning rate
that moves during the stretch makes the pace its own; curves of too few points, and fewer than 3 pairs, tell
nothing. t0 is the first point of the curves at or after 3/4 T that was made at the last learning rate, and must
leave an eighth of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from depthscope.analysis.diagnosis_words import LEAST_PAIRS
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import paired_t_interval
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import LoadTable
from depthscope.analysis.units import unit_in

Curve = Mapping[int, float]
"""Update -> value."""
WhyNot = Literal["stopped", "schedule", "short", "few", "no_gap"]

START, SHORTEST = 0.75, 0.125
"""Where the stretch that is looked at begins, and the least of the budget that it must hold."""
LEAST_POINTS = 3
"""Points of a curve within the stretch, both ends among them."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The training curves at one depth.

    Attributes:
        losses: seed -> training loss by update, of the runs that completed.
        rates: seed -> learning rate by update; a run without any has a constant one.
        stopped: seeds of the runs that the recipe's declared rule ended.
        unit: of the losses; empty for squared errors.
    """

    losses: Mapping[int, Curve] = field(default_factory=dict)
    rates: Mapping[int, Curve] = field(default_factory=dict)
    stopped: frozenset[int] = frozenset()
    unit: str = "nats"

    def held(self, seed: int, steps: Sequence[int]) -> dict[int, float]:
        """The losses of a run at these updates; of one that stopped early its last from there on."""
        curve = self.losses[seed]
        last = max(curve)
        return {step: curve[last] if seed in self.stopped and step > last else curve[step] for step in steps}


@dataclass(frozen=True, kw_only=True)
class Tail:
    """What the last stretch of the training says.

    Attributes:
        catching_up: whether all three conditions of the module's rule hold; None where it has no answer.
        why_not: why it has none.
        evidence: the change of the gap, the change of the deep loss, the gap after another budget at that pace.
        since: t0, the update at which the stretch begins; 0 where it has no answer.
        num_steps: T; 0 likewise.
        decayed: the last learning rate over the largest; 1 where it was held.
        num_held: runs that stopped early and were held at their last loss.
    """

    catching_up: bool | None
    why_not: WhyNot | None = None
    evidence: tuple[Estimate, ...] = ()
    since: int = 0
    num_steps: int = 0
    decayed: float = 1.0
    num_held: int = 0


def tail_of(shallow: Curves, deep: Curves, *, level: float = 0.95) -> Tail:
    """Whether the deeper network was still catching up, by the module's rule.

    Args:
        shallow: the curves at the lesser depth.
        deep: the curves at the greater depth, paired with the others by seed.
        level: coverage of each of the three intervals.
    """
    seeds = sorted(
        seed for seed in set(shallow.losses) & set(deep.losses) if shallow.losses[seed] and deep.losses[seed]
    )
    if len(seeds) < LEAST_PAIRS:
        return Tail(catching_up=None, why_not="few")
    if deep.stopped.issuperset(seeds):
        return Tail(catching_up=None, why_not="stopped")
    curves = [side.losses[seed] for side in (shallow, deep) for seed in seeds if seed not in side.stopped]
    early = [side.losses[seed] for side in (shallow, deep) for seed in seeds if seed in side.stopped]
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    shared = [step for step in shared if all(step in curve or step > max(curve) for curve in early)]
    ends = {max(curve) for curve in curves}
    if len(ends) > 1 or not shared or shared[-1] not in ends:
        return Tail(catching_up=None, why_not="short")
    end = shared[-1]
    rates = [side.rates[seed] for side in (shallow, deep) for seed in seeds if side.rates.get(seed)]
    settled = max((_settled(curve) for curve in rates), default=0)
    # A point may be the mean over the updates since the one before it: all of them had the last rate.
    clear = [step for before, step in pairwise([0, *shared]) if before + 1 >= settled]
    stretch = [step for step in clear if step >= START * end]
    if not stretch or end - stretch[0] < SHORTEST * end:
        return Tail(catching_up=None, why_not="schedule" if settled > START * end else "short")
    if len(stretch) < LEAST_POINTS:
        return Tail(catching_up=None, why_not="short")
    since = stretch[0]
    both = [{seed: side.held(seed, (since, end)) for seed in seeds} for side in (shallow, deep)]
    loss = {step: {seed: both[1][seed][step] for seed in seeds} for step in (since, end)}
    gap = {step: {seed: loss[step][seed] - both[0][seed][step] for seed in seeds} for step in (since, end)}
    if sum(gap[end].values()) <= 0:
        return Tail(catching_up=None, why_not="no_gap")
    pace = end / (end - since)
    # The gap after another budget, g(T) + pace (g(T) - g(t0)), as a difference of two columns.
    lost = {seed: pace * (gap[since][seed] - gap[end][seed]) for seed in seeds}
    evidence = (
        _interval(gap[end], gap[since], "change of the gap", level, deep.unit),
        _interval(loss[end], loss[since], "change of the deep loss", level, deep.unit),
        _interval(gap[end], lost, "gap after another budget", level, deep.unit),
    )
    shrinks, falls, closes = evidence
    return Tail(
        catching_up=_under(shrinks) and _under(falls) and closes.high is not None and closes.high <= 0,
        evidence=evidence,
        since=since,
        num_steps=end,
        num_held=len(early),
        decayed=min((curve[max(curve)] / max(curve.values()) for curve in rates), default=1.0),
    )


def _settled(rates: Curve) -> int:
    """The update from which the learning rate no longer moves."""
    steps = sorted(rates)
    at = len(steps) - 1
    while at and abs(rates[steps[at - 1]] - rates[steps[-1]]) <= 1e-9 * abs(rates[steps[-1]]):
        at -= 1
    return 0 if at == 0 else steps[at]


def _interval(a: Mapping[int, float], b: Mapping[int, float], name: str, level: float, unit: str) -> Estimate:
    return paired_t_interval(a, b, level=level, name=f"train_loss: {name}", unit=unit)


def _under(estimate: Estimate) -> bool:
    return estimate.high is not None and estimate.high < 0


def read_curves(sample: Sample, load_table: LoadTable) -> Curves:
    """The curves of a sample's completed runs, from their tables of metrics."""
    losses, rates = {}, {}
    for row in sample.rows:
        done = row.record is not None and row.record.outcome.status == "completed"
        table = load_table(row.cell.run_id, "metrics") if done else None
        if table is None:
            continue
        losses[row.cell.seed] = _column(table, "train_running", "loss")
        rates[row.cell.seed] = _column(table, "schedule", "lr")
    return Curves(
        losses=losses,
        rates=rates,
        stopped=frozenset(
            row.cell.seed for row in sample.rows if row.record is not None and row.record.outcome.stopped_early
        ),
        unit=unit_in(sample.rows, "train_loss"),
    )


def _column(table: pa.Table, split: str, quantity: str) -> dict[int, float]:
    chosen = table.filter((pc.field("split") == split) & (pc.field("quantity") == quantity))
    pairs = zip(chosen.column("step").to_pylist(), chosen.column("value").to_pylist(), strict=True)
    return {step: value for step, value in pairs if value is not None and math.isfinite(value)}
