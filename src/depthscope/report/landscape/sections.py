"""Maps with one axis: the loss and the accuracy along a line through each network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.analysis.landscape import curvature_ratios
from depthscope.record.landscape import MapRecord
from depthscope.report.charts.base import within_shares
from depthscope.report.charts.section import Slice, along_a_line
from depthscope.report.landscape import scale as scales
from depthscope.report.landscape.conditions import conditions
from depthscope.report.palette import Series
from depthscope.report.shapes import Block, Panel, legend_of
from depthscope.report.words import Words

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A map with one axis: of which series, its name among those of the series, and whether it stands for them."""

    series: str
    name: str
    record: MapRecord
    strong: bool = True


def curve_block(
    panels: Mapping[tuple[str, str], Sequence[Line]],
    series: Sequence[Series],
    words: Words,
    *,
    key: str,
    heading: str,
) -> Block | None:
    """Loss, accuracy and curvature of lines, each with an axis that all panels share; None where nothing is finite.

    Args:
        panels: (key, title) -> the lines that stand in one panel of each quantity.
        series: in order of drawing.
        words: language.
        key: of the block.
        heading: above it.
    """
    everything = [line for lines in panels.values() for line in lines]
    drawn: list[Panel] = []
    for quantity, read in _QUANTITIES.items():
        finite = [value for line in everything for value in _finite(read(line.record))]
        if not finite:
            continue
        low, high = min(finite), max(finite)
        log = quantity == "loss" and low > 0 and high / low > scales.DECADES
        room = 0.04 * (high - low) or 0.1 * abs(high) or 1.0
        domain = (low / 1.1, high * 1.1) if log else (low - room, high + room)
        domain = within_shares(domain) if quantity == "accuracy" else domain
        for (place, title), lines in panels.items():
            panel = _panel(f"{key}-{quantity}-{place}", quantity, title, lines, series, domain, log, words)
            drawn += [panel] if panel is not None else []
    if not drawn:
        return None
    records = [line.record for line in everything]
    odd = sum(int((~np.isfinite(each.loss)).sum()) - len(each.missing) for each in records)
    missing = sum(len(each.missing) for each in records)
    total = sum(each.loss.size for each in records)
    used = tuple(each for each in series if any(line.series == each.name for line in everything))
    several = "" if len(everything) > len(used) * len(panels) else "_one"
    return Block(
        kind="sections",
        key=key,
        heading=heading,
        caption=words(f"land.curve_caption{several}"),
        about=conditions(records, words),
        panels=tuple(drawn),
        legend=legend_of(used) if len(used) > 1 else (),
        notes=(
            *([words("land.gaps", count=odd)] if odd else []),
            *([words("land.missing", count=f"{missing:,}", total=f"{total:,}")] if missing else []),
        ),
        columns=min(len(panels), 3) if len(panels) > 1 else None,
    )


def _ratios(record: MapRecord) -> Values | None:
    return curvature_ratios(record.hessian) if record.hessian is not None else None


_QUANTITIES: Mapping[str, Callable[[MapRecord], Values | None]] = {
    "loss": lambda record: record.loss,
    "accuracy": lambda record: record.accuracy,
    "land.ratio": _ratios,
}
"""Key of a quantity's name -> its values along the line."""


def _finite(values: Values | None) -> list[float]:
    return [] if values is None else [float(each) for each in values[np.isfinite(values)]]


def _panel(
    key: str,
    quantity: str,
    title: str,
    lines: Sequence[Line],
    series: Sequence[Series],
    domain: tuple[float, float],
    log: bool,
    words: Words,
) -> Panel | None:
    slices = [
        Slice(
            series=line.series,
            name=line.name,
            x=_coordinates(line.record, len(values)),
            y=scales.rounded(values),
            strong=line.strong,
        )
        for line in lines
        if (values := _QUANTITIES[quantity](line.record)) is not None
    ]
    if not any(value is not None and math.isfinite(value) for each in slices for value in each.y):
        return None
    described = title or words("list").join(dict.fromkeys(line.name for line in lines))
    num = max(len(each.x) for each in slices)
    describe = words("land.describe_curve", what=words(quantity), num=num, name=described)
    draw: Callable[..., Any] = partial(
        along_a_line,
        slices,
        [each for each in series if any(one.series == each.name for one in slices)],
        x_title=words("land.place"),
        y_title=words(quantity),
        describe=describe,
        domain=domain,
        log=log,
        percent=quantity == "accuracy",
    )
    return Panel(key=key.replace("land.", ""), title=title, describe=describe, draw=draw)


def _coordinates(record: MapRecord, num: int) -> tuple[float, ...]:
    """Of the map's own points, or of those where the Hessian was found."""
    grid = record.grid if num == record.grid.num else record.spec.hessian_grid()
    assert grid is not None, "values along a line stand at the points of one of its grids"
    return grid.coordinates
