"""The layers of many runs, reduced to what a page can carry: the seeds' median and range by step and layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from depthscope.analysis.profiles import median_and_range
from depthscope.analysis.table import Results
from depthscope.analysis.units import temporal
from depthscope.report.charts.profile import LayerValue, Level
from depthscope.report.content import View, significant
from depthscope.report.logged import LAST as LAST
from depthscope.report.logged import LESIONS, read_logged, shown

MAX_STEPS = 20
"""Steps a page shows. The powers of two and the last stay; epoch ends in between are thinned."""

MAX_VALUES = 60_000
"""Values that a page carries for the layers of one part: with many arms, fewer steps."""

ORDER = ("dh_norm", "h_norm", "dw_norm", "dw_ratio", "f_over_x", "w_norm")
OF_WEIGHTS = ("dw_norm", "dw_ratio", "w_norm")
MEANS = ("dh_mean_abs", "h_mean_abs")


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
    read = {key: read_logged(results, rows, lesions=lesions) for key, rows in view.cells().items()}
    logged = {key: each for key, each in read.items() if each is not None}
    if not logged:
        return ()
    found_at = sorted({int(step) for each in logged.values() for step in np.unique(each.step)})
    lasts = {int(step) for each in logged.values() for step in each.lasts}
    last_step = lasts.pop() if len(lasts) == 1 else None
    sizes = {run_id: size for each in logged.values() for run_id, size in each.num_layers.items()}
    lines = sum(sizes.values()) / len(sizes) * len(view.cells())
    most = max(2, min(MAX_STEPS, int(MAX_VALUES / (lines * len(ORDER)))))
    steps = _kept(found_at, last_step, most)
    found = []
    # Steps in time share one weight: what is measured of it is the same at all of them.
    order = tuple(key for key in ORDER if not (key in OF_WEIGHTS and temporal(view.rows)))
    for place in view.places:
        cells = {arm: shown(each, steps) for (arm, own), each in logged.items() if own == place}
        present = {quantity for each in cells.values() for quantity in each.present}
        wanted = LESIONS if lesions else order if present & set(ORDER) else MEANS
        if present & set(wanted):
            found.append(
                DepthProfile(
                    place=place,
                    values=tuple(value for arm, each in cells.items() for value in each.values(arm, wanted)),
                    quantities=tuple(each for each in wanted if each in present),
                    steps=steps,
                    last_step=last_step,
                    total_steps=len(found_at),
                    left_out=sum(each.left_out for each in cells.values()),
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
