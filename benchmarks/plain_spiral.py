"""The plain reference for the spiral: a textbook's NumPy network, layer by layer, seed by seed, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class PlainStack:
    """A stem, `depth` square tanh layers with or without a plus sign, a linear head; full batch, Adam."""

    def __init__(self, x: Array, y: NDArray[Any], *, depth: int, width: int, residual: bool, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = [(x.shape[1], width), *[(width, width)] * depth, (width, int(y.max()) + 1)]
        self.weights = [rng.normal(0, 0.72 / np.sqrt(num_in), (num_in, num_out)) for num_in, num_out in sizes]
        self.biases = [np.zeros(num_out) for _, num_out in sizes]
        self.x, self.y, self.residual, self.t = x, y, residual, 0
        self.moments = [[np.zeros_like(p), np.zeros_like(p)] for p in (*self.weights, *self.biases)]

    def step(self, lr: float = 1e-3) -> float:
        hs, fs = [self.x], []
        for layer, (w, b) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            f = np.tanh(hs[-1] @ w + b)
            fs.append(f)
            hs.append(hs[-1] + f if self.residual and layer else f)
        logits = hs[-1] @ self.weights[-1] + self.biases[-1]
        shifted = logits - logits.max(axis=1, keepdims=True)
        p = np.exp(shifted)
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(self.y))
        loss = float(-np.log(p[rows, self.y]).mean())
        d = p
        d[rows, self.y] -= 1
        d /= len(self.y)
        grad_w, grad_b = [hs[-1].T @ d], [d.sum(axis=0)]
        d = d @ self.weights[-1].T
        for layer in range(len(fs) - 1, -1, -1):
            dz = d * (1 - fs[layer] ** 2)
            grad_w.append(hs[layer].T @ dz)
            grad_b.append(dz.sum(axis=0))
            back = dz @ self.weights[layer].T
            d = d + back if self.residual and layer else back
        self.t += 1
        parameters = (*self.weights, *self.biases)
        for p_, g, moment in zip(parameters, (*grad_w[::-1], *grad_b[::-1]), self.moments, strict=True):
            moment[0] = 0.9 * moment[0] + 0.1 * g
            moment[1] = 0.999 * moment[1] + 0.001 * g**2
            mean, square = moment[0] / (1 - 0.9**self.t), moment[1] / (1 - 0.999**self.t)
            p_ -= lr * mean / (np.sqrt(square) + 1e-8)
        return loss
