"""Each layer's backward pass against the complex step through its own forward pass, and its closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.lab import layers

Array = NDArray[Any]
SEEDS, INPUTS, OUTPUTS, EXAMPLES, CLASSES = 3, 4, 5, 7, 3
RNG = np.random.default_rng(0)


def draw(*shape: int) -> Array:
    return RNG.normal(size=shape)


def complex_step(f: Callable[..., Array], args: list[Array], which: int, cotangent: Array) -> Array:
    """Gradient of sum(cotangent * f(*args)) with respect to args[which], entry by entry."""
    grad = np.empty_like(args[which])
    for at in np.ndindex(grad.shape):
        moved = [arg.astype(complex) for arg in args]
        moved[which][at] += 1e-30j
        grad[at] = (cotangent * f(*moved)).sum().imag / 1e-30
    return grad


def linear_grads(dz: Array, h: Array, w: Array, b: Array) -> tuple[Array | None, ...]:
    return tuple(layers.linear_backward(dz, h, w))


def norm_grads(dy: Array, z: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
    return tuple(layers.batch_norm_backward(dy, layers.batch_norm_forward(z, gamma, beta)[1], gamma))


Z = draw(SEEDS, OUTPUTS, EXAMPLES)
CASES: dict[str, tuple[Callable[..., Array], Callable[..., tuple[Array | None, ...]], list[Array]]] = {
    "linear": (
        layers.linear_forward,
        linear_grads,
        [draw(SEEDS, INPUTS, EXAMPLES), draw(SEEDS, OUTPUTS, INPUTS), draw(SEEDS, OUTPUTS)],
    ),
    "tanh": (layers.tanh_forward, lambda dh, z: (layers.tanh_backward(dh, np.tanh(z)),), [Z]),
    "relu": (layers.relu_forward, lambda dh, z: (layers.relu_backward(dh, layers.relu_forward(z)),), [Z]),
    "skip": (
        lambda x: layers.skip_forward(x, layers.tanh_forward(x)),
        lambda dh, x: (layers.skip_backward(dh, layers.tanh_backward(dh, np.tanh(x))),),
        [Z],
    ),
    "batchnorm": (
        lambda *args: layers.batch_norm_forward(*args)[0],
        norm_grads,
        [Z, draw(SEEDS, OUTPUTS), draw(SEEDS, OUTPUTS)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_backward_is_the_derivative_of_forward(name: str) -> None:
    forward, backward, args = CASES[name]
    cotangent = draw(*forward(*args).shape)
    for which, grad in enumerate(backward(cotangent, *args)):
        assert grad is not None
        assert grad.shape == args[which].shape
        np.testing.assert_allclose(grad, complex_step(forward, args, which, cotangent), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_float32_stays_float32_and_agrees(name: str) -> None:
    forward, backward, args = CASES[name]
    narrow = [arg.astype(np.float32) for arg in args]
    out = forward(*narrow)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, forward(*args), rtol=1e-4, atol=1e-5)
    for grad, exact in zip(backward(out, *narrow), backward(out.astype(np.float64), *args), strict=True):
        assert grad is not None
        assert exact is not None
        assert grad.dtype == np.float32
        np.testing.assert_allclose(grad, exact, rtol=1e-3, atol=1e-4)


def test_cross_entropy_gradient() -> None:
    logits, y = draw(SEEDS, CLASSES, EXAMPLES), RNG.integers(0, CLASSES, size=(SEEDS, EXAMPLES))

    def forward(z: Array) -> Array:
        return layers.cross_entropy_forward(z, y)[0]

    _, p = layers.cross_entropy_forward(logits, y)
    grad = layers.cross_entropy_backward(p, y)
    np.testing.assert_allclose(grad, complex_step(forward, [logits], 0, np.ones(SEEDS)), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(grad.sum(axis=1), 0, atol=1e-16)


def test_cross_entropy_closed_forms() -> None:
    y = np.array([[0, 1]])
    loss, p = layers.cross_entropy_forward(np.zeros((1, CLASSES, 2)), y)
    assert loss[0] == pytest.approx(np.log(CLASSES), abs=1e-15)
    np.testing.assert_allclose(p, 1 / CLASSES)
    huge = np.array([[[1e4, -1e4], [-1e4, 1e4], [0.0, 0.0]]])
    assert layers.cross_entropy_forward(huge, y)[0][0] == 0
    assert layers.cross_entropy_forward(huge, 1 - y)[0][0] == 2e4


def test_batch_norm_normalises_and_forgets_scale_and_shift() -> None:
    one, zero = np.ones((SEEDS, OUTPUTS)), np.zeros((SEEDS, OUTPUTS))
    y, _ = layers.batch_norm_forward(Z, one, zero, eps=0.0)
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-15)
    np.testing.assert_allclose(y.var(axis=-1), 1, rtol=1e-14)
    moved, _ = layers.batch_norm_forward(3 * Z + 5, one, zero, eps=0.0)
    np.testing.assert_allclose(moved, y, rtol=1e-12, atol=1e-13)
    # So the gradient has no mean and no part along zhat.
    dz = layers.batch_norm_backward(
        draw(SEEDS, OUTPUTS, EXAMPLES), layers.batch_norm_forward(Z, one, zero, eps=0.0)[1], one
    ).dz
    np.testing.assert_allclose(dz.sum(axis=-1), 0, atol=1e-14)
    np.testing.assert_allclose((dz * y).sum(axis=-1), 0, atol=1e-14)


def test_buffers_change_nothing() -> None:
    gamma, beta, dy = draw(SEEDS, OUTPUTS), draw(SEEDS, OUTPUTS), draw(SEEDS, OUTPUTS, EXAMPLES)
    y, cache = layers.batch_norm_forward(Z, gamma, beta)
    z, out = Z.copy(), np.empty_like(Z)
    y2, cache2 = layers.batch_norm_forward(z, gamma, beta, out=out, zhat=z)
    assert y2 is out
    assert cache2.zhat is z
    np.testing.assert_array_equal(y, y2)
    buffers = {"dz": np.empty_like(Z), "dgamma": np.empty_like(gamma), "dbeta": np.empty_like(beta)}
    for free, held in zip(
        layers.batch_norm_backward(dy, cache, gamma),
        layers.batch_norm_backward(dy, cache2, gamma, **buffers),
        strict=True,
    ):
        np.testing.assert_array_equal(free, held)
    np.testing.assert_array_equal(layers.tanh_forward(Z.copy(), out=z), np.tanh(Z))


def test_relu_edges() -> None:
    z = np.array([-1.0, 0.0, 2.0, np.nan])
    np.testing.assert_array_equal(layers.relu_forward(z), [0.0, 0.0, 2.0, np.nan])
    np.testing.assert_array_equal(layers.relu_backward(np.ones(3), layers.relu_forward(z[:3])), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(layers.relu_forward(np.array([1 + 1j, -1 + 1j])), [1 + 1j, 0])


def test_linear_without_bias_or_input_gradient() -> None:
    h, w, dz = draw(SEEDS, INPUTS, EXAMPLES), draw(SEEDS, OUTPUTS, INPUTS), draw(SEEDS, OUTPUTS, EXAMPLES)
    np.testing.assert_array_equal(layers.linear_forward(h, w, None), w @ h)
    found = layers.linear_backward(dz, h, w, has_bias=False, needs_dh=False)
    assert found.dh is None
    assert found.db is None
