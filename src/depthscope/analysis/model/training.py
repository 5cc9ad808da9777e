"""What training curves say where depth is not to blame: the rate of learning, the labels, the budget.

A loss of minibatches scatters. Its scatter is read off its steps, sigma^2 = mean (y_{t+1} - y_t)^2 / 2 (von Neumann),
of the second half alone, where a trend matters least. Levels are means over windows: `start` of the first records (at
most 5), `end` of the last fifth. Chance is ln K, the cross entropy of a uniform guess over K classes, where classes are
known. In order, at most one:

- a loss that is not finite from some record on, finite before: **learning rate**;
- one that rises to `BLOWN` times its first value (or chance, where that is more) and does not end under `FALLS` of the
  lesser of first value and chance: **learning rate**, blown up;
- one that ends at `DIVERGED` times its start or more, beyond 3 sigma of the two means: **learning rate**, diverges;
- one that does not fall to `FALLS` of its start and whose second half swings by `OSCILLATES` of its whole range from
  record to record, up and down by turns (first autocorrelation under -.5; that of noise is 0): **learning rate**;
- **no generalisation**: with at least 3 validation losses, where the training loss over the same steps fell to `FALLS`
  of what both began at (the first training loss, or chance where that is less) and the validation loss shows less than
  `GENERALISES` of that fall. Never while the validation loss lies under the training loss or still falls;
- **stalled**, over `LEAST_STEPS` steps or more: a fall from start to end of less than 2% (`STALLS`), or of less than
  10% and within 2 sigma of the two means; or an end at chance. Never where the loss is under `FALLS` of chance.

Under 5 records nothing is said of levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.verdict import Fault

Curve = Sequence[tuple[int, float]]
LEAST_RECORDS = 5
_OSCILLATION = 10
"""Records of the second half from which an autocorrelation is told from noise (3 of its standard errors are .95)."""


def not_depth(train: Curve | None, validation: Curve | None, num_classes: int | None) -> Iterator[Fault]:
    """At most one fault, by the module's rules."""
    told = sorted(train or ())
    values = [value for _, value in told]
    chance = math.log(num_classes) if num_classes and num_classes > 1 else math.nan
    if len(values) < 2 or not math.isfinite(values[0]):
        return
    if not all(map(math.isfinite, values)):
        at = next(step for step, value in told if not math.isfinite(value))
        yield _fault("learning rate", "non-finite", {"step": float(at), "first": values[0]}, {}, inferred=True)
        return
    if len(values) < LEAST_RECORDS:
        return
    found = _too_fast(told, chance) or _generalisation(told, sorted(validation or ()), chance) or _stalled(told, chance)
    if found is not None:
        yield found


def no_longer_finite(first: int, step: int) -> Fault:
    """Where no losses were told: values that are not finite at a step and were at the first record."""
    return _fault("learning rate", "values", {"finite at": float(first), "step": float(step)}, {}, inferred=True)


def recovered(told: Curve) -> tuple[int, float] | None:
    """Step and height of a peak of `BLOWN` times the first loss or more that did not end the training."""
    if len(told) < LEAST_RECORDS or not all(math.isfinite(value) for _, value in told):
        return None
    peak = max(told[1:], key=lambda each: each[1])
    return peak if peak[1] >= thresholds.BLOWN * told[0][1] > 0 else None


def _too_fast(told: Curve, chance: float) -> Fault | None:
    values = [value for _, value in told]
    first, last, scatter = values[0], _end(values), _scatter(values)
    start = _start(values)
    at, peak = max(told[1:], key=lambda each: each[1])
    least, usual = _bounds(first, chance)
    known = {} if math.isnan(chance) else {"chance": chance}
    if peak >= thresholds.BLOWN * usual > 0 and last > thresholds.FALLS * least:
        numbers = {"first": first, "peak": peak, "step": float(at), "last": last} | known
        return _fault("learning rate", "blown up", numbers, {"peak over first": thresholds.BLOWN})
    error = scatter * math.sqrt(1 / _opening(values) + 1 / _closing(values))
    if last >= thresholds.DIVERGED * start > 0 and last - start > 3 * error:
        numbers = {"first": start, "last": last} | known
        return _fault("learning rate", "diverges", numbers, {"last over first": thresholds.DIVERGED})
    half = values[len(values) // 2 :]
    swing = _mean([abs(b - a) for a, b in pairwise(half)])
    extent = max(values) - min(values)
    if (
        len(half) >= _OSCILLATION
        and last > thresholds.FALLS * start
        and extent > (1.0 - thresholds.STALLS) * start
        and swing >= thresholds.OSCILLATES * extent
        and _autocorrelation(half) < -0.5
    ):
        limits = {"swing over range": thresholds.OSCILLATES}
        return _fault("learning rate", "oscillates", {"swing": swing, "range": extent}, limits, inferred=True)
    return None


def _generalisation(told: Curve, held_out: Curve, chance: float) -> Fault | None:
    checked = [value for _, value in held_out]
    if len(checked) < 3 or not all(map(math.isfinite, checked)):
        return None
    begun, _ = _bounds(told[0][1], chance)
    since = held_out[-3][0]  # the training loss over the steps of the last two validations
    recent = [value for step, value in told if since < step <= held_out[-1][0]]
    if not recent:
        return None
    last, validation = _mean(recent), _mean(checked[-2:])
    still_falls = checked[-1] < thresholds.STALLS * min(checked[:-1])
    if last > thresholds.FALLS * begun or still_falls:
        return None
    share = (begun - validation) / (begun - last)  # 1 or more where validation lies under training
    if share >= thresholds.GENERALISES:
        return None
    numbers = {"first": begun, "last": last, "validation best": min(checked), "validation last": validation}
    if not math.isnan(chance):
        numbers["chance"] = chance
    at_chance = "chance" in numbers and min(checked) >= thresholds.STALLS * chance
    limits = {"last over first": thresholds.FALLS, "share of the fall in validation": thresholds.GENERALISES}
    numbers["share of the fall in validation"] = share
    return _fault("no generalisation", "at chance" if at_chance else "apart", numbers, limits, inferred=True)


def _stalled(told: Curve, chance: float) -> Fault | None:
    values = [value for _, value in told]
    steps = told[-1][0] - told[0][0] + 1
    if steps < thresholds.LEAST_STEPS:
        return None
    start, last, scatter = _start(values), _end(values), _scatter(values)
    error = scatter * math.sqrt(1 / _opening(values) + 1 / _closing(values))
    fall = start - last
    numbers = {"first": start, "last": last, "steps": float(steps)}
    limits = {"last over first": thresholds.STALLS}
    if not math.isnan(chance):
        numbers["chance"] = chance
        if last < thresholds.FALLS * chance:
            return None
        if last >= thresholds.STALLS * chance:
            return _fault("stalled", "at chance", numbers, {"last over chance": thresholds.STALLS}, inferred=True)
    small = fall < (1.0 - thresholds.STALLS) * start or (fall < 0.1 * start and fall < 2 * error)
    return _fault("stalled", "", numbers, limits, inferred=True) if small else None


def _bounds(first: float, chance: float) -> tuple[float, float]:
    """The lesser and the greater of a first loss and chance, where that is known."""
    return (first, first) if math.isnan(chance) else (min(first, chance), max(first, chance))


def _opening(values: Sequence[float]) -> int:
    return max(1, min(5, len(values) // 5))


def _closing(values: Sequence[float]) -> int:
    return max(1, len(values) // 5)


def _start(values: Sequence[float]) -> float:
    return _mean(values[: _opening(values)])


def _end(values: Sequence[float]) -> float:
    return _mean(values[-_closing(values) :])


def _scatter(values: Sequence[float]) -> float:
    half = values[len(values) // 2 :]
    return math.sqrt(_mean([(b - a) ** 2 for a, b in pairwise(half)]) / 2)


def _autocorrelation(values: Sequence[float]) -> float:
    """At lag 1, about the mean."""
    centre = _mean(values)
    square = math.fsum((each - centre) ** 2 for each in values)
    return math.fsum((a - centre) * (b - centre) for a, b in pairwise(values)) / square if square else 0.0


def _fault(
    cause: str, how: str, numbers: dict[str, float], limits: dict[str, float], *, inferred: bool = False
) -> Fault:
    return Fault(
        verdict="not depth",
        cause=cause,
        sentence=words.training(cause, how, numbers),
        repair=words.repair(cause, how=how),
        numbers=numbers,
        thresholds=limits,
        inferred=inferred,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
