"""What trained networks wrote: for each arm and place of a view the texts of one run, the first seed that has any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from depthscope.analysis.table import ResultRow, Results
from depthscope.report import content, sections
from depthscope.report.content import View
from depthscope.report.words import Words

SHOWN = 3
"""Texts of a cell that are shown at once; the others open at a click."""


def texts(results: Results, words: Words) -> list[dict[str, Any]]:
    """The views whose records hold texts: title, arms, and of each arm its cells in the order of the axis."""
    found = []
    views = content.views(results, words)
    for view in views:
        arms = [
            {"label": series.label, "symbol": sections.symbol(series), "cells": cells}
            for series in view.series
            if (cells := _cells(view, series.name, words))
        ]
        if arms:
            found.append({"title": view.title if len(views) > 1 else "", "arms": arms})
    return found


def _cells(view: View, arm: str, words: Words) -> list[dict[str, Any]]:
    cells = view.cells()
    return [
        _cell(view.named(place, words), row, words)
        for place in view.places
        if (row := _first(cells.get((arm, place), ()))) is not None
    ]


def _first(rows: Sequence[ResultRow]) -> ResultRow | None:
    """Of the runs of a cell, by seed, the first that wrote."""
    return next((row for row in rows if row.record is not None and row.record.samples), None)


def _cell(name: str, row: ResultRow, words: Words) -> dict[str, Any]:
    assert row.record is not None
    step = words("texts_at", seed=row.cell.seed, step=f"{row.record.outcome.step:,}")
    written = row.record.samples
    return {"name": name, "at": step, "shown": written[:SHOWN], "folded": written[SHOWN:]}
