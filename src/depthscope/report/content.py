"""From Results to what figures draw: views, arms as series, raw values by seed, curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from depthscope.analysis.curves import mean_curve
from depthscope.analysis.table import ResultRow, Results
from depthscope.report import palette
from depthscope.report.charts.axis import Dot
from depthscope.report.charts.base import within_shares
from depthscope.report.charts.curves import Curve
from depthscope.report.palette import Series
from depthscope.report.temporal import adds, depth_key
from depthscope.report.words import Words
from depthscope.study.study import Part

SPLITS = ("train_running", "train")
CURVE_POINTS, ALL_POINTS = 120, 12_000
"""Points a curve at most (a panel has room for no more), and for all curves of a figure, so that a page stays light."""

MAX_LABEL = 160
"""Letters of an arm's label in legends and tables."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Runs that differ only in arm, seed and one axis: a part, or a slice of one that has further axes.

    Attributes:
        key: distinguishes views; fit for HTML ids.
        part: name of the part.
        title: heading for readers.
        rows: in the study's order.
        series: the arms that have rows, in the study's order.
        axis: what figures are drawn against: `depth`, or a field of the run where a part varies another number alone.
        further: the values of the part's other axes, all of whose runs are here.
    """

    key: str
    part: str
    title: str
    rows: tuple[ResultRow, ...]
    series: tuple[Series, ...]
    axis: str = "depth"
    further: Mapping[str, Any] = field(default_factory=dict)

    def at(self, row: ResultRow) -> float:
        """Where a row stands on the axis."""
        found: float = row.spec.depth if self.axis == "depth" else row.cell.axes[self.axis]
        return found

    @cached_property
    def places(self) -> tuple[float, ...]:
        """The values of the axis that are planned here, ascending."""
        return tuple(sorted({self.at(row) for row in self.rows}))

    def named(self, place: float, words: Words) -> str:
        """A place for readers, such as `56 layers` or `learning rate 0.1`."""
        if self.axis == "depth":
            return words(depth_key(self.rows, "layers_deep"), depth=place)
        return words("axis_at", axis=words.axis(self.axis), value=number_of(place))

    @property
    def trained(self) -> bool:
        """Whether anything is trained here: accuracies of untrained networks are chance, not results."""
        return any(row.spec.steps != 0 for row in self.rows)

    def cells(self) -> Mapping[tuple[str, float], tuple[ResultRow, ...]]:
        """(arm, place on the axis) -> its rows by seed."""
        return self._cells

    @cached_property
    def _cells(self) -> Mapping[tuple[str, float], tuple[ResultRow, ...]]:
        found: dict[tuple[str, float], list[ResultRow]] = {}
        for row in self.rows:
            found.setdefault((row.cell.arm, self.at(row)), []).append(row)
        return {key: tuple(sorted(rows, key=lambda row: row.cell.seed)) for key, rows in found.items()}


def views(results: Results, words: Words) -> tuple[View, ...]:
    """The study's parts, each cut along its axes other than the one that figures are drawn against."""
    looks = palette.assign([(row.cell.arm, adds(row.spec)) for row in results.rows])
    found: list[View] = []
    for name, part in results.study.parts.items():
        mine = [row for row in results.rows if row.cell.part == name]
        # The one part of a study needs no name to be told from others: its section says what it holds.
        title = words.pick(part.title, words("results_section") if len(results.study.parts) == 1 else name)
        along = main_axis(part)
        further = [axis for axis in part.axes if axis != along]
        slices = list(dict.fromkeys(tuple(str(row.cell.axes[axis]) for axis in further) for row in mine))
        for number, values in enumerate(slices):
            rows = tuple(row for row in mine if tuple(str(row.cell.axes[axis]) for axis in further) == values)
            used = {row.cell.arm for row in rows}
            series = tuple(
                Series(
                    name=arm.name,
                    label=clamped(words.pick(arm.label, arm.name)),
                    color=looks[arm.name][0],
                    shape=looks[arm.name][1],
                )
                for arm in part.arms
                if arm.name in used
            )
            tail = words("list").join(
                f"{words.axis(axis)} = {value}" for axis, value in zip(further, values, strict=True)
            )
            found.append(
                View(
                    key=f"{name}-{number}" if further else name,
                    part=name,
                    title=words("aside", text=title, more=tail) if tail else title,
                    rows=rows,
                    series=unique_labels(series),
                    axis=along,
                    further={axis: rows[0].cell.axes[axis] for axis in further},
                )
            )
    return tuple(found)


def main_axis(part: Part) -> str:
    """Depth where it varies; else the first axis of two or more positive numbers; else depth, at one place."""
    if "depth" in part.axes:
        return "depth"
    return next(
        (axis for axis, values in part.axes.items() if len(values) > 1 and all(map(_positive, values))), "depth"
    )


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def number_of(value: float) -> str:
    """A place on an axis as readers want it.

    >>> number_of(56), number_of(50_000), number_of(0.003), number_of(1e-05)
    ('56', '50,000', '0.003', '1e-05')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def clamped(label: str) -> str:
    """A label that stands in every legend, cut where it would be a paragraph.

    >>> clamped("plain"), len(clamped("x" * 5000))
    ('plain', 160)
    """
    return label if len(label) <= MAX_LABEL else f"{label[: MAX_LABEL - 1]}…"


def unique_labels(series: Sequence[Series]) -> tuple[Series, ...]:
    """Arms that share a label get their names behind it, so that no two are drawn as one."""
    labels = [each.label for each in series]
    return tuple(
        each
        if labels.count(each.label) == 1
        else Series(name=each.name, label=f"{each.label} ({each.name})", color=each.color, shape=each.shape)
        for each in series
    )


def dots(view: View, metric: str) -> tuple[Dot, ...]:
    """The metric of every run that has a finite one."""
    return tuple(
        Dot(series=row.cell.arm, at=view.at(row), seed=row.cell.seed, value=value)
        for row in view.rows
        if (value := row.value(metric)) is not None and math.isfinite(value)
    )


@dataclass(frozen=True, kw_only=True)
class ArmCurves:
    """The curves of one arm.

    Attributes:
        series: the arm.
        curves: of its seeds, and of their mean.
        in_epochs: whether x counts epochs (else steps).
        split: `train_running`, averages over the batches of an epoch, or `train`, clean passes.
    """

    series: Series
    curves: tuple[Curve, ...]
    in_epochs: bool
    split: str


def arm_curves(results: Results, view: View, quantity: str) -> tuple[ArmCurves, ...]:
    """Figures of training by arm; arms without any are left out.

    Running averages where the runs kept them; runs that use all examples at once kept clean passes.
    The line that stands for a cell is the mean over its seeds at the steps that all of them have.
    """
    found = []
    cells = view.cells()
    split = next(
        (each for each in SPLITS if any(len(_logged(results, row, each, quantity)) > 1 for row in view.rows)), ""
    )
    if not split:
        return ()
    # Where no run of a cell completed, nothing tells how many steps an epoch had.
    in_epochs = all(_epoch_step(rows) is not None for rows in cells.values())
    points = min(CURVE_POINTS, max(30, ALL_POINTS // len(view.rows)))
    for series in view.series:
        curves: list[Curve] = []
        for (arm, place), rows in cells.items():
            if arm != series.name:
                continue
            by_seed = {row.cell.seed: curve for row in rows if (curve := _logged(results, row, split, quantity))}
            if not by_seed or max(len(curve) for curve in by_seed.values()) < 2:
                continue
            scale = (_epoch_step(rows) or 1.0) if in_epochs else 1.0
            for seed, curve in by_seed.items():
                curves.append(_curve(place, seed, curve, scale, points))
            mean = mean_curve(by_seed)
            if len(mean) > 1:
                curves.append(_curve(place, None, mean, scale, points))
        if curves:
            found.append(ArmCurves(series=series, curves=tuple(curves), in_epochs=in_epochs, split=split))
    return tuple(found)


def curve_domain(panels: Iterable[ArmCurves], *, log: bool, shares: bool = False) -> tuple[float, float]:
    """The y range that all panels share; of shares within 0 and 1."""
    values = [value for panel in panels for curve in panel.curves for value in curve.y]
    low, high = min(values), max(values)
    if log:
        return low / 1.2, high * 1.2
    room = 0.05 * (high - low) or 0.05
    return within_shares((low - room, high + room)) if shares else (low - room, high + room)


def curve_span(panels: Iterable[ArmCurves]) -> tuple[float, float]:
    """The x range that all panels share: an arm that stops early is seen to."""
    ends = [end for panel in panels for curve in panel.curves for end in (curve.x[0], curve.x[-1])]
    return min(ends), max(ends)


def spans_decades(panels: Iterable[ArmCurves]) -> bool:
    """Whether a linear axis would hide the small values: they span over a decade."""
    values = [value for panel in panels for curve in panel.curves for value in curve.y]
    return min(values) > 0 and max(values) / min(values) > 10


def _logged(results: Results, row: ResultRow, split: str, quantity: str) -> dict[int, float]:
    if row.record is None:
        return {}
    table = results.load_table(row.cell.run_id, "metrics")
    if table is None:
        return {}
    columns = (table.column(name).to_pylist() for name in ("step", "split", "quantity", "value"))
    return {
        step: value
        for step, where, what, value in zip(*columns, strict=True)
        if where == split and what == quantity and value is not None and math.isfinite(value)
    }


def _epoch_step(rows: Sequence[ResultRow]) -> float | None:
    """Epochs a step; None where no run of the cell tells it."""
    # A run of E epochs that completed without stopping early took `step` updates: E / step epochs each.
    for row in rows:
        ended = row.record.outcome if row.record else None
        if ended and ended.status == "completed" and not ended.stopped_early and ended.step and row.spec.epochs:
            return row.spec.epochs / ended.step
    return None


def _curve(place: float, seed: int | None, values: dict[int, float], scale: float, points: int) -> Curve:
    steps = sorted(values)
    if len(steps) > points:
        picked = np.unique(np.linspace(0, len(steps) - 1, points).round().astype(int))
        steps = [steps[index] for index in picked]
    return Curve(
        at=place,
        seed=seed,
        x=tuple(round(step * scale, 4) for step in steps),
        y=tuple(significant(values[step]) for step in steps),
    )


def significant(value: float, digits: int = 5) -> float:
    """Rounded for drawing: finer than a pixel, and half the bytes."""
    return float(f"{value:.{digits - 1}e}")
