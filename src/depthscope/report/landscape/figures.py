"""From maps to figures: blocks of panels that share one scale of colours and one set of isolines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.analysis.landscape import curvature_ratios
from depthscope.record.landscape import HessianMap, MapRecord
from depthscope.report.charts import landscape as charts
from depthscope.report.charts.landscape import Map
from depthscope.report.landscape import scale as scales
from depthscope.report.landscape.conditions import conditions
from depthscope.report.landscape.isolines import isolines
from depthscope.report.landscape.scale import Scale
from depthscope.report.numbers import number
from depthscope.report.palette import INK, MUTED
from depthscope.report.shapes import Block, Legend, Panel
from depthscope.report.words import Words

RATIO = Scale(low=0.0, high=1.0, log=False, levels=(0.1, 0.2, 0.5), shades=scales.CURVED)
"""Of |most negative eigenvalue| over the largest: the same wherever it is shown."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A map with its name: `key` is fit for an HTML id, `title` stands above it."""

    key: str
    title: str
    record: MapRecord


def loss_scale(maps: Iterable[Shown]) -> Scale | None:
    """The scale of the losses of these maps; None where none is finite."""
    return scales.scale_of(each.record.loss for each in maps)


def map_block(
    maps: Sequence[Shown],
    words: Words,
    *,
    key: str,
    heading: str,
    scale: Scale,
    columns: int | None = None,
    notes: Sequence[str] = (),
    hover: bool = True,
) -> Block:
    """The losses of maps with two axes, on one scale.

    Args:
        maps: in order of drawing.
        words: language.
        key: of the block.
        heading: above it.
        scale: from `loss_scale` of all that are read together.
        columns: panels side by side; None goes by their number.
        notes: said before what the maps themselves make necessary.
        hover: whether a point tells its values.
    """
    told = [words("land.clipped", high=number(scale.high))] if scale.clipped else []
    records = [each.record for each in maps]
    return Block(
        kind="map",
        key=key,
        heading=heading,
        caption=words("land.map_caption" if hover else "land.map_caption_still"),
        about=conditions(records, words),
        panels=tuple(_loss_panel(each, scale, words, hover) for each in maps),
        legend=_legend(maps, [each.record.loss for each in maps], words),
        notes=(*told, *notes, *_omissions(maps, words)),
        columns=columns,
        scale=_scale_panel(f"scale-{key}", words("loss"), scale, words),
    )


def convexity_block(
    maps: Sequence[Shown], words: Words, *, key: str, heading: str, columns: int | None = None
) -> Block | None:
    """Where the loss curves downward, for those of the maps that have a Hessian's grid; None where none has."""
    curved = [(each, each.record.hessian) for each in maps if each.record.hessian is not None]
    if not curved:
        return None
    values = [curvature_ratios(hessian) for _, hessian in curved]
    examples = {each.record.spec.hessian_examples for each, _ in curved}
    records = [each.record for each, _ in curved]
    over = any((each[np.isfinite(each)] > 1).any() for each in values)
    return Block(
        kind="map",
        key=key,
        heading=heading,
        caption=words("land.convexity_caption", n=f"{max(examples):,}"),
        about=conditions(records, words),
        panels=tuple(
            _ratio_panel(each, hessian, found, words) for (each, hessian), found in zip(curved, values, strict=True)
        ),
        legend=_legend([each for each, _ in curved], values, words),
        notes=(words("land.clipped_ratio"),) if over else (),
        columns=columns,
        scale=_scale_panel(f"scale-{key}", words("land.ratio"), RATIO, words),
    )


def _loss_panel(shown: Shown, scale: Scale, words: Words, hover: bool) -> Panel:
    record = shown.record
    values = [(words("loss"), scales.rounded(record.loss.ravel()))]
    if record.accuracy is not None:
        values.append((words("accuracy"), scales.rounded(record.accuracy.ravel())))
    return _panel(shown, words("loss"), record.loss, values, record.missing, scale, words, hover=hover)


def _ratio_panel(shown: Shown, hessian: HessianMap, found: NDArray[np.float64], words: Words) -> Panel:
    values = [
        (words("land.ratio"), scales.rounded(found.ravel())),
        (words("land.lambda_min"), scales.rounded(hessian.lambda_min.ravel())),
        (words("land.lambda_max"), scales.rounded(hessian.lambda_max.ravel())),
    ]
    named = Shown(key=f"convexity-{shown.key}", title=shown.title, record=shown.record)
    return _panel(named, words("land.ratio"), found, values, hessian.missing, RATIO, words, hessian=True)


def _panel(
    shown: Shown,
    what: str,
    found: NDArray[np.float64],
    values: Sequence[tuple[str, Sequence[float | None]]],
    missing: Sequence[int],
    scale: Scale,
    words: Words,
    *,
    hessian: bool = False,
    hover: bool = True,
) -> Panel:
    record = shown.record
    grid = record.spec.hessian_grid() if hessian else record.grid
    assert grid is not None, "only a map with a Hessian's grid has ratios"
    lines, written = isolines(grid.coordinates, found, scale)
    absent = set(missing)
    odd = [index for index in np.flatnonzero(~np.isfinite(found.ravel())) if index not in absent]
    way = record.head.trajectory
    drawn = Map(
        picture=scales.picture(found, scale),
        coordinates=grid.coordinates,
        values=values,
        strokes=[charts.Stroke(level=each.level, pale=scale.pale(each.level), points=each.points) for each in lines],
        written=[
            charts.Written(text=f"{each.level:g}", pale=scale.pale(each.level), a=each.a, b=each.b) for each in written
        ],
        odd=[(*_pair(grid.at(int(index))), _odd(found.ravel()[index], words)) for index in odd],
        missing=[_pair(grid.at(index)) for index in missing],
        way=[
            (place[0], place[1], words("land.at_step", step=step))
            for step, place in zip(way.steps or range(len(way.path)), way.path, strict=True)
        ]
        if way is not None and not hessian
        else [],
    )
    finite = found[np.isfinite(found)]
    low, high = (number(float(each)) for each in ((finite.min(), finite.max()) if finite.size else (math.nan,) * 2))
    describe = words("land.describe", what=what, name=shown.title, num=grid.num, low=low, high=high)
    draw = partial(
        charts.loss_map,
        drawn,
        x_title=_axis_title(record, 0, words),
        y_title=_axis_title(record, 1, words),
        describe=describe,
        words={"a": "a", "b": "b", "missing": words("land.not_yet"), "step": " "},
        hover=hover,
    )
    return Panel(key=shown.key, title=shown.title, describe=describe, draw=draw, square=True)


def _pair(place: tuple[float, ...]) -> tuple[float, float]:
    return place[0], place[1]


def _odd(value: float, words: Words) -> str:
    if math.isnan(value):
        return words("land.undefined")
    return words("land.infinite" if value > 0 else "land.minus_infinite")


def _axis_title(record: MapRecord, axis: int, words: Words) -> str:
    name = "ab"[axis]
    way = record.head.trajectory
    if way is None:
        return words("land.direction", n=axis + 1, name=name)
    return words("land.principal", n=axis + 1, name=name, share=number(way.explained[axis], "fraction"))


def _scale_panel(key: str, what: str, scale: Scale, words: Words) -> Panel:
    describe = words("land.describe_scale", what=what, low=number(scale.low), high=number(scale.high))

    def draw(*, width: int | None = None) -> Any:
        return charts.shade_bar(
            scales.bar(scale),
            low=scale.low,
            high=scale.high,
            log=scale.log,
            levels=[(level, scale.pale(level)) for level in scale.levels],
            title=words("land.log", what=what) if scale.log else what,
            describe=describe,
            width=width,
        )

    return Panel(key=key, title="", describe=describe, draw=draw)


def _legend(maps: Sequence[Shown], values: Sequence[NDArray[np.float64]], words: Words) -> tuple[Legend, ...]:
    found = [Legend(label=words("land.centre"), color=INK, shape="cross")]
    if any(each.record.head.trajectory is not None for each in maps):
        found.append(Legend(label=words("land.way"), color=charts.WAY))
    if any(_num_odd(each.record, value) for each, value in zip(maps, values, strict=True)):
        found.append(Legend(label=words("land.not_finite"), color=MUTED, shape="hatched"))
    return tuple(found)


def _num_odd(record: MapRecord, values: NDArray[np.float64]) -> int:
    """Points that were found and are not finite."""
    hessian = record.hessian
    absent = record.missing if values.shape == record.loss.shape or hessian is None else hessian.missing
    return int((~np.isfinite(values)).sum()) - len(absent)


def _omissions(maps: Sequence[Shown], words: Words) -> list[str]:
    """What cannot be seen on these maps: values that are not finite, points that are missing, a path outside."""
    told = []
    odd = sum(_num_odd(each.record, each.record.loss) for each in maps)
    if odd:
        told.append(words("land.odd", count=odd))
    missing = sum(len(each.record.missing) for each in maps)
    if missing:
        told.append(
            words("land.missing", count=f"{missing:,}", total=f"{sum(each.record.loss.size for each in maps):,}")
        )
    for each in maps:
        way = each.record.head.trajectory
        if way is not None:
            outside = sum(max(map(abs, place)) > each.record.spec.extent for place in way.path)
            told += [words("land.outside", count=outside, total=len(way.path))] if outside else []
    return told
