"""The scale of a claim: its unit, and a bound that what it judges can pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from depthscope.core.errors import shown
from depthscope.study.metrics import SUMMARY


class Bound(NamedTuple):
    """A claim's bound on something made from accuracies, and where that can lie.

    Attributes:
        field: what the study file calls the number.
        given: the number.
        expect: on which side of `than` the claim wants it.
        than: the bound itself, which `given` may stand for with the other sign.
        low: the least that it can be where the metric lies in 0 to 1.
        high: the most.
    """

    field: str
    given: float
    expect: Literal["at_least", "at_most"]
    than: float
    low: float
    high: float


def unit_of(metric: str) -> str:
    """The unit of a figure of a summary; empty for a pure number, and for what a probe of the user's measured.

    >>> unit_of("test_accuracy"), unit_of("train_loss"), unit_of("dh_factor_first")
    ('accuracy', 'nats', '')
    """
    if metric not in SUMMARY:
        return ""
    return "accuracy" if "accuracy" in metric else "nats" if "loss" in metric else ""


def unit_faults(metric: str, unit: str) -> Iterator[tuple[str, str]]:
    """(field, message) where a known figure is given a unit that is not its own."""
    own = unit_of(metric)
    if metric in SUMMARY and unit not in ("", own):
        wanted = f"wanted {own!r}, or leave it away" if own else "it is a pure number; leave it away"
        yield "unit", f"no unit of {metric!r}: {wanted}; got {shown(unit)}."


def bound_faults(metric: str, bound: Bound) -> Iterator[tuple[str, str]]:
    """(field, message) where an accuracy cannot miss the bound, or cannot meet it, whatever is measured."""
    if unit_of(metric) != "accuracy":
        return
    at_least = bound.expect == "at_least"
    if bound.than <= bound.low if at_least else bound.than >= bound.high:
        what = "fail"
    elif bound.than > bound.high if at_least else bound.than < bound.low:
        what = "hold"
    else:
        return
    meant = f": for {bound.given:g} points write {bound.given / 100:g}" if abs(bound.given) > 1 else ""
    yield (
        bound.field,
        f"an accuracy is a fraction of 1 (0.02 is 2 points), so with {bound.given:g} "
        f"the claim could never {what}{meant}.",
    )
