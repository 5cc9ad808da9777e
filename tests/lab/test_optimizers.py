"""Optimisers against closed forms; the naive twin in `test_naive` follows them through a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab import Adam, Momentum

Array = NDArray[Any]


def test_adam_under_a_constant_gradient_walks_at_the_learning_rate() -> None:
    # mhat = g and vhat = g^2 at every step, so each step is lr sign(g) where |g| >> eps.
    w = np.zeros((1, 4))
    state = Adam(eps=1e-300).start(w)
    for t in range(1, 8):
        state.update(w, np.array([[3.0, -2.0, 1e-6, -1e6]]), 0.1)
        np.testing.assert_allclose(w, 0.1 * t * np.array([[-1, 1, -1, 1]]), rtol=1e-12)


def test_adam_s_eps_shrinks_small_gradients() -> None:
    w = np.zeros((1, 1))
    Adam(eps=1e-8).start(w).update(w, np.array([[1e-8]]), 1.0)
    assert w[0, 0] == pytest.approx(-0.5, rel=1e-12)


def test_momentum_under_a_constant_gradient_sums_a_geometric_series() -> None:
    w = np.zeros((1, 1))
    state = Momentum(momentum=0.9).start(w)
    velocity = 0.0
    for t in range(1, 20):
        state.update(w, np.ones((1, 1)), 0.1)
        velocity += (1 - 0.9**t) / (1 - 0.9)
        assert w[0, 0] == pytest.approx(-0.1 * velocity, rel=1e-12)


def test_momentum_on_a_parabola_has_the_known_roots() -> None:
    # w_{t+1} = (1 + mu - lr) w_t - mu w_{t-1} for L = w^2/2: a linear recurrence.
    mu, lr = 0.5, 0.3
    w, state = np.ones((1, 1)), Momentum(momentum=mu).start(np.ones((1, 1)))
    seen = [1.0]
    for _ in range(10):
        state.update(w, w.copy(), lr)
        seen.append(float(w[0, 0]))
    before, now = 1.0, 1.0 - lr
    for value in seen[1:]:
        assert value == pytest.approx(now, rel=1e-12)
        before, now = now, (1 + mu - lr) * now - mu * before


@pytest.mark.parametrize("optimizer", [Adam(), Momentum()], ids=["adam", "momentum"])
def test_keep_drops_the_others_memory(optimizer: Adam | Momentum) -> None:
    rng = np.random.default_rng(0)
    g = rng.normal(size=(6, 4, 5)).astype(np.float32)
    w_all, w_two = np.ones((4, 5), np.float32), np.ones((2, 5), np.float32)
    every, two = optimizer.start(w_all), optimizer.start(w_two)
    rows = np.array([1, 3])
    for t in range(6):
        if t == 3:
            every.keep(rows)
            w_all = w_all[rows]
        every.update(w_all, g[t].copy() if t < 3 else g[t][rows], 0.1)
        two.update(w_two, g[t][rows], 0.1)
    np.testing.assert_array_equal(w_all, w_two)


@pytest.mark.parametrize(
    "build",
    [lambda: Adam(beta1=1.0), lambda: Adam(beta2=-0.1), lambda: Adam(eps=0.0), lambda: Momentum(momentum=1.0)],
)
def test_settings_out_of_range(build: Callable[[], object]) -> None:
    with pytest.raises(UserError, match="wanted a number"):
        build()
