"""What limits a verdict, and what was seen that is no fault of depth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.local import judged_multipliers, large_start
from depthscope.analysis.model.training import LEAST_RECORDS, Curve, recovered
from depthscope.analysis.model.verdict import Fault
from depthscope.analysis.model.view import View, is_recurrent
from depthscope.analysis.model.whole import loss_factor

_PRODUCTS = ("addmm", "linear", "convolution")
"""Operations that a layer's weight goes into and that two tensors of data hardly ever do."""
_NO_MEAN = 3.0
"""Factor on a mean cross entropy, known to within 1.5, beyond which a loss is of another scale."""


def notes(view: View, faults: Sequence[Fault], curve: Curve) -> Iterator[str]:
    """All of them; `curve` holds the training losses that were told."""
    yield from _loss(view)
    yield from _conditions(view)
    peak = recovered(curve)
    if peak is not None and not any(each.cause == "learning rate" for each in faults):
        yield (
            f"the loss rose from {words.figure(curve[0][1])} to {words.figure(peak[1])} at step {peak[0]} and fell "
            "again: a lower learning rate or a warmup would spare that"
        )
    if len(curve) < LEAST_RECORDS and (not faults or len(view.profile.steps()) > 1):
        yield (
            "learning rate, labels and whether the loss falls were not checked: that takes the losses of a training "
            "(depthscope.watch, w.loss)"
        )
    yield from _layers(view)
    yield from _parameters(view, faults)


def _conditions(view: View) -> Iterator[str]:
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


def _loss(view: View) -> Iterator[str]:
    """A first loss far from chance (readings tell the loss itself); the input's scale; a softmax under the loss."""
    loss, classes = view.profile.value("loss", view.step), view.conditions.num_classes
    if classes and classes > 1 and not math.isnan(loss):
        factor = loss_factor(view)
        if factor > _NO_MEAN * math.sqrt(2):
            yield f"the loss is {words.figure(loss)}, no mean cross entropy: it was not held against a uniform guess"
        elif view.step == 0 and loss > thresholds.LOSS_OVER_CHANCE * math.log(classes):
            yield words.out_of_scale(loss, classes)
    if classes and view.structure.blocks:
        last = [op for op in view.structure.blocks[-1].ops if op.kind != "dropout"][-1:]
        if last and last[0].name in ("softmax", "_softmax"):
            yield (
                "the model ends in a softmax, and cross_entropy (nn.CrossEntropyLoss) applies its own: twice, it "
                "flattens the gradient (give them logits; keep it for a loss that takes probabilities)"
            )
    if not view.structure.boundaries:  # a training whose passes could not be followed
        return
    spread, stem = view.at("std").get(view.structure.boundaries[0].name, math.nan), view.structure.blocks[:1]
    is_tokens = any(op.kind == "embedding" for block in stem for op in block.ops)
    if not is_tokens and (spread > thresholds.INPUT_STD or 0.0 < spread < 1.0 / thresholds.INPUT_STD):
        yield f"the input's standard deviation is {words.figure(spread)}: standardise it, (x - mean) / std of the data"


def _layers(view: View) -> Iterator[str]:
    place = recurrent_place(view)
    if place and len(judged_multipliers(view)) >= thresholds.LEAST_BLOCKS:  # else it is the verdict
        yield f"{place} is recurrent: what becomes of the gradient over time steps is not measured here"
    first = large_start(view)
    if view.multipliers.get(first, 0.0) > thresholds.CLIFF:
        yield (
            f"{first} alone multiplies the gradient by {words.figure(view.multipliers[first])}: the trunk starts "
            "smaller than what is added to it, as small embeddings make it; it is left out of the total"
        )
    own = ranks(view)
    if len(own) >= thresholds.LEAST_BLOCKS and thresholds.RANK < own[-1] <= thresholds.RANK_NEAR <= own[0]:
        yield f"{words.rank(own[-1], own[0])[:-1]}: near collapse, which may differ with the batch"


def _parameters(view: View, faults: Sequence[Fault]) -> Iterator[str]:
    trainable = [each for each in view.structure.parameters if each.trainable]
    frozen = len(view.structure.parameters) - len(trainable)
    if frozen and not any(each.cause == "frozen block" for each in faults):
        yield f"{frozen} of {len(view.structure.parameters)} parameters are frozen, as in transfer learning: no fault"
    unused = [each.name for each in view.structure.parameters if not each.used]
    if unused:
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        yield f"not used in this forward pass: {', '.join(unused[:3])}{more}"
    if len(view.body) >= thresholds.LEAST_BLOCKS and (count := num_unregistered(view)):
        yield f"{words.unregistered(count)[:-1]} (buffers may be meant to be so)"


def num_unregistered(view: View) -> int:
    """Operations of layers without a parameter of the model, such as those of layers in a Python list."""
    ops = (op for block in view.structure.blocks for op in block.ops)
    return sum(op.kind == "other" and op.name in _PRODUCTS and not op.weights for op in ops)


def recurrent_place(view: View) -> str:
    """The module of the first recurrence; empty where there is none."""
    for block in view.structure.blocks:
        if is_recurrent(block):
            ops = [op for op in block.ops if op.weights and op.module]
            return next((op.module for op in ops if op.kind == "recurrent"), ops[0].module if ops else block.name)
    return ""


def ranks(view: View) -> list[float]:
    """Effective ranks at the ends of the body's blocks, where they were measured."""
    found = view.at("rank")
    return [found[view.exit(block)] for block in view.body if view.exit(block) in found]
