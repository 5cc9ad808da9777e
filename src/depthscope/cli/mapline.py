"""The maps of a study under way: how many are made, and where the one at hand stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from depthscope import api
from depthscope.cli.pace import clock_words

QUIET_S = 300.0
"""Without a terminal a line comes at every tenth of the maps, and when none came for this long."""


class MapLine:
    """Keeps what was heard of the maps of a study."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._news: api.MapNews | None = None
        self._name = ""
        self._first: tuple[float, float] | None = None  # when, and the share that was done then
        self._told = clock()
        self._tenth = 0
        self._ended = self._failed = 0

    def hear(self, news: api.MapNews, name: str, *, interactive: bool) -> Iterator[Text]:
        """Take in a word; the lines to print."""
        now = self._clock()
        self._news, self._name = news, name
        if news.ended:
            self._ended += 1
            if news.fault is not None:
                self._failed += 1
                yield Text(f"{name}, plane {news.plane}: no map: {news.fault}", style="yellow")
        if self._first is None:
            self._first = (now, self._share)
        tenth = self._ended * 10 // news.of
        if not interactive and (tenth > self._tenth or now - self._told >= QUIET_S):
            self._tenth, self._told = tenth, now
            left = self._left(now)
            yield Text(f"{self._ended} of {news.of} maps done" + (f", about {clock_words(left)} left" if left else ""))

    @property
    def _share(self) -> float:
        news = self._news
        if news is None:
            return 0.0
        at_hand = 0.0 if news.ended or not news.points else news.done / news.points
        return min(1.0, (self._ended + at_hand) / news.of)

    def _left(self, now: float) -> float | None:
        if self._first is None:
            return None
        began, share = self._first
        gone = self._share - share
        return (1 - self._share) * (now - began) / gone if gone > 0 else None

    def render(self, *, over: bool) -> list[Any]:
        """The maps' bar, and while they are made, the one at hand."""
        news = self._news
        if news is None:
            return []
        row = Table.grid(padding=(0, 1))
        left = None if over else self._left(self._clock())
        words = [f"{self._ended}/{news.of} maps", f"{self._failed} failed" if self._failed else ""]
        if left is not None and self._ended < news.of:
            words.append(f"about {clock_words(left)} left")
        at_hand = (
            "" if over or news.ended else f"· {self._name}, plane {news.plane}: {news.done:,}/{news.points:,} points"
        )
        row.add_row(
            Text("  maps"),
            ProgressBar(total=1.0, completed=self._share, width=24),
            Text(", ".join(filter(None, words))),
            Text(at_hand, style="dim"),
        )
        return [row]
