"""What a measurement on demand costs, told before it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cost:
    """An upper bound, in passes of the model on the batch.

    A matrix product costs as much again for the gradient of its input and for that of its weight: a backward pass
    is two forward passes. A product with a Jacobian or its transpose needs no gradient of weights: half a backward.

    Attributes:
        what: which measurement.
        forwards: forward passes.
        backwards: backward passes.
        num_bytes: memory beyond what a training step on the same batch needs.
        note: what else is worth knowing; empty where nothing is.

    >>> print(Cost(what="trust", forwards=2, backwards=2, num_bytes=3_000_000))
    trust: at most 2 forward and 2 backward passes (2 training steps), 3 MB beside a training step's memory
    """

    what: str
    forwards: float
    backwards: float
    num_bytes: int
    note: str = ""

    @property
    def steps(self) -> float:
        """The same time in training steps, each of a forward and a backward pass."""
        return (self.forwards + 2 * self.backwards) / 3

    def __str__(self) -> str:
        passes = f"at most {_number(self.forwards)} forward and {_number(self.backwards)} backward passes"
        text = f"{self.what}: {passes} ({_number(self.steps)} training steps), "
        text += f"{size(self.num_bytes)} beside a training step's memory"
        return f"{text}; {self.note}" if self.note else text


def size(num_bytes: int) -> str:
    """Bytes for people, in powers of 1000.

    >>> size(999), size(1_500_000), size(27_000_000_000)
    ('999 B', '1.5 MB', '27 GB')
    """
    value, unit = float(num_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.2g} {unit}" if value < 10 else f"{value:.0f} {unit}"


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
