"""Claims that a figure goes one way along an axis. The rules stand in `judging`."""

from __future__ import annotations

from itertools import pairwise

from depthscope.analysis import samples
from depthscope.analysis.differences import Pair, Side, divergence, means
from depthscope.analysis.effects import with_effect
from depthscope.analysis.finding import Estimate, Verdict
from depthscope.analysis.intervals import paired_t_interval
from depthscope.analysis.rounding import scale_of_operands
from depthscope.analysis.table import Results
from depthscope.analysis.verdicts import Judgement, Says, against, all_hold, noted, of_survivors
from depthscope.study.claims import MonotoneClaim


def judge_monotone(results: Results, claim: MonotoneClaim, level: float) -> Judgement:
    """Every step along the axis, signed so that the claimed direction is up.

    **Support** is that of every step at `level`: the claim is false if any one step is, so that supporting it
    needs every step's own error to happen where it is false, and the error of the whole is at most that of one
    (an intersection-union test; Berger 1982, Technometrics 24). **Refutation** takes the best of K chances, so
    each step gets 1 - (1 - level) / K (Bonferroni). Shown are the intervals that decided; of an undecided claim
    the wider ones, of which none lies wholly beyond the bound.
    """
    along = places(results, claim)
    steps = [
        (after, before) if claim.direction == "increasing" else (before, after) for before, after in pairwise(along)
    ]
    counts = samples.census([sample for found in along for sample in found], claim.metric)
    said = {each for pair in steps for each in divergence([pair], claim.metric, claim.expect)}
    tried, verdict = _try(steps, claim, level)
    if verdict != "supported":
        tried, verdict = _try(steps, claim, 1.0 - (1.0 - level) / max(len(steps), 1))
    columns = [samples.mean_by_seed(found, claim.metric) for found in along]
    return Judgement(
        verdict="undecided" if counts.silent else verdict,
        estimates=(*tried, *means(zip(along, columns, strict=True), claim.metric, claim.unit)),
        num_judged=len(tried),
        census=counts,
        said=tuple(sorted(said)),
    )


def places(results: Results, claim: MonotoneClaim) -> list[Side]:
    """The cells at each value of the axis, ascending."""
    found: dict[float, list[samples.Sample]] = {}
    for sample in samples.samples(results, claim.part, claim.select):
        found.setdefault(float(sample.axes[claim.axis]), []).append(sample)
    return [tuple(found[value]) for value in sorted(found)]


def _try(steps: list[Pair], claim: MonotoneClaim, level: float) -> tuple[list[Estimate], Verdict]:
    """The steps with intervals of this coverage, and what they decide together."""
    tried, verdicts = [], []
    for pair in steps:
        columns = [samples.mean_by_seed(found, claim.metric) for found in pair]
        step = paired_t_interval(*columns, level=level, name=_name(pair, claim), unit=claim.unit)
        scale = scale_of_operands(value for column in columns for value in column.values())
        said: tuple[Says, ...] = divergence([pair], claim.metric, claim.expect)
        verdicts.append(of_survivors(against(step.low, step.high, claim.expect, claim.than, scale), said))
        own = samples.census([sample for found in pair for sample in found], claim.metric)
        tried.append(with_effect(noted(step, own, said)))
    return tried, all_hold(verdicts)


def _name(pair: Pair, claim: MonotoneClaim) -> str:
    """Such as `train_loss: plain, depth 32 minus 20`."""
    after, before = (f"{found[0].axes[claim.axis]:g}" for found in pair)
    cells = f" (mean of {len(pair[0])} cells)" if len(pair[0]) > 1 else ""
    return f"{claim.metric}: {claim.arm}{cells}, {claim.axis} {after} minus {before}"
