"""The gradient check finds nothing in the laboratory, and finds bugs that are planted there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab import STEP_SIZES, GradcheckRow, Stack, gradient_check, init_params, layers, parameter_shapes

Array = NDArray[Any]


def check(spiral: Any, depth: int, shortcut: str, seed: int = 0, **settings: Any) -> list[GradcheckRow]:
    shape = settings.pop("shape", {})
    points = settings.pop("points", 50)
    gain = settings.pop("gain", 0.72)
    stack = Stack(depth=depth, width=16, num_inputs=2, num_classes=3, shortcut=shortcut, **shape)  # type: ignore[arg-type]
    x, y = spiral([seed], points)
    return gradient_check(stack, init_params(stack, [seed], gain=gain), x, y, seed=seed, **settings)


def overall(rows: list[GradcheckRow]) -> dict[str, GradcheckRow]:
    return {row.method: row for row in rows if row.tensor is None}


def median_of(rows: list[GradcheckRow], method: str, tensor: str) -> float:
    return next(row.median for row in rows if (row.method, row.tensor) == (method, tensor))


@pytest.mark.parametrize("shortcut", ["none", "identity", "identity_2"])
@pytest.mark.parametrize("depth", [8, 12, 40])
def test_published_bounds(depth: int, shortcut: str, spiral: Any) -> None:
    found = overall(check(spiral, depth, shortcut, entries=100))
    assert found["complex"].median <= 1e-14
    if depth <= 12:
        bound = 5.9e-8 if shortcut == "none" else 5.1e-9
        assert found["central"].median <= bound
        assert found["five_point"].median <= bound / 10


def test_a_gap_of_roundoff_that_the_complex_step_removes(spiral: Any) -> None:
    plain, residual = (overall(check(spiral, 40, name, entries=100)) for name in ("none", "identity_2"))
    assert plain["central"].median > 1e4 * residual["central"].median
    assert plain["complex"].median < 10 * residual["complex"].median


@pytest.mark.parametrize("shortcut", ["none", "identity", "identity_2"])
def test_relu_and_batch_norm(shortcut: str, spiral: Any) -> None:
    """A ReLU has a kink: differences that straddle it are wrong at any h, the wider the more often."""
    shape = {"activation": "relu", "norm": "batch"}
    sizes = {"central": (1e-6, 1e-2), "complex": (1e-20,)}
    rows = check(spiral, 4, shortcut, shape=shape, gain=1.4, entries=None, step_sizes=sizes)
    small, wide, exact = (row for row in rows if row.tensor is None)
    assert exact.median <= 1e-14
    assert exact.worst <= 1e-9
    assert small.median <= 1e-6
    assert wide.median >= 1e-4


def test_error_slopes(spiral: Any) -> None:
    """Where truncation rules, the error falls as h^2 (central) and h^4 (five-point)."""
    sizes = {"central": (0.02, 0.01), "five_point": (0.1, 0.05)}
    rows = check(spiral, 4, "identity_2", entries=200, step_sizes=sizes)
    for method, order in (("central", 2), ("five_point", 4)):
        big, small = (row.median for row in rows if row.method == method and row.tensor is None)
        assert np.log2(big / small) == pytest.approx(order, abs=0.1)


def test_rows(spiral: Any) -> None:
    rows = check(spiral, 2, "none", entries=40, points=10, step_sizes=STEP_SIZES)
    shapes = parameter_shapes(Stack(depth=2, width=16, num_inputs=2, num_classes=3))
    keys = [(method, h) for method, sizes in STEP_SIZES.items() for h in sizes]
    assert [(row.method, row.h) for row in rows if row.tensor is None] == keys
    assert len(rows) == len(keys) * (len(shapes) + 1)
    for key in keys:
        own = [row for row in rows if (row.method, row.h) == key]
        parts, whole = own[:-1], own[-1]
        assert [row.tensor for row in parts] == list(shapes)
        assert whole.count == sum(row.count for row in parts)
        assert whole.worst == max(row.worst for row in parts)
        assert (whole.worst_tensor, whole.worst_index) in {(row.tensor, row.worst_index) for row in parts}
        for row in parts:
            assert row.tensor == row.worst_tensor
            assert all(at < size for at, size in zip(row.worst_index, shapes[row.worst_tensor], strict=True))
    assert rows == check(spiral, 2, "none", entries=40, points=10, step_sizes=STEP_SIZES)
    full = check(spiral, 2, "none", entries=None, points=10, step_sizes={"complex": (1e-20,)})
    assert full[-1].count == 48 + 2 * 272 + 51


def test_one_seed_at_a_time(spiral: Any) -> None:
    stack = Stack(depth=2, width=4, num_inputs=2, num_classes=3)
    x, y = spiral([0, 1])
    with pytest.raises(UserError, match="wanted one seed, got 2"):
        gradient_check(stack, init_params(stack, [0, 1]), x, y, seed=0)


# Bugs planted in the backward passes: each has the signature of the function that it stands in for.


def skip_without_its_gradient(dh: Array, dx_branch: Array, *, out: Array) -> Array:
    out[...] = dx_branch
    return out


def linear_with_a_transposed_weight(dz: Array, h: Array, w: Array, **rest: Any) -> layers.LinearGrads:
    square = w.shape[-1] == w.shape[-2]
    return LINEAR(dz, h, w.swapaxes(-1, -2) if square else w, **rest)


def norm_without_its_mean_term(dy: Array, cache: layers.NormCache, gamma: Array, **out: Any) -> layers.NormGrads:
    found = NORM(dy, cache, gamma, **out)
    found.dz[...] += (gamma * cache.inv_std * found.dbeta / dy.shape[-1])[..., None]
    return found


def tanh_of_the_wrong_side(dh: Array, h: Array, *, out: Array | None = None) -> Array:
    dz: Array = np.multiply(dh, 1 - np.tanh(h) ** 2, out=out)
    return dz


LINEAR, NORM = layers.linear_backward, layers.batch_norm_backward


BUGS = {
    "skip": ("skip_backward", skip_without_its_gradient, "none"),
    "weight": ("linear_backward", linear_with_a_transposed_weight, "none"),
    "norm": ("batch_norm_backward", norm_without_its_mean_term, "batch"),
}


@pytest.mark.parametrize(
    ("bug", "shortcut"),
    [
        (bug, shortcut)
        for bug in BUGS
        for shortcut in ("none", "identity", "identity_2")
        if (bug, shortcut) != ("skip", "none")
    ],
)
def test_planted_bugs_are_caught(bug: str, shortcut: str, spiral: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name, planted, norm = BUGS[bug]
    settings: dict[str, Any] = {"shape": {"norm": norm}, "entries": 150, "gain": 1.0, "points": 15}
    healthy = check(spiral, 4, shortcut, **settings)
    monkeypatch.setattr(layers, name, planted)
    sick = check(spiral, 4, shortcut, **settings)
    for method in ("central", "five_point", "complex"):
        assert median_of(healthy, method, "stem.weight") < 1e-7
        assert median_of(sick, method, "stem.weight") > 1e-2
        # And it says where: what lies above the fault stays right.
        assert median_of(sick, method, "head.weight") < 1e-7
        worst = overall(sick)[method]
        assert worst.worst > 0.1
        assert not worst.worst_tensor.startswith("head")


def test_a_wrong_activation_is_caught(spiral: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layers.ACTIVATIONS, "tanh", (layers.tanh_forward, tanh_of_the_wrong_side))
    assert overall(check(spiral, 4, "none", entries=100))["complex"].median > 1e-4
