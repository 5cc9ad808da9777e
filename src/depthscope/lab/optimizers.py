"""Optimisers on one flat array a seed: every tensor of every seed is updated in a handful of passes.

Shape letters: S seeds, P parameters of one seed.

An optimiser is a frozen setting; `start` gives its state for a group. A state updates in place and
works entry by entry, so a seed's update cannot depend on its neighbours. The formulas, and the order of
their operations, are those of torch's `Adam` and `SGD`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError

Array = NDArray[Any]


class OptimizerState(Protocol):
    """What an optimiser remembers between updates."""

    def update(self, w_SP: Array, g_SP: Array, lr: float) -> None:
        """Change the parameters `w_SP` in place by one step along the gradients `g_SP`, which may be overwritten."""

    def keep(self, rows: Array) -> None:
        """Drop all seeds but those at `rows` (integers)."""

    def arrays(self) -> Mapping[str, Array]:
        """All that is remembered, by name, [S, P] each; not copied."""


class Optimizer(Protocol):
    """A setting of an optimiser."""

    def start(self, w_SP: Array, num_steps: int = 0, arrays: Mapping[str, Array] | None = None) -> OptimizerState:
        """The state before the first update, or after `num_steps` of them with the `arrays` of that state (copied)."""


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma & Ba 2015, arXiv 1412.6980, algorithm 1).

        m <- beta1 m + (1 - beta1) g          v <- beta2 v + (1 - beta2) g^2
        w <- w - lr mhat / (sqrt(vhat) + eps),   mhat = m/(1 - beta1^t), vhat = v/(1 - beta2^t)

    Attributes:
        beta1: decay of the gradient's running mean.
        beta2: decay of the squared gradient's.
        eps: added to the denominator; where gradients are smaller than this, steps shrink with them.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        for name, value in (("beta1", self.beta1), ("beta2", self.beta2)):
            if not 0 <= value < 1:
                raise UserError(f"{name}: wanted a number from 0 to below 1, got {value}.")
        if not self.eps > 0:
            raise UserError(f"eps: wanted a number above 0, got {self.eps}.")

    def start(self, w_SP: Array, num_steps: int = 0, arrays: Mapping[str, Array] | None = None) -> OptimizerState:
        """Both running means at 0, or as they were after `num_steps` updates."""
        return _AdamState(self, w_SP, num_steps, arrays)


class _AdamState:
    def __init__(self, setting: Adam, w_SP: Array, num_steps: int, arrays: Mapping[str, Array] | None) -> None:
        self._setting = setting
        self._num_steps = num_steps
        self._mean, self._square = (_like(w_SP, arrays, name) for name in ("mean", "square"))
        self._scratch = np.empty_like(w_SP)

    def update(self, w_SP: Array, g_SP: Array, lr: float) -> None:
        beta1, beta2 = self._setting.beta1, self._setting.beta2
        mean, square, scratch = self._mean, self._square, self._scratch
        self._num_steps += 1
        mean *= beta1
        np.multiply(g_SP, 1 - beta1, out=scratch)
        mean += scratch
        square *= beta2
        np.multiply(g_SP, g_SP, out=g_SP)
        g_SP *= 1 - beta2
        square += g_SP
        np.sqrt(square, out=scratch)
        scratch /= math.sqrt(1 - beta2**self._num_steps)
        scratch += self._setting.eps
        np.divide(mean, scratch, out=scratch)
        scratch *= lr / (1 - beta1**self._num_steps)
        w_SP -= scratch

    def keep(self, rows: Array) -> None:
        self._mean, self._square = self._mean[rows], self._square[rows]
        self._scratch = np.empty_like(self._mean)

    def arrays(self) -> Mapping[str, Array]:
        return {"mean": self._mean, "square": self._square}


@dataclass(frozen=True, kw_only=True)
class Momentum:
    """Gradient descent with heavy-ball momentum (Polyak 1964), in torch's form.

        v <- momentum v + g          w <- w - lr v

    Attributes:
        momentum: share of the last velocity that is kept; 0 is plain gradient descent.
    """

    momentum: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise UserError(f"momentum: wanted a number from 0 to below 1, got {self.momentum}.")

    def start(self, w_SP: Array, num_steps: int = 0, arrays: Mapping[str, Array] | None = None) -> OptimizerState:
        """Velocity 0, or as it was."""
        return _MomentumState(self, w_SP, arrays)


class _MomentumState:
    def __init__(self, setting: Momentum, w_SP: Array, arrays: Mapping[str, Array] | None) -> None:
        self._setting = setting
        self._velocity = _like(w_SP, arrays, "velocity")

    def update(self, w_SP: Array, g_SP: Array, lr: float) -> None:
        self._velocity *= self._setting.momentum
        self._velocity += g_SP
        np.multiply(self._velocity, lr, out=g_SP)
        w_SP -= g_SP

    def keep(self, rows: Array) -> None:
        self._velocity = self._velocity[rows]

    def arrays(self) -> Mapping[str, Array]:
        return {"velocity": self._velocity}


def _like(w_SP: Array, arrays: Mapping[str, Array] | None, name: str) -> Array:
    """A copy of the array of that name, which must fit the parameters; zeros without arrays."""
    if arrays is None:
        return np.zeros_like(w_SP)
    found = arrays.get(name)
    if found is None or (found.shape, found.dtype) != (w_SP.shape, w_SP.dtype):
        got = f"{found.dtype} {found.shape}" if found is not None else "nothing"
        raise UserError(f"optimiser state {name!r}: wanted {w_SP.dtype} {w_SP.shape}, got {got}.")
    return found.copy()
