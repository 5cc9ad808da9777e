"""A residual block that is built unlike the others: without its addition, without a norm, with one on the trunk.

The body's operations are one sequence; residual additions cut it into stretches, each from after one addition to
the next. In a net of like blocks the stretches repeat. Against those that occur at least twice, a stretch that occurs
once is

- two of them one after the other, with the same shape before, between and after: the addition between them is
  **missing** (between stages, where the shape changes, there is none to miss);
- one of them less one norm: that **norm is missing**;
- one of them with one norm more: it stands **on the trunk** (or twice in the branch).

Structure alone names these, so the numbers beside them say what they do to this model: the block's own
multiplier and ratio against the median of its like. The first stretch and the last are not judged: stems and heads
differ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.verdict import Fault, Verdict
from depthscope.analysis.model.view import PASSING, Sign, View, common_module, sign
from depthscope.core.structure import Op

Placed = tuple[Op, str]
"""An operation and the name of its block."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Operations from after one residual addition to the next, that addition left out."""

    ops: tuple[Op, ...]
    blocks: tuple[str, ...]
    addition: int

    @property
    def sign(self) -> Sign:
        """Kinds and names."""
        return sign(self.ops)


def stretches(view: View) -> list[Stretch]:
    """The body cut at its additions."""
    found: list[Stretch] = []
    run: list[Placed] = []
    order = [index for block in view.body for index in block.additions]
    numbered = any(_is_numbered(op) for block in view.body for op in block.ops if op.kind == "norm")
    for block in view.body:
        for op in block.ops:
            if op.kind != "residual":
                # The norm at the end of a stack of like blocks (`encoder.norm` before a decoder) is part of none.
                if op.kind != "norm" or not numbered or _is_numbered(op):
                    run.append((op, block.name))
                continue
            if len(found) >= len(order):
                return []  # more additions than were named: not a sequence that can be cut
            at = order[len(found)]
            found.append(
                Stretch(ops=tuple(each for each, _ in run), blocks=tuple(name for _, name in run), addition=at)
            )
            run = []
    return found


def _is_numbered(op: Op) -> bool:
    return any(letter.isdigit() for letter in op.module)


def odd_blocks(view: View) -> Iterator[Fault]:
    """One fault for each stretch that is built unlike the others."""
    cut = stretches(view)
    counts = Counter(each.sign for each in cut)
    usual = {each for each, count in counts.items() if count >= 2 and each}
    for before, stretch in pairwise(cut):
        if counts[stretch.sign] != 1:
            continue
        half = _doubled(stretch, usual)
        if half:
            if not _same_shape(view, before, stretch, half):
                continue
            kept = [op for op in stretch.ops if op.kind not in PASSING][:half]
            own = [op for op in kept if op.weights]
            yield _fault(view, "missing skip", stretch, common_module(own) or stretch.blocks[half - 1])
        elif any(_less_one_norm(each, stretch.sign) for each in usual):
            yield _fault(view, "missing norm", stretch, _place(view, stretch))
        elif any(_less_one_norm(stretch.sign, each) for each in usual):
            yield _fault(view, "norm on the trunk", stretch, _place(view, stretch))


def _place(view: View, stretch: Stretch) -> str:
    addition = view.structure.additions[stretch.addition]
    return common_module(addition.branch) or view.block_of(addition).name


def _doubled(stretch: Stretch, usual: set[Sign]) -> int:
    """Length of the first of two usual stretches that this one consists of; 0 where it does not."""
    for first in usual:
        if stretch.sign[: len(first)] == first and stretch.sign[len(first) :] in usual:
            return len(first)
    return 0


def _same_shape(view: View, before: Stretch, stretch: Stretch, half: int) -> bool:
    kept = [name for op, name in zip(stretch.ops, stretch.blocks, strict=True) if op.kind not in PASSING]
    ends = {block.name: view.structure.boundaries[block.index + 1].shape for block in view.body}
    additions = (view.structure.additions[each.addition] for each in (before, stretch))
    return len({ends[kept[half - 1]], *(ends[view.block_of(each).name] for each in additions)}) == 1


def _less_one_norm(longer: Sign, shorter: Sign) -> bool:
    if len(longer) != len(shorter) + 1:
        return False
    return any(
        longer[index][0] == "norm" and longer[:index] + longer[index + 1 :] == shorter for index in range(len(longer))
    )


def _fault(view: View, cause: str, stretch: Stretch, place: str) -> Fault:
    blocks = dict.fromkeys(name for op, name in zip(stretch.ops, stretch.blocks, strict=True) if op.weights)
    names = [name for name in blocks if name in view.multipliers and _within(name, place)]
    own = math.prod(view.multipliers[name] for name in names) if names else math.nan
    others = [value for name, value in view.multipliers.items() if name not in blocks]
    usual = median(others) if others else math.nan
    ratio = view.ratios.get(view.structure.additions[stretch.addition].name, math.nan)
    ratios = [
        view.ratios[each.name] for each in view.additions if each.index != stretch.addition and each.name in view.ratios
    ]
    usual_ratio = median(ratios) if ratios else math.nan
    numbers = {"multiplier": own, "usual multiplier": usual}
    if cause != "missing skip":
        numbers |= {"ratio": ratio, "usual ratio": usual_ratio}
    numbers = {name: value for name, value in numbers.items() if math.isfinite(value)}
    verdict: Verdict = "not depth"
    if cause == "missing skip" or (ratio > 1.0 and ratio > thresholds.BRANCH * usual_ratio):
        verdict = "branch-dominated"
    elif own > thresholds.CLIFF * usual:
        verdict = "exploding"
    elif own < usual / thresholds.CLIFF:
        verdict = "vanishing"
    where = tuple(dict.fromkeys([place, *names]))
    return Fault(
        verdict=verdict,
        cause=cause,
        where=where,
        sentence=words.odd(cause, place, numbers),
        repair=words.repair(cause),
        numbers=numbers,
        inferred=True,
    )


def _within(name: str, place: str) -> bool:
    """Whether a block lies in a module, or holds it."""
    bare = name.split(":")[0]
    return bare == place or bare.startswith(f"{place}.") or place.startswith(f"{bare}.")
