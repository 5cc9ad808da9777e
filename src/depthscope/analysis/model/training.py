"""What training curves say where depth is not to blame: the rate of learning, the labels, the budget.

Rules, on a training loss and on a validation loss as (step, value):

- a training loss that ends non-finite or at `DIVERGED` times its start or more: **learning rate**, diverges;
- else one whose second half swings from record to record by `OSCILLATES` of its range on average: **learning rate**;
- else one that falls to `FALLS` of its start or less while the validation loss does not fall to that share of its own:
  **no generalisation**: overfitting, or labels that the inputs do not determine (likelier at or above ln K);
- else one whose best value stays at `STALLS` of its start or above: **stalled**.

Under 5 records nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.verdict import Fault

Curve = Sequence[tuple[int, float]]
LEAST_RECORDS = 5
_TAIL = 5


def not_depth(train: Curve | None, validation: Curve | None, num_classes: int | None) -> Iterator[Fault]:
    """At most one fault, by the module's rules."""
    values = [value for _, value in sorted(train or ())]
    if len(values) < LEAST_RECORDS:
        return
    if not all(map(math.isfinite, values)):
        at = next(step for step, value in sorted(train or ()) if not math.isfinite(value))
        yield _fault("learning rate", "non-finite", {"step": float(at)}, {})
        return
    first, last, best = values[0], _mean(values[-_TAIL:]), min(values)
    half = values[len(values) // 2 :]
    swing = _mean([abs(b - a) for a, b in pairwise(half)])
    extent = max(values) - best
    if last >= thresholds.DIVERGED * first > 0:
        yield _fault(
            "learning rate", "diverges", {"first": first, "last": last}, {"last over first": thresholds.DIVERGED}
        )
        return
    if extent > (1.0 - thresholds.STALLS) * first and swing >= thresholds.OSCILLATES * extent:
        yield _fault(
            "learning rate",
            "oscillates",
            {"swing": swing, "range": extent},
            {"swing over range": thresholds.OSCILLATES},
        )
        return
    held_out = [value for _, value in sorted(validation or ())]
    if last <= thresholds.FALLS * first:
        if len(held_out) >= 2 and not _mean(held_out[-2:]) <= thresholds.FALLS * held_out[0]:
            numbers = {"first": first, "last": last, "validation first": held_out[0], "validation last": held_out[-1]}
            if num_classes and num_classes > 1:
                numbers["chance"] = math.log(num_classes)
            at_chance = "chance" in numbers and min(held_out) >= thresholds.STALLS * numbers["chance"]
            how = "at chance" if at_chance else "apart"
            yield _fault("no generalisation", how, numbers, {"last over first": thresholds.FALLS}, inferred=True)
        return
    if best >= thresholds.STALLS * first:
        yield _fault(
            "stalled", "", {"first": first, "best": best}, {"best over first": thresholds.STALLS}, inferred=True
        )


def _fault(
    cause: str, how: str, numbers: dict[str, float], limits: dict[str, float], *, inferred: bool = False
) -> Fault:
    return Fault(
        verdict="not depth",
        cause=cause,
        sentence=words.training(cause, how, numbers),
        repair=words.repair(cause),
        numbers=numbers,
        thresholds=limits,
        inferred=inferred,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
