"""What `tune` takes and tells."""

from __future__ import annotations

import json
import sys
from math import isfinite

from rich.console import Console
from rich.table import Table
from rich.text import Text

from depthscope.api import TuneResult
from depthscope.core.errors import UserError

_EDGES = {
    "low": "the smallest value tried: try smaller ones",
    "high": "the largest value tried: try larger ones",
    None: "",
}


def numbers(text: str | None) -> list[float] | None:
    """The values of `--grid`; an integer stays one.

    Raises:
        UserError: no list of numbers.
    """
    if text is None:
        return None
    try:
        values = [_number(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        values = []
    if not values or not all(map(isfinite, values)):
        raise UserError(f"--grid: wanted numbers such as 0.01,0.03,0.1; got {text!r}.")
    return values


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def result(found: TuneResult, *, as_json: bool) -> None:
    """For each arm the chosen value, what every value gave, and a word where the chosen one is the grid's last."""
    tuned = found.tuned
    if as_json:
        choices = [{**choice.model_dump(), "edge": choice.edge} for choice in tuned.choices]
        told = {"study": str(found.path), "folder": str(found.selection.folder), "page": str(found.selection.page)}
        print(json.dumps({**told, **tuned.model_dump(mode="json"), "choices": choices}, indent=2, ensure_ascii=False))
        return
    console = Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False)
    seeds = f"{len(tuned.seeds)} seed{'s' if len(tuned.seeds) > 1 else ''}"
    table = Table(title=Text(f"{tuned.field} by {tuned.metric}: mean over {seeds} and all axes"), title_justify="left")
    for column in ("part", "arm", tuned.field, *(f"{value:g}" for value in tuned.grid), "on the edge"):
        table.add_column(column, overflow="fold")
    for choice in tuned.choices:
        means = {score.value: _told(score.mean, score.num_lost) for score in choice.scores}
        cells = [means.get(value, "") for value in tuned.grid]
        edge = Text(_EDGES[choice.edge], style="yellow")
        table.add_row(choice.part, choice.arm, f"{choice.value:g}", *cells, edge)
    console.print(table)
    console.print(Text(f"{tuned.num_runs} runs on {tuned.validation} held-out examples; the test set was not opened."))
    console.print(Text(f"page: {found.selection.page}"))
    console.print(Text(f"study: {found.path}. Next: depthscope run {found.path}"))


def _told(mean: float | None, num_lost: int) -> str:
    lost = f"{num_lost} lost" if num_lost else ""
    return " ".join(part for part in ("" if mean is None else f"{mean:.4g}", lost) if part)
