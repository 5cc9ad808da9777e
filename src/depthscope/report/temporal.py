"""Runs whose depth is a number of steps in time, or of blocks: what the page calls otherwise there."""

from __future__ import annotations

from collections.abc import Iterable

from depthscope.analysis.table import ResultRow
from depthscope.analysis.units import counted, temporal
from depthscope.study.run import RunSpec


def key_of(rows: Iterable[ResultRow], key: str) -> str:
    """The key of a string: where depth is time, that of its form there."""
    return f"{key}.time" if temporal(rows) else key


def depth_key(rows: Iterable[ResultRow], key: str) -> str:
    """The key of a string that names what depth counts: that of its form for steps, or for blocks."""
    return key + {"layers": "", "blocks": ".blocks", "steps": ".time"}[counted(rows)]


def adds(spec: RunSpec) -> bool:
    """Whether something is added to what a network carries: a shortcut over layers, or the cell of a recurrent one.

    Of the cells the vanilla one alone makes its state anew at each step.
    """
    return spec.shortcut != "none" or spec.model_options.get("cell", "rnn") != "rnn"
