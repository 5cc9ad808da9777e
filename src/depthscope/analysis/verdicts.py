"""What a verdict is made of: an interval against a bound, and what runs without a figure allow."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from depthscope.analysis.finding import Estimate, Verdict
from depthscope.analysis.notes import joined, note
from depthscope.analysis.rounding import same, scale_of_operands
from depthscope.analysis.samples import Census
from depthscope.study.claims import Expect

Says = Literal["against", "for", "unknown"]
"""What a run that diverged says of a claim."""

CHANGES = frozenset({"difference", "difference_in_differences", "no_degradation", "monotone", "some_difference"})
"""Kinds of claim whose judged estimates are paired differences."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict with what it was made from.

    Attributes:
        verdict: see the table of `judging`.
        estimates: the judged estimate (or, for several cells, estimates) first, then what it was made from.
        num_judged: how many of the estimates carry the verdict.
        num_met: how many of those, the first, meet the bound of a claim that takes one of several.
        census: what became of the runs.
        said: what the runs that diverged say of the claim, where they were taken out of an interval.
    """

    verdict: Verdict
    estimates: tuple[Estimate, ...]
    num_judged: int
    num_met: int = 0
    census: Census
    said: tuple[Says, ...] = ()


def against(low: float | None, high: float | None, expect: Expect, than: float, scale: float = 0.0) -> Verdict:
    """The verdict of an interval on a bound; without an interval undecided.

    An end that differs from the bound by rounding alone lies on it, and what lies on a bound keeps it.

    Args:
        low: lower end of the interval, or None.
        high: upper end.
        expect: on which side of the bound the interval must lie.
        than: the bound.
        scale: the largest number that the interval was made from, where that is larger than its ends.

    >>> against(0.1, 0.3, "at_least", 0.0), against(-0.1, 0.3, "at_least", 0.0), against(0.1, 0.3, "at_most", 0.0)
    ('supported', 'undecided', 'refuted')
    """
    if low is None or high is None:
        return "undecided"
    if expect == "at_most":
        low, high, than = -high, -low, -than
    scale = max(scale, scale_of_operands((low, high, than)))
    if low >= than or same(low, than, scale):
        return "supported"
    return "refuted" if high < than and not same(high, than, scale) else "undecided"


def all_hold(verdicts: Sequence[Verdict]) -> Verdict:
    """Refuted by one, supported by all."""
    if "refuted" in verdicts:
        return "refuted"
    return "supported" if verdicts and set(verdicts) == {"supported"} else "undecided"


def diverged_value(metric: str) -> float | None:
    """What a run that diverged would have shown: worse than any bound; None where a metric has no worse side.

    >>> diverged_value("train_loss"), diverged_value("test_accuracy"), diverged_value("dh_factor_first")
    (inf, -inf, None)
    """
    if "loss" in metric:
        return math.inf
    return -math.inf if "accuracy" in metric else None


def divergence_says(value: float | None, expect: Expect) -> Says:
    """What a run says that would have moved the judged number to this side without bound.

    >>> divergence_says(math.inf, "at_most"), divergence_says(math.inf, "at_least"), divergence_says(None, "at_most")
    ('against', 'for', 'unknown')
    """
    if value is None:
        return "unknown"
    return "against" if (value > 0) == (expect == "at_most") else "for"


def of_survivors(verdict: Verdict, said: Collection[Says]) -> Verdict:
    """The verdict of an interval that some runs were taken out of because they diverged.

    The survivors were selected by what is being judged. So they may confirm what the others say, and
    never overrule it.

    >>> of_survivors("supported", {"against"}), of_survivors("refuted", {"against"}), of_survivors("refuted", {"for"})
    ('undecided', 'refuted', 'undecided')
    """
    overruled = {"supported": {"against", "unknown"}, "refuted": {"for", "unknown"}, "undecided": set[str]()}
    return "undecided" if overruled[verdict] & set(said) else verdict


def noted(estimate: Estimate, counts: Census, said: Collection[Says] = ()) -> Estimate:
    """The estimate, its note joined with what became of the runs and what those that diverged say."""
    phrases = [*([estimate.note] if estimate.note else []), *counts.notes("en"), *(note(each) for each in sorted(said))]
    return estimate.model_copy(update={"note": joined(phrases)})
