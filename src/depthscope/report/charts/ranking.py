"""Arms in the order of their rank, a row each: a dot for each depth with its interval and seeds, joined by a line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import INK, MUTED, PAPER, REFUTED, WASH

ROW = 36
"""Pixels a row; one that has one depth needs less."""
WRAP = 27
"""Letters of a label's line, of which a Chinese one counts twice."""
CUT = 0.25
"""How far beyond all values an interval is drawn, as a share of their range."""
APART = 0.2
"""How far the dots of neighbouring depths stand apart, in rows."""


@dataclass(frozen=True, kw_only=True)
class RankPoint:
    """One arm at one depth.

    Attributes:
        depth: index among the depths, ascending; the last is filled.
        name: the depth for readers.
        value: mean; None where no run gave a figure.
        low: lower end of its interval, or None.
        high: upper end.
        seeds: (seed, figure) of each run that gave one.
        lost: what became of lost runs, such as `3 of 3 lost`; empty where none was.
    """

    depth: int
    name: str
    value: float | None
    low: float | None
    high: float | None
    seeds: tuple[tuple[int, float], ...]
    lost: str = ""


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """One arm.

    Attributes:
        label: its name for readers.
        rank: what stands at the right of its row.
        points: by depth, ascending.
        baseline: whether it is the arm that others are compared with.
    """

    label: str
    rank: str
    points: tuple[RankPoint, ...]
    baseline: bool = False


def ranked_arms(
    rows: Sequence[RankRow],
    shades: Sequence[str],
    *,
    x_title: str,
    rank_title: str,
    describe: str,
    words: Mapping[str, str],
    worse: str,
    percent: bool = False,
    log: bool = False,
    references: Sequence[float] = (),
    chance: float | None = None,
    width: int | None = None,
) -> Any:
    """The rows from the best down, on one axis of values.

    Args:
        rows: in the order of their rank.
        shades: colour of each depth, ascending.
        x_title: title of the value axis.
        rank_title: title of the column at the right.
        describe: what a reader who cannot see the figure is told.
        words: tooltip titles for `depth`, `seed`, `estimate`, `low`, `high`.
        worse: `left` or `right`, the end at which runs without a figure are told.
        percent: whether values are shares of one.
        log: whether the axis of values is logarithmic.
        references: levels of the baseline, by depth: the first dotted, the last drawn through.
        chance: what answering without a look at the inputs comes to: long dashes; None for no line.
        width: pixels; None fills the container.

    Raises:
        ValueError: no row has a value; there is nothing to draw.
    """
    points = [(at, row, point) for at, row in enumerate(rows) for point in row.points]
    values = base.finite("ranked_arms", [point.value for _, _, point in points if point.value is not None])
    tables = base.Tables()
    lines = [(level, [2, 3] if at < len(references) - 1 else [1, 0]) for at, level in enumerate(references)]
    lines += [] if chance is None else [(chance, [7, 4])]
    shown = [*values, *(level for level, _ in lines), *(value for _, _, point in points for _, value in point.seeds)]
    ends = [end for _, _, point in points for end in (point.low, point.high) if end is not None]
    lost = any(point.lost for _, _, point in points)
    domain = _domain(shown, ends, log=log, room_at=worse if lost else "", shares=percent)
    number = ".2%" if percent else ".4f"
    scale = alt.Scale(type="log" if log else "linear", domain=list(domain), nice=False, zero=False)
    axis = (
        base.log_axis(x_title, scale="x", grid=True)
        if log
        else alt.Axis(title=x_title, tickCount=6, **_ticks(percent, domain))
    )
    x = alt.X("x:Q", scale=scale, axis=axis)
    y_scale = alt.Scale(domain=[-0.5, len(rows) - 0.5], reverse=True, nice=False, zero=False)
    y = alt.Y("row:Q", scale=y_scale, axis=None)
    left = alt.Y("row:Q", scale=y_scale, axis=_names([wrapped(row.label) for row in rows], bold=_bold(rows)))
    right = alt.Y("row:Q", scale=y_scale, axis=_names([row.rank for row in rows], orient="right", title=rank_title))
    layers: list[Any] = [
        alt.Chart(tables.add({"row": at - 0.5, "row2": at + 0.5} for at in range(0, len(rows), 2)))
        .mark_rect(color=WASH, opacity=0.75)
        .encode(y=left, y2=alt.Y2("row2:Q"))
    ]
    for level, dash in lines:
        rule = alt.Chart(tables.add([{"x": level}])).mark_rule(color=MUTED, strokeWidth=1.3, strokeDash=dash)
        layers.append(rule.encode(x=x))
    layers += _marks(points, tables, shades, x, y, domain, words, number)
    if lost:
        layers.append(_lost(points, tables, domain, len(shades), x, y, worse))
    # A second axis needs a layer of its own, and that layers do not share theirs.
    unseen = alt.Chart(tables.add([{"x": domain[0], "row": 0}])).mark_point(opacity=0, size=0)
    layers.append(unseen.encode(x=x, y=right))
    height = (ROW if len(shades) > 1 else 28) * len(rows)
    resolve = alt.Resolve(axis=alt.AxisResolveMap(y="independent"))
    return base.layered(layers, tables, width=width, height=height, describe=describe, resolve=resolve)


def _place(at: int, point: RankPoint, num_depths: int) -> float:
    """How far down a dot stands, in rows: the deeper the lower."""
    return at + APART * (point.depth - (num_depths - 1) / 2)


def _marks(
    points: Sequence[tuple[int, RankRow, RankPoint]],
    tables: base.Tables,
    shades: Sequence[str],
    x: Any,
    y: Any,
    domain: tuple[float, float],
    words: Mapping[str, str],
    number: str,
) -> Iterator[Any]:
    """The line that joins the depths, then for each depth its seeds, whisker and dot."""
    count = len(shades)
    joined = []
    for (at, _, a), (other, _, b) in pairwise(points):
        if at == other and a.value is not None and b.value is not None:
            joined.append({"x": a.value, "row": _place(at, a, count), "x2": b.value, "row2": _place(at, b, count)})
    if joined:
        line = alt.Chart(tables.add(joined)).mark_rule(color=MUTED, strokeWidth=2, opacity=0.45)
        yield line.encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("row2:Q"))
    told = [
        alt.Tooltip("arm:N", title=" "),
        alt.Tooltip("depth:N", title=words["depth"]),
        alt.Tooltip("x:Q", title=words["estimate"], format=number),
        alt.Tooltip("low:Q", title=words["low"], format=number),
        alt.Tooltip("high:Q", title=words["high"], format=number),
    ]
    for depth, color in enumerate(shades):
        mine = [(at, row, point) for at, row, point in points if point.depth == depth and point.value is not None]
        dots = [
            {"arm": row.label, "depth": point.name, "row": _place(at, point, count), "x": point.value, "low": point.low}
            | {"high": point.high}
            for at, row, point in mine
        ]
        bars = [
            {**dot, "x": max(point.low, domain[0]), "x2": min(point.high, domain[1])}
            for dot, (_, _, point) in zip(dots, mine, strict=True)
            if point.low is not None and point.high is not None
        ]
        if bars:
            bar = alt.Chart(tables.add(bars)).mark_rule(color=color, strokeWidth=4.5, opacity=0.32, strokeCap="round")
            yield bar.encode(x=x, x2=alt.X2("x2:Q"), y=y)
        seeds = [
            {"arm": row.label, "depth": point.name, "row": _place(at, point, count), "seed": seed, "x": value}
            for at, row, point in mine
            for seed, value in point.seeds
        ]
        if seeds:
            small = alt.Chart(tables.add(seeds)).mark_point(color=color, filled=True, size=15, opacity=0.6)
            told_seed = [told[0], told[1], alt.Tooltip("seed:Q", title=words["seed"])]
            yield small.encode(x=x, y=y, tooltip=[*told_seed, alt.Tooltip("x:Q", title=" ", format=number)])
        if dots:
            last = depth == len(shades) - 1
            dot = alt.Chart(tables.add(dots)).mark_point(
                shape="circle", size=105 if last else 80, stroke=color, strokeWidth=2.2, opacity=1,
                fill=color if last else PAPER,
            )  # fmt: skip
            yield dot.encode(x=x, y=y, tooltip=told)


def _lost(
    points: Sequence[tuple[int, RankRow, RankPoint]],
    tables: base.Tables,
    domain: tuple[float, float],
    num_depths: int,
    x: Any,
    y: Any,
    worse: str,
) -> Any:
    """What became of lost runs, at the worse end: as high as the dots of their depth, or in one line for several."""
    rows = []
    for at in sorted({at for at, _, point in points if point.lost}):
        mine = [point for row, _, point in points if row == at and point.lost]
        same = len(mine) == num_depths and len({point.lost for point in mine}) == 1
        told = mine[0].lost if same or len(mine) == 1 else ", ".join(f"{each.name}: {each.lost}" for each in mine)
        place = _place(at, mine[0], num_depths) if len(mine) == 1 else at
        rows.append({"row": place, "x": domain[0 if worse == "left" else 1], "text": f"✕ {told}"})
    text = alt.Chart(tables.add(rows)).mark_text(
        color=REFUTED, align="left" if worse == "left" else "right", dx=4 if worse == "left" else -4, fontSize=11.5
    )
    return text.encode(x=x, y=y, text=alt.Text("text:N"))


def _names(
    labels: Sequence[Any], *, orient: Literal["left", "right"] = "left", title: str | None = None, bold: Any = None
) -> alt.Axis:
    """A name at each whole number of the axis."""
    texts = str([each if isinstance(each, list) else [each] for each in labels])
    twofold = [at for at, each in enumerate(labels) if isinstance(each, list) and len(each) > 1]
    above: dict[str, Any] = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 8, "titleY": -12}
    return alt.Axis(
        title=title,
        orient=orient,
        values=list(range(len(labels))),
        labelExpr=f"({texts})[datum.value]",
        labelLimit=260,
        labelColor=INK,
        labelFontWeight=bold if bold is not None else alt.Undefined,
        tickCount=len(labels),  # of more values than ticks, Vega leaves every other out
        labelOverlap=False,
        labelPadding=10,
        labelLineHeight=13,
        # The first of two lines stands above the middle and the second below; a single one across it.
        labelBaseline=alt.condition(f"indexof({twofold}, datum.value) >= 0", alt.value("bottom"), alt.value("middle")),
        grid=False,
        domain=False,
        ticks=False,
        **(above if title else {}),
    )


def _bold(rows: Sequence[RankRow]) -> Any:
    """The baseline's name is set in bold."""
    at = next((at for at, row in enumerate(rows) if row.baseline), None)
    return None if at is None else alt.condition(f"datum.value == {at}", alt.value("bold"), alt.value("normal"))


def wrapped(label: str) -> list[str]:
    """A label as lines of at most about `WRAP` letters, two of them at most.

    >>> wrapped("weight standardisation, group norm"), wrapped("plain")
    (['weight standardisation,', 'group norm'], ['plain'])
    """
    width = sum(2 if ord(letter) > 0x2E80 else 1 for letter in label)
    cuts = [at + 1 for at, letter in enumerate(label) if letter in " ，、（" and 0 < at < len(label) - 1]
    if width <= WRAP or not cuts:
        return [label]
    middle = min(cuts, key=lambda at: abs(at - len(label) / 2 - 1))
    return [label[:middle].rstrip(), label[middle:].lstrip()]


def _ticks(percent: bool, domain: tuple[float, float]) -> dict[str, Any]:
    """Lines and labels; of shares none below 0, where room may be left for lost runs."""
    shown = alt.condition("datum.value > -1e-9", alt.value(1), alt.value(0))
    of_shares = {"format": base.percents((domain[1] - domain[0]) / 6), "gridOpacity": shown, "labelOpacity": shown}
    return {"grid": True, "tickOpacity": shown, **of_shares} if percent else {"grid": True}


def _domain(
    values: Sequence[float], ends: Sequence[float], *, log: bool, shares: bool, room_at: str
) -> tuple[float, float]:
    """What is drawn, with room for half a dot; more at the end where lost runs are told. Shares end at 100%.

    The interval of three seeds that disagree can be wider than all else together: beyond a quarter of the values' range
    it is cut.
    """
    if log:
        values = [math.log(value) for value in values]
        ends = [math.log(end) if end > 0 else -math.inf for end in ends]  # what reaches 0 is cut at the axis' end
    low, high = min(values), max(values)
    span = (high - low) or 0.1 * max(abs(high), 1e-12)
    low = max(min([low, *ends]), low - CUT * span)
    high = min(max([high, *ends]), high + CUT * span)
    span = (high - low) or span
    low -= (0.2 if room_at == "left" else 0.025) * span
    high += (0.2 if room_at == "right" else 0.025) * span
    return (math.exp(low), math.exp(high)) if log else (low, min(high, 1.0) if shares else high)
