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
    if not _normed(addition) and ratio < thresholds.LEAST_RATIO:
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
    """A cliff: one block's multiplier is unlike the others'; its cause by its weights' spread and its zeros."""
    multipliers = judged_multipliers(view)
    cliff = cliff_of(multipliers, least=thresholds.CLIFF)
    if cliff is None:
        return
    block = next(each for each in view.body if each.name == cliff.name)
    own, usual = _spread(block), [each for each in map(_spread, view.body) if each]
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
    """The body's multipliers, less that of the first block where it is a residual one behind a norm.

    There the trunk may start far smaller than the first branch (GPT-2's embeddings have a spread of .02): the
    multiplier is then large once, |F|/|x| at the first addition says so, and training proceeds: no fault of depth.
    """
    found = dict(view.multipliers)
    if view.additions and _normed(view.additions[0]) and view.body:
        first = view.block_of(view.additions[0]).name
        if first in found and view.additions[0].block <= view.body[0].index + 1 and found[first] > 1.0:
            del found[first]
    return found


def _spread(block: Block) -> float:
    """Product of the sw2 of a block's layers; 0 where one is not known."""
    found = [op.facts.get("sw2", 0.0) for op in block.ops if op.kind in ("linear", "conv")]
    return math.prod(found) if found else 0.0
