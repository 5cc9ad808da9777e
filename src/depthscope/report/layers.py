"""The layers of many runs, reduced to what a page can carry: the seeds' median and range by step and layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from depthscope.analysis.profiles import median_and_range
from depthscope.analysis.table import ResultRow, Results
from depthscope.analysis.units import temporal
from depthscope.report.charts.profile import LayerValue, Level
from depthscope.report.content import View, significant

MAX_STEPS = 20
"""Steps a page shows. The powers of two and the last stay; epoch ends in between are thinned."""

MAX_VALUES = 60_000
"""Values that a page carries for the layers of one part: with many arms, fewer steps."""

ORDER = ("dh_norm", "h_norm", "dw_norm", "dw_ratio", "f_over_x", "w_norm")
OF_WEIGHTS = ("dw_norm", "dw_ratio", "w_norm")
MEANS = ("dh_mean_abs", "h_mean_abs")
LESIONS = ("lesion_loss", "lesion_accuracy", "block_lesion_loss")
"""Measured once, after training: they have a picture of their own."""
LAST = -1
"""Stands for the last step of each run, which differs where runs stop early."""


@dataclass(frozen=True, kw_only=True)
class DepthProfile:
    """What one network depth has to show.

    Attributes:
        steps: those kept, ascending; `LAST` at the end.
        total_steps: how many were logged.
        left_out: values that a log axis cannot show.
    """

    place: float
    values: tuple[LayerValue, ...]
    quantities: tuple[str, ...]
    steps: tuple[int, ...]
    last_step: int | None
    total_steps: int
    left_out: int


def depth_profiles(results: Results, view: View, *, lesions: bool = False) -> tuple[DepthProfile, ...]:
    """A profile a depth, for the depths where any run logged its layers. All share one list of steps.

    Args:
        results: the study's.
        view: of those results.
        lesions: what is left without each branch or block, in place of what was logged during training.
    """
    tables = {
        row.cell.run_id: kept
        for row in view.rows
        if row.record is not None and (table := results.load_table(row.cell.run_id, "layers")) is not None
        if (kept := _of_kind(table, lesions=lesions)).num_rows
    }
    if not tables:
        return ()
    logged = sorted({step for table in tables.values() for step in table.column("step").unique().to_pylist()})
    lasts = {max(table.column("step").unique().to_pylist()) for table in tables.values()}
    last_step = lasts.pop() if len(lasts) == 1 else None
    sizes = [len({*table.column("layer").to_pylist()}) for table in tables.values()]
    lines = sum(sizes) / len(sizes) * len({(row.cell.arm, view.at(row)) for row in view.rows})
    most = max(2, min(MAX_STEPS, int(MAX_VALUES / (lines * len(ORDER)))))
    steps = _kept(logged, last_step, most)
    found = []
    # Steps in time share one weight: what is measured of it is the same at all of them.
    order = tuple(key for key in ORDER if not (key in OF_WEIGHTS and temporal(view.rows)))
    for place in view.places:
        values: list[LayerValue] = []
        left_out = 0
        for (arm, own), rows in view.cells().items():
            if own == place:
                some, omitted = _cell(arm, rows, tables, steps)
                values += some
                left_out += omitted
        present = {each.quantity for each in values}
        wanted = LESIONS if lesions else order if present & set(ORDER) else MEANS
        if present & set(wanted):
            found.append(
                DepthProfile(
                    place=place,
                    values=tuple(each for each in values if each.quantity in wanted),
                    quantities=tuple(each for each in wanted if each in present),
                    steps=steps,
                    last_step=last_step,
                    total_steps=len(logged),
                    left_out=left_out,
                )
            )
    return tuple(found)


def intact(results: Results, view: View, profile: DepthProfile) -> tuple[Level, ...]:
    """What the intact networks of a depth reach on the examples of their lesions, the median over seeds of each arm.

    A log axis cannot show a loss of 0, which is left out.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for row in view.rows:
        table = results.load_table(row.cell.run_id, "metrics") if row.record and view.at(row) == profile.place else None
        if table is None:
            continue
        table = table.filter(pc.equal(table.column("split"), "lesion"))
        for quantity, value in zip(*(table.column(key).to_pylist() for key in ("quantity", "value")), strict=True):
            if value is not None and math.isfinite(value):
                for lesion in (f"lesion_{quantity}", f"block_lesion_{quantity}"):
                    found.setdefault((row.cell.arm, lesion), []).append(value)
    made = {key: median_and_range(values).median for key, values in found.items()}
    return tuple(
        Level(series=arm, quantity=quantity, value=significant(value, 4))
        for (arm, quantity), value in made.items()
        if value > 0 and quantity in profile.quantities
    )


def _of_kind(table: pa.Table, *, lesions: bool) -> pa.Table:
    is_lesion = pc.is_in(table.column("quantity"), value_set=pa.array(LESIONS))
    return table.filter(is_lesion if lesions else pc.invert(is_lesion))


def _kept(logged: Sequence[int], last_step: int | None, most: int = MAX_STEPS) -> tuple[int, ...]:
    inner = [step for step in logged if step != last_step]
    if len(inner) >= most:
        powers = [step for step in inner if step == 0 or step & (step - 1) == 0]
        if len(powers) >= most:
            picked = np.unique(np.linspace(0, len(powers) - 1, most - 1).round().astype(int))
            powers = [powers[index] for index in picked]
        others = [step for step in inner if step not in powers]
        room = max(most - 1 - len(powers), 0)
        rest: list[int] = (
            np.unique(np.linspace(0, len(others) - 1, room).round().astype(int)).tolist() if room and others else []
        )
        inner = sorted([*powers, *(others[index] for index in rest)])
    # A measurement without training has one step; it is step 0, and "last" would say it twice.
    return (*inner, LAST) if inner or last_step != 0 else (0,)


def _cell(
    arm: str, rows: Sequence[ResultRow], tables: dict[str, pa.Table], steps: Sequence[int]
) -> tuple[list[LayerValue], int]:
    seen: dict[tuple[int, str, int], list[float]] = {}
    names: dict[int, str] = {}
    left_out = 0
    place = {step: index for index, step in enumerate(steps)}
    for row in rows:
        table = tables.get(row.cell.run_id)
        if table is None:
            continue
        columns = {name: table.column(name).to_pylist() for name in ("step", "layer", "name", "quantity", "value")}
        last = max(columns["step"])
        for step, layer, name, quantity, value in zip(*columns.values(), strict=True):
            names[layer] = name
            places = [place[step]] if step in place else []
            places += [place[LAST]] if step == last and LAST in place and place[LAST] not in places else []
            if value is None or not math.isfinite(value) or value <= 0:
                left_out += bool(places)
                continue
            for at in places:
                seen.setdefault((at, quantity, layer), []).append(value)
    values = [
        LayerValue(
            series=arm,
            at=at,
            quantity=quantity,
            layer=layer,
            name=names[layer],
            value=significant(made.median, 4),
            low=significant(made.low, 4),
            high=significant(made.high, 4),
        )
        for (at, quantity, layer), found in sorted(seen.items())
        for made in [median_and_range(found)]
    ]
    return values, left_out
