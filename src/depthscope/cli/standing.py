"""Where a folder stands: once, or watched until it is complete."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group
from rich.live import Live
from rich.text import Text

from depthscope.api import Cell, Running, Status
from depthscope.api.places import group_name, run_names
from depthscope.cli.pace import clock_words, rough_weights

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
        **({"maps": found.map_counts} if found.num_maps else {}),
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
        **({"map_faults": _map_faults(found)} if found.num_maps else {}),
        "damaged": {damage.run_id: damage.reason for damage in found.damaged},
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def summary(found: Status, rates: Rates) -> Text:
    """A line: how many runs are done, what became of them, and the time left where it can be told."""
    done = found.counts["completed"] + found.counts["diverged"]
    size = f", size {found.study.size}" if found.study.size else ""
    counts = ", ".join(f"{number:,} {name}" for name, number in found.counts.items() if number)
    left = time_left(found, rates)
    words = f", about {clock_words(left)} left" if left is not None else ""
    line = Text(f"{found.study.name}{size}: ", style="bold")
    return line.append(f"{done:,} of {len(found.plan.runs):,} runs done ({counts}){words}{_maps(found)}", "not bold")


def _maps(found: Status) -> str:
    if not found.num_maps:
        return ""
    counts = found.map_counts
    rest = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number and name != "completed")
    return f"; {counts['completed']:,} of {found.num_maps:,} maps" + (f" ({rest})" if rest else "")


def _map_faults(found: Status) -> dict[str, str]:
    return {f"{each.run_id}/{each.spec.map_id}": each.fault for each in found.maps if each.fault is not None}


def drawn(found: Status, rates: Rates | None = None) -> Group:
    """For people: counts, what is under way, what failed, what is damaged."""
    names = run_names(found.plan)
    parts: list[Any] = [summary(found, rates or {})]
    if found.running:
        rows = _running(found, rates or {})
        parts.append(_Rows(rows[:MAX_RUNNING]))
        parts += _more(len(rows), MAX_RUNNING, "under way")
    parts += [
        Text(f"failed: {names[run_id]}: {reason}", style="yellow")
        for run_id, reason in list(found.failed.items())[:MAX_FAULTS]
    ]
    parts += _more(len(found.failed), MAX_FAULTS, "failed")
    faults = _map_faults(found)
    parts += [Text(f"no map: {fault}", style="yellow") for fault in list(faults.values())[:MAX_FAULTS]]
    parts += _more(len(faults), MAX_FAULTS, "maps that could not be made")
    parts += [
        Text(f"{damage.run_id}: {damage.reason}; it will be done again.", style="yellow")
        for damage in found.damaged[:MAX_FAULTS]
    ]
    parts += _more(len(found.damaged), MAX_FAULTS, "damaged")
    if not found.complete and not any(each.alive for each in found.running):
        parts.append(Text("Nobody is at work here. The same `depthscope run` command continues."))
    return Group(*parts)


@dataclass(frozen=True)
class _Row:
    """Runs of one place in the study that differ in their seed."""

    place: str
    seeds: str
    middle: tuple[str, str, str]
    end: Text


class _Rows:
    """Lines whose names give way where the terminal is narrow: the figures and the sign of life stay."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        widths = [max(len(row.middle[at]) for row in self._rows) for at in range(3)]
        named = max(len(row.place) + len(row.seeds) + 1 for row in self._rows)
        rest = sum(width + 1 for width in widths if width) + max(len(row.end) for row in self._rows)
        room = max(min(named, options.max_width - rest - 3), 12)
        for row in self._rows:
            space = max(room - len(row.seeds) - 1, 1)
            place = row.place if len(row.place) <= space else f"{row.place[: space - 1]}…"
            line = Text(f"  {f'{place} {row.seeds}':<{room}} ", no_wrap=True, overflow="ellipsis")
            line.append(" ".join(f"{word:>{width}}" for word, width in zip(row.middle, widths, strict=True) if width))
            yield line.append(" ").append_text(row.end)


def _running(found: Status, rates: Rates) -> list[_Row]:
    """A row for each place at which runs are under way, in the plan's order; those that are stale have their own."""
    cells: dict[str, Cell] = {}
    for cell in found.plan.cells:
        cells.setdefault(cell.run_id, cell)
    groups: dict[tuple[str, bool], list[Running]] = {}
    for each in found.running:
        groups.setdefault((group_name(cells[each.run_id]), each.alive), []).append(each)
    return [
        _row(place, group, [cells[each.run_id].seed for each in group], rates) for (place, _), group in groups.items()
    ]


def _row(place: str, group: list[Running], seeds: list[int], rates: Rates) -> _Row:
    steps, num_steps = [each.step for each in group], max(each.num_steps for each in group)
    known = [(each, rates[each.run_id]) for each in group if rates.get(each.run_id)]
    speed = sum(rate for _, rate in known) / len(known) if known else 0.0
    left = max(((each.num_steps - each.step) / rate for each, rate in known), default=0.0)
    stood = f"{min(steps):,}" if min(steps) == max(steps) else f"{min(steps):,}-{max(steps):,}"
    each = " each" if len(group) > 1 else ""
    sign = f"sign of life {clock_words(max(each.silent_s for each in group))} ago"
    return _Row(
        place=place,
        seeds=f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {_ranges(seeds)}",
        middle=(
            f"step {stood} of {num_steps:,}" if num_steps else "starting",
            f"{speed:,.1f} steps/s{each}" if speed else "",
            f"{clock_words(left)} left" if speed else "",
        ),
        end=Text(sign, "dim") if group[0].alive else Text(f"stale ({sign}): the next driver takes it over", "yellow"),
    )


def _ranges(seeds: Sequence[int]) -> str:
    """Seeds in few characters.

    >>> _ranges([3, 0, 1, 2, 7])
    '0-3,7'
    """
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def time_left(found: Status, rates: Rates) -> float | None:
    """Seconds until all runs are done, at the pace of those under way; None where that cannot be told."""
    weights = rough_weights(found.plan.runs.values())
    under_way = {each.run_id: each for each in found.running if each.num_steps}
    pace = sum(weights[run_id] * rates.get(run_id, 0.0) / each.num_steps for run_id, each in under_way.items())
    if pace <= 0 or not found.left:
        return None
    gone = {run_id: each.step / each.num_steps for run_id, each in under_way.items()}
    return sum(weights[run_id] * (1 - gone.get(run_id, 0.0)) for run_id in found.left) / pace


def _more(number: int, limit: int, what: str) -> list[Text]:
    return [Text(f"  and {number - limit:,} more {what}", style="dim")] if number > limit else []


def _prefixed(found: Status) -> dict[str, int]:
    return {f"maps {name}": number for name, number in found.map_counts.items()} if found.num_maps else {}


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

    On a terminal one picture is kept up to date; elsewhere a line is printed when a count has changed.
    """
    speedometer = Speedometer()
    told: dict[str, int] | None = None
    live = Live(console=console, auto_refresh=False) if console.is_interactive else None
    with live or contextlib.nullcontext():
        while True:
            begin = clock()
            found = look()
            now = clock()
            rates = speedometer.rates(found, now)
            if live is not None:
                live.update(drawn(found, rates), refresh=True)
            elif {**found.counts, **_prefixed(found)} != told:
                at_work = sum(each.alive for each in found.running)
                console.print(summary(found, rates).append(f"; {at_work:,} under way" if at_work else "", "not bold"))
            told = {**found.counts, **_prefixed(found)}
            at_work = found.counts["missing"] or found.counts["damaged"] or any(each.alive for each in found.running)
            if not at_work and all(each.fault is not None for each in found.maps_left):
                return
            sleep(max(LOOK_S, 5 * (now - begin)))
