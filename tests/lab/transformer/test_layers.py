"""Each layer of the transformer: backward against the complex step through its own forward, and closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.lab.transformer import layers

Array = NDArray[Any]
SEEDS, EXAMPLES, LENGTH, WIDTH, HEADS, TOKENS = 2, 3, 5, 6, 3, 4
PLACES = EXAMPLES * LENGTH
RNG = np.random.default_rng(0)
WHERE = RNG.integers(0, TOKENS - 1, size=(SEEDS, EXAMPLES, LENGTH))  # the last token is never named


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


X, SCALE, SHIFT = draw(SEEDS, WIDTH, PLACES), draw(SEEDS, WIDTH), draw(SEEDS, WIDTH)
CASES: dict[str, tuple[Callable[..., Array], Callable[..., Any], list[Array]]] = {
    "embedding": (
        lambda table, positions: layers.embedding_forward(WHERE, table, positions),
        lambda dh, table, positions: layers.embedding_backward(dh, WHERE, TOKENS),
        [draw(SEEDS, TOKENS, WIDTH), draw(SEEDS, LENGTH, WIDTH)],
    ),
    "rms": (
        lambda x: layers.rms_norm_forward(x)[0],
        lambda dy, x: layers.rms_norm_backward(dy, layers.rms_norm_forward(x)[1])[:1],
        [X],
    ),
    "rms_scale": (
        lambda x, scale: layers.rms_norm_forward(x, scale)[0],
        lambda dy, x, scale: layers.rms_norm_backward(dy, layers.rms_norm_forward(x, scale)[1], scale)[:2],
        [X, SCALE],
    ),
    "layer": (
        lambda x, scale, shift: layers.layer_norm_forward(x, scale, shift)[0],
        lambda dy, x, scale, shift: layers.layer_norm_backward(
            dy, layers.layer_norm_forward(x, scale, shift)[1], scale
        ),
        [X, SCALE, SHIFT],
    ),
    "layer_without_shift": (
        lambda x, scale: layers.layer_norm_forward(x, scale)[0],
        lambda dy, x, scale: layers.layer_norm_backward(
            dy, layers.layer_norm_forward(x, scale)[1], scale, has_shift=False
        )[:2],
        [X, SCALE],
    ),
    "attention": (
        lambda qkv: layers.attention_forward(qkv, HEADS, LENGTH)[0],
        lambda do, qkv: (layers.attention_backward(do, layers.attention_forward(qkv, HEADS, LENGTH)[1]),),
        [draw(SEEDS, 3 * WIDTH, PLACES)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_backward_is_the_derivative_of_forward(name: str) -> None:
    forward, backward, args = CASES[name]
    cotangent = draw(*forward(*args).shape)
    found = backward(cotangent, *args)
    assert len(found) == len(args)
    for which, grad in enumerate(found):
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
        assert grad.dtype == np.float32
        np.testing.assert_allclose(grad, exact, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if name != "embedding"])
def test_one_seed_alone_has_the_same_bits(name: str) -> None:
    """The embedding's case holds the tokens of all seeds: see the training of groups."""
    forward, backward, args = CASES[name]
    out = forward(*args)
    grads = backward(out, *args)
    for seed in range(SEEDS):
        own = [arg[seed : seed + 1] for arg in args]
        assert forward(*own).tobytes() == out[seed].tobytes()
        for alone, group in zip(backward(out[seed : seed + 1], *own), grads, strict=True):
            assert alone.tobytes() == group[seed].tobytes()


def test_attention_place_by_place() -> None:
    """The slow twin: each head, example and place by itself, from the formula."""
    qkv = draw(SEEDS, 3 * WIDTH, PLACES)
    out, _ = layers.attention_forward(qkv, HEADS, LENGTH)
    size = WIDTH // HEADS
    for seed, head, example, place in np.ndindex(SEEDS, HEADS, EXAMPLES, LENGTH):
        past = [example * LENGTH + before for before in range(place + 1)]
        q, k, v = (qkv[seed, third * WIDTH + head * size :][:size] for third in range(3))
        scores = np.array([q[:, past[-1]] @ k[:, at] for at in past]) / np.sqrt(size)
        weights = np.exp(scores) / np.exp(scores).sum()
        expected = sum(weight * v[:, at] for weight, at in zip(weights, past, strict=True))
        np.testing.assert_allclose(out[seed, head * size : (head + 1) * size, past[-1]], expected, rtol=1e-12)


def test_attention_looks_at_its_own_past_alone() -> None:
    """A change at one place of one example moves no other example and no earlier place; and no gradient comes back."""
    qkv = draw(1, 3 * WIDTH, PLACES)
    moved = qkv.copy()
    moved[:, :, LENGTH + 2] += 1.0
    before, after = (layers.attention_forward(each, HEADS, LENGTH)[0] for each in (qkv, moved))
    changed = (before != after).any(axis=(0, 1))
    assert changed.nonzero()[0].tolist() == [LENGTH + 2, LENGTH + 3, LENGTH + 4]
    do = np.zeros_like(before)
    do[:, :, LENGTH + 2] = 1.0
    grad = layers.attention_backward(do, layers.attention_forward(qkv, HEADS, LENGTH)[1])
    reached = (grad != 0).any(axis=(0, 1))
    assert reached.nonzero()[0].tolist() == [LENGTH, LENGTH + 1, LENGTH + 2]


def test_attention_of_equal_keys_is_the_mean_of_the_past() -> None:
    qkv = draw(1, 3 * WIDTH, PLACES)
    qkv[:, WIDTH : 2 * WIDTH] = 1.0
    out, cache = layers.attention_forward(qkv, HEADS, LENGTH)
    values = qkv[:, 2 * WIDTH :].reshape(1, WIDTH, EXAMPLES, LENGTH)
    mean = values.cumsum(axis=-1) / np.arange(1, LENGTH + 1)
    np.testing.assert_allclose(out.reshape(mean.shape), mean, rtol=1e-13)
    np.testing.assert_allclose(cache.weights.sum(axis=-1), 1, rtol=1e-14)


def test_large_scores_do_not_overflow() -> None:
    qkv = np.full((1, 3 * WIDTH, PLACES), 1e3)
    qkv[..., -1] = 1e4  # the last place of the last example
    out, _ = layers.attention_forward(qkv, HEADS, LENGTH)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out[..., -1], 1e4)


def test_norms_by_definition() -> None:
    y, _ = layers.rms_norm_forward(X, SCALE)
    np.testing.assert_allclose(y, X / np.sqrt((X**2).mean(axis=1, keepdims=True) + 1e-5) * SCALE[..., None], rtol=1e-13)
    y, _ = layers.layer_norm_forward(X, SCALE, SHIFT)
    xhat = (X - X.mean(axis=1, keepdims=True)) / np.sqrt(X.var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, xhat * SCALE[..., None] + SHIFT[..., None], rtol=1e-12, atol=1e-14)


def test_norms_have_no_gradient_along_what_they_take_out() -> None:
    dy = draw(*X.shape)
    dx = layers.rms_norm_backward(dy, layers.rms_norm_forward(X, eps=0.0)[1]).dx
    np.testing.assert_allclose((dx * X).sum(axis=1), 0, atol=1e-13)
    ones = np.ones((SEEDS, WIDTH))
    dx = layers.layer_norm_backward(dy, layers.layer_norm_forward(X, ones, eps=0.0)[1], ones).dx
    np.testing.assert_allclose(dx.sum(axis=1), 0, atol=1e-13)
    np.testing.assert_allclose((dx * X).sum(axis=1), 0, atol=1e-12)


def test_a_row_gets_the_sum_of_its_places_and_one_that_is_not_named_nothing() -> None:
    dh = draw(SEEDS, WIDTH, PLACES)
    dtable, dpositions = layers.embedding_backward(dh, WHERE, TOKENS)
    by_place = dh.reshape(SEEDS, WIDTH, EXAMPLES, LENGTH)
    for seed in range(SEEDS):
        for token in range(TOKENS):
            np.testing.assert_allclose(
                dtable[seed, token], by_place[seed][:, WHERE[seed] == token].sum(axis=-1), rtol=1e-13, atol=1e-15
            )
    assert not dtable[:, -1].any()
    np.testing.assert_allclose(dpositions, by_place.sum(axis=2).swapaxes(1, 2), rtol=1e-13)
