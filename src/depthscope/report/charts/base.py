"""What all figures share: the look, the colour scale, the checks at the door."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import altair as alt

from depthscope.report.palette import INK, MUTED, RULE, Series

Look = dict[str, Any]
"""A Vega-Lite specification as plain data."""

FONT = (
    'Inter, "Helvetica Neue", Helvetica, "Liberation Sans", Arial, "PingFang SC", "Hiragino Sans GB", '
    '"Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", "WenQuanYi Micro Hei", sans-serif'
)


def configure(*, background: str | None = None) -> Look:
    """The Vega-Lite config of every figure, on light paper; the page swaps the colours for dark."""
    axis = {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": RULE,
        "domainColor": RULE,
        "tickColor": RULE,
        "labelPadding": 6,
        "titlePadding": 8,
        "labelOverlap": True,
    }
    return {
        "background": background,
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "tickSize": 4},
        "axisY": {"domain": False, "ticks": False, "tickCount": 5},
        "axisYQuantitative": {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0, "titleY": -12},
        "legend": {
            "orient": "top",
            "title": None,
            "labelFontSize": 13,
            "labelColor": INK,
            "labelLimit": 400,
            "symbolSize": 90,
            "columnPadding": 22,
            "offset": 14,
        },
        "title": {
            "anchor": "start",
            "fontSize": 17,
            "fontWeight": 600,
            "color": INK,
            "subtitleColor": MUTED,
            "subtitleFontSize": 13,
            "subtitlePadding": 5,
            "offset": 16,
        },
        "text": {"color": INK, "fontSize": 12},
    }


def color_by_series(series: Sequence[Series], *, legend: bool) -> alt.Color:
    """Colour by arm, over exactly these arms and in this order."""
    return alt.Color(
        "series:N",
        scale=alt.Scale(domain=[each.label for each in series], range=[each.color for each in series]),
        legend=alt.Legend(symbolType="circle") if legend else None,
    )


def shape_by_series(series: Sequence[Series], *, legend: bool) -> alt.Shape:
    """Shape by arm, so that colour is never the only sign."""
    return alt.Shape(
        "series:N",
        scale=alt.Scale(domain=[each.label for each in series], range=[each.shape for each in series]),
        legend=alt.Legend() if legend else None,
    )


def labels_of(series: Sequence[Series]) -> dict[str, str]:
    """Labels by name; two arms under one label would be drawn as one, so that is refused."""
    labels = {each.name: each.label for each in series}
    if len(set(labels.values())) != len(series):
        raise ValueError(f"figure: arms need different names and labels, got {[each.label for each in series]}.")
    return labels


def known_series(names: Iterable[str], series: Sequence[Series]) -> None:
    """Refuse a value of an arm that the figure was not told of."""
    unknown = sorted(set(names) - {each.name for each in series})
    if unknown:
        raise ValueError(f"figure: no series for the arms {unknown}; given: {[each.name for each in series]}.")


def finite(what: str, values: Iterable[float | None]) -> list[float]:
    """The values as a list, refused where one is not a finite number or none is there."""
    found = list(values)
    bad = [value for value in found if value is None or not math.isfinite(value)]
    if bad or not found:
        raise ValueError(f"figure: {what} needs finite numbers, got {bad[0] if bad else 'none at all'}.")
    return [value for value in found if value is not None]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What values are read against, such as chance, by place of the axis: a level where all are equal, else a line."""

    name: str
    levels: Mapping[float, float]


class Tables:
    """The rows that a figure draws, kept beside the chart while it is put together.

    Altair copies and checks every row at each step of building a chart, which takes seconds for the
    layers of a study. So charts name their tables, and `sized` puts the rows in at the end.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, items: Iterable[Mapping[str, Any]]) -> Any:
        """Keep some rows and return what stands for them in a chart."""
        rows = [dict(item) for item in items]
        name = f"rows-{len(self.rows)}"
        self.rows[name] = rows
        return alt.NamedData(name=name)


def sized(chart: Any, tables: Tables, *, width: int | None, height: int, describe: str) -> Any:
    """The chart with its rows, at a fixed width or as wide as the element that it is drawn in."""
    done = chart.properties(**_size(width, height), description=describe)
    done.datasets = tables.rows
    return done


def layered(
    layers: Sequence[Any], tables: Tables, *, width: int | None, height: int, describe: str, **more: Any
) -> Any:
    """Charts over one another as `sized` makes one.

    All that is known of the figure is said at once: whatever is added to a layered chart later makes Altair copy all
    its layers, several times.

    Args:
        layers: in order of drawing.
        tables: their rows.
        width: see `sized`.
        height: likewise.
        describe: likewise.
        more: further properties of the figure, such as `resolve`.
    """
    for layer in layers:
        for part in (layer.mark, layer.encoding):
            # Altair's own way out of a copy: nothing changes these any more, and copies of them took half of the time.
            object.__setattr__(part, "__deepcopy__", partial(_itself, part))
    done = alt.layer(*layers, **_size(width, height), description=describe, **more)
    done.datasets = tables.rows
    return done


def _itself(part: Any, memo: object) -> Any:
    del memo
    return part


def _size(width: int | None, height: int) -> dict[str, Any]:
    return {
        "width": "container" if width is None else width,
        "height": height,
        "autosize": alt.AutoSizeParams(type="fit-x", contains="padding"),
    }


def rename_tables(node: Any, names: Mapping[str, str]) -> None:
    """Point every `data: {name}` of a specification at a table by another name."""
    if isinstance(node, dict):
        data = node.get("data")
        if isinstance(data, dict) and data.get("name") in names:
            data["name"] = names[data["name"]]
        for value in node.values():
            rename_tables(value, names)
    elif isinstance(node, list):
        for value in node:
            rename_tables(value, names)


_DECADES = "log(datum.value) / LN10"


def log_axis(title: str | None, *, scale: str = "y", ratio: str = "", **more: Any) -> alt.Axis:
    """An axis with a line and a label at each power of ten and at none between.

    Args:
        title: of the axis.
        scale: name of its scale, whose ends decide whether the range is narrow.
        ratio: an expression for the greater end over the lesser, where the scale has another name in a figure of
            several charts.
        more: further settings.
    """
    whole = f"abs({_DECADES} - round({_DECADES})) < 1e-6"
    # A range that holds no two powers is labelled at 2, 3 and 5 as well.
    between = "indexof([2, 3, 5], round(datum.value / pow(10, floor(" + _DECADES + " + 1e-9)))) >= 0"
    ends = ratio or f"domain('{scale}')[1] / domain('{scale}')[0]"
    narrow = f"log({ends}) / LN10 < 2"
    plain = (
        "abs(log(datum.value) / LN10) < 2.5 ? format(datum.value, '~g') : replace(format(datum.value, '~e'), '+', '')"
    )
    label = f"{whole} || (({narrow}) && {between}) ? ({plain}) : ''"
    return alt.Axis(
        title=title,
        labelExpr=label,
        labelOverlap="greedy",
        labelSeparation=8,
        gridOpacity=alt.condition(f"{whole} || ({narrow})", alt.value(1), alt.value(0)),
        tickOpacity=alt.condition(f"{whole}", alt.value(1), alt.value(0)),
        **more,
    )


def value_axis(
    title: str | None, *, percent: bool = False, log: bool = False, step: float = 0.1, ratio: str = ""
) -> alt.Axis:
    """A y axis whose title stands above it, read without turning the head; of shares, with ticks `step` apart."""
    if log:
        return log_axis(title, ratio=ratio)
    return alt.Axis(title=title, format=percents(step)) if percent else alt.Axis(title=title)


def percents(step: float) -> str:
    """The format of shares whose ticks stand about `step` apart, with as many digits as tell them apart.

    >>> percents(0.2), percents(0.005), percents(0.0004)
    ('.0%', '.1%', '.2%')
    """
    return f".{max(0, -math.floor(math.log10(100 * step)))}%"


def within_shares(domain: tuple[float, float]) -> tuple[float, float]:
    """A range of values that ends where shares do: there is no accuracy of 110%.

    >>> within_shares((0.9, 1.1)), within_shares((-0.05, 0.5))
    ((0.9, 1.0), (0.0, 0.5))
    """
    return max(domain[0], 0.0), min(domain[1], 1.0)


def whole_axis(title: str | None, span: tuple[float, float], *, ticks: int) -> alt.Axis:
    """An x axis of steps, epochs or layers, whose ticks are whole numbers wherever it is long enough for two."""
    if span[1] - span[0] < 1:
        return alt.Axis(title=title, tickCount=ticks)
    return alt.Axis(title=title, tickCount=ticks, tickMinStep=1)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """The places moved apart as little as needed to stand `gap` from one another, in the same order.

    >>> spread([0.0, 4.0, 100.0], 10)
    [-3.0, 7.0, 100.0]
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    groups: list[list[int]] = []
    centers: list[float] = []
    for index in order:
        groups.append([index])
        centers.append(places[index])
        while len(groups) > 1 and centers[-1] - centers[-2] < gap * (len(groups[-1]) + len(groups[-2])) / 2:
            joined = groups[-2] + groups[-1]
            groups[-2:] = [joined]
            centers[-2:] = [sum(places[each] for each in joined) / len(joined)]
    found = list(places)
    for group, center in zip(groups, centers, strict=True):
        for rank, index in enumerate(group):
            found[index] = center + gap * (rank - (len(group) - 1) / 2)
    return found
