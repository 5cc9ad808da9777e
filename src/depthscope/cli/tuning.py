"""What `tune` takes and tells."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from rich.table import Table
from rich.text import Text

from depthscope.api import TuneResult
from depthscope.cli import tables
from depthscope.core.errors import UserError

_EDGES = {
    "low": "the smallest value tried: try smaller ones",
    "high": "the largest value tried: try larger ones",
    None: "",
}
_UNFIT = "no run ended with a figure: try smaller ones"


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
    """For each arm, or each of its places, the chosen value, what every value gave, and a word where it is the last.

    The study's own findings, where it was run, are within the JSON; as text `tables.report` tells them.
    """
    tuned = found.tuned
    if as_json:
        choices = [{**choice.model_dump(), "edge": choice.edge} for choice in tuned.choices]
        told: dict[str, Any] = {
            "study": str(found.path),
            "folder": str(found.selection.folder),
            "page": str(found.selection.page),
        }
        if found.report:
            told["report"] = tables.document(found.report)
        print(json.dumps({**told, **tuned.model_dump(mode="json"), "choices": choices}, indent=2, ensure_ascii=False))
        return
    console = tables.console()
    seeds = f"{len(tuned.seeds)} seed{'s' if len(tuned.seeds) > 1 else ''}"
    axes = "all other axes" if tuned.by else "all axes"
    title = f"{tuned.field} by {tuned.metric}: mean over {seeds} and {axes}"
    table = Table(title=Text(title), title_justify="left")
    for column in ("part", "arm", *tuned.by, tuned.field, *(f"{value:g}" for value in tuned.grid), "on the edge"):
        table.add_column(column, overflow="fold")
    before = None
    for choice in tuned.choices:
        whose = (choice.part, choice.arm)
        shown = ("", "") if whose == before else whose
        before = whose
        means = {score.value: _told(score.mean, score.num_lost) for score in choice.scores}
        cells = [means.get(value, "") for value in tuned.grid]
        edge = Text(_EDGES[choice.edge] if choice.fit else _UNFIT, style="yellow")
        at = [str(choice.at.get(axis, "")) for axis in tuned.by]
        table.add_row(*shown, *at, f"{choice.value:g}", *cells, edge)
    console.print(table)
    console.print(Text(f"{tuned.num_runs} runs on {tuned.validation} held-out examples; the test set was not opened."))
    console.print(Text(f"page: {found.selection.page}"))
    then = "" if found.report else f". Next: depthscope run {found.path}"
    console.print(Text(f"study: {found.path}{then}"))


def _told(mean: float | None, num_lost: int) -> str:
    lost = f"{num_lost} lost" if num_lost else ""
    return " ".join(part for part in ("" if mean is None else f"{mean:.4g}", lost) if part)
