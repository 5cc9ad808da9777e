"""The pictures of a watched training: its losses, and each block's multiplier and ratio over the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from depthscope.core.readings import Course, Place
from depthscope.report import charts
from depthscope.report.charts.heat import Cell
from depthscope.report.model.curves import DECADES, binned, until_infinite
from depthscope.report.model.places import axis_names, fits
from depthscope.report.palette import Series
from depthscope.report.shapes import Block, Panel, legend_of
from depthscope.report.words import Words

MOST_STEPS = 120
"""Columns of a heat map; of more records, some evenly."""
ROW, LEAST_HEIGHT, MOST_HEIGHT = 17, 120, 520
"""Pixels: of a row, and of the plot."""


def course_pictures(course: Course | None, words: Words) -> list[Block]:
    """Every picture that there are numbers for; a heat map from two steps on."""
    if course is None:
        return []
    blocks = {each.name: each.index for each in course.profile.structure.blocks}
    structure = course.profile.structure
    additions = {structure.additions[index].name: each.index for each in structure.blocks for index in each.additions}
    found = (
        _losses(course, words),
        _heat(course, words, "block", "grad_multiplier", blocks, "multipliers"),
        _heat(course, words, "addition", "residual_ratio", additions, "ratios"),
    )
    return [each for each in found if each is not None]


def _losses(course: Course, words: Words) -> Block | None:
    series = (
        Series(name="training", label=words("course.training"), color="#d9481c", shape="circle"),
        Series(name="validation", label=words("course.validation"), color="#1f63c4", shape="square"),
    )
    lines = []
    for each, curve in zip(series, (course.losses, course.validations), strict=True):
        finite = curve[: len(until_infinite([value for _, value in curve]))]
        if len(finite) > 1:
            lines.append(binned(each.name, None, [value for _, value in finite], [step for step, _ in finite]))
    if not lines:
        return None
    drawn = tuple(each for each in series if any(line.series == each.name for line in lines))
    values = [value for line in lines for value in line.y]
    low, high = min(values), max(values)
    log = low > 0 and high / low > DECADES
    domain = (low / 1.1, high * 1.1) if log else (min(low, 0.0), high * 1.03 if high > 0 else 1.0)
    steps = [step for line in lines for step in line.x]

    def draw(*, width: int | None = None, height: int = 240) -> Any:
        return charts.lines_by_series(
            lines,
            drawn,
            x_title=words("course.step"),
            y_title=words("compare.loss"),
            describe=words("course.losses_caption"),
            domain=domain,
            span=(min(steps), max(steps)),
            log=log,
            width=width,
            height=height,
        )

    panel = Panel(key="losses", title="", describe=words("course.losses_caption"), draw=draw)
    return _block("losses", panel, words, legend=drawn)


def _heat(course: Course, words: Words, place: Place, quantity: str, at: Mapping[str, int], key: str) -> Block | None:
    readings = [
        each
        for each in course.profile.readings
        if each.place == place and each.quantity == quantity and each.name in at
    ]
    steps = sorted({each.step for each in readings})
    every = -(-len(steps) // MOST_STEPS)
    shown = {*steps[::every], *steps[-1:]} if steps else set()
    # Of two additions in a block the later one is drawn: a cell has one colour.
    last = {(each.step, at[each.name]): each.value for each in readings if each.step in shown}
    cells = [Cell(step=step, at=row, value=value) for (step, row), value in last.items() if fits(value)]
    if len({each.step for each in cells}) < 2:
        return None
    names, _ = axis_names(course.profile.structure, words("model.input"))
    tall = min(max(ROW * len({each.at for each in cells}), LEAST_HEIGHT), MOST_HEIGHT)
    title = words(f"course.{key}_title")
    describe = words("course.describe", what=title, n=len(shown))

    def draw(*, width: int | None = None, height: int = tall) -> Any:
        return charts.over_steps(
            cells,
            names=names[1:],
            describe=describe,
            words={"place": words("model.place"), "value": words("model.value"), "step": words("course.step")},
            x_title=words("course.step"),
            y_title=title,
            width=width,
            height=height,
        )

    left_out = len(last) - len(cells)
    notes = (words("course.left_out", n=left_out),) if left_out else ()
    return _block(key, Panel(key=f"course-{key}", title="", describe=describe, draw=draw), words, notes=notes)


def _block(
    key: str, panel: Panel, words: Words, *, legend: tuple[Series, ...] = (), notes: tuple[str, ...] = ()
) -> Block:
    return Block(
        kind="course",
        key=f"course-{key}" if key != "losses" else key,
        heading=words(f"course.{key}_section"),
        caption=words(f"course.{key}_caption"),
        panels=(panel,),
        legend=legend_of(legend) if len(legend) > 1 else (),
        notes=notes,
        stacked=True,
    )
