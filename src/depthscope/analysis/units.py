"""The unit of a figure where runs are known: a squared error has none, though it is a loss."""

from __future__ import annotations

from collections.abc import Iterable

from depthscope.analysis.table import ResultRow
from depthscope.study.catalog import CATALOG
from depthscope.study.scale import unit_of


def squared(rows: Iterable[ResultRow]) -> bool:
    """Whether the loss of any of these runs is a squared error, and not a cross entropy in nats."""
    return any(map(_squared, rows))


def unit_in(rows: Iterable[ResultRow], metric: str) -> str:
    """The unit of a figure of these runs' summaries, as `unit_of` has it but for squared errors."""
    unit = unit_of(metric)
    return "" if unit == "nats" and squared(rows) else unit


def _squared(row: ResultRow) -> bool:
    entry = CATALOG["data"].get(row.spec.data)
    if entry is not None:
        return entry.regression
    # Of the user's own data the record tells: where numbers are asked for there is no accuracy.
    summary = row.record.summary if row.record is not None else {}
    return "train_loss" in summary and "train_accuracy" not in summary
