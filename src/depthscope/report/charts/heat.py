"""One quantity over training steps (left to right) and depth (input at the foot): a cell a block and step."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import MUTED, WASH

LEAST_FACTOR, MOST_FACTOR = 1.5, 1e3
"""The ends of the colours: a factor from 1, at least and at most."""
COLD, WARM = "#1f63c4", "#d9481c"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A value above zero of one place (from 0, the input's end) at one step."""

    step: int
    at: int
    value: float


def over_steps(
    cells: Sequence[Cell],
    *,
    names: Sequence[str],
    describe: str,
    words: Mapping[str, str],
    x_title: str,
    y_title: str,
    width: int | None = None,
    height: int = 300,
) -> Any:
    """Colour by the factor from 1: pale at 1, cold below, warm above, on a log scale.

    Args:
        cells: finished numbers above zero; steps are drawn side by side, whatever lies between them.
        names: of the places 0, 1, 2, ...; those without a cell get no row.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles `place`, `value`, `step`.
        x_title: title of the steps.
        y_title: what the colour shows.
        width: pixels; None fills the container.
        height: pixels of the plot.

    Raises:
        ValueError: a value at or below zero or not finite.
    """
    base.finite("over_steps", [each.value for each in cells])
    if any(each.value <= 0 for each in cells):
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    tables = base.Tables()
    widest = max(abs(math.log10(each.value)) for each in cells)
    end = min(max(widest, math.log10(LEAST_FACTOR)), math.log10(MOST_FACTOR))
    rows = tables.add(
        {
            "step": each.step,
            "at": each.at,
            "name": names[each.at],
            "value": each.value,
            "log": min(max(math.log10(each.value), -end), end),
        }
        for each in cells
    )
    listed = json.dumps(list(names), ensure_ascii=False)
    x = alt.X(
        "step:O",
        scale=alt.Scale(paddingInner=0.0, paddingOuter=0.0),
        axis=alt.Axis(title=x_title, labelAngle=0, labelOverlap="greedy", labelSeparation=6, format=",d", ticks=False),
    )
    y = alt.Y(
        "at:O",
        scale=alt.Scale(paddingInner=0.0, paddingOuter=0.0, domain=sorted({each.at for each in cells}, reverse=True)),
        axis=alt.Axis(
            title=None,
            labelExpr=f"({listed})[datum.value]",
            labelOverlap="greedy",
            labelSeparation=2,
            labelLimit=110,
            labelFontSize=11,
            ticks=False,
            domain=False,
        ),
    )
    color = alt.Color(
        "log:Q",
        scale=alt.Scale(domain=[-end, 0, end], range=[COLD, WASH, WARM], interpolate="lab"),
        legend=alt.Legend(
            title=y_title,
            orient="top",
            type="gradient",
            gradientLength=200,
            gradientThickness=10,
            values=[-end, 0, end],
            labelExpr="format(pow(10, datum.value), '.2~r')",
            labelFontSize=12,
            titleFontWeight="normal",
            titleFontSize=12,
            titleColor=MUTED,
        ),
    )
    told = [
        alt.Tooltip("name:N", title=words["place"]),
        alt.Tooltip("step:Q", title=words["step"], format=",d"),
        alt.Tooltip("value:Q", title=words["value"], format=".4~g"),
    ]
    chart = alt.Chart(rows).mark_rect(stroke=None).encode(x=x, y=y, color=color, tooltip=told)
    return base.sized(chart, tables, width=width, height=height, describe=describe)
