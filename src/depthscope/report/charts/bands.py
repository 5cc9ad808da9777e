"""What was measured now and then in a training: a band between two values of an arm, or a line, by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.charts.lines import Line
from depthscope.report.palette import MUTED, Series


@dataclass(frozen=True, kw_only=True)
class Band:
    """From the lower to the upper values of one arm."""

    series: str
    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A dashed line that lines are read against: of one arm, or of all where `series` is None."""

    series: str | None
    x: tuple[float, ...]
    y: tuple[float, ...]


def by_step(
    series: Sequence[Series],
    *,
    bands: Sequence[Band] = (),
    lines: Sequence[Line] = (),
    bounds: Sequence[Bound] = (),
    x_title: str,
    y_title: str,
    describe: str,
    words: dict[str, str],
    domain: tuple[float, float],
    span: tuple[float, float],
    log: bool = False,
    width: int | None = None,
    height: int = 230,
) -> Any:
    """Colour by arm; a sign, of the arm's own shape, at each step at which it was measured.

    Args:
        series: the arms, in order of drawing.
        bands: filled, one an arm.
        lines: of seeds, thin, and those that stand for them; or of nothing.
        bounds: cut off where they leave the range.
        x_title: title of the x axis.
        y_title: title of the value axis.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles of `low` and `high`.
        domain: of y.
        span: of x.
        log: whether y is logarithmic; all values are then above zero.
        width: pixels; None fills the container.
        height: pixels of the plot.

    Raises:
        ValueError: a value that cannot be shown, an arm that was not declared.
    """
    values = [value for each in bands for value in (*each.low, *each.high)] + [y for each in lines for y in each.y]
    base.finite("by_step", [*values, *(y for each in bounds for y in each.y)])
    base.known_series([*(each.series for each in bands), *(each.series for each in lines)], series)
    base.known_series([each.series for each in bounds if each.series is not None], series)
    if log and min(values) <= 0:
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    tables = base.Tables()
    labels = base.labels_of(series)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=list(span), nice=False),
        axis=base.whole_axis(x_title, span, ticks=4),
    )
    scale = alt.Scale(domain=list(domain), type="log" if log else "linear", nice=False, clamp=True, zero=False)
    axis = base.value_axis(y_title, log=log)
    color, shape = base.color_by_series(series, legend=False), base.shape_by_series(series, legend=False)
    layers = []
    for bound in bounds:
        points = [{"x": at, "y": value} for at, value in zip(bound.x, bound.y, strict=True)]
        own = next((each.color for each in series if each.name == bound.series), MUTED)
        dashed = alt.Chart(tables.add(points)).mark_line(strokeDash=[4, 4], strokeWidth=1.5, color=own, clip=True)
        # Not clamped: beyond the range it goes out of the picture, not along its edge.
        y = alt.Y("y:Q", scale=alt.Scale(**{**scale.to_dict(), "clamp": False}), axis=axis)
        layers.append(dashed.encode(x=x, y=y))
    if bands:
        rows = [
            {"series": labels[each.series], "x": at, "low": low, "high": high}
            for each in bands
            for at, low, high in zip(each.x, each.low, each.high, strict=True)
        ]
        chart = alt.Chart(tables.add(rows))
        low, high = alt.Y("low:Q", scale=scale, axis=axis), alt.Y2("high:Q")
        layers.append(chart.mark_area(opacity=0.28, clip=True).encode(x=x, y=low, y2=high, color=color))
        told = [
            alt.Tooltip("series:N", title=" "),
            alt.Tooltip("x:Q", title=x_title, format="~g"),
            *(alt.Tooltip(f"{key}:Q", title=words[key], format=".4~g") for key in ("low", "high")),
        ]
        for key in ("low", "high"):
            y = alt.Y(f"{key}:Q", scale=scale, axis=axis)
            layers.append(chart.mark_line(strokeWidth=1.5, clip=True).encode(x=x, y=y, color=color))
            dots = chart.mark_point(filled=True, size=26, opacity=1)
            layers.append(dots.encode(x=x, y=y, color=color, shape=shape, tooltip=told))
    for thin in (True, False):
        drawn = [each for each in lines if (each.seed is not None) == thin]
        if not drawn:
            continue
        chart = alt.Chart(
            tables.add(
                {"series": labels[each.series], "seed": each.seed, "x": at, "y": value}
                for each in drawn
                for at, value in zip(each.x, each.y, strict=True)
            )
        )
        y = alt.Y("y:Q", scale=scale, axis=axis)
        mark = chart.mark_line(strokeWidth=1 if thin else 2.5, opacity=0.4 if thin else 1, clip=True)
        layers.append(mark.encode(x=x, y=y, color=color, detail=alt.Detail("seed:N")))
        if not thin:
            told = [
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("x:Q", title=x_title, format="~g"),
                alt.Tooltip("y:Q", title=y_title, format=".4~g"),
            ]
            dots = chart.mark_point(filled=True, size=50, opacity=1)
            layers.append(dots.encode(x=x, y=y, color=color, shape=shape, tooltip=told))
    return base.layered(layers, tables, width=width, height=height, describe=describe)
