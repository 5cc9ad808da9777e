"""The verdict on a model: which fault is the gravest, or what can and cannot be told.

Order, the first that applies: values that are not finite; silent blocks (no gradient, dead); a block built unlike
its like; a branch or a gain unlike its like; the body as a whole; frozen and uncalled blocks; a collapsed
representation; what curves say. Then: nothing measured that could show a fault gives `cannot tell`, else `healthy`.
A fault found later in that order is listed beside the first, unless the first explains it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.expected import expected
from depthscope.analysis.model.local import judged_multipliers, large_branch, large_start, odd_gain
from depthscope.analysis.model.odd import odd_blocks
from depthscope.analysis.model.rate import Rate, rate_of
from depthscope.analysis.model.silent import silent_blocks
from depthscope.analysis.model.training import Curve, not_depth
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
    rate = rate_of(view.multipliers)
    notes = tuple(_notes(view))
    faults = _explained(list(_faults(view, train_curve, validation_curve)))
    if faults:
        first, *others = faults
        return ModelDiagnosis(**first.model_dump(), step=at, rate=rate, others=tuple(others), notes=notes)
    cause, reason = _cannot_tell(view)
    if reason:
        return ModelDiagnosis(
            verdict="cannot tell",
            cause=cause,
            sentence=reason,
            repair=words.repair(cause),
            step=at,
            rate=rate,
            notes=notes,
        )
    own = rate_of(judged_multipliers(view)) or rate
    assert own is not None  # else it could not be told
    return ModelDiagnosis(
        verdict="healthy",
        sentence=_healthy(view, own),
        numbers={"rate": own.value, "total, decades": own.total_log10},
        thresholds={"total, decades": thresholds.TOTAL_LOG10 if view.additions else thresholds.PLAIN_LOG10},
        step=at,
        rate=rate,
        notes=notes,
    )


def _faults(view: View, train_curve: Curve | None, validation_curve: Curve | None) -> Iterator[Fault]:
    yield from non_finite(view)
    silent = list(silent_blocks(view))
    yield from (each for each in silent if each.cause not in _MILD)
    if len(view.body) >= thresholds.LEAST_BLOCKS:
        yield from odd_blocks(view)
        yield from large_branch(view)
        yield from odd_gain(view)
        yield from whole_body(view, expected(view.structure, view.profile, view.step))
    yield from (each for each in silent if each.cause in _MILD)
    yield from _collapse(view)
    yield from not_depth(train_curve, validation_curve, view.conditions.num_classes)


def _explained(faults: list[Fault]) -> list[Fault]:
    """Without what the first one accounts for: the numbers that it moves, at its place and over the body."""
    if not faults:
        return []
    first = faults[0]
    by_numbers = ("branch scale", "gain too small", "gain too large", "one block", "not recognised")
    kept = [first]
    for each in faults[1:]:
        late = each.verdict in _LATE and each.cause not in by_numbers
        if late or each.cause in _MILD or (each.cause not in by_numbers and each.where):
            kept.append(each)
    return kept


def _collapse(view: View) -> Iterator[Fault]:
    """An effective rank near 1 at the end of the body, after a higher one at its start."""
    ranks = view.at("rank")
    own = [ranks[view.exit(block)] for block in view.body if view.exit(block) in ranks]
    if len(own) < thresholds.LEAST_BLOCKS:
        return
    if own[-1] <= thresholds.RANK and own[0] >= thresholds.RANK_BEFORE * own[-1]:
        numbers = {"rank": own[-1], "rank at first": own[0]}
        yield Fault(
            verdict="rank collapse",
            cause="collapsed representation",
            where=(view.exit(view.body[-1]),),
            sentence=f"The effective rank falls from {words.figure(own[0])} to {words.figure(own[-1])} over the body.",
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


def _notes(view: View) -> Iterator[str]:
    """What limits the verdict."""
    conditions = view.conditions
    if conditions.data == "noise":
        yield "measured on made-up noise input: real data may give other numbers"
    modes = {bool(op.facts.get("training")) for each in view.structure.blocks for op in each.ops if op.name == "batch"}
    if not conditions.training:
        norms = "the batch's own" if True in modes else "its running"
        yield f"measured in eval mode: batch norm used {norms} statistics, dropout was off; training may differ"
    elif False in modes:
        yield "batch norm used its running statistics, as its layers are in eval mode; the model is in train mode"
    if conditions.objective == "cotangent":
        yield "no loss was given: gradients are of a random direction at the output, which tells multipliers alone"
    if conditions.silent and len(view.body) >= thresholds.LEAST_BLOCKS:
        yield f"some places gave no readings: {conditions.silent}"
    if conditions.skipped:
        yield f"the optimiser did not step: {conditions.skipped}"
    if view.step > 0:
        yield "after training steps: expected values speak of weights at initialisation, and are no yardstick here"
    first = large_start(view)
    if view.multipliers.get(first, 0.0) > thresholds.CLIFF:
        yield (
            f"{first} alone multiplies the gradient by {words.figure(view.multipliers[first])}: the trunk starts "
            "smaller than what is added to it, as small embeddings make it; it is left out of the total"
        )
    trainable = [each for each in view.structure.parameters if each.trainable]
    frozen = len(view.structure.parameters) - len(trainable)
    if frozen:
        yield f"{frozen} of {len(view.structure.parameters)} parameters are frozen, as in transfer learning: no fault"
    unused = [each.name for each in view.structure.parameters if not each.used]
    if unused:
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        yield f"not used in this forward pass: {', '.join(unused[:3])}{more}"
