"""A quantity along a line through a network: one line a direction and seed, broken where it is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import MUTED, Series


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One line; `name` tells it from the others of its series, and the strong one stands for them."""

    series: str
    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    strong: bool = True


def along_a_line(
    slices: Sequence[Slice],
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str,
    describe: str,
    domain: tuple[float, float],
    log: bool = False,
    percent: bool = False,
    width: int | None = None,
    height: int = 260,
) -> Any:
    """Colour by series, and a rule at 0, where the network is.

    Args:
        slices: None where a value is not finite.
        series: in order of drawing.
        x_title: title of the x axis.
        y_title: title of the value axis.
        describe: what a reader who cannot see the figure is told.
        domain: of y.
        log: whether y is logarithmic.
        percent: whether values are shares of one.
        width: pixels; None fills the container.
        height: pixels of the plot.

    Raises:
        ValueError: no finite value, a value that a log axis cannot show, a series that was not declared.
    """
    values = base.finite("along_a_line", [value for each in slices for value in each.y if value is not None])
    base.known_series([each.series for each in slices], series)
    if log and min(values) <= 0:
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    tables = base.Tables()
    labels = base.labels_of(series)
    span = [min(each.x[0] for each in slices), max(each.x[-1] for each in slices)]
    x = alt.X("x:Q", scale=alt.Scale(domain=span, nice=False), axis=alt.Axis(title=x_title, tickCount=5))
    step = (domain[1] - domain[0]) * 40 / height
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=list(domain), type="log" if log else "linear", nice=False, clamp=True),
        axis=base.value_axis(y_title, log=log, percent=percent, step=step),
    )
    color = base.color_by_series(series, legend=False)
    centre = alt.Chart(tables.add([{"x": 0.0}])).mark_rule(color=MUTED, strokeDash=[2, 3], strokeWidth=1)
    layers = [centre.encode(x=x)]
    for strong in (False, True):
        rows = [
            {"series": labels[each.series], "name": each.name, "x": at, "y": value}
            for each in slices
            if each.strong == strong
            for at, value in zip(each.x, each.y, strict=True)
        ]
        if rows:
            chart = alt.Chart(tables.add(rows))
            line = chart.mark_line(strokeWidth=2.5 if strong else 1, opacity=1 if strong else 0.4, clip=True)
            layers.append(line.encode(x=x, y=y, color=color, detail=alt.Detail("name:N")))
            told = [
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("name:N", title="  "),
                alt.Tooltip("x:Q", title="a", format=".3~f"),
                alt.Tooltip("y:Q", title=y_title, format=".1%" if percent else ".4~g"),
            ]
            if strong:
                hits = chart.mark_point(size=120, opacity=0, filled=True)
                layers.append(hits.encode(x=x, y=y, tooltip=told))
    return base.layered(layers, tables, width=width, height=height, describe=describe)
