"""One network by depth: a value a place between input and output, the expected ones beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import INK, MUTED, REFUTED, WASH, Series

LEAST_SPAN = 5.0
"""Greatest over least value of the axis, at least."""
MANY = 60
"""Places from which on marks are small."""
UPRIGHT = 9
"""Names that stand side by side; more are written upwards, where `labelOverlap` thins them."""
Shape = Literal["line", "dots", "stems"]


@dataclass(frozen=True, kw_only=True)
class DepthValue:
    """A value at a place.

    Attributes:
        series: name of its series.
        at: the place, from 0.
        name: of the place, for the tooltip.
        value: above zero.
        flagged: what a diagnosis points at.
        told: what the tooltip adds.
        band: of an expected value: in which a measured one agrees with it.
        piece: of an expected line that has gaps: which of its pieces.
    """

    series: str
    at: float
    name: str
    value: float
    flagged: bool = False
    told: str = ""
    band: tuple[float, float] | None = None
    piece: int = 0


def by_depth(
    values: Sequence[DepthValue],
    series: Sequence[Series],
    *,
    names: Sequence[str],
    describe: str,
    words: Mapping[str, str],
    y_title: str,
    x_title: str = "",
    expected: Sequence[DepthValue] = (),
    ends: Sequence[tuple[float, float]] = (),
    reference: float | None = None,
    shape: Shape = "line",
    width: int | None = None,
    height: int = 300,
) -> Any:
    """Places from the input (left) to the output on x, a log axis on y.

    Args:
        values: finished numbers above zero; those that a log axis cannot show must have been left out.
        series: quantities, or models, in order of drawing.
        names: of the places 0, 1, 2, ..., as the axis shows them.
        expected: drawn as a dashed line, or as ticks beside dots.
        ends: spans of x that are shaded: stem and head.
        reference: a level that the values are read against, such as 1.
        shape: a line, dots, or dots on stems from the reference.
        y_title: title of the value axis.
        x_title: title of the x axis.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles `place`, `value`, `expected`, `note`.
        width: pixels; None fills the container.
        height: pixels of the plot.

    Raises:
        ValueError: a value at or below zero, a series that was not declared.
    """
    base.finite("by_depth", [each.value for each in (*values, *expected)])
    base.known_series([each.series for each in (*values, *expected)], series)
    if any(each.value <= 0 for each in (*values, *expected)):
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    tables = base.Tables()
    labels = base.labels_of(series)
    shown = [each.value for each in (*values, *expected)] + ([reference] if reference else [])
    shown += [edge for each in expected for edge in each.band or ()]
    low, high = min(shown), max(shown)
    # Without a least span, a few percent of scatter would look like a trend.
    room = max((high / low) ** 0.06, math.sqrt(LEAST_SPAN * low / high))
    last = len(names) - 1
    crowded = len(names) > MANY
    x = alt.X("at:Q", scale=alt.Scale(domain=[0, last], nice=False, padding=8), axis=_names(names, x_title))
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=[low / room, high * room], nice=False),
        axis=base.value_axis(y_title, log=True),
    )
    color = base.color_by_series(series, legend=False)
    told = [
        alt.Tooltip("name:N", title=words["place"]),
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("value:Q", title=words["value"], format=".4~g"),
    ]
    layers = []
    if ends:
        spans = alt.Chart(tables.add({"at": low_end, "to": high_end} for low_end, high_end in ends))
        layers.append(spans.mark_rect(color=WASH, opacity=1).encode(x=x, x2=alt.X2("to:Q")))
    if reference is not None:
        level = alt.Chart(tables.add([{"value": reference}]))
        layers.append(level.mark_rule(color=MUTED, strokeWidth=1).encode(y=y))
    rows = tables.add(_row(each, labels) for each in values)
    chart = alt.Chart(rows)
    if shape == "stems":
        low_of_stem = alt.datum(reference if reference is not None else low / room)
        layers.append(
            chart.mark_rule(strokeWidth=1 if crowded else 2, opacity=0.55).encode(x=x, y=y, y2=low_of_stem, color=color)
        )
    elif shape == "line":
        layers.append(chart.mark_line(strokeWidth=2.2, strokeJoin="round").encode(x=x, y=y, color=color))
    if expected:
        theory = alt.Chart(tables.add(_row(each, labels) for each in expected))
        tips = [told[0], told[1], alt.Tooltip("value:Q", title=words["expected"], format=".4~g")]
        if shape != "line":
            bands = [_row(each, labels) for each in expected if each.band is not None]
            if bands:
                bar = alt.Chart(tables.add(bands)).mark_rule(color=INK, strokeWidth=3 if crowded else 9, opacity=0.13)
                layers.append(bar.encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q")))
            dash = theory.mark_tick(
                color=INK, thickness=1.6, size=5 if crowded else 13, opacity=0.9, orient="horizontal"
            )
            layers.append(dash.encode(x=x, y=y, tooltip=tips))
        else:
            dash = theory.mark_line(color=INK, strokeDash=[2, 4], strokeWidth=2, strokeCap="round")
            layers.append(dash.encode(x=x, y=y, detail=["series:N", "piece:N"], tooltip=tips))
    size = 14 if crowded else 34
    layers.append(
        chart.mark_point(filled=True, size=size, opacity=1).encode(
            x=x, y=y, color=color, shape=base.shape_by_series(series, legend=False)
        )
    )
    flagged = [each for each in values if each.flagged]
    if flagged:
        ring = alt.Chart(tables.add(_row(each, labels) for each in flagged))
        layers.append(ring.mark_point(color=REFUTED, size=3 * size + 40, strokeWidth=2, filled=False).encode(x=x, y=y))
    hits = chart.mark_point(filled=True, size=260, opacity=0).encode(
        x=x, y=y, tooltip=[*told, alt.Tooltip("told:N", title=words["note"])]
    )
    return base.layered([*layers, hits], tables, width=width, height=height, describe=describe)


def _row(each: DepthValue, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "series": labels[each.series],
        "at": each.at,
        "name": each.name,
        "value": each.value,
        "told": each.told or "–",
        "piece": each.piece,
        **({"low": each.band[0], "high": each.band[1]} if each.band is not None else {}),
    }


def _names(names: Sequence[str], title: str) -> alt.Axis:
    """An axis that says names for places. What the page's script reads is JSON, in which no `<` may stand."""
    listed = json.dumps(list(names), ensure_ascii=False)
    many = len(names) > UPRIGHT
    return alt.Axis(
        title=title or None,
        values=list(range(len(names))),
        labelExpr=f"({listed})[datum.value]",
        labelAngle=-90 if many else 0,
        labelAlign="right" if many else "center",
        labelBaseline="middle" if many else "top",
        labelOverlap="greedy",
        labelSeparation=6 if many else 3,  # upright, their lines are higher than the letters that are counted
        labelLimit=130 if many else 110,
        labelFontSize=11,
        tickOpacity=0.6,
        grid=False,
    )
