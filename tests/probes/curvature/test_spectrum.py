"""Eigenvalues, traces and densities of matrices whose spectra are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.probes.curvature.nets import Matrix, rotated

from depthscope.core.errors import UserError
from depthscope.probes.curvature import EXACT, density, extremes, trace

N = 200


def spectra() -> dict[str, NDArray[np.float64]]:
    draws = np.random.default_rng(1)
    zeros = np.zeros(N)
    return {
        "the trap of sizes": np.array([-3.0, *np.linspace(-0.5, 0.5, N - 2), 1.0]),
        "near a tie of sizes": np.array([-1.97, *np.linspace(-0.5, 0.5, N - 2), 1.99]),
        "convex, of low rank": np.concatenate([np.linspace(1, 2, 20), zeros[20:]]),
        "concave, of low rank": -np.concatenate([np.linspace(1, 2, 20), zeros[20:]]),
        "one direction": np.concatenate([[5.0], zeros[1:]]),
        "all negative": np.linspace(-2, -1, N),
        "a network's": np.concatenate([[-0.02, 40.0, 12.0], 1e-3 * draws.standard_normal(N - 3)]),
        "tiny": 1e-14 * np.linspace(-1, 2, N),
        "huge": 1e14 * np.linspace(-1, 2, N),
        "one, two": np.array([-3.0, 1.0]),
        "one": np.array([-4.0]),
    }


@pytest.mark.parametrize("name", spectra())
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_both_ends_by_value_within_tol_with_their_residuals(name: str, tol: float) -> None:
    values = spectra()[name]
    matrix = rotated(values)
    found = extremes(matrix, tol=tol)
    size = max(values.max() - values.min(), np.abs(values).max())
    assert abs(found.largest - values.max()) <= 1.01 * tol * size
    assert abs(found.smallest - values.min()) <= 1.01 * tol * size
    assert found.largest_vector is not None
    assert found.smallest_vector is not None
    for value, residual, vector in (
        (found.largest, found.residual_largest, found.largest_vector),
        (found.smallest, found.residual_smallest, found.smallest_vector),
    ):
        assert np.linalg.norm(vector) == pytest.approx(1)
        assert residual == pytest.approx(np.linalg.norm(matrix.entries @ vector - value * vector), abs=1e-14 * size)
        assert np.abs(values - value).min() <= residual + 1e-12 * size
    assert found.num_products == matrix.num_products
    assert found.exact == (len(values) <= EXACT)


@pytest.mark.parametrize("value", [0.0, 2.5, -2.5])
@pytest.mark.parametrize("size", [1, 2, EXACT, EXACT + 1, N])
def test_a_multiple_of_the_identity(value: float, size: int) -> None:
    found = extremes(Matrix(value * np.eye(size)))
    assert (found.smallest, found.largest) == pytest.approx((value, value))
    assert found.residual_smallest == pytest.approx(0, abs=1e-12)
    assert trace(Matrix(value * np.eye(size))).value == pytest.approx(value * size, abs=1e-9)
    masses = density(Matrix(value * np.eye(size)))
    assert masses.mean == pytest.approx(value)
    assert masses.share(value - 1e-9, value + 1e-9) == pytest.approx(1)


def test_it_repeats_bit_for_bit_and_moves_no_generator() -> None:
    matrix = rotated(spectra()["a network's"])
    before = repr(np.random.get_state())  # noqa: NPY002
    assert extremes(matrix) == extremes(matrix)
    assert trace(matrix) == trace(matrix)
    assert (density(matrix).values == density(matrix).values).all()
    assert extremes(matrix, seed=1) != extremes(matrix)
    assert repr(np.random.get_state()) == before  # noqa: NPY002


def test_what_is_not_finite_is_nan() -> None:
    for size in (3, N):
        matrix = Matrix(np.full((size, size), math.inf))
        with np.errstate(invalid="ignore"):
            ends, sum_ = extremes(matrix), trace(matrix)
            assert math.isnan(ends.largest)
            assert math.isnan(ends.residual_smallest)
            assert math.isnan(sum_.value)
            with pytest.raises(UserError, match="not finite"):
                density(matrix)


def test_what_does_not_settle_is_told() -> None:
    with pytest.raises(UserError, match=r"did not settle to tol 1e-14 within \d+ products"):
        extremes(rotated(np.linspace(0, 1, N)), tol=1e-14, max_products=30)


@pytest.mark.parametrize("samples", [6, 30, 60])
def test_a_trace_lies_within_its_standard_errors(samples: int) -> None:
    """Of many seeds; and they have no bias. Few random vectors give a lopsided estimate."""
    values = spectra()["a network's"]
    matrix = rotated(values)
    found = [trace(matrix, samples=samples, seed=seed) for seed in range(100)]
    assert {each.samples for each in found} == {samples}
    off = np.array([each.value - values.sum() for each in found])
    errors = np.array([each.standard_error for each in found])
    assert (np.abs(off) <= 2.6 * errors).mean() >= (0.8 if samples < 10 else 0.93)
    assert abs(off.mean()) <= 3 * off.std() / 10
    assert errors.mean() == pytest.approx(off.std(), rel=0.3)


def test_directions_that_stand_out_cost_a_trace_nothing() -> None:
    values = spectra()["a network's"]
    assert trace(rotated(values), samples=60).standard_error < 0.01
    plain = [trace(rotated(values), samples=6, seed=seed).standard_error for seed in range(10)]
    assert min(plain) > 1
    low = spectra()["convex, of low rank"]
    assert trace(rotated(low), samples=90).value == pytest.approx(low.sum(), rel=1e-12)


def test_a_small_trace_is_exact() -> None:
    found = trace(Matrix(np.diag([-3.0, 1.0])))
    assert (found.value, found.standard_error, found.exact) == (-2.0, 0.0, True)
    assert trace(rotated(np.arange(60.0)), samples=59).exact is False


def test_a_density_of_few_rows_is_the_spectrum() -> None:
    values = np.array([-1.0, 0.0, 0.0, 4.0])
    found = density(rotated(values))
    assert found.exact
    assert found.values == pytest.approx(values, abs=1e-12)
    assert found.share(-0.1, 0.1) == 0.5
    grid, heights = found.smoothed(width=0.1)
    assert np.trapezoid(heights, grid) == pytest.approx(1, abs=1e-3)
    assert heights[np.abs(grid).argmin()] == pytest.approx(2 * heights[np.abs(grid - 4).argmin()], rel=0.02)


def test_a_density_has_the_moments_and_the_masses_of_the_spectrum() -> None:
    size = 400
    values = np.concatenate([np.zeros(200), np.linspace(1, 2, 160), np.full(40, -1.0)])
    matrix = rotated(values, seed=3)
    assert matrix.size == size
    found = density(matrix, vectors=30, steps=40)
    assert found.num_products == 30 * 40 == matrix.num_products
    assert not found.exact
    assert found.weights.sum() == pytest.approx(1)
    assert (np.diff(found.values) >= 0).all()
    # The share of a start in an eigenspace of k of n rows has mean k/n and variance near 2 k (n-k) / n^3.
    for low, high, share in ((-0.1, 0.1, 0.5), (0.9, 2.1, 0.4), (-1.1, -0.9, 0.1)):
        assert found.share(low, high) == pytest.approx(share, abs=4 * math.sqrt(2 * share * (1 - share) / size / 30))
    assert found.mean == pytest.approx(values.mean(), abs=0.03)


def test_an_eigenvalue_that_stands_out_appears_once_a_start() -> None:
    """Without orthogonalising anew, Lanczos' iteration shows copies of it."""
    values = np.concatenate([[1000.0], np.linspace(0, 1, N - 1)])
    found = density(rotated(values), vectors=2, steps=100)
    assert (found.values > 10).sum() == 2


@pytest.mark.parametrize(
    "call", [lambda m: extremes(m, tol=0), lambda m: trace(m, samples=1), lambda m: density(m, steps=1)]
)
def test_bad_arguments_are_told(call: object) -> None:
    assert callable(call)
    with pytest.raises(UserError, match="curvature: "):
        call(Matrix(np.eye(2)))
