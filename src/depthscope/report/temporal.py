"""Runs whose depth is a number of steps in time: what the page calls otherwise there."""

from __future__ import annotations

from collections.abc import Iterable

from depthscope.analysis.table import ResultRow
from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec


def temporal(rows: Iterable[ResultRow]) -> bool:
    """Whether the data of all these runs is as long in time as their networks are deep."""
    return all(row.spec.data in CATALOG["data"] and CATALOG["data"][row.spec.data].by_depth for row in rows)


def key_of(rows: Iterable[ResultRow], key: str) -> str:
    """The key of a string: where depth is time, that of its form there."""
    return f"{key}.time" if temporal(rows) else key


def adds(spec: RunSpec) -> bool:
    """Whether something is added to what a network carries: a shortcut over layers, or the cell of a recurrent one.

    Of the cells the vanilla one alone makes its state anew at each step.
    """
    return spec.shortcut != "none" or spec.model_options.get("cell", "rnn") != "rnn"
