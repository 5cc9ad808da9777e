"""A final figure against depth or another number: every seed a dot, a line through each arm's estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import MUTED, Series

WIDE = "width > 640"
"""Vega's test for a plot that has room for names beside its lines."""
NEAR = 0.35
"""How far from the values, as a share of their range, a reference level may lie to be shown."""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One run: the value of one seed, at a place of the axis."""

    series: str
    at: float
    seed: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An arm's finished estimate at one place of the axis; no `low` and `high` where there is no interval."""

    series: str
    at: float
    value: float
    low: float | None
    high: float | None
    n: int


def against_axis(
    dots: Sequence[Dot],
    marks: Sequence[Mark],
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str,
    describe: str,
    words: Mapping[str, str],
    percent: bool = False,
    legend: bool = False,
    tags: bool = False,
    reference: base.Reference | None = None,
    width: int | None = None,
    height: int = 300,
) -> Any:
    """Depth (or another positive number) on a log axis, the value on a linear one.

    Dots and whiskers stand beside one another, arm by arm and seed by seed, in a fixed order; only
    the place along x moves for that, never a value, and tooltips tell the place itself.

    Args:
        dots: raw values.
        marks: estimates, drawn as a line with whiskers.
        series: arms in order of drawing.
        x_title: title of the x axis.
        y_title: title of the value axis.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles for `seed`, `axis`, `interval`, `estimate`.
        percent: whether values are shares of one.
        legend: a legend in the figure; pages draw their own.
        tags: names at the ends of the lines, where the figure is wide enough for them.
        reference: left out where all of it is far from all values, and cut off where a part of it is.
        width: pixels; None fills the container.
        height: pixels of the plot.
    """
    base.finite("against_axis", [each.value for each in dots])
    base.known_series([each.series for each in dots], series)
    base.known_series([each.series for each in marks], series)
    tables = base.Tables()
    labels = base.labels_of(series)
    places = sorted({each.at for each in dots} | {each.at for each in marks})
    span = math.log(places[-1] / places[0]) or 1.0
    gap = min([span / 4, *(math.log(b / a) for a, b in pairwise(places))])
    seeds = sorted({each.seed for each in dots})
    step = gap * min(0.5 / max(len(series), 2), 0.1)

    right = places[-1] * math.exp(gap * 0.4)
    domain = base.within_shares(_domain(dots, marks)) if percent else _domain(dots, marks)
    if reference is not None:
        low, high = domain
        reach, room = NEAR * (high - low), 0.04 * (high - low)
        near = [level for level in reference.levels.values() if low - reach <= level <= high + reach]
        if near:  # a name stands above its line
            domain = (min(low, min(near) - room), max(high, max(near) + 3 * room))
        reference = reference if near else None

    def place(name: str, at: float, seed: int | None = None) -> float:
        index = [each.name for each in series].index(name)
        shift = step * (index - (len(series) - 1) / 2)
        if seed is not None and len(seeds) > 1:
            shift += 0.8 * step * (seeds.index(seed) / (len(seeds) - 1) - 0.5)
        return at * math.exp(shift)

    number = ".2%" if percent else ".4f"
    x = alt.X(
        "place:Q",
        scale=alt.Scale(
            type="log",
            nice=False,
            domainMin=places[0] * math.exp(-gap * 0.4),
            domainMax=alt.ExprRef(f"{WIDE} ? {right * math.exp(0.36 * span)!r} : {right!r}") if tags else right,
        ),
        axis=alt.Axis(title=x_title, values=places, format=",~g" if places[-1] >= 1 else "~g", labelOverlap="greedy"),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=base.value_axis(y_title, percent=percent, step=(domain[1] - domain[0]) * 40 / height),
    )
    dot_rows = [
        {
            "series": labels[each.series],
            "at": each.at,
            "seed": each.seed,
            "value": each.value,
            "place": place(each.series, each.at, each.seed),
        }
        for each in dots
    ]
    mark_rows = [
        {
            "series": labels[each.series],
            "at": each.at,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "n": each.n,
            "place": place(each.series, each.at),
        }
        for each in marks
    ]
    color = base.color_by_series(series, legend=legend)
    shape = base.shape_by_series(series, legend=False)
    told = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("at:Q", title=words["axis"]),
        alt.Tooltip("value:Q", title=words["estimate"], format=number),
        alt.Tooltip("low:Q", title=words["low"], format=number),
        alt.Tooltip("high:Q", title=words["high"], format=number),
        alt.Tooltip("n:Q", title="n"),
    ]
    estimates = alt.Chart(tables.add(mark_rows))
    line = estimates.mark_line(strokeWidth=2.5, strokeCap="round").encode(x=x, y=y, color=color)
    whisker = (
        alt.Chart(tables.add(each for each in mark_rows if each["low"] is not None and each["high"] is not None))
        .mark_rule(strokeWidth=2.5, opacity=0.45, strokeCap="round")
        .encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=color, tooltip=told)
    )
    point = estimates.mark_point(filled=True, size=95, opacity=1).encode(
        x=x, y=y, color=color, shape=shape, tooltip=told
    )
    dot = (
        alt.Chart(tables.add(dot_rows))
        .mark_point(filled=True, size=30, opacity=0.55)
        .encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=[
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("at:Q", title=words["axis"]),
                alt.Tooltip("seed:Q", title=words["seed"]),
                alt.Tooltip("value:Q", title=y_title, format=number),
            ],
        )
    )
    layers = [line, dot, point] if marks else [dot]
    if any(each.low is not None and each.high is not None for each in marks):
        layers.insert(0, whisker)
    if tags:
        ends = [max((each for each in marks if each.series == one.name), key=lambda each: each.at) for one in series]
        places = base.spread([_fraction(each.value, domain) * height for each in ends], 19)
        for one, end, to in zip(series, ends, places, strict=True):
            row = {"series": one.label, "place": place(series[-1].name, end.at), "value": end.value}
            # An invisible text would still take its room: on a narrow plot there is none.
            name = alt.ExprRef(f"{WIDE} ? datum.series : ''")
            tag = alt.Chart(tables.add([row])).mark_text(
                align="left",
                dx=14,
                dy=to - _fraction(end.value, domain) * height,
                fontSize=14,
                fontWeight=600,
                text=name,
            )
            layers.append(tag.encode(x=x, y=y, color=color))
    if reference is not None:
        look: dict[str, Any] = {"color": MUTED, "strokeWidth": 1, "strokeDash": [2, 3], "clip": True}
        levels = sorted((at, level) for at, level in reference.levels.items())
        if len({level for _, level in levels}) == 1:
            rule = alt.Chart(tables.add([{"value": levels[0][1]}])).mark_rule(**look).encode(y=y)
        else:
            line_of = alt.Chart(tables.add({"place": at, "value": level} for at, level in levels))
            rule = line_of.mark_line(**look).encode(x=x, y=y)
        first = next(level for _, level in levels if domain[0] <= level <= domain[1])
        named = alt.Chart(tables.add([{"value": first, "name": reference.name}]))
        name = named.mark_text(color=MUTED, align="left", baseline="bottom", dy=-3, fontSize=12)
        start = alt.XValue(2)  # type: ignore[no-untyped-call]
        layers = [rule, *layers, name.encode(y=y, x=start, text=alt.Text("name:N"))]
    return base.layered(layers, tables, width=width, height=height, describe=describe)


def _domain(dots: Sequence[Dot], marks: Sequence[Mark]) -> tuple[float, float]:
    """The y range: what is drawn, with room for half a symbol and no more.

    Round ends would leave a band without data, such as one above 100%.
    """
    ends = [edge for each in marks for edge in (each.value, each.low, each.high) if edge is not None]
    ends += [each.value for each in dots]
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low) or 0.05 * max(abs(high), 1e-12)
    return low - room, high + room


def _fraction(value: float, domain: tuple[float, float]) -> float:
    """Where a value stands between the top (0) and the bottom (1) of the plot."""
    low, high = domain
    return (high - value) / (high - low)
