"""The estimates that a page shows beside raw values: `analysis.summarise`, found by cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from depthscope.analysis.finding import Estimate
from depthscope.analysis.summarise import METRICS, CellSummary, summarise
from depthscope.analysis.table import Results
from depthscope.record.schema import SUMMARY
from depthscope.report.charts.axis import Mark
from depthscope.report.content import View
from depthscope.report.numbers import percent


class Estimates:
    """A summary for each cell of a study."""

    def __init__(self, results: Results) -> None:
        metrics = tuple(dict.fromkeys([*METRICS, *SUMMARY]))
        self._by_cell = {_key(each.part, each.arm, each.axes): each for each in summarise(results, metrics)}

    def cell(self, view: View, arm: str, place: float) -> CellSummary:
        """The summary of one arm at one place of a view's axis."""
        row = view.cells()[arm, place][0]
        return self._by_cell[_key(view.part, arm, row.cell.axes)]

    @property
    def level(self) -> str:
        """Coverage of the intervals, as readers want it."""
        levels = {made.level for cell in self._by_cell.values() for made in cell.estimates.values()}
        return ", ".join(percent(level) for level in sorted(levels or {Estimate(name="", value=None, n=0).level}))

    def marks(self, view: View, metric: str) -> tuple[Mark, ...]:
        """The estimate of every cell of a view that has one, along its axis."""
        found = []
        for arm, place in view.cells():
            made = self.cell(view, arm, place).estimates.get(metric)
            if made is not None and made.value is not None:
                found.append(Mark(series=arm, at=place, value=made.value, low=made.low, high=made.high, n=made.n))
        return tuple(sorted(found, key=lambda mark: mark.at))


def _key(part: str, arm: str, axes: Mapping[str, Any]) -> tuple[str, str, str]:
    return part, arm, repr(sorted(axes.items()))
