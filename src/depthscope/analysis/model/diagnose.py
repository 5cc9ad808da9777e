"""The verdict on a model: which fault is the gravest, or what can and cannot be told.

Order, the first that applies: values that are not finite; units that are copies of one another; silent blocks (no
gradient, dead); a block built unlike its like; a branch or a gain unlike its like; the body as a whole; frozen and
uncalled blocks; a collapsed representation; what curves say. Then: nothing measured that could show a fault gives
`cannot tell`, else `healthy`. A fault found later in that order is listed beside the first, unless the first explains
it. A training that blew up comes first where its first record does not show what a later one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.expected import expected
from depthscope.analysis.model.local import judged_multipliers, large_branch, odd_gain
from depthscope.analysis.model.notes import notes, num_unregistered, ranks, recurrent_place
from depthscope.analysis.model.odd import odd_blocks
from depthscope.analysis.model.rate import Rate, rate_of
from depthscope.analysis.model.silent import identical_units, silent_blocks
from depthscope.analysis.model.training import Curve, no_longer_finite, not_depth
from depthscope.analysis.model.verdict import Fault, ModelDiagnosis
from depthscope.analysis.model.view import View
from depthscope.analysis.model.whole import non_finite, whole_body
from depthscope.core.readings import ModelProfile

_MILD = ("frozen block", "uncalled block")
_LATE = ("not depth", "rank collapse")


def diagnose(
    profile: ModelProfile,
    *,
    step: int | None = None,
    train_curve: Curve | None = None,
    validation_curve: Curve | None = None,
) -> ModelDiagnosis:
    """Judge a profile.

    Args:
        profile: of one step or several.
        step: which to judge; the last by default.
        train_curve: (step, training loss), for `not depth`.
        validation_curve: (step, validation loss).

    Returns:
        The gravest fault with its place, numbers, cause and repair; further ones; what limits the verdict.
    """
    at = profile.steps()[-1] if step is None else step
    view = View(profile, at)
    own = rate_of(judged_multipliers(view)) or rate_of(view.multipliers)
    faults = _explained(list(_faults(view, train_curve, validation_curve)))
    told = tuple(notes(view, faults, sorted(train_curve or ())))
    if faults:
        first, *others = _training_first(view, faults)
        told = (*_since_start(view, first), *told)
        return ModelDiagnosis(**first.model_dump(), step=at, rate=own, others=tuple(others), notes=told)
    cause, reason = _cannot_tell(view)
    if reason:
        return ModelDiagnosis(
            verdict="cannot tell",
            cause=cause,
            sentence=reason,
            repair=words.repair(cause),
            step=at,
            rate=own,
            notes=told,
        )
    assert own is not None  # else it could not be told
    return ModelDiagnosis(
        verdict="healthy",
        sentence=_healthy(view, own),
        numbers={"rate": own.value, "total, decades": own.total_log10},
        thresholds={"total, decades": thresholds.TOTAL_LOG10 if view.additions else thresholds.PLAIN_LOG10},
        step=at,
        rate=own,
        notes=told,
    )


def _faults(view: View, train_curve: Curve | None, validation_curve: Curve | None) -> Iterator[Fault]:
    yield from non_finite(view)
    yield from identical_units(view)
    silent = list(silent_blocks(view))
    yield from (each for each in silent if each.cause not in _MILD)
    if len(view.body) >= thresholds.LEAST_BLOCKS:
        yield from odd_blocks(view)
        yield from large_branch(view)
        yield from odd_gain(view)
        yield from whole_body(view, expected(view.structure, view.profile, view.step))
    yield from (each for each in silent if each.cause in _MILD)
    yield from _collapse(view)
    curves = list(not_depth(train_curve, validation_curve, view.conditions.num_classes))
    yield from curves or _no_longer_finite(view)


def _no_longer_finite(view: View) -> Iterator[Fault]:
    """Values that were finite at the first record and are not now, where no scaler of the loss does it."""
    before = _first_record(view)
    if before is None or view.conditions.skipped or view.conditions.loss_scale != 1.0:
        return
    if any(non_finite(view)) and not any(non_finite(before)):
        yield no_longer_finite(before.step, view.step)


def _first_record(view: View) -> View | None:
    """The first step before this one whose boundaries were measured."""
    steps = {each.step for each in view.profile.readings if each.place == "boundary" and each.step < view.step}
    return View(view.profile, min(steps)) if steps else None


def _training_first(view: View, faults: list[Fault]) -> list[Fault]:
    """A learning rate that was too high before what it led to, where the first record does not show that yet."""
    rate = next((each for each in faults if each.cause == "learning rate"), None)
    before = _first_record(view)
    if rate is None or rate is faults[0] or before is None:
        return faults
    shown = {each.cause for each in _faults(before, None, None)}
    if faults[0].cause in shown:
        return faults
    others = [each for each in faults if each is not rate]
    sentence = f"{rate.sentence} {words.followed(before.step, view.step, faults[0].cause)}"
    return [rate.model_copy(update={"sentence": sentence}), *others]


def _since_start(view: View, first: Fault) -> Iterator[str]:
    """Of a fault that the first record does not show, where no curve says what led to it."""
    before = _first_record(view)
    if before is None or first.verdict == "not depth":
        return
    if first.cause not in {each.cause for each in _faults(before, None, None)}:
        yield f"this was not so at step {before.step}: training led to it, as too high a learning rate can"


def _explained(faults: list[Fault]) -> list[Fault]:
    """Without what the first one accounts for: the numbers that it moves, at its place and over the body."""
    if not faults:
        return []
    first = faults[0]
    if first.cause == "identical units":
        return [first, *(each for each in faults[1:] if each.verdict in _LATE)]
    by_numbers = ("branch scale", "gain too small", "gain too large", "one block", "not recognised")
    kept = [first]
    for each in faults[1:]:
        late = each.verdict in _LATE and each.cause not in by_numbers
        if late or each.cause in _MILD or (each.cause not in by_numbers and each.where):
            kept.append(each)
    return kept


def _collapse(view: View) -> Iterator[Fault]:
    """An effective rank near 1 at the end of the body, after a higher one at its start."""
    own = ranks(view)
    if len(own) < thresholds.LEAST_BLOCKS:
        return
    if own[-1] <= thresholds.RANK and own[0] >= thresholds.RANK_BEFORE * max(own[-1], 1.0):
        numbers = {"rank": own[-1], "rank at first": own[0]}
        yield Fault(
            verdict="rank collapse",
            cause="collapsed representation",
            where=(view.exit(view.body[-1]),),
            sentence=words.rank(own[-1], own[0]),
            repair=words.repair("collapsed representation"),
            numbers=numbers,
            thresholds={"rank": thresholds.RANK, "rank at first over last": thresholds.RANK_BEFORE},
        )


def _cannot_tell(view: View) -> tuple[str, str]:
    """Cause and reason; empty where a healthy verdict has something to stand on."""
    number = len(view.body)
    if number < thresholds.LEAST_BLOCKS:
        if view.conditions.silent:
            return "no gradient", f"Nothing could be measured inside the model: {view.conditions.silent}."
        what = "no block" if number == 0 else "1 block" if number == 1 else f"{number} blocks"
        if count := num_unregistered(view):
            return "unregistered weights", words.unregistered(count)
        if place := recurrent_place(view):
            return "recurrence", words.recurrence(place, what)
        return (
            "too few blocks",
            f"{what[0].upper()}{what[1:]} between stem and head: depth has no meaning under {thresholds.LEAST_BLOCKS}.",
        )
    grads = [value for name, value in view.grad_norms.items() if name in _inner(view)]
    if grads and not any(grads):
        head = view.structure.blocks[-1]
        zero = [name for name in view.matrices(head) if view.weights.get(name) == 0.0]
        if zero:
            return (
                "zero classifier",
                f"{zero[-1]} is 0, so that every gradient below it is exactly 0 (as Fixup starts).",
            )
        last = _last_with_gradient(view)
        return "no gradient", f"Every gradient between stem and head is exactly 0{last}."
    if view.recurrent and len(judged_multipliers(view)) < thresholds.LEAST_BLOCKS:
        own = f"{len(view.recurrent)} of {number} blocks"
        return "recurrence", words.recurrence(recurrent_place(view), own)
    if rate_of(view.multipliers) is None:
        why = view.conditions.silent or "no gradient was measured between stem and head"
        return "no gradient", f"The gradient by depth is not known: {why}."
    return "", ""


def _inner(view: View) -> set[str]:
    return {view.structure.boundaries[block.index + 1].name for block in view.body}


def _last_with_gradient(view: View) -> str:
    for boundary in view.structure.boundaries:
        if view.grad_norms.get(boundary.name, 0.0) > 0:
            return f"; the first that is not is at {boundary.name}"
    return ""


def _healthy(view: View, rate: Rate) -> str:
    text = (
        f"The gradient changes by {words.decades(rate.total_log10)} over {rate.num_blocks} blocks toward the input, "
        f"{words.figure(rate.value)} a block"
    )
    if view.ratios:
        values = sorted(value for value in view.ratios.values() if math.isfinite(value))
        if values:
            text += f"; |F|/|x| lies from {words.figure(values[0])} to {words.figure(values[-1])}"
    return f"{text}."
