"""What answering without a look at the inputs comes to: the line at chance in figures of accuracy and of loss."""

from __future__ import annotations

import math

from depthscope.analysis.units import squared
from depthscope.report.charts.base import Reference
from depthscope.report.content import View
from depthscope.report.numbers import number
from depthscope.report.recipe import chance
from depthscope.report.words import Words

TEXT = ("names", "shakespeare")
"""Data sets of text, whose chance is how often each character stands."""
OF_CHANCE = ("train_loss", "train_loss_running")
"""The figures that `RunRecord.chance_loss` is of: it is taken on the training examples.

Losses on others have no line: the best constant answer there is another, which no record holds.
"""


def reference(view: View, metric: str, words: Words) -> Reference | None:
    """The line of chance in the figure of a metric, or None where it is not known."""
    if "accuracy" in metric:
        share = chance(view)
        if share is None:
            return None
        name = words("chance", value=number(share, "accuracy"))
        return Reference(name=name, levels=dict.fromkeys(view.places, share))
    return loss_reference(view, words) if metric in OF_CHANCE else None


def level(view: View, metric: str, words: Words) -> tuple[str, float] | None:
    """(name with its value, level) of chance where it is the same at all depths, for a figure with no axis of depth."""
    found = reference(view, metric, words)
    levels = set(found.levels.values()) if found is not None else set()
    return (found.name, levels.pop()) if found is not None and len(levels) == 1 else None


def loss_reference(view: View, words: Words) -> Reference | None:
    """The line of chance for training losses; its name has the value where it is the same everywhere."""
    levels = chance_losses(view)
    if not levels:
        return None
    name = words(f"chance_loss.{_kind(view)}")
    told = set(levels.values())
    if len(told) == 1:
        name = words("chance_at", what=name, value=number(told.pop()))
    return Reference(name=name, levels=levels)


def chance_losses(view: View) -> dict[float, float]:
    """The loss at chance by place on the view's axis, the mean over its seeds where each draws data of its own.

    Empty where some place has no record that tells it, or where runs of one place and seed differ in it.
    """
    found: dict[float, dict[int, set[float]]] = {place: {} for place in view.places}
    for row in view.rows:
        if row.record is not None and row.record.chance_loss is not None:
            found[view.at(row)].setdefault(row.cell.seed, set()).add(row.record.chance_loss)
    if not all(found.values()) or any(len(each) > 1 for seeds in found.values() for each in seeds.values()):
        return {}
    return {place: math.fsum(sum(each) for each in seeds.values()) / len(seeds) for place, seeds in found.items()}


def _kind(view: View) -> str:
    if squared(view.rows):
        return "regression"
    return "text" if all(row.spec.data in TEXT for row in view.rows) else "classes"
