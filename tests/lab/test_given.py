"""Bad data and types at the laboratory's doors: one line each, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab import Adam, Form, Gpt, Stack, evaluate, fit, gradient_check, gradients, init_params, profile
from depthscope.lab.judge import scores
from depthscope.lab.transformer.network import GptNetwork

Array = NDArray[Any]
GPT = Gpt(depth=1, width=8, num_tokens=5, length=4, heads=2)
STACK = Stack(depth=2, width=4, num_inputs=2, num_classes=3)
TOKENS = np.arange(24).reshape(2, 3, 4) % 5
POINTS = np.linspace(-1, 1, 12).reshape(2, 3, 2)
LABELS = np.arange(6).reshape(2, 3) % 3

Entry = Callable[[Form, Any, Array, Array], Any]
ENTRIES: dict[str, Entry] = {
    "fit": lambda form, params, x, y: next(fit(form, params, x, y, optimizer=Adam(), lr=[0.1], num_steps=1)),
    "batches": lambda form, params, x, y: next(
        fit(form, params, x, y, optimizer=Adam(), lr=[0.1], num_steps=1, batches=lambda _: np.zeros((2, 1), np.int64))
    ),
    "evaluate": evaluate,
    "in_parts": lambda form, params, x, y: evaluate(form, params, x, y, at_once=2),
    "gradients": gradients,
    "profile": lambda form, params, x, y: profile(form, params, x, y, 0),
    "gradient_check": lambda form, params, x, y: gradient_check(
        form, {name: each[:1] for name, each in params.items()}, x[:1], y[:1], seed=0
    ),
}


def at(array: Array, value: int) -> Array:
    """A copy whose first entry is this."""
    changed = array.copy()
    changed.flat[0] = value
    return changed


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (TOKENS.astype(float), TOKENS, "x: wanted integers, got float64"),
        (at(TOKENS, -1), TOKENS, "x: wanted tokens from 0 to 4, got -1"),
        (at(TOKENS, 5), TOKENS, "x: wanted tokens from 0 to 4, got 5"),
        (TOKENS[..., :3], TOKENS, r"x: wanted shape \[S, N, 4\], got \[[12], 3, 3\]"),
        (TOKENS, TOKENS.astype(float), "y: wanted integers, got float64"),
        (TOKENS, at(TOKENS, 5), "y: wanted labels from 0 to 4, below 0 where nothing is asked, got 5"),
        (TOKENS, TOKENS[..., 0], r"y: wanted shape \[[12], 3, 4\], got \[[12], 3\]"),
        (TOKENS, np.full_like(TOKENS, -1), "y: wanted a label of 0 or more for each seed, got row 0 with none"),
    ],
)
def test_bad_text(entry: str, x: Array, y: Array, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ENTRIES[entry](GPT, init_params(GPT, [0, 1]), x, y)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (POINTS[..., :1], LABELS, r"x: wanted shape \[S, N, 2\], got \[[12], 3, 1\]"),
        (POINTS, LABELS[:, :2], r"y: wanted shape \[[12], 3\], got \[[12], 2\]"),
        (POINTS, LABELS.astype(float), "y: wanted integers, got float64"),
        (POINTS, at(LABELS, 3), "y: wanted labels from 0 to 2"),
    ],
)
def test_bad_points(entry: str, x: Array, y: Array, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ENTRIES[entry](STACK, init_params(STACK, [0, 1]), x, y)


def test_one_seed_without_a_label_is_named() -> None:
    y = TOKENS.copy()
    y[1] = -1
    with pytest.raises(UserError, match="got row 1 with none"):
        gradients(GPT, init_params(GPT, [0, 1]), TOKENS, y)


def test_narrow_integers_are_tokens() -> None:
    params = init_params(GPT, [0, 1])
    wide = evaluate(GPT, params, TOKENS, TOKENS)
    np.testing.assert_array_equal(evaluate(GPT, params, TOKENS.astype(np.uint8), TOKENS.astype(np.int8)), wide)


def test_inputs_alone() -> None:
    params = init_params(GPT, [0, 1])
    with pytest.raises(UserError, match="x: wanted tokens from 0 to 4, got -1"):
        scores(GPT, params, at(TOKENS, -1))
    for length in (2, 9):
        with pytest.raises(UserError, match=rf"x: wanted shape \[S, N, 4\], got \[1, 3, {length}\]"):
            GptNetwork(GPT).forward(params, np.zeros((1, 3, length), np.int64))


@pytest.mark.parametrize(("form", "x", "y"), [(GPT, TOKENS, TOKENS), (STACK, POINTS, LABELS)])
def test_weights_are_no_integers(form: Form, x: Array, y: Array) -> None:
    with pytest.raises(UserError, match="dtype: wanted a floating type, such as float32 or float64, got int64"):
        init_params(form, [0], dtype=np.int64)
    whole = {name: value.astype(np.int64) for name, value in init_params(form, [0, 1]).items()}
    with pytest.raises(UserError, match="params: wanted a floating type"):
        ENTRIES["fit"](form, whole, x, y)


@pytest.mark.parametrize("value", [True, 1.0, "2", None, 0])
def test_counts_are_integers(value: Any) -> None:
    with pytest.raises(UserError, match=f"width: wanted an integer of 1 or more, got {value!r}"):
        Stack(depth=2, width=value, num_inputs=2, num_classes=3)


def test_counts_may_come_from_an_array() -> None:
    assert Gpt(depth=np.int64(2), width=8, num_tokens=5, length=4).depth == 2  # type: ignore[arg-type]
