"""What figures are called where the runs are known: a squared error has no unit, and depth may be time."""

from __future__ import annotations

from collections.abc import Sequence

from depthscope.analysis.table import ResultRow
from depthscope.analysis.units import temporal, unit_in
from depthscope.report.temporal import key_of
from depthscope.report.words import Words


def metric_of(rows: Sequence[ResultRow], metric: str, words: Words) -> str:
    """The name of a summary's key for readers, with the unit that it has in these runs."""
    in_time = key_of(rows, f"metric.{metric}") if rows else ""
    if in_time in words.table and in_time.endswith(".time"):
        return words(in_time)
    return words.metric(metric, unit=unit_in(rows, metric), in_time=temporal(rows))
