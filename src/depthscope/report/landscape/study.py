"""The loss landscapes of a study's runs: of each cell the run in the middle, and all others behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from depthscope.analysis.landscape import spreads
from depthscope.analysis.table import ResultRow, Results
from depthscope.record.landscape import MapRecord
from depthscope.report.content import View, views
from depthscope.report.landscape.figures import Shown, convexity_block, loss_scale, map_block
from depthscope.report.landscape.sections import Line, curve_block
from depthscope.report.numbers import number
from depthscope.report.shapes import Block
from depthscope.report.words import Words

LoadMaps = Callable[[str], Sequence[MapRecord]]
"""run_id -> its maps, by the seed of their directions."""
MOST_COLUMNS = 4
MOST_TOLD = 12
"""Folded maps whose points tell their values; more of them would make a page heavy, and are pictures alone."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """The landscapes of one view.

    Attributes:
        view: whose runs.
        blocks: figures of the runs in the middle.
        all_maps: of every run and plane, where there are more; those of curvature behind.
        count: how many maps there are.
        records: all of them.
        spread: sentences on what depends on the choice of directions.
    """

    view: View
    blocks: tuple[Block, ...]
    all_maps: tuple[Block, ...]
    count: int
    records: tuple[MapRecord, ...]
    spread: tuple[str, ...]


def landscapes(results: Results, words: Words) -> list[Section]:
    """The views whose runs have maps, in the study's order."""
    found = (section(view, results.load_maps, words) for view in views(results, words))
    return [each for each in found if each is not None]


def section(view: View, load: LoadMaps, words: Words) -> Section | None:
    """The landscapes of a view; None where no run has one."""
    cells = {key: _loaded(rows, load) for key, rows in view.cells().items()}
    cells = {key: maps for key, maps in cells.items() if maps}
    records = tuple(each for maps in cells.values() for _, each in maps)
    if not records:
        return None
    planes = {key: [(row, each) for row, each in maps if each.spec.axes == 2] for key, maps in cells.items()}
    lines = {key: [(row, each) for row, each in maps if each.spec.axes == 1] for key, maps in cells.items()}
    shown, folded = _maps(view, planes, words)
    curves = _curves(view, lines, words)
    return Section(
        view=view,
        blocks=(*shown, *([curves] if curves else [])),
        all_maps=folded,
        count=sum(map(len, planes.values())),
        records=records,
        spread=tuple(_spread(planes, words)),
    )


Loaded = list[tuple[ResultRow, MapRecord]]
Cells = dict[tuple[str, float], Loaded]


def _loaded(rows: Sequence[ResultRow], load: LoadMaps) -> Loaded:
    return [(row, each) for row in rows if row.record is not None for each in load(row.cell.run_id)]


def middle(maps: Loaded) -> tuple[ResultRow, MapRecord]:
    """Of the maps in the first directions, that of the run whose loss at the centre is the middle one.

    Of an even number it is the lower of the two; what is not finite counts as the highest.
    """
    first = min(each.spec.seed for _, each in maps)
    own = [(row, each) for row, each in maps if each.spec.seed == first]
    return sorted(own, key=lambda pair: (_or_infinite(pair[1].centre_loss), pair[0].cell.seed))[(len(own) - 1) // 2]


def _or_infinite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _maps(view: View, cells: Cells, words: Words) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    order = [(arm.name, place) for place in view.places for arm in view.series if cells.get((arm.name, place))]
    if not order:
        return (), ()
    everything = [_shown(view, key, row, each, words) for key in order for row, each in cells[key]]
    chosen = [_shown(view, key, *middle(cells[key]), words) for key in order]
    scale = loss_scale(everything)
    if scale is None:
        return (), ()
    more = len(everything) > len(chosen)
    arms, places = {arm for arm, _ in order}, {place for _, place in order}
    columns = min(len(arms) if len(arms) > 1 else len(places), MOST_COLUMNS)
    notes = [words("land.chosen_seeds", count=len(everything)), *_spread(cells, words)] if more else []
    key = f"landscape-{view.key}"
    shown = [
        map_block(chosen, words, key=key, heading=words("land.maps"), scale=scale, columns=columns, notes=notes),
        convexity_block(chosen, words, key=f"convexity-{view.key}", heading=words("land.convexity"), columns=columns),
    ]
    if not more:
        return tuple(each for each in shown if each), ()
    named = [
        Shown(
            key=f"all-{each.key}", title=f"{each.title}{words('list')}{_plane(each.record, words)}", record=each.record
        )
        for each in everything
    ]
    folded = [
        map_block(
            named, words, key=f"all-{key}", heading="", scale=scale, columns=MOST_COLUMNS, hover=len(named) <= MOST_TOLD
        ),
        convexity_block(named, words, key=f"all-convexity-{view.key}", heading="", columns=MOST_COLUMNS),
    ]
    return tuple(each for each in shown if each), tuple(each for each in folded if each)


def _spread(cells: Cells, words: Words) -> list[str]:
    """What depends on the choice of directions, where runs have several planes."""
    runs: list[list[list[MapRecord]]] = []
    for maps in cells.values():
        by_run: dict[str, list[MapRecord]] = {}
        for row, record in maps:
            by_run.setdefault(row.cell.run_id, []).append(record)
        runs.append(list(by_run.values()))
    return [
        words(
            "land.spread",
            metric=words(f"metric.{each.metric}"),
            planes=number(each.planes),
            seeds=number(each.seeds),
        )
        for each in spreads(runs)
    ]


def _shown(view: View, key: tuple[str, float], row: ResultRow, record: MapRecord, words: Words) -> Shown:
    arm, place = key
    label = next(each.label for each in view.series if each.name == arm)
    parts = [label, *([view.named(place, words)] if len(view.places) > 1 else []), _run(row, words)]
    name = f"{view.key}-{arm}-{place:g}-{row.cell.seed}-{record.spec.seed}"
    return Shown(key=f"map-{name}", title=words("list").join(parts), record=record)


def _run(row: ResultRow, words: Words) -> str:
    return words("land.run", seed=row.cell.seed)


def _plane(record: MapRecord, words: Words) -> str:
    way = record.spec.directions
    return words("land.directions.trajectory") if way == "trajectory" else words("land.plane", seed=record.spec.seed)


def _curves(view: View, cells: Cells, words: Words) -> Block | None:
    panels: dict[tuple[str, str], list[Line]] = {}
    for place in view.places:
        lines = []
        for arm in view.series:
            maps = cells.get((arm.name, place)) or []
            strong = middle(maps) if maps else None
            for row, each in maps:
                name = f"{_run(row, words)}{words('list')}{_plane(each, words)}"
                is_strong = strong is not None and each is strong[1]
                lines.append(Line(series=arm.name, name=name, record=each, strong=is_strong))
        if lines:
            panels[f"{place:g}", view.named(place, words) if len(view.places) > 1 else ""] = lines
    if not panels:
        return None
    return curve_block(panels, view.series, words, key=f"lines-{view.key}", heading=words("land.curves"))


def placed_sections(
    found: Sequence[Section], place: Callable[[Block], dict[str, Any]], words: Words
) -> list[dict[str, Any]]:
    """Sections as the template wants them; `place` takes a block's charts in."""

    def headed(view: View, block: Block) -> Block:
        return replace(block, heading=f"{view.title}{words('colon')}{block.heading}") if len(found) > 1 else block

    return [
        {
            "blocks": [place(headed(each.view, block)) for block in each.blocks],
            "folded": [place(block) for block in each.all_maps],
            "count": each.count,
        }
        for each in found
    ]
