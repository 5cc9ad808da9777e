"""Events: what a task says while it works. The worker that hears them writes; the task does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.record.schema import Columns, Digests, LayerFacts, Outcome


@dataclass(frozen=True, kw_only=True)
class Started:
    """A run begins: what it is made of.

    `derived` is what the depth decided, by name; `chance_loss` as in `RunRecord`.
    """

    run_id: str
    layers: tuple[LayerFacts, ...]
    parameters: int
    digests: Digests
    num_steps: int
    derived: Mapping[str, float] = field(default_factory=dict)
    chance_loss: float | None = None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows for one of the run's tables (`schema.TABLES`)."""

    run_id: str
    table: str
    columns: Columns


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights and buffers of a run after `step` updates, to be kept."""

    run_id: str
    step: int
    tensors: Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands; `text` is one short line for a person, `examples` how many it has trained on so far."""

    run_id: str
    step: int
    num_steps: int
    text: str = ""
    examples: int = 0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run is over, one way or another; `samples` is the text that it was asked to write."""

    run_id: str
    outcome: Outcome
    summary: Mapping[str, float] = field(default_factory=dict)
    final: str | None = None
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class State:
    """All that a run needs to go on from a step as if it had never stopped.

    No generator state is in it: every draw is named by its position (`core.streams`).

    Attributes:
        run_id: whose it is.
        step: updates done.
        position: the engine's own place in the run, as JSON: epoch, figures of the epoch so far, summary.
        tensors: weights, buffers and the optimiser's state, by name.
    """

    run_id: str
    step: int
    position: Mapping[str, Any]
    tensors: Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class SafePoint:
    """Between two updates: runs that train side by side may be saved here, if who listens thinks it time.

    Attributes:
        run_ids: the runs that go on from here.
        step: updates done.
        epoch_end: whether an epoch ends here (with the full batch an epoch is an update).
        take: copies the states; only good until the next event is asked for.
    """

    run_ids: tuple[str, ...]
    step: int
    epoch_end: bool
    take: Callable[[], tuple[State, ...]]


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """A run goes on from its checkpoint, in place of `Started`."""

    run_id: str
    step: int
    num_steps: int


@dataclass(frozen=True, kw_only=True)
class Retried:
    """The worker of a run was lost; the run is handed out again, and goes on from its last checkpoint if it has one."""

    run_id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class DoneElsewhere:
    """Another driver on the same folder recorded the run."""

    run_id: str
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class MapNews:
    """What happens to a map of a run.

    Attributes:
        run_id: whose map.
        plane: which of the run's, from 0.
        number: of the map among those that are made now, from 1.
        of: how many these are.
        done: its points that are there.
        points: that it has.
        ended: whether it is over.
        fault: why it could not be made.
    """

    run_id: str
    plane: int
    number: int
    of: int
    done: int = 0
    points: int = 0
    ended: bool = False
    fault: str | None = None


Event = Started | Rows | Weights | Progress | Ended
"""What an engine yields (beside `SafePoint`)."""

News = Started | Progress | Ended | Resumed | Retried | DoneElsewhere
"""What workers and driver tell whoever watches."""
