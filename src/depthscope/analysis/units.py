"""Units where runs are known: of a figure (a squared error has none, though it is a loss), and of depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from depthscope.analysis.table import ResultRow
from depthscope.analysis.wording import Lang
from depthscope.study.catalog import CATALOG
from depthscope.study.scale import unit_of

Counted = Literal["layers", "blocks", "steps"]
"""What depth counts: blocks of a transformer, steps in time where the data is as long as the network is deep."""


def squared(rows: Iterable[ResultRow]) -> bool:
    """Whether the loss of any of these runs is a squared error, and not a cross entropy in nats."""
    return any(map(_squared, rows))


def unit_in(rows: Iterable[ResultRow], metric: str) -> str:
    """The unit of a figure of these runs' summaries, as `unit_of` has it but for squared errors."""
    unit = unit_of(metric)
    return "" if unit == "nats" and squared(rows) else unit


_COUNTED: dict[Counted, dict[Lang, str]] = {
    "layers": {"en": "layers", "zh": "层"},
    "blocks": {"en": "blocks", "zh": "个块"},
    "steps": {"en": "steps", "zh": "步"},
}


def layers(rows: Iterable[ResultRow], lang: Lang) -> str:
    """What the depth of these runs counts, as a sentence says it."""
    return _COUNTED[counted(rows)][lang]


def counted(rows: Iterable[ResultRow]) -> Counted:
    """What the depth of these runs counts; layers where they differ in it."""
    found = {_counted(*names) for names in {(row.spec.data, row.spec.family) for row in rows}}
    return found.pop() if len(found) == 1 else "layers"


def temporal(rows: Iterable[ResultRow]) -> bool:
    """Whether the data of all these runs is as long in time as their networks are deep."""
    return counted(rows) == "steps"


def _counted(data_name: str, family_name: str) -> Counted:
    data, family = CATALOG["data"].get(data_name), CATALOG["family"].get(family_name)
    if data is not None and data.by_depth:
        return "steps"
    return "blocks" if family is not None and family.in_blocks else "layers"


def _squared(row: ResultRow) -> bool:
    entry = CATALOG["data"].get(row.spec.data)
    if entry is not None:
        return entry.regression
    # Of the user's own data the record tells: where numbers are asked for there is no accuracy.
    summary = row.record.summary if row.record is not None else {}
    return "train_loss" in summary and "train_accuracy" not in summary
