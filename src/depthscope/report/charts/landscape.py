"""A loss landscape as a map: shades, isolines, the network at the centre, the value of a point on hover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import MUTED

LIGHT, DARK = "#fffffe", "#0e1630"
"""Of lines on dark and on pale shades. Neither has a twin: a map keeps its colours on dark paper."""
WAY = "#ff5a36"
"""Of a training's path."""

HEIGHT = 400
"""Pixels of a map that is as wide as its container, until it is drawn."""


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """A line of equal value; `pale` where the shades under it are."""

    level: float
    pale: bool
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Written:
    """A number in the gap of its line."""

    text: str
    pale: bool
    a: float
    b: float


@dataclass(frozen=True, kw_only=True)
class Map:
    """What is drawn, finished.

    Attributes:
        picture: the shades as an image in a data URL, a pixel a point; transparent where no number is.
        coordinates: of the points along both axes, in order, evenly apart.
        values: (name for readers, a number or None a point), along the first axis first.
        strokes: isolines.
        written: their numbers.
        odd: (a, b, what it is) of the points where the value is not finite.
        missing: (a, b) of the points that have no value yet.
        way: (a, b, name) of a training's steps in order.
    """

    picture: str
    coordinates: Sequence[float]
    values: Sequence[tuple[str, Sequence[float | None]]]
    strokes: Sequence[Stroke] = ()
    written: Sequence[Written] = ()
    odd: Sequence[tuple[float, float, str]] = ()
    missing: Sequence[tuple[float, float]] = ()
    way: Sequence[tuple[float, float, str]] = field(default=())


def loss_map(
    drawn: Map,
    *,
    x_title: str,
    y_title: str,
    describe: str,
    words: Mapping[str, str],
    hover: bool = True,
    width: int | None = None,
) -> Any:
    """A square map. Without a width it fills its container, which makes it as high as wide.

    Args:
        drawn: finished numbers, shades and lines.
        x_title: of the first axis, along the foot.
        y_title: of the second.
        describe: what a reader who cannot see the figure is told.
        words: `a`, `b`, `missing`, `step` for tooltips.
        hover: whether a point tells its values; of no use in a figure that stands still, so not with a width.
        width: pixels; None fills the container.

    Raises:
        ValueError: no coordinates, or as many values as no square has.
    """
    num = len(drawn.coordinates)
    if num < 2 or any(len(values) != num * num for _, values in drawn.values):
        raise ValueError(f"figure: a map of {num} x {num} points needs as many values of each kind.")
    tables = base.Tables()
    cell = (drawn.coordinates[-1] - drawn.coordinates[0]) / (num - 1)
    ends = [drawn.coordinates[0] - cell / 2, drawn.coordinates[-1] + cell / 2]
    scale = alt.Scale(domain=ends, nice=False, zero=False)
    axis: dict[str, Any] = {"tickCount": 5, "grid": False, "domain": False, "tickSize": 4}
    x = alt.X("a:Q", scale=scale, axis=alt.Axis(title=x_title, ticks=True, **axis))
    y = alt.Y("b:Q", scale=scale, axis=alt.Axis(title=y_title, ticks=True, **axis))
    tone = alt.Color("pale:N", scale=alt.Scale(domain=["false", "true"], range=[LIGHT, DARK]), legend=None)
    wide: Any = {"expr": "width"} if width is None else width
    high: Any = {"expr": "height"} if width is None else width
    middle = tables.add([{"a": (ends[0] + ends[1]) / 2, "b": (ends[0] + ends[1]) / 2, "url": drawn.picture}])
    image = alt.Chart(middle).mark_image(width=wide, height=high, aspect=False, smooth=False)
    layers = [image.encode(x=x, y=y, url="url:N")]
    layers += _unknown(drawn, tables, x, y, cell)
    line = alt.Chart(
        tables.add(
            {"a": a, "b": b, "line": index, "pale": str(each.pale).lower()}
            for index, each in enumerate(drawn.strokes)
            for a, b in each.points
        )
    )
    # Without an order Vega-Lite would join the points by their place along x.
    line = line.transform_window(at="row_number()").mark_line(
        strokeWidth=1, opacity=0.75, clip=True, strokeCap="round", interpolate="linear"
    )
    layers.append(line.encode(x=x, y=y, detail=alt.Detail("line:N"), order=alt.Order("at:Q"), color=tone))
    text = alt.Chart(
        tables.add({"a": e.a, "b": e.b, "text": e.text, "pale": str(e.pale).lower()} for e in drawn.written)
    ).mark_text(fontSize=10.5, fontWeight=500)
    layers.append(text.encode(x=x, y=y, text=alt.Text("text:N"), color=tone))
    if hover and width is None:
        layers.append(_told(drawn, tables, x, y, cell, words))
    layers += _way(drawn, tables, x, y, words)
    layers += _centre(tables, x, y)
    return base.layered(layers, tables, width=width, height=width or HEIGHT, describe=describe)


def _unknown(drawn: Map, tables: base.Tables, x: Any, y: Any, cell: float) -> list[Any]:
    """Points whose value is not finite are hatched; those that have none yet are left as a dot."""
    layers = []
    if drawn.odd:
        rows = tables.add(
            {"a": a - cell / 2, "b": b - cell / 2, "a2": a + cell / 2, "b2": b + cell / 2} for a, b, _ in drawn.odd
        )
        hatch = alt.Chart(rows)
        layers.append(
            hatch.mark_rect(color=MUTED, opacity=0.25, aria=False).encode(
                x=x, y=y, x2=alt.X2("a2:Q"), y2=alt.Y2("b2:Q")
            )
        )
        layers.append(
            hatch.mark_rule(color=MUTED, strokeWidth=1, aria=False).encode(
                x=x, y=y, x2=alt.X2("a2:Q"), y2=alt.Y2("b2:Q")
            )
        )
    if drawn.missing:
        dots = alt.Chart(tables.add({"a": a, "b": b} for a, b in drawn.missing))
        layers.append(dots.mark_point(filled=True, size=4, color=MUTED, opacity=0.7, aria=False).encode(x=x, y=y))
    return layers


def _told(drawn: Map, tables: base.Tables, x: Any, y: Any, cell: float, words: Mapping[str, str]) -> Any:
    """Unseen cells, for the pointer alone."""
    odd = {(a, b): what for a, b, what in drawn.odd}
    absent = set(drawn.missing)
    num = len(drawn.coordinates)
    rows = []
    for index in range(num * num):
        a, b = drawn.coordinates[index % num], drawn.coordinates[index // num]
        row: dict[str, Any] = {"i": index}
        row |= {f"v{at}": values[index] for at, (_, values) in enumerate(drawn.values)}
        if (a, b) in odd or (a, b) in absent:
            row["what"] = odd.get((a, b), words["missing"])
        rows.append(row)
    first, half = drawn.coordinates[0], cell / 2
    chart = alt.Chart(tables.add(rows)).transform_calculate(
        at_a=f"{first!r} + {cell!r} * (datum.i % {num})", at_b=f"{first!r} + {cell!r} * floor(datum.i / {num})"
    )
    chart = chart.transform_calculate(
        a=f"datum.at_a - {half!r}",
        a2=f"datum.at_a + {half!r}",
        b=f"datum.at_b - {half!r}",
        b2=f"datum.at_b + {half!r}",
        told="isValid(datum.what) ? datum.what : format(datum.v0, '.4~g')",
    )
    tips = [
        alt.Tooltip("at_a:Q", title=words["a"], format=".3~f"),
        alt.Tooltip("at_b:Q", title=words["b"], format=".3~f"),
        alt.Tooltip("told:N", title=drawn.values[0][0]),
        *(alt.Tooltip(f"v{at}:Q", title=name, format=".4~g") for at, (name, _) in enumerate(drawn.values) if at),
    ]
    return chart.mark_rect(opacity=0, aria=False).encode(x=x, y=y, x2=alt.X2("a2:Q"), y2=alt.Y2("b2:Q"), tooltip=tips)


def _way(drawn: Map, tables: base.Tables, x: Any, y: Any, words: Mapping[str, str]) -> list[Any]:
    """The path of a training, as far as it lies in the square."""
    if not drawn.way:
        return []
    rows = tables.add({"a": a, "b": b, "name": name, "at": at} for at, (a, b, name) in enumerate(drawn.way))
    path = alt.Chart(rows)
    told = [alt.Tooltip("name:N", title=words["step"])]
    under = path.mark_line(color=LIGHT, strokeWidth=4, opacity=0.85, clip=True)
    over = path.mark_line(color=WAY, strokeWidth=2, clip=True)
    dots = path.mark_point(filled=True, size=26, color=WAY, opacity=1, stroke=LIGHT, strokeWidth=0.8, clip=True)
    return [
        under.encode(x=x, y=y, order=alt.Order("at:Q")),
        over.encode(x=x, y=y, order=alt.Order("at:Q")),
        dots.encode(x=x, y=y, tooltip=told),
    ]


def _centre(tables: base.Tables, x: Any, y: Any) -> list[Any]:
    """Where the network itself is."""
    at = alt.Chart(tables.add([{"a": 0.0, "b": 0.0}]))
    return [
        at.mark_point(shape="cross", filled=True, size=170, aria=False, color=LIGHT, opacity=1).encode(x=x, y=y),
        at.mark_point(shape="cross", filled=True, size=76, aria=False, color=DARK, opacity=1).encode(x=x, y=y),
    ]


def shade_bar(
    picture: str,
    *,
    low: float,
    high: float,
    log: bool,
    levels: Sequence[tuple[float, bool]],
    title: str,
    describe: str,
    width: int | None = None,
) -> Any:
    """The scale of shades that maps share, with a line for each isoline.

    Args:
        picture: the shades from `low` to `high` as an image in a data URL.
        low: value at the left.
        high: value at the right.
        log: whether the scale is logarithmic.
        levels: (value, whether its shade is pale) of the isolines.
        title: what the shades show.
        describe: what a reader who cannot see the figure is told.
        width: pixels; None fills the container.
    """
    tables = base.Tables()
    height = 14
    kind: dict[str, Any] = {"type": "log"} if log else {"type": "linear", "zero": False}
    scale = alt.Scale(domain=[low, high], nice=False, **kind)
    axis = alt.Axis(
        title=title,
        titleAnchor="start",
        values=[value for value, _ in levels],
        format="~g",
        labelOverlap="greedy",
        labelSeparation=6,
        grid=False,
        domain=False,
        tickSize=3,
    )
    x = alt.X("x:Q", scale=scale, axis=axis)
    wide: Any = {"expr": "width"} if width is None else width
    image = alt.Chart(tables.add([{"x": low, "url": picture}])).mark_image(
        width=wide, height=height, aspect=False, align="left"
    )
    lines = alt.Chart(tables.add({"x": value, "pale": str(pale).lower()} for value, pale in levels))
    tone = alt.Color("pale:N", scale=alt.Scale(domain=["false", "true"], range=[LIGHT, DARK]), legend=None)
    layers = [
        image.encode(x=x, y=alt.value(height / 2), url="url:N"),
        lines.mark_rule(strokeWidth=1, opacity=0.8).encode(x=x, color=tone),
    ]
    return base.layered(layers, tables, width=width, height=height, describe=describe)
