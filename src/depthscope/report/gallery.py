"""Which figures a study has: blocks of panels, drawn by the page and by the export alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from depthscope.analysis import places
from depthscope.analysis.headline import main_part
from depthscope.analysis.table import Results
from depthscope.analysis.units import squared
from depthscope.report import charts, content, ranking
from depthscope.report.checks import gradcheck_blocks
from depthscope.report.content import View
from depthscope.report.curvature import curvature_blocks
from depthscope.report.estimates import Estimates
from depthscope.report.guess import loss_reference, reference
from depthscope.report.named import metric_of
from depthscope.report.palette import FAINTEST, INK, ramp
from depthscope.report.profiles import profile_blocks
from depthscope.report.shapes import Block, Legend, Panel, legend_of
from depthscope.report.temporal import depth_key
from depthscope.report.words import Words
from depthscope.study.selection import is_selection

HERO_METRICS = ("train_accuracy", "train_accuracy_running", "test_accuracy", "train_loss", "train_loss_running")
MAX_TAGS = 12
"""Arms that have their names beside their lines; more would not stand apart, and get a legend."""
MAX_TAG = 34
"""Letters of such a name; where one is longer all go into the legend, which wraps."""
DEPTH_METRICS = ("train_accuracy", "test_accuracy", "train_loss", "test_loss")


def hero(results: Results, estimates: Estimates, words: Words) -> Block | None:
    """The study's main figure: its ranking, else the first metric in the first part that varies a number.

    The part of the lead comes before others, and of a part with further axes the place that the lead speaks of.
    A selection study has no figure at one tried value alone, which may be a losing one.
    """
    views = content.views(results, words)
    leading = main_part(results)
    if not is_selection(results.study) and (
        block := ranking.leading_block(results, views, leading and leading[0], words)
    ):
        return block
    metrics: tuple[str, ...] = HERO_METRICS
    if is_selection(results.study) and results.study.tuning is not None:
        views = tuple(view for view in views if results.study.tuning.field not in view.further)
        metrics = (results.study.tuning.metric, *metrics)
    for view in sorted(views, key=lambda view: leading is not None and view.part != leading[0]):
        if dict(view.further) != places.held(results, view.part, view.axis):
            continue
        for metric in metrics:
            panel = _depth_panel(view, metric, estimates, words, height=380, tags=True)
            if panel:
                block = _depth_block(view, (panel,), estimates, words, key=f"hero-{view.key}")
                return replace(block, **_standing(view, views, words))
    return None


def _standing(view: View, views: Sequence[View], words: Words) -> dict[str, Any]:
    """Of a figure's block: at which values of the further axes it stands, and where the others are."""
    others = [each for each in views if each.part == view.part and each.key != view.key]
    if not others:
        return {}
    varied = {axis for each in others for axis in each.further if each.further[axis] != view.further[axis]}
    here = words("list").join(
        words("axis_is", axis=words.axis(axis), value=places.written(value))
        for axis, value in view.further.items()
        if axis in varied
    )
    elsewhere = words("elsewhere_one" if len(others) == 1 else "elsewhere", count=len(others))
    return {"about": words("here", here=here), "notes": (elsewhere,)}


def blocks(
    results: Results, view: View, estimates: Estimates, words: Words, *, without: str | None = None
) -> list[Block]:
    """The blocks of one view, those alone for which there are data.

    Args:
        results: the study's.
        view: of those results.
        estimates: of those results.
        words: language.
        without: key of a panel that the page already shows.
    """
    panels = [panel for metric in DEPTH_METRICS if (panel := _depth_panel(view, metric, estimates, words))]
    panels = [panel for panel in panels if panel.key != without]
    found = [_depth_block(view, tuple(panels), estimates, words, key=f"depth-{view.key}")] if panels else []
    found += _curve_blocks(results, view, words)
    found += profile_blocks(results, view, words)
    found += curvature_blocks(results, view, words)
    found += gradcheck_blocks(results, view, words)
    return found


def _depth_panel(
    view: View, metric: str, estimates: Estimates, words: Words, *, height: int = 240, tags: bool = False
) -> Panel | None:
    dots = content.dots(view, metric)
    places = sorted({dot.at for dot in dots})
    if len(places) < 2 or not view.trained:
        return None
    drawn = {dot.series for dot in dots}
    series = tuple(each for each in view.series if each.name in drawn)
    title = metric_of(view.rows, metric, words)
    describe = words(
        "axis_describe",
        metric=title,
        axis=words.axis(view.axis),
        values=words("list").join(map(content.number_of, places)),
        arms=words("list").join(each.label for each in series),
    )
    made = estimates.marks(view, metric)

    percent = "accuracy" in metric
    guess = reference(view, metric, words)
    short = len(series) <= MAX_TAGS and all(len(each.label) <= MAX_TAG for each in series)
    tagged = tags and short and {mark.series for mark in made} == drawn

    def draw(*, width: int | None = None, height: int = height) -> object:
        return charts.against_axis(
            dots,
            made,
            series,
            x_title=words(depth_key(view.rows, "x_depth")) if view.axis == "depth" else words.axis(view.axis),
            y_title=title,
            describe=describe,
            words={
                "axis": words.axis(view.axis),
                **{key: words(key) for key in ("seed", "estimate")},
                **{key: words(key, level=estimates.level) for key in ("low", "high")},
            },
            percent=percent,
            tags=tagged,
            reference=guess,
            width=width,
            height=height,
        )

    return Panel(key=f"{view.key}-{metric}", title="", describe=describe, draw=draw, tagged=tagged)


def _depth_block(view: View, panels: tuple[Panel, ...], estimates: Estimates, words: Words, *, key: str) -> Block:
    ran = {row.cell.arm for row in view.rows if row.record is not None}
    return Block(
        kind="depth",
        key=key,
        heading=words("axis_section", axis=words.axis(view.axis)),
        caption=words(
            "axis_caption",
            level=estimates.level,
            axis=words.axis(view.axis),
            values=words("list").join(map(content.number_of, view.places)),
        ),
        panels=panels,
        legend=legend_of(tuple(each for each in view.series if each.name in ran)),
        tagged=all(panel.tagged for panel in panels),
    )


def _curve_blocks(results: Results, view: View, words: Words) -> list[Block]:
    for quantity in ("loss", "accuracy"):
        arms = content.arm_curves(results, view, quantity)
        if arms:
            panels = tuple(_curve_panel(view, each, arms, quantity, words) for each in arms)
            at_once = all(row.spec.batch_size is None for row in view.rows)
            kind = "full_batch" if at_once and arms[0].split == "train_running" else arms[0].split
            caption = words(f"curves_caption.{kind}", what=words(quantity))
            return [
                Block(
                    kind="curves",
                    key=f"curves-{view.key}",
                    heading=words("curves_section"),
                    caption=caption,
                    panels=panels,
                    legend=_shades(view, words) if len(view.places) > 3 else (),
                )
            ]
    return []


def _shades(view: View, words: Words) -> tuple[Legend, ...]:
    """Places of the axis in shades of the ink: each panel has them in its arm's own hue."""
    places = view.places
    return tuple(
        Legend(
            label=view.named(place, words),
            color=INK,
            strength=1 - FAINTEST * (len(places) - 1 - index) / (len(places) - 1),
        )
        for index, place in enumerate(places)
    )


def _curve_panel(
    view: View, arm: content.ArmCurves, arms: tuple[content.ArmCurves, ...], quantity: str, words: Words
) -> Panel:
    log = quantity == "loss" and content.spans_decades(arms)
    domain = content.curve_domain(arms, log=log, shares=quantity == "accuracy")
    span = content.curve_span(arms)
    places = view.places
    shades, dark = ramp(arm.series.color, len(places))
    guess = loss_reference(view, words) if quantity == "loss" else None
    y_title = words(quantity) if quantity == "accuracy" or squared(view.rows) else words.nats(words(quantity))
    describe = words(
        "curves_describe",
        what=words(quantity),
        arm=arm.series.label,
        axis=words.axis(view.axis),
        values=words("list").join(map(content.number_of, places)),
    )

    def draw(*, width: int | None = None, height: int = 230) -> object:
        return charts.training_curves(
            arm.curves,
            dict(zip(places, shades, strict=True)),
            x_title=words("epoch" if arm.in_epochs else "step"),
            y_title=y_title,
            describe=describe,
            words={"axis": words.axis(view.axis)},
            domain=domain,
            span=span,
            percent=quantity == "accuracy",
            log=log,
            reference=guess,
            width=width,
            height=height,
        )

    return Panel(
        key=f"curves-{view.key}-{arm.series.name}", title=arm.series.label, describe=describe, draw=draw, dark=dark
    )
