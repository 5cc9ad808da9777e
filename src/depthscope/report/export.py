"""Every figure by itself: Vega-Lite with its data inside, SVG and PNG on light paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import altair as alt

from depthscope.analysis.finding import Finding
from depthscope.analysis.table import Results
from depthscope.report import content, gallery, judged, ranking
from depthscope.report.charts import Look, configure, rename_tables
from depthscope.report.estimates import Estimates
from depthscope.report.palette import PAPER, mix
from depthscope.report.shapes import Block, Legend
from depthscope.report.strings import Lang
from depthscope.report.words import Words

WIDTHS = {1: 720, 2: 430, 3: 320}
"""Plot width in pixels by the number of panels in a row."""
LEGEND_WIDTH = 1000
"""Pixels of a legend's row; what does not fit goes into the next."""


def figures(results: Results, findings: Sequence[Finding], *, lang: Lang = "en") -> dict[str, Look]:
    """Name -> a Vega-Lite specification that needs nothing beside it.

    Profiles stand still: step 0 beside the last step, of the greatest depth. Names are fit for files:
    `hero`, `claims`, and for each part `depth-PART`, `curves-PART`, `profile-PART`, `gradcheck-PART`, `ranking-PART`.

    Args:
        results: plan and records; figures without data are left out.
        findings: from `analysis.findings.judge`.
        lang: `en` or `zh`.
    """
    words = Words(lang)
    estimates = Estimates(results)
    found: dict[str, Look] = {}
    hero = gallery.hero(results, estimates, words)
    if hero:
        panel = hero.panels[0].draw(width=WIDTHS[1])
        title = words.pick(results.study.title, results.study.name)
        legend = () if hero.tagged else hero.legend  # names that stand beside their lines need none
        found["hero"] = _finished([panel], title, words.pick(results.study.question), legend)
    for view in content.views(results, words):
        for block in gallery.blocks(results, view, estimates, words):
            charts = _still(block, words)
            found[_file_name(block.key)] = _finished(charts, block.heading, view.title, block.legend)
    for each in ranking.ranking_sections(results, words):
        block = each["block"]
        if block:
            found[_file_name(block.key)] = _finished(_still(block, words), block.heading, each["title"], block.legend)
    strips = _strips(results, findings, words)
    if strips:
        title = words.pick(results.study.title, results.study.name)
        found["claims"] = _finished(strips, words("claims_section"), title, columns=1)
    return found


def svg(spec: Look) -> bytes:
    """The figure as SVG."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(spec)
    return text.encode("utf-8")


def png(spec: Look, *, scale: float = 2.0) -> bytes:
    """The figure as PNG, `scale` pixels a point."""
    import vl_convert

    image: bytes = vl_convert.vegalite_to_png(spec, scale=scale)
    return image


def _still(block: Block, words: Words) -> list[Any]:
    """The charts of a block, sized and named, with a legend in the first."""
    if block.kind == "profile" and block.controls is not None:
        deepest = block.panels[0 if block.controls.depths else -1]  # one at a time: the deepest first
        steps = block.controls.steps
        moments = [0] if len(steps) == 1 else [0, len(steps) - 1]
        quantity, name = block.controls.quantities[0]
        width = WIDTHS[len(moments)]
        return [
            _named(
                deepest.draw(width=width, at=at, quantity=quantity, y_title=name),
                f"{deepest.title}, {words('step')} {steps[at]}",
            )
            for at in moments
        ]
    width = WIDTHS[_columns(len(block.panels))]
    return [_named(panel.draw(width=width), panel.title) for panel in block.panels]


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
            symbol = {"type": "point", "shape": "circle" if ring else each.shape, "size": 90, "opacity": 1}
            symbol |= {"filled": not ring, **({"strokeWidth": 2.2} if ring else {})}
        marks.append({"mark": {**symbol, "color": color}, "encoding": at})
        text = {"type": "text", "text": each.label, "x": x + 14, "y": y, "align": "left", "fontSize": 13}
        marks.append({"mark": {**text, "baseline": "middle", "limit": LEGEND_WIDTH}, "encoding": {}})
        x += room
        widest = max(widest, x)
    width = round(min(widest, LEGEND_WIDTH + 44))
    return {"data": {"values": [{}]}, "width": width, "height": y + 8, "view": {"stroke": None}, "layer": marks}


def _strips(results: Results, findings: Sequence[Finding], words: Words) -> list[Any]:
    declared = {claim.name: claim for claim in results.study.claims}
    strips = []
    for finding in findings:
        claim = declared.get(finding.claim)
        draw = judged.draw_claim(finding, claim, words, rows=judged.rows_of(results, claim))
        if draw is not None:
            verdict = words(f"verdict.{finding.verdict}")
            strips.append(_named(draw(width=WIDTHS[1]), f"{verdict}: {words.pick(finding.text)}"))
    return strips


def _named(chart: Any, title: str) -> Any:
    if title:
        chart.title = alt.TitleParams(text=title, fontSize=13, fontWeight=600, offset=20)
    return chart


def _finished(
    charts: Sequence[Any], title: str, subtitle: str, legend: Sequence[Legend] = (), *, columns: int | None = None
) -> Look:
    """Charts in a grid under one title, as plain data with the config of light paper."""
    datasets: dict[str, Any] = {}
    params: list[dict[str, Any]] = []
    panels = []
    for index, chart in enumerate(charts):
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
    grid: dict[str, Any] = {"concat": panels, "columns": columns or _columns(len(panels)), "spacing": 34}
    grid["resolve"] = {"scale": {"color": "independent", "shape": "independent", "strokeDash": "independent"}}
    return {
        "$schema": alt.SCHEMA_URL,
        "title": {"text": title, **({"subtitle": subtitle} if subtitle else {})},
        "config": configure(background=PAPER),
        "padding": 20,
        "params": params,
        "vconcat": [*([_legend_strip(legend)] if legend else []), grid],
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


def _file_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", key).strip("-")
