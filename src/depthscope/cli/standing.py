"""Where a folder stands: once, or watched until it is complete."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from depthscope.api import Status
from depthscope.cli.names import run_names
from depthscope.cli.pace import clock_words

MAX_RUNNING, MAX_FAULTS = 20, 5
"""Runs under way, and failures or damaged records, that are named; more are counted only."""

LOOK_S = 2.0
"""Seconds from one look at the folder to the next; longer where a look takes long, so as not to wear out a drive."""

Rates = dict[str, float]
"""run_id -> updates a second, between two looks."""


def as_json(found: Status) -> str:
    """For programs."""
    names = run_names(found.plan)
    document = {
        "study": found.study.name,
        "size": found.study.size,
        "complete": found.complete,
        "counts": found.counts,
        "running": [
            {
                "run_id": each.run_id,
                "name": names[each.run_id],
                "step": each.step,
                "num_steps": each.num_steps,
                "silent_s": round(each.silent_s, 1),
                "alive": each.alive,
            }
            for each in found.running
        ],
        "failed": found.failed,
        "damaged": {damage.run_id: damage.reason for damage in found.damaged},
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def drawn(found: Status, rates: Rates | None = None) -> Group:
    """For people: counts, what is under way, what failed, what is damaged."""
    names = run_names(found.plan)
    total = len(found.plan.runs)
    done = found.counts["completed"] + found.counts["diverged"]
    size = f", size {found.study.size}" if found.study.size else ""
    counts = ", ".join(f"{number:,} {name}" for name, number in found.counts.items() if number)
    head = Table.grid(padding=(0, 1))
    head.add_row(
        Text(f"{found.study.name}{size}:", style="bold"),
        Text(f"{done:,} of {total:,} runs done ({counts})"),
        ProgressBar(total=max(total, 1), completed=done, width=24),
    )
    parts: list[Any] = [head]
    if found.running:
        parts.append(_running(found, names, rates or {}))
        parts += _more(len(found.running), MAX_RUNNING, "under way")
    parts += [
        Text(f"failed: {names[run_id]}: {reason}", style="yellow")
        for run_id, reason in list(found.failed.items())[:MAX_FAULTS]
    ]
    parts += _more(len(found.failed), MAX_FAULTS, "failed")
    parts += [
        Text(f"{damage.run_id}: {damage.reason}; it will be done again.", style="yellow")
        for damage in found.damaged[:MAX_FAULTS]
    ]
    parts += _more(len(found.damaged), MAX_FAULTS, "damaged")
    if not found.complete and not any(each.alive for each in found.running):
        parts.append(Text("Nobody is at work here. The same `depthscope run` command continues."))
    return Group(*parts)


def _running(found: Status, names: dict[str, str], rates: Rates) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=60)
    for justify in ("right", "right", "left"):
        table.add_column(no_wrap=True, justify=justify)
    for each in found.running[:MAX_RUNNING]:
        rate = rates.get(each.run_id)
        sign = f"sign of life {clock_words(each.silent_s)} ago"
        table.add_row(
            Text(f"  {names[each.run_id]}"),
            Text(f"step {each.step:,} of {each.num_steps:,}" if each.num_steps else "starting"),
            Text(f"{rate:,.1f} steps/s" if rate else ""),
            Text(sign, style="dim") if each.alive else Text(f"stale ({sign}): the next driver takes it over", "yellow"),
        )
    return table


def _more(number: int, limit: int, what: str) -> list[Text]:
    return [Text(f"  and {number - limit:,} more {what}", style="dim")] if number > limit else []


class Speedometer:
    """Rates from where runs stood at one look and at the next."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, int]] = {}
        self._rates: Rates = {}

    def rates(self, found: Status, now: float) -> Rates:
        """Updates a second of each run under way; the last one known while its step stands still for a look."""
        standing = {each.run_id: each.step for each in found.running}
        for run_id, step in standing.items():
            then, before = self._before.get(run_id, (now, step))
            if step > before and now > then:
                self._rates[run_id] = (step - before) / (now - then)
            if step != before or run_id not in self._before:
                self._before[run_id] = (now, step)
        self._before = {run_id: each for run_id, each in self._before.items() if run_id in standing}
        self._rates = {run_id: rate for run_id, rate in self._rates.items() if run_id in standing}
        return self._rates


def watch(
    look: Callable[[], Status],
    console: Console,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Look again and again until all runs are recorded and nobody is at work.

    On a terminal one picture is kept up to date; elsewhere the picture is printed again when a count has changed.
    """
    speedometer = Speedometer()
    told: dict[str, int] | None = None
    with Live(console=console, auto_refresh=False) if console.is_interactive else _Plain(console) as screen:
        while True:
            begin = clock()
            found = look()
            now = clock()
            picture = drawn(found, speedometer.rates(found, now))
            if console.is_interactive or found.counts != told:
                screen.update(picture, refresh=True)
            told = dict(found.counts)
            if not (found.counts["missing"] or found.counts["damaged"] or any(each.alive for each in found.running)):
                return
            sleep(max(LOOK_S, 5 * (now - begin)))


class _Plain:
    """Stands for `Live` where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, picture: Group, *, refresh: bool) -> None:
        del refresh
        self._console.print(picture)
