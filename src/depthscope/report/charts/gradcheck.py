"""Gradient check: how far backpropagation and differences disagree, against the step size of the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import INK

# None of them an arm's colour: here a line is a method.
METHOD_COLOR = {"central": "#7b4bb3", "five_point": "#c2881b", "complex": INK}


@dataclass(frozen=True, kw_only=True)
class CheckPoint:
    """Relative error of one method at one step size; `kind` is `median` or `worst`."""

    method: str
    h: float
    kind: str
    value: float


def gradient_check(
    points: Sequence[CheckPoint],
    *,
    methods: Mapping[str, str],
    kinds: Mapping[str, str],
    x_title: str,
    y_title: str,
    describe: str,
    domain: tuple[float, float],
    legend: bool = False,
    width: int | None = None,
    height: int = 250,
) -> Any:
    """Both axes logarithmic: a line by method, full for the median and dashed for the worst.

    A method with a single step size (the complex step, whose h may be as small as one likes) is a
    level line across the figure.

    Args:
        points: finished numbers, above zero.
        methods: method -> name for readers.
        kinds: `median` and `worst` -> names for readers.
        domain: of y, the same for panels that stand side by side.
        x_title: title of the x axis.
        y_title: title of the value axis.
        describe: what a reader who cannot see the figure is told.
        legend: a legend in the figure; pages draw their own.
        width: pixels; None fills the container.
        height: pixels of the plot.
    """
    values = base.finite("gradient_check", [each.value for each in points])
    if min(values) <= 0 or any(each.h <= 0 for each in points):
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    unknown = sorted({each.method for each in points} - set(METHOD_COLOR))
    if unknown:
        raise ValueError(f"figure: unknown methods {unknown}; known: {sorted(METHOD_COLOR)}.")
    tables = base.Tables()
    used = [method for method in METHOD_COLOR if any(each.method == method for each in points)]
    sizes = {method: {each.h for each in points if each.method == method} for method in used}
    level = {method for method in used if len(sizes[method]) == 1}
    if level == set(used):  # nothing to draw against h: every method a dot at its own h
        level = set()
    color = alt.Color(
        "method:N",
        scale=alt.Scale(domain=[methods[each] for each in used], range=[METHOD_COLOR[each] for each in used]),
        legend=alt.Legend(symbolType="stroke") if legend else None,
    )
    dash = alt.StrokeDash(
        "kind:N",
        scale=alt.Scale(domain=[kinds["median"], kinds["worst"]], range=[[1, 0], [2, 4]]),
        legend=alt.Legend(symbolType="stroke") if legend else None,
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=list(domain), nice=False),
        axis=base.value_axis(y_title, log=True),
    )
    x = alt.X("h:Q", scale=alt.Scale(type="log", nice=False), axis=base.log_axis(x_title, scale="x", grid=False))

    def rows(wanted: set[str]) -> Any:
        return tables.add(
            {"method": methods[each.method], "h": each.h, "kind": kinds[each.kind], "value": each.value}
            for each in points
            if each.method in wanted
        )

    told = [
        alt.Tooltip("method:N", title=" "),
        alt.Tooltip("kind:N", title=" "),
        alt.Tooltip("h:Q", title="h", format=".0e"),
        alt.Tooltip("value:Q", title=y_title, format=".2e"),
    ]
    moving = alt.Chart(rows(set(used) - level))
    layers = [
        moving.mark_line(strokeWidth=2.2).encode(x=x, y=y, color=color, strokeDash=dash),
        moving.mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=color, tooltip=told),
    ]
    if level:
        flat = alt.Chart(rows(level)).mark_rule(strokeWidth=2.2)
        layers.append(flat.encode(y=y, color=color, strokeDash=dash, tooltip=told))
    return base.layered(layers, tables, width=width, height=height, describe=describe)
