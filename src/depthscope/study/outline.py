"""What each claim of a plan will compare, in a line, before anything is run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from depthscope.study.cells import Cell, matching
from depthscope.study.claims import (
    Claim,
    LevelClaim,
    MonotoneClaim,
    NoDegradationClaim,
    SomeDifferenceClaim,
    TheoryClaim,
    confirmatory_at,
    judged_at,
    located_selects,
)
from depthscope.study.expand import Plan
from depthscope.study.scale import unit_of

ERROR_RATE = 0.05
"""Of the confirmatory claims together, and of each exploratory one."""


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What a claim will compare.

    Attributes:
        name: of the claim.
        confirmatory: whether it is a confirmatory one at this size.
        compares: the metric and the runs, in words.
        num_seeds: seeds that all of its sides have.
        seeds_if_equal: seeds it takes to decide where the values of all seeds are equal; None where it does not
            compare accuracies, which alone come out equal.
    """

    name: str
    confirmatory: bool
    compares: str
    num_seeds: int
    seeds_if_equal: int | None = None

    def __str__(self) -> str:
        star = "confirmatory" if self.confirmatory else "exploratory"
        seeds = "1 seed" if self.num_seeds == 1 else f"{self.num_seeds} seeds"
        line = f"{self.name} ({star}): {self.compares}; {seeds}"
        if self.seeds_if_equal is not None and self.num_seeds < self.seeds_if_equal:
            line += f" (where all values are equal it needs {self.seeds_if_equal} to decide)"
        return f"{line}."


def outlines(plan: Plan) -> tuple[Outline, ...]:
    """Of each claim that this size can judge, in the study's order."""
    study = plan.study
    claims = [claim for claim in study.claims if judged_at(claim, study.size)]
    family = sum(confirmatory_at(claim, study.size) for claim in claims)
    return tuple(_outline(plan, claim, family) for claim in claims)


def _outline(plan: Plan, claim: Claim, family: int) -> Outline:
    confirmatory = confirmatory_at(claim, plan.study.size)
    sides = [matching(plan.cells, claim.part, select) for _, select in located_selects(claim)]
    shared = set.intersection(*({cell.seed for cell in side} for side in sides))
    shared_by = len(claim.a) if isinstance(claim, SomeDifferenceClaim) else 1
    means = not isinstance(claim, LevelClaim | TheoryClaim)
    return Outline(
        name=claim.name,
        confirmatory=confirmatory,
        compares=f"{claim.metric} of {_compared(claim, sides)}",
        num_seeds=len(shared),
        seeds_if_equal=seeds_if_equal(ERROR_RATE / (family if confirmatory else 1) / shared_by)
        if means and unit_of(claim.metric) == "accuracy"
        else None,
    )


def seeds_if_equal(error_rate: float) -> int:
    """Seeds from which on equal values have an interval: that of their median, missed at a rate of 2^(1-n).

    >>> seeds_if_equal(0.05), seeds_if_equal(0.05 / 2)
    (6, 7)
    """
    return math.ceil(1 - math.log2(error_rate))


def _compared(claim: Claim, sides: Sequence[Sequence[Cell]]) -> str:
    match claim:
        case MonotoneClaim():
            return f"{_side(sides[0], along=claim.axis)}, step by step along {claim.axis}"
        case LevelClaim():
            return ", ".join(_side(side, each=True) for side in sides)
        case TheoryClaim():
            return f"{_side(sides[0])}, over what theory gives"
        case NoDegradationClaim():
            return f"{_side(sides[0])}, no worse than {_side(sides[1])} by more than {claim.margin:g}"
        case SomeDifferenceClaim():
            *each_a, b = sides
            return f"any of {len(each_a)} ({', '.join(_side(side) for side in each_a)}) minus {_side(b)}"
    pairs = [f"{_side(a)} minus {_side(b)}" for a, b in zip(sides[::2], sides[1::2], strict=True)]
    return pairs[0] if len(pairs) == 1 else f"({pairs[0]}) minus ({pairs[1]})"


def _side(cells: Sequence[Cell], *, along: str | None = None, each: bool = False) -> str:
    """The arm, the values of the axes that stand fast, and how many places of those that are free are averaged."""
    free, fixed = [], [cells[0].arm]
    for key in cells[0].axes:
        values = {repr(cell.axes[key]) for cell in cells}
        if len(values) > 1 and key != along:
            free.append(key)
        elif key != along:
            fixed.append(f"{key} {cells[0].axes[key]}")
    number = len({tuple(repr(value) for key, value in cell.axes.items() if key != along) for cell in cells})
    what = "each" if each else "mean"
    return " ".join(fixed) + (f" [{what} of {number} cells: {', '.join(free)} free]" if free else "")
