"""What a run in torch adds up on its way. It stays on the device until it is asked for: reading makes a GPU wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthscope.record.events import State


@dataclass(kw_only=True)
class Tally:
    """Loss, hits and number of asked answers of each batch of an epoch."""

    losses: list[Tensor] = field(default_factory=list)
    hits: list[Tensor] = field(default_factory=list)
    counts: list[int | Tensor] = field(default_factory=list)
    earlier: list[float] = field(default_factory=list)
    """Losses of the epoch's batches before the run was stopped."""
    earlier_hits: int = 0

    def values(self) -> list[float]:
        """The loss of each batch."""
        # On the CPU first: MPS has no float64.
        return self.earlier + (torch.stack(self.losses).cpu().double().tolist() if self.losses else [])

    def nums(self) -> list[int]:
        """How many answers each batch asked."""
        return [int(each) for each in self.counts]

    def num_hits(self) -> int:
        """Answers that were right."""
        return self.earlier_hits + (int(torch.stack(self.hits).sum()) if self.hits else 0)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Its part of a run's state; `num_hits` is another."""
        return {
            "epoch.losses": np.array(self.values(), np.float64),
            "epoch.counts": np.array(self.nums(), np.int64),
        }

    @classmethod
    def of(cls, state: State) -> Tally:
        """The tally of a run that goes on from a state."""
        return cls(
            earlier=state.tensors["epoch.losses"].tolist(),
            earlier_hits=state.position["epoch_hits"],
            counts=state.tensors["epoch.counts"].tolist(),
        )
