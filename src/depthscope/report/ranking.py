"""The ranking of a part's arms: the figure, and the table with the ranks that the seeds leave possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from depthscope.analysis.finding import Estimate
from depthscope.analysis.places import held
from depthscope.analysis.ranking import LEVEL, RankedArm, RankedCell, Ranking, rankings
from depthscope.analysis.ranking_words import saturated
from depthscope.analysis.table import Results
from depthscope.report import charts, content, sections
from depthscope.report.content import View
from depthscope.report.guess import level
from depthscope.report.numbers import fixed, percent, places
from depthscope.report.palette import MUTED, ramp
from depthscope.report.shapes import Block, Legend, Panel
from depthscope.report.words import Words
from depthscope.study.metrics import worse_side

COLOR = "#1f63c4"
"""The hue of the depths: the deeper the fuller."""
DECADES = 50.0
"""Ratio of the largest to the smallest mean from which on an axis is logarithmic."""


def ranking_sections(results: Results, words: Words) -> list[dict[str, Any]]:
    """Of each ranking its title, lead, figure (a `Block`) and table; empty where no part asks for one."""
    found = []
    views = {(view.part, repr(dict(view.further))): view for view in content.views(results, words)}
    for each in rankings(results):
        view = views[each.part, repr(dict(each.further))]
        found.append(
            {
                "title": view.title,
                "lead": _lead(each, words),
                "block": ranking_block(each, view, words),
                "table": _table(results, each, view, words),
                "left_out": _left_out(each, view, words),
            }
        )
    return found


def leading_block(results: Results, views: Sequence[View], part: str | None, words: Words) -> Block | None:
    """The figure of the ranking that the lead speaks of: of this part, or of the first that asks for a ranking.

    None where that part asks for none.
    """
    found = rankings(results)
    for each in found:
        if part in (None, each.part) and dict(each.further) == held(results, each.part):
            (view,) = (one for one in views if one.part == each.part and one.further == each.further)
            block = ranking_block(each, view, words)
            return replace(block, notes=(view.title,)) if block and len(found) > 1 else block
    return None


def ranking_block(ranking: Ranking, view: View, words: Words) -> Block | None:
    """The figure; None where no run gave the metric yet."""
    cells = [cell for arm in ranking.arms for cell in arm.cells]
    means = [cell.estimate.value for cell in cells if cell.estimate.value is not None]
    if not means:
        return None
    depths: tuple[int | float | None, ...] = ranking.depths or (None,)
    shades, dark = ramp(COLOR, len(depths))
    labels = {series.name: series.label for series in view.series}
    references, guess = _references(ranking), level(view, ranking.metric, words)
    up = worse_side(ranking.metric) == "up"
    positive = min([*means, *(guess[1:] if guess else ())]) > 0 and all(_positive(cell) for cell in cells)
    log = up and positive and max(means) / min(means) > DECADES
    shares = ranking.unit == "accuracy"
    rows = [_row(arm, ranking, labels, depths, view, words) for arm in ranking.arms]
    title = words.metric(ranking.metric, unit=ranking.unit)
    describe = words(
        "ranking_describe",
        metric=title,
        count=len(rows),
        where=_where(ranking, words),
        arms=words("list").join(row.label for row in rows),
    )

    def draw(*, width: int | None = None, height: int | None = None) -> object:
        del height  # as many rows as there are arms
        return charts.ranked_arms(
            rows,
            shades,
            x_title=title,
            rank_title=words("ranking_rank"),
            describe=describe,
            words={
                **{key: words(key) for key in ("depth", "seed", "estimate")},
                **{key: words(key, level=percent(LEVEL)) for key in ("low", "high")},
            },
            worse="right" if up else "left",
            percent=shares,
            log=log,
            references=references,
            chance=guess[1] if guess else None,
            width=width,
        )

    key = f"ranking-{view.key}"
    baseline = labels.get(ranking.baseline, ranking.baseline)
    lines = _lines(ranking, references, baseline, words) + (words("ranking_chance", what=guess[0]) if guess else "")
    return Block(
        kind="ranking",
        key=key,
        heading=words("ranking_section"),
        caption=words("ranking_caption", level=percent(LEVEL), lines=lines),
        panels=(Panel(key=f"{key}-figure", title="", describe=describe, draw=draw, dark=dark),),
        legend=_legend(ranking, shades, references, baseline, view, words),
        stacked=True,
    )


def _row(
    arm: RankedArm,
    ranking: Ranking,
    labels: dict[str, str],
    depths: Sequence[int | float | None],
    view: View,
    words: Words,
) -> charts.RankRow:
    return charts.RankRow(
        label=labels[arm.arm],
        rank=_ranks(arm),
        baseline=arm.arm == ranking.baseline,
        points=tuple(
            charts.RankPoint(
                depth=depths.index(cell.depth),
                name="" if cell.depth is None else view.named(cell.depth, words),
                value=cell.estimate.value,
                low=cell.estimate.low,
                high=cell.estimate.high,
                seeds=tuple(cell.by_seed.items()),
                lost=_lost_at(cell, words) if cell.num_lost else "",
            )
            for cell in arm.cells
        ),
    )


def _positive(cell: RankedCell) -> bool:
    return all(value > 0 for value in cell.by_seed.values())


def _references(ranking: Ranking) -> list[float]:
    """The baseline's level at the smallest and at the greatest depth, as far as it has them."""
    cells = next((arm.cells for arm in ranking.arms if arm.arm == ranking.baseline), ())
    ends = (cells[0], cells[-1]) if len(cells) > 1 else cells
    levels = [cell.estimate.value for cell in ends]
    return [level for level in levels if level is not None] if None not in levels else []


def _lines(ranking: Ranking, references: Sequence[float], baseline: str, words: Words) -> str:
    if len(references) > 1:
        ends = {"shallow": ranking.depths[0], "deep": ranking.depths[-1]}
        return words("ranking_lines", baseline=baseline, **ends)
    return words("ranking_line", baseline=baseline) if references else ""


def _legend(
    ranking: Ranking, shades: Sequence[str], references: Sequence[float], baseline: str, view: View, words: Words
) -> tuple[Legend, ...]:
    if len(ranking.depths) < 2:
        return ()
    last = len(shades) - 1
    dots = tuple(
        Legend(label=view.named(depth, words), color=COLOR, shape="circle" if at == last else "ring")
        for at, depth in enumerate(ranking.depths)
    )
    if len(references) < 2:
        return dots
    lines = tuple(
        Legend(label=words("comma").join((baseline, view.named(depth, words))), color=MUTED, shape=shape)
        for depth, shape in ((ranking.depths[0], "dashed"), (ranking.depths[-1], "line"))
    )
    return (*dots, *lines)


def _where(ranking: Ranking, words: Words) -> str:
    return words("ranking_where", depth=ranking.depths[-1]) if ranking.depths else ""


def _lead(ranking: Ranking, words: Words) -> str:
    key = "ranking_lead" if ranking.num_settled or ranking.num_by_loss else "ranking_open"
    return words(
        "ranking_saturated" if saturated(ranking) else key,
        count=len(ranking.arms),
        metric=words.metric(ranking.metric, unit=ranking.unit),
        where=_where(ranking, words),
        pairs=ranking.num_pairs,
        settled=ranking.num_settled,
        by_loss=words("ranking_by_loss", count=ranking.num_by_loss) if ranking.num_by_loss else "",
        level=percent(LEVEL),
    )


def _ranks(arm: RankedArm) -> str:
    """The place, and behind it the ranks that are possible where there are several."""
    return f"{arm.place}" if arm.low == arm.high == arm.place else f"{arm.place}  ({arm.low}–{arm.high})"


def _lost_at(cell: RankedCell, words: Words) -> str:
    return words("ranking_lost_of", lost=cell.num_lost, total=cell.census.total)


def _table(results: Results, ranking: Ranking, view: View, words: Words) -> dict[str, Any]:
    labels = {series.name: series for series in view.series}
    baseline = labels[ranking.baseline].label if ranking.baseline in labels else ranking.baseline
    metric, points = words.metric(ranking.metric, unit=ranking.unit), ranking.unit == "accuracy"

    def change(title: str) -> str:
        return words("ranking_points", title=title) if points else title

    heads = [words("arm"), words("ranking_rank")]
    heads += [words("ranking_at", metric=metric, depth=depth) for depth in ranking.depths] or [metric]
    if len(ranking.depths) > 1:
        ends = {"shallow": ranking.depths[0], "deep": ranking.depths[-1]}
        heads.append(change(words("ranking_change", **ends)))
    where = _where(ranking, words)
    heads.append(change(words("ranking_from_baseline", baseline=baseline, where=where)))
    heads.append(change(words("ranking_from_best", where=where)))
    heads.append(words("parameters"))
    tuned = results.study.tuned if any(cell.tuned is not None for arm in ranking.arms for cell in arm.cells) else None
    if tuned:
        depths = " / ".join(map(str, ranking.depths))
        name = words.axis(tuned.field)
        heads.append(words("ranking_tuned", axis=name, depths=depths) if depths else name)
    if any(cell.num_lost for arm in ranking.arms for cell in arm.cells):
        heads.append(words("ranking_lost"))
    columns = _decimals(ranking)
    rows = []
    for arm in ranking.arms:
        by_depth = {cell.depth: cell for cell in arm.cells}
        ranks = {} if arm.low == arm.high else {"small": words("ranking_possible", low=arm.low, high=arm.high)}
        line: list[dict[str, Any]] = [{"value": str(arm.place), **(ranks or {"small": words("ranking_sure")})}]
        line += [_mean(by_depth.get(depth), columns[0]) for depth in ranking.depths or (None,)]
        if len(ranking.depths) > 1:
            line.append(_difference(arm.change, columns[1]))
        line += [_difference(arm.from_baseline, columns[1]), _difference(arm.from_best, columns[1])]
        deepest = arm.deepest
        count = f"{deepest.parameters:,}" if deepest.parameters is not None else "–"
        line.append({"value": count, "small": "" if arm.arm == ranking.baseline else sections.excess(deepest.excess)})
        if tuned:
            chosen = [by_depth[depth].tuned if depth in by_depth else None for depth in ranking.depths or (None,)]
            value = " / ".join("–" if each is None else f"{each:g}" for each in chosen)
            line.append({"value": value, "wraps": True})
        if words("ranking_lost") == heads[-1]:
            line.append({"value": _lost(arm, words)})
        series = labels[arm.arm]
        rows.append({"label": series.label, "symbol": sections.symbol(series), "cells": line, "first": True})
    return {"heads": heads, "rows": rows}


def _decimals(ranking: Ranking) -> tuple[int, int]:
    """Decimals of all means, and of all differences, so that a column can be read down."""
    arms = ranking.arms
    means = [cell.estimate.value for arm in arms for cell in arm.cells]
    paired = [each.value for arm in arms for each in (arm.change, arm.from_baseline, arm.from_best) if each is not None]
    return places(means, ranking.unit), places(paired, ranking.unit)


def _mean(cell: RankedCell | None, decimals: int) -> dict[str, str]:
    if cell is None:
        return {"value": "–"}
    made = cell.estimate
    low, high = (fixed(end, decimals, made.unit) for end in (made.low, made.high))
    return {"value": fixed(made.value, decimals, made.unit), "small": f"{low} – {high}" if made.low is not None else ""}


def _difference(made: Estimate | None, decimals: int) -> dict[str, str]:
    """A paired difference, signed; of accuracies in points."""
    if made is None or made.value is None:
        return {"value": "–"}
    value, low, high = (fixed(each, decimals, made.unit, signed=True) for each in (made.value, made.low, made.high))
    return {"value": value, "small": f"{low} – {high}" if made.low is not None else ""}


def _lost(arm: RankedArm, words: Words) -> str:
    told = [
        words("ranking_lost_at", depth=cell.depth, lost=cell.num_lost, total=cell.census.total)
        if cell.depth is not None
        else words("ranking_lost_of", lost=cell.num_lost, total=cell.census.total)
        for cell in arm.cells
        if cell.num_lost
    ]
    return words("comma").join(told) or "–"


def _left_out(ranking: Ranking, view: View, words: Words) -> str:
    ranked = {arm.arm for arm in ranking.arms}
    names = [series.label for series in view.series if series.name not in ranked]
    if not names:
        return ""
    return words("ranking_left_out", depth=ranking.depths[-1], arms=words("list").join(names))
