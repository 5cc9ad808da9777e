"""Spiral data for a group of seeds, made by the formula of the data room, without importing it."""

from __future__ import annotations

import os

# One BLAS thread: the tests are small products, and other tests run beside them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.streams import stream

Array = NDArray[Any]
Spiral = Callable[..., tuple[Array, Array]]


@pytest.fixture(scope="session")
def spiral() -> Spiral:
    """`spiral(seeds, points=50)`: inputs [S, 3 points, 2] and labels [S, 3 points]."""

    def make(seeds: Sequence[int], points: int = 50) -> tuple[Array, Array]:
        radius = np.linspace(0.1, 1.0, points)
        arm = np.arange(3)
        inputs = []
        for seed in seeds:
            jitter = stream(seed, "data", "spiral", "train").normal(size=(3, points))
            theta = 2 * np.pi * (arm[:, None] / 3 + 0.64 * (radius - 0.1) / 0.9) + 0.1 * jitter
            inputs.append(np.stack([radius * np.cos(theta), radius * np.sin(theta)], axis=-1).reshape(-1, 2))
        return np.stack(inputs), np.tile(np.repeat(arm, points), (len(seeds), 1))

    return make
