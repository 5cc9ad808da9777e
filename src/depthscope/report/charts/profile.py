"""The profile: one value a layer, input end on the left, on a log axis, at a step that can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import INK, Series

QUANTITY, AT = "shown_quantity", "shown_at"
"""Names of the figure's parameters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerValue:
    """The middle, smallest and largest value of the seeds at one layer, quantity and step."""

    series: str
    at: int
    quantity: str
    layer: int
    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Level:
    """A value of the whole network, which those of its layers are read against."""

    series: str
    quantity: str
    value: float


@dataclass(frozen=True, kw_only=True)
class TheoryPoint:
    """An expected value at one layer."""

    series: str
    quantity: str
    layer: int
    value: float


def layer_profile(
    values: Sequence[LayerValue],
    series: Sequence[Series],
    *,
    quantities: Mapping[str, str],
    steps: Sequence[str],
    quantity: str,
    at: int,
    x_title: str,
    describe: str,
    words: Mapping[str, str],
    theory: Sequence[TheoryPoint] = (),
    levels: Sequence[Level] = (),
    domains: Mapping[str, tuple[float, float]] | None = None,
    y_title: str | None = None,
    legend: bool = False,
    width: int | None = None,
    height: int = 330,
) -> Any:
    """One network depth; an arm a line, the seeds' range a band.

    The figure has two parameters, `shown_quantity` (a key of `quantities`) and `shown_at` (an index
    into `steps`), with which a page or a Vega editor moves through training. The y axis of a quantity
    keeps its range over all steps, so that a movement is a movement of the values.

    Args:
        values: finished numbers; those that a log axis cannot show must have been left out.
        series: arms in order of drawing.
        quantities: key -> name for readers.
        steps: names of the steps, by `LayerValue.at`.
        quantity: where the figure starts.
        at: likewise.
        theory: expected values, drawn dashed (they hold at initialisation, so only there).
        levels: of the whole network, drawn across in the arm's colour.
        domains: of y by quantity, where panels share them; by default those of the values.
        y_title: title of the value axis; None leaves it to the page's selector.
        x_title: title of the x axis.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles of `layer`, `position`, `median`, `lowest`, `highest`, `theory`, `intact`.
        legend: a legend in the figure; pages draw their own.
        width: pixels; None fills the container.
        height: pixels of the plot.

    Raises:
        ValueError: a value at or below zero, an arm, quantity or step that was not declared.
    """
    base.finite("layer_profile", [bound for each in values for bound in (each.value, each.low, each.high)])
    base.known_series([each.series for each in values], series)
    base.known_series([*(each.series for each in theory), *(each.series for each in levels)], series)
    if any(each.low <= 0 for each in values) or any(each.value <= 0 for each in levels):
        raise ValueError("figure: a log axis cannot show a value at or below zero; leave it out and say so.")
    if not {each.quantity for each in values} <= set(quantities) or quantity not in quantities:
        raise ValueError(f"figure: quantities are {sorted(quantities)}; got others.")
    if not all(0 <= each.at < len(steps) for each in values) or not 0 <= at < len(steps):
        raise ValueError(f"figure: steps are numbered 0 to {len(steps) - 1}; got another.")
    tables = base.Tables()
    labels = base.labels_of(series)
    bounds = dict(domains) if domains is not None else domains_of(values, (*theory, *levels))
    low, high = (_lookup({key: pair[side] for key, pair in bounds.items()}) for side in (0, 1))
    last = max(each.layer for each in values)
    param_quantity = alt.param(name=QUANTITY, value=quantity)
    param_at = alt.param(name=AT, value=at)
    x = alt.X(
        "layer:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=base.whole_axis(x_title, (0, last), ticks=8)
    )
    scale = alt.Scale(type="log", domainMin=alt.ExprRef(low), domainMax=alt.ExprRef(high), nice=False)
    y = alt.Y("value:Q", scale=scale, axis=base.value_axis(y_title, log=True, ratio=f"({high}) / ({low})"))
    color = base.color_by_series(series, legend=legend)
    shown = f"datum.quantity == {QUANTITY} && datum.at == {AT}"
    rows = [
        {
            "series": labels[each.series],
            "at": each.at,
            "quantity": each.quantity,
            "layer": each.layer,
            "name": each.name,
            "value": each.value,
            "low": each.low,
            "high": each.high,
        }
        for each in values
    ]
    chart = alt.Chart(tables.add(rows)).transform_filter(shown)
    band = chart.mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=color)
    line = chart.mark_line(strokeWidth=2.2, strokeJoin="round").encode(x=x, y=y, color=color)
    point = chart.mark_point(filled=True, size=22, opacity=1).encode(
        x=x, y=y, color=color, shape=base.shape_by_series(series, legend=False)
    )
    hits = chart.mark_point(filled=True, size=260, opacity=0).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("series:N", title=" "),
            alt.Tooltip("name:N", title=words["layer"]),
            alt.Tooltip("layer:Q", title=words["position"]),
            alt.Tooltip("value:Q", title=words["median"], format=".3e"),
            alt.Tooltip("low:Q", title=words["lowest"], format=".3e"),
            alt.Tooltip("high:Q", title=words["highest"], format=".3e"),
        ],
    )
    layers = [band, line, point, hits]
    if levels:
        across = [{"series": labels[each.series], "quantity": each.quantity, "value": each.value} for each in levels]
        rule = alt.Chart(tables.add(across)).transform_filter(f"datum.quantity == {QUANTITY}")
        told = [alt.Tooltip("series:N", title=" "), alt.Tooltip("value:Q", title=words["intact"], format=".3e")]
        layers.insert(1, rule.mark_rule(strokeDash=[5, 4], strokeWidth=1.8).encode(y=y, color=color, tooltip=told))
    if theory:
        base.finite("theory", [each.value for each in theory])
        expected = [
            {
                "series": labels[each.series],
                "quantity": each.quantity,
                "layer": each.layer,
                "value": each.value,
                "theory": words["theory"],
            }
            for each in theory
        ]
        dashed = (
            alt.Chart(tables.add(expected))
            .transform_filter(f"datum.quantity == {QUANTITY} && {AT} == 0")
            .mark_line(strokeDash=[2, 4], strokeWidth=2, color=INK, strokeCap="round")
            .encode(
                x=x,
                y=y,
                detail=alt.Detail("series:N"),
                tooltip=[alt.Tooltip("theory:N", title=" "), alt.Tooltip("series:N")],
            )
        )
        layers.append(dashed)
    layers[0] = layers[0].add_params(param_quantity, param_at)  # Altair lifts them up to the figure
    return base.layered(layers, tables, width=width, height=height, describe=describe)


def domains_of(
    values: Sequence[LayerValue], points: Sequence[TheoryPoint | Level] = ()
) -> dict[str, tuple[float, float]]:
    """Quantity -> (smallest, largest) with a little room, of an accuracy none above 1."""
    found: dict[str, tuple[float, float]] = {}
    for each in values:
        low, high = found.get(each.quantity, (each.low, each.high))
        found[each.quantity] = (min(low, each.low), max(high, each.high))
    for point in points:
        low, high = found.get(point.quantity, (point.value, point.value))
        found[point.quantity] = (min(low, point.value), max(high, point.value))
    return {
        key: (low / 1.05, min(1.05 * high, 1.0)) if "accuracy" in key else (low / 1.6, high * 1.6)
        for key, (low, high) in found.items()
    }


def _lookup(by_quantity: Mapping[str, float]) -> str:
    pairs = ", ".join(f"'{key}': {value!r}" for key, value in by_quantity.items())
    return "({" + pairs + "})[" + QUANTITY + "]"
