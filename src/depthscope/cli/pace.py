"""How fast a study goes: the work that is done, and the time that what is left will take."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

WINDOW_S = 30.0
"""Examples a second are those of this long."""

LEAST_GONE = 1e-3
"""Share of the work that must have been done before the time that the rest takes is told from it."""


def rough_weights(specs: Iterable[Any]) -> dict[str, float]:
    """The work of each run by its run_id, for comparison with one another only.

    Counted from the spec alone: the exact FLOPs would have a torch network built for each arm before work begins.
    """
    return {
        spec.run_id: float(spec.depth * spec.width * (1 + (spec.steps if spec.steps is not None else spec.epochs or 0)))
        for spec in specs
    }


def clock_words(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock_words(3723.4)
    '1:02:03'
    """
    minutes, second = divmod(int(max(seconds, 0.0)), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}"


class Line:
    """A run under way, or several that train side by side."""

    def __init__(self, now: float) -> None:
        self.members: dict[str, float] = {}
        self.step = 0
        self.num_steps = 0
        self.text = ""
        self._since = now
        self._from: dict[str, float] = {}
        self._examples: dict[str, int] = {}
        self._samples: deque[tuple[float, int]] = deque()
        self._now = now

    def move(self, run_id: str, step: int, num_steps: int, now: float, examples: int = 0) -> None:
        """A member stands at a step, and has trained on so many examples."""
        self.members[run_id] = step / max(num_steps, 1)
        self._from.setdefault(run_id, self.members[run_id])
        self.step, self.num_steps, self._now = step, num_steps, now
        if examples:
            self._examples[run_id] = examples
            if len(self._examples) == len(self.members):
                self._sample(now)

    def _sample(self, now: float) -> None:
        total = sum(self._examples.values())
        if self._samples and self._samples[-1][0] == now:
            self._samples.pop()
        self._samples.append((now, total))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()

    def leave(self, run_id: str) -> int:
        """A member is over; how many go on."""
        self.members.pop(run_id, None)
        self._from.pop(run_id, None)
        self._examples.pop(run_id, None)
        self._samples.clear()  # the sum is another one now
        return len(self.members)

    @property
    def fraction(self) -> float:
        """Of the way, the mean over the members."""
        return sum(self.members.values()) / len(self.members) if self.members else 0.0

    def rate(self) -> float | None:
        """Examples a second over the last `WINDOW_S`, all members together; None while it cannot be told."""
        if len(self._samples) < 2:
            return None
        (begin, before), (end, after) = self._samples[0], self._samples[-1]
        return (after - before) / (end - begin) if end > begin and after > before else None

    def left(self, now: float) -> float:
        """Seconds to its end at its own pace so far; as long as it has taken, where it has not moved yet."""
        # Run by run: the mean of those that are left moves when one leaves, and that is no progress.
        gone = sum(at - self._from[run_id] for run_id, at in self.members.items()) / max(len(self.members), 1)
        if gone < LEAST_GONE:
            return now - self._since
        return (1 - self.fraction) / gone * (self._now - self._since)


class Pace:
    """The runs of a study by their work: how much is done, and how long the rest takes.

    Args:
        weights: run_id -> work, of the runs to do.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._sum = sum(weights.values()) or 1.0
        self._at: dict[str, float] = {}
        self._from: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._begun: float | None = None

    @property
    def total(self) -> int:
        """Runs to do."""
        return len(self._weights)

    @property
    def ended(self) -> int:
        """Runs that are over."""
        return len(self._ended)

    @property
    def running(self) -> Mapping[str, float]:
        """The fraction done of each run under way."""
        return self._at

    def start(self, run_id: str, fraction: float, now: float) -> None:
        """A run begins, or goes on from a fraction."""
        self._begun = now if self._begun is None else self._begun
        self._at[run_id] = self._from[run_id] = fraction

    def move(self, run_id: str, fraction: float) -> None:
        """A run stands at a fraction."""
        if run_id not in self._ended:
            self._from.setdefault(run_id, fraction)  # another driver's: where it was first seen
            self._at[run_id] = fraction

    def end(self, run_id: str, now: float) -> None:
        """A run is over, here or elsewhere."""
        self._begun = now if self._begun is None else self._begun
        self._at.pop(run_id, None)
        if run_id in self._weights:
            self._ended[run_id] = 1.0

    @property
    def fraction(self) -> float:
        """Of the work, done."""
        return sum(self._weights.get(run_id, 0.0) * at for run_id, at in (self._at | self._ended).items()) / self._sum

    def left(self, now: float, lines: Iterable[Line]) -> float | None:
        """Seconds left, or None while nothing can be told.

        The work left at the pace of all that was done since the first run began, whatever the length of the runs;
        but no less than the slowest run under way needs, for at the end a long run is alone.
        """
        gone = sum(
            self._weights.get(run_id, 0.0) * (at - self._from.get(run_id, 0.0))
            for run_id, at in (self._at | self._ended).items()
        )
        if self._begun is None or gone < LEAST_GONE * self._sum or now <= self._begun:
            return None
        overall = (1 - self.fraction) * self._sum / gone * (now - self._begun)
        return max([overall, *(line.left(now) for line in lines)])
