"""What both engines put into a run's state, and how it is read back.

A state's tensors are named by a prefix: `model.` weights and buffers, `optimizer.` what it remembers, and
`summary`, the values of the figures that `position["summary"]` names (an array, since they need not be finite).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.hashing import combined_digest
from depthscope.record.events import State

Tensors = Mapping[str, NDArray[Any]]


@dataclass
class Standing:
    """How far an engine's runs are, told at each update: where it raises, its last event may lie steps back.

    Attributes:
        step: updates done.
    """

    step: int = 0


class StaleStateError(Exception):
    """A state of a run whose code or data is not what it was."""


def made_of(init: Mapping[str, str], data: str, code: Mapping[str, str]) -> str:
    """One digest of what a run is made of: its initial tensors, its data set, and the user's code that it calls."""
    return combined_digest({**init, "\0data": data, **{f"\0{target}": each for target, each in code.items()}})


def new_state(
    run_id: str, step: int, *, made_of: str, summary: Mapping[str, float], tensors: Tensors, **position: Any
) -> State:
    """A state of either engine; arrays are taken as they are."""
    values = np.array(list(summary.values()), np.float64)
    return State(
        run_id=run_id,
        step=step,
        position={"made_of": made_of, "summary": list(summary), **position},
        tensors={**tensors, "summary": values},
    )


def check_made_of(state: State, made_of: str) -> None:
    """Refuse a state whose run began with other values than the code and the data at hand give.

    A run's spec names its code, and cannot see that somebody changed it: half a run of the old code and half of
    the new would be a run of neither.

    Raises:
        StaleStateError: it did.
    """
    if state.position.get("made_of") != made_of:
        raise StaleStateError(
            f"run {state.run_id} was stopped at step {state.step:,}, and its model, initialiser, probe or data has "
            "been changed since"
        )


def summary_of(state: State) -> dict[str, float]:
    """The figures so far."""
    return dict(zip(state.position["summary"], state.tensors["summary"].tolist(), strict=True))


def part(tensors: Tensors, prefix: str) -> dict[str, NDArray[Any]]:
    """The tensors whose names begin with `prefix.`, without it."""
    return {name.removeprefix(f"{prefix}."): each for name, each in tensors.items() if name.startswith(f"{prefix}.")}


def named(prefix: str, tensors: Tensors) -> dict[str, NDArray[Any]]:
    """The inverse of `part`."""
    return {f"{prefix}.{name}": each for name, each in tensors.items()}
