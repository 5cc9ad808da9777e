"""Training curves: thin lines for seeds, a strong one for their mean, a shade for each place of an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from depthscope.report.charts import base
from depthscope.report.palette import MUTED


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line. `seed` is None for the line that stands for all seeds."""

    at: float
    seed: int | None
    x: tuple[float, ...]
    y: tuple[float, ...]


def training_curves(
    curves: Sequence[Curve],
    shades: Mapping[float, str],
    *,
    x_title: str,
    y_title: str,
    describe: str,
    words: Mapping[str, str],
    domain: tuple[float, float],
    span: tuple[float, float],
    percent: bool = False,
    log: bool = False,
    reference: base.Reference | None = None,
    legend: bool = False,
    width: int | None = None,
    height: int = 230,
) -> Any:
    """One arm's curves.

    Args:
        curves: lines of the seeds and of their mean.
        shades: a colour for each depth, from faint (shallow) to full (deep).
        domain: of y, the same for the panels that stand side by side.
        span: of x, likewise.
        x_title: title of the x axis.
        y_title: title of the value axis.
        describe: what a reader who cannot see the figure is told.
        words: tooltip title of `axis`.
        percent: whether values are shares of one.
        log: whether y is logarithmic.
        reference: drawn where it is one level, among the values.
        legend: a legend in the figure; pages draw their own.
        width: pixels; None fills the container.
        height: pixels of the plot.
    """
    base.finite("training_curves", [value for each in curves for value in each.y])
    missing = sorted({each.at for each in curves} - set(shades))
    if missing:
        raise ValueError(f"figure: no shade at {missing}.")
    tables = base.Tables()
    places = sorted(shades)
    scale = alt.Scale(domain=[f"{place:g}" for place in places], range=[shades[place] for place in places])
    color = alt.Color(
        "at:N", scale=scale, legend=alt.Legend(title=words["axis"], symbolType="stroke") if legend else None
    )
    x_axis = base.whole_axis(x_title, span, ticks=4)
    x = alt.X("x:Q", axis=x_axis, scale=alt.Scale(domain=list(span), nice=False))
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=list(domain), type="log" if log else "linear", nice=False, clamp=True),
        axis=base.value_axis(y_title, percent=percent, log=log, step=(domain[1] - domain[0]) * 40 / height),
    )

    def rows(seeds: bool) -> Any:
        return tables.add(
            {"at": f"{each.at:g}", "seed": each.seed, "x": at, "y": value}
            for each in curves
            if (each.seed is not None) == seeds
            for at, value in zip(each.x, each.y, strict=True)
        )

    told = [
        alt.Tooltip("at:N", title=words["axis"]),
        alt.Tooltip("x:Q", title=x_title, format="~g"),
        alt.Tooltip("y:Q", title=y_title, format=".2%" if percent else ".4f"),
    ]
    thin = (
        alt.Chart(rows(seeds=True))
        .mark_line(strokeWidth=1, opacity=0.4, clip=True)
        .encode(x=x, y=y, color=color, detail=alt.Detail("seed:N"))
    )
    means_of = rows(seeds=False)
    strong = alt.Chart(means_of).mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=color)
    hits = alt.Chart(means_of).mark_point(size=160, opacity=0, filled=True).encode(x=x, y=y, tooltip=told)
    layers = [thin, strong, hits]
    levels = set(reference.levels.values()) if reference else set()
    if reference is not None and len(levels) == 1 and domain[0] <= min(levels) <= domain[1]:
        level = alt.Chart(tables.add([{"y": min(levels), "name": reference.name}]))
        rule = level.mark_rule(color=MUTED, strokeWidth=1, strokeDash=[2, 3], clip=True).encode(y=y)
        # At the right, where a training that went well is far below it.
        name = level.mark_text(color=MUTED, align="right", baseline="bottom", dx=-2, dy=-3, fontSize=12)
        right = alt.XValue("width")  # type: ignore[no-untyped-call]
        layers = [rule, *layers, name.encode(y=y, x=right, text=alt.Text("name:N"))]
    means = [each for each in curves if each.seed is None]
    if 1 < len(places) <= 3:
        for each, shift in zip(means, _shifts(means, domain, log, height), strict=True):
            end = tables.add([{"at": f"{each.at:g}", "x": each.x[-1], "y": each.y[-1]}])
            tag = alt.Chart(end).mark_text(align="left", dx=6, dy=shift, fontWeight=600, fontSize=12)
            layers.append(tag.encode(x=x, y=y, text=alt.Text("at:N"), color=color))
    return base.layered(layers, tables, width=width, height=height, describe=describe)


def _shifts(curves: Sequence[Curve], domain: tuple[float, float], log: bool, height: int) -> list[float]:
    """Pixels by which each curve's label moves so that none covers another."""
    low, high = (math.log(edge) for edge in domain) if log else domain
    ends = [(math.log(each.y[-1]) if log else each.y[-1]) for each in curves]
    places = [height * (high - end) / (high - low) for end in ends]
    return [at - place for at, place in zip(base.spread(places, 14), places, strict=True)]
