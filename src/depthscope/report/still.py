"""Figures that stand still: charts in a grid with their title, legend and data, as one Vega-Lite specification."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import altair as alt

from depthscope.report.charts import Look, configure, rename_tables
from depthscope.report.palette import PAPER, mix
from depthscope.report.shapes import Block, Legend
from depthscope.report.words import Words

WIDTHS = {1: 720, 2: 430, 3: 320, 4: 240}
"""Plot width in pixels by the number of panels in a row."""
SQUARE = 520
"""Plot width of a square that stands alone."""
HATCHED = "M-1-1h2v2h-2zM-.9.9.9-.9"
"""A symbol as a path."""
LEGEND_WIDTH = 1000
"""Pixels of a legend's row; what does not fit goes into the next."""


def finished_block(block: Block, title: str, subtitle: str, words: Words) -> Look:
    """A block as a figure of its own."""
    above = [block.scale.draw(width=SQUARE)] if block.scale else []
    told = [each for each in (subtitle, block.about) if each]
    return finished(still(block, words), title, told, block.legend, columns=block.columns, above=above)


def still(block: Block, words: Words) -> list[Any]:
    """The charts of a block, sized and named."""
    if block.kind == "profile" and block.controls is not None:
        deepest = block.panels[0 if block.controls.depths else -1]  # one at a time: the deepest first
        steps = block.controls.steps
        moments = [0] if len(steps) == 1 else [0, len(steps) - 1]
        quantity, name = block.controls.quantities[0]
        width = WIDTHS[len(moments)]
        return [
            named(
                deepest.draw(width=width, at=at, quantity=quantity, y_title=name),
                f"{deepest.title}, {words('step')} {steps[at]}",
            )
            for at in moments
        ]
    width = _width(block, block.columns or _columns(len(block.panels)))
    return [named(panel.draw(width=width), panel.title) for panel in block.panels]


def _width(block: Block, columns: int) -> int:
    alone = columns == 1 and any(panel.square for panel in block.panels)
    return SQUARE if alone else WIDTHS[columns]


def _columns(count: int) -> int:
    return 2 if count == 4 else min(count, 3)


def _legend_strip(legend: Sequence[Legend]) -> dict[str, Any]:
    """The legend in rows of its own, so that it covers no axis and the panels stay aligned."""
    x, y, widest, marks = 8.0, 8.0, 0.0, []
    for each in legend:
        # No text can be measured here: wide for Latin, exact for Chinese.
        room = 44 + sum(13 if ord(letter) > 0x2E80 else 7.2 for letter in each.label)
        if x > 8 and x + room > LEGEND_WIDTH:
            x, y = 8.0, y + 22
        color = mix(each.color, PAPER, 1 - each.strength)
        at: dict[str, Any] = {"x": {"value": x}, "y": {"value": y}}
        if each.shape in ("line", "dashed"):
            dash = [2, 3] if each.shape == "dashed" else [1, 0]
            symbol: dict[str, Any] = {"type": "rule", "strokeWidth": 2.5, "strokeDash": dash}
            at |= {"x": {"value": x - 8}, "x2": {"value": x + 8}}
        else:
            ring = each.shape == "ring"
            shape = {"ring": "circle", "hatched": HATCHED}.get(each.shape, each.shape)
            symbol = {"type": "point", "shape": shape, "size": 90, "opacity": 1}
            hollow = each.shape in ("ring", "hatched")
            symbol |= {"filled": not hollow, **({"strokeWidth": 2.2} if ring else {})}
        marks.append({"mark": {**symbol, "color": color}, "encoding": at})
        text = {"type": "text", "text": each.label, "x": x + 14, "y": y, "align": "left", "fontSize": 13}
        marks.append({"mark": {**text, "baseline": "middle", "limit": LEGEND_WIDTH}, "encoding": {}})
        x += room
        widest = max(widest, x)
    width = round(min(widest, LEGEND_WIDTH + 44))
    return {"data": {"values": [{}]}, "width": width, "height": y + 8, "view": {"stroke": None}, "layer": marks}


def named(chart: Any, title: str) -> Any:
    """The chart with a title of its own, where there is one."""
    if title:
        chart.title = alt.TitleParams(text=title, fontSize=13, fontWeight=600, offset=20)
    return chart


def finished(
    charts: Sequence[Any],
    title: str,
    subtitle: str | Sequence[str],
    legend: Sequence[Legend] = (),
    *,
    columns: int | None = None,
    above: Sequence[Any] = (),
) -> Look:
    """Charts in a grid under one title, as plain data with the config of light paper.

    Args:
        charts: with a width of their own.
        title: of the figure.
        subtitle: under it, or its lines; may be empty.
        legend: a row above the charts.
        columns: of the grid; None goes by their number.
        above: charts that stand between the legend and the grid, such as a scale of colours.
    """
    datasets: dict[str, Any] = {}
    params: list[dict[str, Any]] = []
    panels = []
    for index, chart in enumerate([*above, *charts]):
        spec = chart.to_dict(validate=False)
        for key in ("config", "$schema", "autosize"):
            spec.pop(key, None)
        names = {}
        for name, rows in spec.pop("datasets", {}).items():
            names[name] = f"p{index}-{name}"
            datasets[names[name]] = rows
        rename_tables(spec, names)
        params += _own_params(spec, f"_{index}")
        panels.append(spec)
    top, panels = panels[: len(above)], panels[len(above) :]
    grid: dict[str, Any] = {"concat": panels, "columns": columns or _columns(len(panels)), "spacing": 34}
    grid["resolve"] = {"scale": {"color": "independent", "shape": "independent", "strokeDash": "independent"}}
    return {
        "$schema": alt.SCHEMA_URL,
        "title": {"text": title, **({"subtitle": subtitle} if subtitle else {})},
        "config": configure(background=PAPER),
        "padding": 20,
        "params": params,
        "vconcat": [*([_legend_strip(legend)] if legend else []), *top, grid],
        "spacing": 22,
        "datasets": datasets,
    }


def _own_params(spec: dict[str, Any], suffix: str) -> list[dict[str, Any]]:
    """Give a panel parameters of its own (`at` becomes `at_1`, wherever it is spoken of) and take them out.

    Panels side by side stand still at different steps, and Vega-Lite wants parameters at the top.
    """
    params = spec.pop("params", [])
    names = [param["name"] for param in params]

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: walk(value) for key, value in node.items()}
        if isinstance(node, list):
            return [walk(value) for value in node]
        if isinstance(node, str):
            for name in names:
                node = re.sub(rf"(?<![\w.'\"]){name}(?![\w'\"])", name + suffix, node)
        return node

    for key in ("layer", "encoding", "transform"):
        if key in spec:
            spec[key] = walk(spec[key])
    return [{**param, "name": param["name"] + suffix} for param in params]
