"""Events: what a task says while it works. The worker that hears them writes; the task does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from depthscope.record.schema import Columns, Digests, LayerFacts, Outcome


@dataclass(frozen=True, kw_only=True)
class Started:
    """A run begins: what it is made of."""

    run_id: str
    layers: tuple[LayerFacts, ...]
    parameters: int
    digests: Digests
    num_steps: int


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows for one of the run's tables (`schema.TABLES`)."""

    run_id: str
    table: str
    columns: Columns


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands; `text` is one short line for a person."""

    run_id: str
    step: int
    num_steps: int
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run is over, one way or another."""

    run_id: str
    outcome: Outcome
    summary: Mapping[str, float] = field(default_factory=dict)
    final: str | None = None


Event = Started | Rows | Progress | Ended
