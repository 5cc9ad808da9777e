"""A claim's estimates against its margin: one strip, to be stacked to a forest plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from depthscope.analysis.finding import Estimate, Finding
from depthscope.report.charts import base
from depthscope.report.palette import INK, MUTED, REFUTED, SUPPORTED, UNDECIDED, WASH

VERDICT_COLOR = {"supported": SUPPORTED, "refuted": REFUTED, "undecided": UNDECIDED}
ROW = 44
"""Pixels a row: the interval, and below it the single values."""


def claim_interval(
    finding: Finding,
    judged: Sequence[tuple[str, Estimate]],
    *,
    describe: str,
    words: Mapping[str, str],
    x_title: str | None = None,
    percent: bool = False,
    zero: bool = False,
    possible: tuple[float, float] = (-math.inf, math.inf),
    width: int | None = None,
) -> Any:
    """Value, interval and single values of each judged estimate, with the margin and the side that the claim names.

    Args:
        finding: gives verdict, margin and side.
        judged: (row label, estimate) of those that the verdict was made from.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles for `estimate`, `low`, `high`, `margin`, `each_seed`.
        x_title: title of the value axis.
        percent: whether values are shares of one.
        zero: whether 0 ("no difference") belongs into the picture: values are differences, of shares in points.
        possible: where a value can lie at all; the axis ends there.
        width: pixels; None fills the container.

    Raises:
        ValueError: no estimate has a value; there is nothing to draw.
    """
    rows = [(label, estimate) for label, estimate in judged if estimate.value is not None]
    if not rows:
        raise ValueError(f"figure: the claim {finding.claim!r} has no estimate to draw.")
    tables = base.Tables()
    wanted = wanted_range(finding, rows[0][1].unit)
    low, high = extent(wanted, [estimate for _, estimate in rows], zero=zero, possible=possible)
    ticks = 5
    format_ = base.percents((high - low) / ticks) if percent else "~g"
    # A difference of two percentages is no percentage: it is told in points, as the text does.
    label = f"format(100 * datum.value, '{format_[:-1]}f')" if percent and zero else alt.Undefined
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(title=x_title, tickCount=ticks, grid=False, domain=True, format=format_, labelExpr=label),
    )
    y = alt.Y(
        "row:N",
        sort=None,
        scale=alt.Scale(type="point", domain=[label for label, _ in rows], padding=0.5),
        axis=alt.Axis(title=None, labelLimit=170, domain=False, ticks=False) if len(rows) > 1 else None,
    )
    color = VERDICT_COLOR[finding.verdict]
    number = ".3%" if percent else ".4g"
    region = tables.add([{"x": max(wanted[0], low), "x2": min(wanted[1], high)}])
    edges = tables.add({"x": edge, "label": words["margin"]} for edge in wanted if low <= edge <= high)
    layers: list[Any] = [
        alt.Chart(region).mark_rect(color=WASH, opacity=1).encode(x=x, x2=alt.X2("x2:Q")),
        alt.Chart(edges)
        .mark_rule(color=MUTED, strokeWidth=1.2, strokeDash=[4, 3])
        .encode(x=x, tooltip=[alt.Tooltip("label:N", title=" ")]),
    ]
    bars = [
        {"row": label, "x": max(estimate.low, low), "x2": min(estimate.high, high)}
        for label, estimate in rows
        if estimate.low is not None and estimate.high is not None
    ]
    singles = [
        {"row": label, "x": value}
        for label, estimate in rows
        for value in estimate.values
        if math.isfinite(value) and estimate.unit != "fraction"
    ]
    points = [{"row": label, "x": each.value, "low": each.low, "high": each.high} for label, each in rows]
    if bars:
        interval = alt.Chart(tables.add(bars)).mark_rule(color=color, strokeWidth=6, opacity=0.4, strokeCap="round")
        layers.append(interval.encode(x=x, x2=alt.X2("x2:Q"), y=y))
    if singles:
        dots = alt.Chart(tables.add(singles)).mark_point(color=color, filled=True, size=24, opacity=0.6, yOffset=13)
        layers.append(dots.encode(x=x, y=y, tooltip=[alt.Tooltip("x:Q", format=number, title=words["each_seed"])]))
    told = [
        alt.Tooltip("x:Q", format=number, title=words["estimate"]),
        alt.Tooltip("low:Q", format=number, title=words["low"]),
        alt.Tooltip("high:Q", format=number, title=words["high"]),
    ]
    diamond = alt.Chart(tables.add(points)).mark_point(
        color=color, filled=True, size=150, opacity=1, shape="diamond", stroke=INK, strokeWidth=0
    )
    layers.append(diamond.encode(x=x, y=y, tooltip=told))
    return base.layered(layers, tables, width=width, height=ROW * len(rows), describe=describe)


def wanted_range(finding: Finding, unit: str) -> tuple[float, float]:
    """(low, high) of the values that would agree with the claim."""
    if unit == "fraction":  # a claim about every run is judged by the share that satisfies it
        return 1.0, math.inf
    if finding.expect == "at_least":
        return finding.margin, math.inf
    if finding.expect == "at_most":
        return -math.inf, finding.margin
    return 1 - finding.margin, 1 + finding.margin


def extent(
    wanted: tuple[float, float],
    estimates: Sequence[Estimate],
    *,
    zero: bool,
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """The stretch of the axis: all that is drawn, with room so that the wanted side is seen as a side.

    The room ends with what is possible: there is no accuracy of 110% to be shaded.
    """
    shown = [edge for edge in wanted if math.isfinite(edge)]
    for each in estimates:
        shown += [value for value in (each.value, each.low, each.high, *each.values) if value is not None]
    shown = [value for value in shown if math.isfinite(value)]
    if zero:
        shown.append(0.0)
    low, high = min(shown), max(shown)
    room = 0.12 * (high - low) or 0.1 * max(abs(high), 1e-12)
    return max(low - room, min(low, possible[0])), min(high + room, max(high, possible[1]))
