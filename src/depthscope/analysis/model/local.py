"""One block whose numbers are unlike the others': a branch that is too large, a gain that is another, a cliff."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.rate import cliff_of
from depthscope.analysis.model.silent import place_of
from depthscope.analysis.model.verdict import Fault, Verdict
from depthscope.analysis.model.view import Sign, View, common_module, sign
from depthscope.core.structure import Block, ResidualAddition


def branch_sizes(view: View) -> dict[int, float]:
    """What is compared between like branches: |F| an entry where the branch holds a norm, else |F|/|x|.

    Behind a norm the size of F does not depend on x, so that |F|/|x| falls with depth as x grows and a branch that is
    too large hides in the trend. Without one F is proportional to x.
    """
    found: dict[int, float] = {}
    for addition in view.additions:
        ratio = view.ratios.get(addition.name)
        if ratio is None:
            continue
        size = view.rms(view.block_of(addition).index) if _normed(addition) else 1.0
        if math.isfinite(ratio * size):
            found[addition.index] = ratio * size
    return found


def _normed(addition: ResidualAddition) -> bool:
    return any(op.kind == "norm" for op in addition.branch)


def large_branch(view: View) -> Iterator[Fault]:
    """The branch that exceeds the median of its like by the greatest factor, where that is past the threshold."""
    sizes = branch_sizes(view)
    like: dict[Sign, list[ResidualAddition]] = defaultdict(list)
    for addition in view.additions:
        if addition.index in sizes:
            like[sign(addition.branch)].append(addition)
    worst: tuple[float, ResidualAddition, float] | None = None
    for group in like.values():
        for addition in group:
            others = [sizes[each.index] for each in group if each is not addition]
            if len(others) < 2 or not median(others) > 0:
                continue
            factor = sizes[addition.index] / median(others)
            if factor >= thresholds.BRANCH and (worst is None or factor > worst[0]):
                usual_ratio = median(view.ratios[each.name] for each in group if each is not addition)
                worst = (factor, addition, usual_ratio)
    if worst is None:
        return
    factor, addition, usual_ratio = worst
    ratio = view.ratios[addition.name]
    if ratio < max(usual_ratio, thresholds.LEAST_NORMED_RATIO if _normed(addition) else thresholds.LEAST_RATIO):
        return
    block = view.block_of(addition)
    place = common_module(addition.branch) or block.name
    numbers = {"ratio": ratio, "usual ratio": usual_ratio, "times its like": factor}
    yield Fault(
        verdict="branch-dominated",
        cause="branch scale",
        where=tuple(dict.fromkeys([place, block.name, addition.name])),
        sentence=words.branch(place, numbers),
        repair=words.repair("branch scale"),
        numbers=numbers,
        thresholds={"times its like": thresholds.BRANCH},
    )


def odd_gain(view: View) -> Iterator[Fault]:
    """A cliff: one block's multiplier is unlike those of blocks built alike; its cause by its weights' spread.

    A seam between stages, a projection of embeddings or the dense layer before a head have few like: none is judged.
    """
    multipliers = judged_multipliers(view)
    alike: dict[Sign, list[Block]] = defaultdict(list)
    for each in view.body:
        if each.name in multipliers:
            alike[sign(each.ops)].append(each)
    cliffs = [
        cliff_of({each.name: multipliers[each.name] for each in group}, least=thresholds.CLIFF)
        for group in alike.values()
        if len(group) >= thresholds.LEAST_ALIKE
    ]
    cliff = max(
        (each for each in cliffs if each is not None), key=lambda each: abs(math.log(each.factor)), default=None
    )
    if cliff is None:
        return
    block = next(each for each in view.body if each.name == cliff.name)
    own, usual = _spread(block), [each for each in map(_spread, alike[sign(block.ops)]) if each]
    numbers = {"multiplier": multipliers[cliff.name], "usual multiplier": cliff.median, "share": cliff.share}
    cause, inferred = "one block", False
    if own and len(usual) > 2:
        times = own / median(usual)
        if times > thresholds.SPREAD or times < 1.0 / thresholds.SPREAD:
            cause = "gain too large" if times > 1.0 else "gain too small"
            numbers |= {"sw2": own, "usual sw2": median(usual)}
    if cause == "one block":
        inferred = True
    verdict: Verdict = "exploding" if cliff.factor > 1.0 else "vanishing"
    place = place_of(view, block)
    yield Fault(
        verdict=verdict,
        cause=cause,
        where=tuple(dict.fromkeys([place, block.name])),
        sentence=words.cliff(cause, place, numbers),
        repair=words.repair(cause),
        numbers=numbers,
        thresholds={"multiplier, times or by": thresholds.CLIFF},
        inferred=inferred,
    )


def judged_multipliers(view: View) -> dict[str, float]:
    """The body's multipliers, less recurrent blocks' and that of the first where it is a residual one with a norm.

    A recurrent block mixes time steps with depth: read at its last step alone, a sequence has a gradient there alone.
    At the start the trunk may be far smaller than the first branch or the norm after it (embeddings have a spread of
    .02): the multiplier is then large once, and training proceeds: no fault of depth.
    """
    first = large_start(view)
    return {name: value for name, value in view.multipliers.items() if name != first and name not in view.recurrent}


def large_start(view: View) -> str:
    """Name of the block that `judged_multipliers` leaves out; empty where it is none."""
    if not (view.additions and view.body):
        return ""
    block = view.block_of(view.additions[0])
    normed = any(op.kind == "norm" for op in block.ops)
    early = block.index <= view.body[0].index + 1
    return block.name if normed and early and view.multipliers.get(block.name, 0.0) > 1.0 else ""


def _spread(block: Block) -> float:
    """Product of the sw2 of a block's layers; 0 where one is not known."""
    found = [op.facts.get("sw2", 0.0) for op in block.ops if op.kind in ("linear", "conv")]
    return math.prod(found) if found else 0.0
