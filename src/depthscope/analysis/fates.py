"""How the runs of trained variants ended: completed, diverged, failed, or completed without having learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from depthscope.record.variants import VariantRun

DECIDES = "train_loss"
AT_CHANCE = (0.98, 1.02)
"""Shares of a uniform guess's loss between which a variant is said to be at chance; higher, to be above it."""


@dataclass(frozen=True, kw_only=True)
class Fate:
    """How the runs of one variant ended.

    Attributes:
        arm: its name.
        num_runs: with all seeds.
        diverged: seeds whose run diverged.
        failed: seeds whose run failed.
        reason: of the first that did not complete.
        chance: (mean training loss, that of a uniform guess) where the first is at chance or above.
    """

    arm: str
    num_runs: int
    diverged: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    reason: str = ""
    chance: tuple[float, float] | None = None

    @property
    def above_chance(self) -> bool:
        """Whether it ended worse than a uniform guess."""
        return self.chance is not None and self.chance[0] > AT_CHANCE[1] * self.chance[1]


def arms_of(runs: Sequence[VariantRun]) -> tuple[str, ...]:
    """The variants in order; the first is the one that the others are compared with."""
    return tuple(dict.fromkeys(run.arm for run in runs))


def fates(runs: Sequence[VariantRun]) -> tuple[Fate, ...]:
    """How each variant's runs ended."""
    found = []
    for arm in arms_of(runs):
        own = [run for run in runs if run.arm == arm]
        found.append(
            Fate(
                arm=arm,
                num_runs=len(own),
                diverged=tuple(run.seed for run in own if run.outcome.status == "diverged"),
                failed=tuple(run.seed for run in own if run.outcome.status == "failed"),
                chance=_chance(own),
                reason=next((run.outcome.reason or "" for run in own if run.outcome.status != "completed"), ""),
            )
        )
    return tuple(found)


def _chance(runs: Sequence[VariantRun]) -> tuple[float, float] | None:
    losses = [run.figures[DECIDES] for run in runs if DECIDES in run.figures]
    classes = {each.num_classes for run in runs if run.first for each in run.first.conditions.values()}
    known = [each for each in classes if each and each > 1]
    if not losses or len(classes) != 1 or not known:
        return None
    mean, chance = math.fsum(losses) / len(losses), math.log(known[0])
    return (mean, chance) if mean >= AT_CHANCE[0] * chance else None
