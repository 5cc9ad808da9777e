"""Whether a run's gradients are finite, kept on the device.

Shape letters: P parameters (tensors).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from depthscope.core.profile import Point
from depthscope.train.measure import Overflow

_KEY = "gradients.first"


class Gradients:
    """The first step at which the norm of each parameter's gradient was not finite.

    A loss tells it an update late, when every weight is NaN and every layer looks alike. A norm takes the square root
    of a sum of squares: in float32 it overflows where the norm passes 1.8e19, before the numbers themselves do.
    """

    def __init__(self, model: nn.Module, device: str) -> None:
        self._parameters = dict(model.named_parameters())
        self._none = torch.zeros((), device=device)
        self._first_P = torch.full((len(self._parameters),), -1, dtype=torch.int64, device=device)

    @torch.no_grad()
    def see(self, step: int) -> None:
        """Look at the gradients as the backward pass left them; nothing is read from the device."""
        found = [each.grad for each in self._parameters.values() if each.grad is not None]
        norms = list(torch._foreach_norm(found))
        if len(norms) < len(self._parameters):  # frozen, or not taken by this step's forward pass
            there = iter(norms)
            norms = [self._none if each.grad is None else next(there) for each in self._parameters.values()]
        self._first_P.masked_fill_(~torch.stack(norms).isfinite() & (self._first_P < 0), step)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Its part of a run's state: nothing, as long as all were finite."""
        first = self._first_P.cpu().numpy().copy()
        return {_KEY: first} if (first >= 0).any() else {}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """The inverse."""
        if _KEY in tensors:
            self._first_P.copy_(torch.from_numpy(np.array(tensors[_KEY])))

    def overflow(self, points: Sequence[Point]) -> Overflow | None:
        """Where the first gradient that was not finite began; None where all were finite.

        A gradient comes from the output. Where it grows from layer to layer on its way to the input and overflows,
        every layer from there on is beyond bounds too: the one nearest to the output is where it began.

        Args:
            points: the model's layers in forward order; where none of their weights is concerned, parameters are named
                by the order in which the model holds them.
        """
        first = self._first_P.tolist()
        step = min((each for each in first if each >= 0), default=None)
        if step is None:
            return None
        names = [name for name, each in zip(self._parameters, first, strict=True) if each == step]
        ordered = [point.weight for point in points if point.weight in names] or names
        return Overflow(step=step, parameter=ordered[-1], num=len(names), of=len(first))
