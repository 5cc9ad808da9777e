"""The loss along the step, and its sharpness, of a view as blocks: by step of the training, a colour for each arm."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow.compute as pc

from depthscope.analysis.curves import mean_curve
from depthscope.analysis.table import Results
from depthscope.analysis.units import squared
from depthscope.report.charts.bands import Band, Bound, by_step
from depthscope.report.charts.lines import Line
from depthscope.report.content import View, significant
from depthscope.report.palette import MUTED, Series
from depthscope.report.shapes import Block, Legend, Panel, legend_of
from depthscope.report.words import Words

STEP = {
    "loss": ("loss_low", "loss_high"),
    "change": ("change_low", "change_high"),
    "smoothness": ("smoothness", "smoothness"),
}
"""A panel -> the rows that bound it; one and the same is a line."""
MAX_PLACES = 3
"""Of an axis, side by side; of more the ends are shown."""
FAR = 10.0
"""Times the largest eigenvalue: an edge beyond that is left out of the picture, where it would press the rest flat."""

Curve = Mapping[int, float]
Curves = Mapping[tuple[str, float, int], Curve]
"""(arm, place, seed) -> step -> value."""


@dataclass(frozen=True, kw_only=True)
class _Panel:
    key: str
    what: str
    where: str
    bands: tuple[Band, ...] = ()
    lines: tuple[Line, ...] = ()
    bounds: tuple[Bound, ...] = ()


def curvature_blocks(results: Results, view: View, words: Words) -> list[Block]:
    """`Along the step`, and `Sharpness`; those that were measured at two steps or more."""
    return [*_step_block(results, view, words), *_sharpness_block(results, view, words)]


def _step_block(results: Results, view: View, words: Words) -> list[Block]:
    found = _logged(results, view, "smoothness", {name for pair in STEP.values() for name in pair})
    places = _places(view, found["smoothness"][0])
    if not places:
        return []
    panels: list[Panel] = []
    for kind, (low, high) in STEP.items():
        what = words(f"step_{kind}")
        what = words.nats(what) if kind == "loss" and not squared(view.rows) else what
        made = []
        for place in places:
            lines: tuple[Line, ...] = ()
            bands: tuple[Band, ...] = ()
            if low == high:
                lines = _lines(view, found[low][0], place)
            else:
                bands = _bands(view, found[low][0], found[high][0], place)
            where = view.named(place, words)
            made.append(_Panel(key=f"step-{view.key}-{kind}-{place}", what=what, where=where, bands=bands, lines=lines))
        panels += _drawn(view, made, words, what)
    lost = sum(count for _, count in found.values()) - found["smoothness"][1]
    notes = [words("step_ends", count=len(view.places))] if len(places) < len(view.places) else []
    notes += [words("step_infinite", count=lost)] if lost else []
    return [
        Block(
            kind="step",
            key=f"step-{view.key}",
            heading=words("step_section"),
            caption=words("step_caption"),
            panels=tuple(panels),
            legend=legend_of(_arms(view, found["smoothness"][0])),
            notes=tuple(notes),
            columns=len(places) if len(places) > 1 else 3,
        )
    ]


def _sharpness_block(results: Results, view: View, words: Words) -> list[Block]:
    found = _logged(results, view, "sharpness", ("lambda_max", "edge"))
    (curves, _), (edges, _) = found["lambda_max"], found["edge"]
    places = _places(view, curves)
    if not places:
        return []
    made = []
    for place in places:
        lines = _lines(view, curves, place)
        most = max(value for line in lines for value in line.y)
        made.append(
            _Panel(
                key=f"sharpness-{view.key}-{place}",
                what=words("sharpness_y"),
                where=view.named(place, words),
                lines=lines,
                bounds=_bounds(view, edges, place, most),
            )
        )
    shown = any(panel.bounds for panel in made)
    dashed = [Legend(label=words("sharpness_edge"), color=MUTED, shape="dashed")] if shown else []
    return [
        Block(
            kind="sharpness",
            key=f"sharpness-{view.key}",
            heading=words("sharpness_section"),
            caption=words("sharpness_caption", edge=_edge(view, words))
            if edges
            else words("sharpness_caption_no_edge"),
            panels=tuple(_drawn(view, made, words, words("sharpness_y"))),
            legend=(*legend_of(_arms(view, curves)), *dashed),
            notes=(words("step_ends", count=len(view.places)),) if len(places) < len(view.places) else (),
            columns=len(places),
        )
    ]


def _logged(
    results: Results, view: View, split: str, names: Collection[str]
) -> dict[str, tuple[dict[tuple[str, float, int], Curve], int]]:
    """Of each quantity the curves of all runs, and how many of their values were no finite numbers."""
    curves: dict[str, dict[tuple[str, float, int], Curve]] = {name: {} for name in names}
    lost = dict.fromkeys(names, 0)
    for row in view.rows:
        table = results.load_table(row.cell.run_id, "metrics") if row.record is not None else None
        if table is None:
            continue
        table = table.filter(pc.equal(table.column("split"), split))
        columns = (table.column(name).to_pylist() for name in ("step", "quantity", "value"))
        found: dict[str, dict[int, float | None]] = {}
        for step, quantity, value in zip(*columns, strict=True):
            found.setdefault(quantity, {})[step] = value
        for name in found.keys() & curves.keys():
            values = found[name]
            finite = {step: value for step, value in values.items() if value is not None and math.isfinite(value)}
            lost[name] += len(values) - len(finite)
            if finite:
                curves[name][row.cell.arm, view.at(row), row.cell.seed] = finite
    return {name: (curves[name], lost[name]) for name in names}


def _places(view: View, curves: Curves) -> tuple[float, ...]:
    """Where there is a curve: at two steps or more, one alone stands in the tables."""
    there = {place for (_, place, _), curve in curves.items() if len(curve) > 1}
    places = tuple(place for place in view.places if place in there)
    return places if len(places) <= MAX_PLACES else (places[0], places[-1])


def _arms(view: View, curves: Curves) -> tuple[Series, ...]:
    there = {arm for arm, _, _ in curves}
    return tuple(each for each in view.series if each.name in there)


def _means(view: View, curves: Curves, place: float) -> dict[str, Curve]:
    """Arm -> the mean over its seeds; where they share no step, there is none."""
    found: dict[str, Curve] = {}
    for series in view.series:
        mine = {seed: curve for (arm, at, seed), curve in curves.items() if (arm, at) == (series.name, place)}
        if mean := mean_curve(mine):
            found[series.name] = mean
    return found


def _bands(view: View, low: Curves, high: Curves, place: float) -> tuple[Band, ...]:
    tops = _means(view, high, place)
    bands = []
    for arm, bottom in _means(view, low, place).items():
        steps = [step for step in bottom if step in tops.get(arm, {})]
        if steps:
            bands.append(
                Band(
                    series=arm,
                    x=tuple(steps),
                    low=tuple(significant(bottom[step]) for step in steps),
                    high=tuple(significant(tops[arm][step]) for step in steps),
                )
            )
    return tuple(bands)


def _lines(view: View, curves: Curves, place: float) -> tuple[Line, ...]:
    """Of each seed where an arm has several, and of their mean."""
    lines = [_line(arm, None, curve) for arm, curve in _means(view, curves, place).items()]
    for series in view.series:
        own = {seed: each for (arm, at, seed), each in curves.items() if (arm, at) == (series.name, place)}
        lines += [_line(series.name, seed, each) for seed, each in own.items() if len(own) > 1]
    return tuple(lines)


def _line(arm: str, seed: int | None, curve: Curve) -> Line:
    steps = sorted(curve)
    return Line(series=arm, seed=seed, x=tuple(map(float, steps)), y=tuple(significant(curve[step]) for step in steps))


def _bounds(view: View, edges: Curves, place: float, most: float) -> tuple[Bound, ...]:
    """The edges that come near enough to be seen, each once: an arm's own has its colour."""
    arms: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for arm, curve in _means(view, edges, place).items():
        if min(curve.values()) <= FAR * most:
            arms.setdefault(tuple((step, significant(value)) for step, value in sorted(curve.items())), []).append(arm)
    alone = len(arms) > 1
    return tuple(
        Bound(
            series=names[0] if alone and len(names) == 1 else None,
            x=tuple(float(step) for step, _ in points),
            y=tuple(value for _, value in points),
        )
        for points, names in arms.items()
    )


def _edge(view: View, words: Words) -> str:
    """What the bound is made of in these runs, for the caption."""
    options = [row.spec.optimizer_options for row in view.rows if row.spec.optimizer == "sgd"]
    bound = words("edge_momentum" if any(each.get("momentum") for each in options) else "edge_plain")
    return words("edge_decay", bound=bound) if any(each.get("weight_decay") for each in options) else bound


def _drawn(view: View, made: Sequence[_Panel], words: Words, y_title: str) -> Iterable[Panel]:
    """The panels of one kind, over ranges that they share."""
    values = [y for each in made for line in each.lines for y in line.y]
    values += [y for each in made for band in each.bands for y in (*band.low, *band.high)]
    near = [y for each in made for bound in each.bounds for y in bound.y if y <= FAR * max(values)]
    low, high = min(values + near), max(values + near)
    log = low > 0 and high > 10 * low
    room = 0.05 * (high - low) or 0.05
    domain = (low / 1.2, high * 1.2) if log else (low - room, high + room)
    steps = [x for each in made for line in each.lines for x in line.x]
    steps += [x for each in made for band in each.bands for x in band.x]
    span = (min(steps), max(steps) if max(steps) > min(steps) else min(steps) + 1)
    for each in made:
        drawn = {line.series for line in each.lines} | {band.series for band in each.bands}
        series = tuple(one for one in view.series if one.name in drawn)
        describe = words(
            "step_describe", what=each.what, where=each.where, arms=words("list").join(one.label for one in series)
        )
        draw = partial(
            by_step,
            series,
            bands=each.bands,
            lines=each.lines,
            bounds=each.bounds,
            x_title=words("step"),
            y_title=y_title,
            describe=describe,
            words={"low": words("step_lowest"), "high": words("step_highest")},
            domain=domain,
            span=span,
            log=log,
        )
        title = each.where if len(view.places) > 1 else ""
        yield Panel(key=each.key, title=title, describe=describe, draw=draw)
