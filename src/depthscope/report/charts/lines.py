"""Lines of several models in one plot: a strong one each, thin ones for its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import Series


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line. `seed` is None for the line that stands for all seeds; `names` are of its points, for the tooltip."""

    series: str
    seed: int | None
    x: tuple[float, ...]
    y: tuple[float, ...]
    names: tuple[str, ...] = ()


def lines_by_series(
    lines: Sequence[Line],
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str,
    describe: str,
    domain: tuple[float, float],
    span: tuple[float, float],
    log: bool = False,
    percent_x: bool = False,
    width: int | None = None,
    height: int = 260,
) -> Any:
    """Colour by series.

    Args:
        lines: of seeds, and those that stand for them; on a log axis above zero.
        series: in order of drawing.
        x_title: title of the x axis.
        y_title: title of the value axis.
        describe: what a reader who cannot see the figure is told.
        domain: of y.
        span: of x.
        log: whether y is logarithmic.
        percent_x: whether x is a share of one.
        width: pixels; None fills the container.
        height: pixels of the plot.

    Raises:
        ValueError: a value that cannot be shown, a series that was not declared.
    """
    base.finite("lines_by_series", [value for each in lines for value in each.y])
    base.known_series([each.series for each in lines], series)
    if log and any(value <= 0 for each in lines for value in each.y):
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    tables = base.Tables()
    labels = base.labels_of(series)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=list(span), nice=False),
        axis=alt.Axis(title=x_title, tickCount=5, format=".0%")
        if percent_x
        else base.whole_axis(x_title, span, ticks=5),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=list(domain), type="log" if log else "linear", nice=False, clamp=True),
        axis=base.value_axis(y_title, log=log),
    )
    color = base.color_by_series(series, legend=False)

    def rows(seeds: bool) -> Any:
        return tables.add(
            {
                "series": labels[each.series],
                "seed": each.seed,
                "x": each.x[at],
                "y": each.y[at],
                "name": each.names[at] if each.names else "",
            }
            for each in lines
            if (each.seed is not None) == seeds
            for at in range(len(each.x))
        )

    layers = []
    if any(each.seed is not None for each in lines):
        thin = alt.Chart(rows(seeds=True)).mark_line(strokeWidth=1, opacity=0.35, clip=True)
        layers.append(thin.encode(x=x, y=y, color=color, detail=alt.Detail("seed:N")))
    strong = alt.Chart(rows(seeds=False))
    layers.append(strong.mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=color))
    told = [
        alt.Tooltip("series:N", title=" "),
        *([alt.Tooltip("name:N", title="  ")] if any(each.names for each in lines) else []),
        alt.Tooltip("x:Q", title=x_title, format=".0%" if percent_x else "~g"),
        alt.Tooltip("y:Q", title=y_title, format=".4~g"),
    ]
    layers.append(strong.mark_point(size=160, opacity=0, filled=True).encode(x=x, y=y, tooltip=told))
    return base.layered(layers, tables, width=width, height=height, describe=describe)
