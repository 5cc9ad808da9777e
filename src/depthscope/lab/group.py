"""The seeds that train side by side: their parameters in one flat array, gradients, data and buffers.

Shape letters: S seeds still in training, N examples, B examples of a batch, C classes, P parameters of one seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab import layers
from depthscope.lab.forms import Form, as_input, as_labels, check_data, make_network, parameter_shapes
from depthscope.lab.given import check_real
from depthscope.lab.judge import accuracy
from depthscope.lab.reading import Net

Array = NDArray[Any]
Batches = Callable[[int], NDArray[np.int64]]
"""Step t -> positions [S, B] of the examples that update t of each seed is made on."""


def views(flat_SP: Array, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Each tensor as a view [S, *shape] of the flat array that holds them one after another."""
    found, start = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name] = flat_SP[:, start : start + size].reshape(len(flat_SP), *shape)
        start += size
    return found


class Group:
    """The seeds still in training, with their flat parameters, gradients, data and buffers."""

    def __init__(self, form: Form, params: Mapping[str, Array], x: Array, y: Array, batches: Batches | None) -> None:
        self.form, self.batches = form, batches
        self.shapes = parameter_shapes(form)
        check_data(form, x, y)
        num_seeds = len(y)
        for name, shape in self.shapes.items():
            got = params[name].shape if name in params else "nothing"
            if got != (num_seeds, *shape):
                raise UserError(f"params[{name!r}]: wanted shape {(num_seeds, *shape)}, got {got}.")
        self.dtype = params[next(iter(self.shapes))].dtype
        check_real("params", self.dtype)
        self.w_SP = np.concatenate([params[name].reshape(num_seeds, -1) for name in self.shapes], axis=1)
        self.members = np.arange(num_seeds)
        self.x, self.y = x, y
        if batches is None:
            self.x, self.y = as_input(form, x, self.dtype), as_labels(np.array(y))
        self._build()

    def _build(self) -> None:
        self.g_SP = np.empty_like(self.w_SP)
        self.params, self.grads = views(self.w_SP, self.shapes), views(self.g_SP, self.shapes)
        self.nets: dict[int, Net] = {}
        read_only = self.w_SP.view()
        read_only.flags.writeable = False
        self.shown = views(read_only, self.shapes)

    def keep(self, rows: Array) -> None:
        """Go on with the seeds at these rows alone."""
        self.w_SP, self.members = self.w_SP[rows], self.members[rows]
        if self.batches is None:
            self.x, self.y = self.x[rows], self.y[rows]
        self._build()

    def _batch(self, step: int) -> tuple[Array, Array]:
        """(inputs, labels) of this step, as the network takes them."""
        if self.batches is None:
            return self.x, self.y
        chosen_SB = self.batches(step)[self.members]
        rows_S1 = self.members[:, None]
        return as_input(self.form, self.x[rows_S1, chosen_SB], self.dtype), as_labels(self.y[rows_S1, chosen_SB])

    def forward(self, step: int) -> tuple[NDArray[np.float64], Array]:
        """Loss [S], probabilities [S, C, N]."""
        x, self.y_SN = self._batch(step)
        num = self.y_SN.shape[1]
        if num not in self.nets:
            self.nets[num] = make_network(self.form, len(self.members), num, self.dtype)
        self.net = self.nets[num]
        # A diverging seed overflows: that is data, told by its loss, and no reason for a warning.
        with np.errstate(all="ignore"):
            self._scores_SCN = self.net.forward(self.params, x)
            loss_S, p_SCN = layers.cross_entropy_forward(self._scores_SCN, self.y_SN)
        return np.asarray(loss_S, np.float64), p_SCN

    def accuracy(self) -> NDArray[np.float64]:
        """That of the last forward pass [S], of which few steps ask."""
        return accuracy(self._scores_SCN, self.y_SN)

    def backward(self, p_SCN: Array) -> None:
        """Fill the gradients, after a forward pass."""
        with np.errstate(all="ignore"):
            self.net.backward(self.params, layers.cross_entropy_backward(p_SCN, self.y_SN), self.grads)
