"""Closed forms to the digits that are printed for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from depthscope.analysis.averages import ACTIVATIONS, averages, averages_of
from depthscope.analysis.theory import (
    BRANCHES,
    chi,
    critical_sw2,
    fixed_point_q,
    next_q,
    normalised_chi,
    residual_block,
    residual_product,
)
from depthscope.core.errors import UserError

# ORACLES section 3: E[phi], E[phi^2], E[phi'^2] at N(0, 1).
AVERAGES = {
    "relu": (0.398942, 0.5, 0.5),
    "leaky_relu": (0.319154, 0.52, 0.52),
    "tanh": (0.0, 0.394294, 0.464403),
    "sigmoid": (0.5, 0.293379, 0.044836),
    "gelu": (0.282095, 0.425221, 0.455851),
    "silu": (0.206621, 0.355776, 0.379482),
    "elu": (0.160521, 0.644945, 0.668102),
    "selu": (0.0, 1.0, 1.071575),
    "softplus": (0.806059, 0.921246, 0.293379),
    "linear": (0.0, 1.0, 1.0),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_averages_to_their_printed_digits(name: str) -> None:
    found = averages(name)
    assert (found.mean, found.second, found.slope) == pytest.approx(AVERAGES[name], abs=5.1e-7)


@pytest.mark.parametrize("q", [0.01, 1.0, 9.0, 400.0])
@pytest.mark.parametrize(
    ("name", "phi"), [("tanh", math.tanh), ("relu", lambda x: max(x, 0.0)), ("softplus", lambda x: np.logaddexp(0, x))]
)
def test_averages_agree_with_adaptive_quadrature(name: str, phi: object, q: float) -> None:
    assert callable(phi)

    def integrand(z: float) -> float:
        return float(phi(math.sqrt(q) * z)) ** 2 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    exact = quad(integrand, -10, 0, epsabs=1e-12)[0] + quad(integrand, 0, 10, epsabs=1e-12)[0]
    assert averages(name, q).second == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slopes_are_the_derivatives_of_their_functions(name: str) -> None:
    """By central differences, away from the kinks."""
    from depthscope.analysis.averages import _FUNCTIONS

    phi, slope = _FUNCTIONS[name]
    x = np.array([-3.1, -1.2, -0.4, 0.3, 0.9, 2.7])
    h = 1e-6
    assert slope(x, phi(x)) == pytest.approx((phi(x + h) - phi(x - h)) / (2 * h), abs=1e-8)


def test_gains_of_unit_second_moment() -> None:
    gains = {name: 1 / math.sqrt(averages(name).second) for name in ("relu", "tanh", "gelu", "silu", "selu")}
    expected = {"relu": 1.414214, "tanh": 1.592537, "gelu": 1.533530, "silu": 1.676532, "selu": 1.0}
    assert gains == pytest.approx(expected, abs=1e-6)


def test_many_variances_at_once_are_the_same_as_one_by_one() -> None:
    q = np.array([0.0, 0.3, 2.0])
    columns = averages_of("gelu", q)
    for index, each in enumerate(q):
        one = averages("gelu", float(each))
        assert [column[index] for column in columns] == pytest.approx([one.mean, one.second, one.slope], abs=1e-15)


def test_unknown_activation_and_negative_variance() -> None:
    with pytest.raises(UserError, match="Did you mean 'relu'"):
        averages("rellu")
    with pytest.raises(UserError, match="at least 0"):
        averages("relu", -1.0)


# ORACLES section 4.
@pytest.mark.parametrize(
    ("activation", "sw2", "sb2", "q", "multiplier"),
    [
        ("relu", 2.0, 0.0, 1.0, 1.0),
        ("relu", 1.0, 0.0, 0.0, 0.5),
        ("relu", 1 / 3, 0.0, 0.0, 1 / 6),
        ("tanh", 1.0, 0.05, 0.193593, 0.759032),
        ("tanh", 2.25, 0.0, 0.793354, 1.139323),
        ("tanh", 4.0, 0.05, 2.195494, 1.342402),
        ("tanh", 1.0, 0.0, 0.0, 1.0),
        ("tanh", 0.5184, 0.0, 0.0, 0.5184),
    ],
)
def test_fixed_points_and_chi(activation: str, sw2: float, sb2: float, q: float, multiplier: float) -> None:
    found = fixed_point_q(activation, sw2, sb2)
    assert found == pytest.approx(q, abs=5.1e-7)
    assert next_q(activation, found, sw2, sb2) == pytest.approx(found, abs=1e-9)
    assert chi(activation, sw2, sb2) == pytest.approx(multiplier, abs=5.1e-7)


@pytest.mark.parametrize(("sb2", "sw2"), [(0.0, 1.0), (0.01, 1.424205), (0.05, 1.760955), (0.10, 1.986073)])
def test_critical_line_of_tanh(sb2: float, sw2: float) -> None:
    found = critical_sw2("tanh", sb2)
    assert found == pytest.approx(sw2, abs=5.1e-7)
    assert chi("tanh", found, sb2) == pytest.approx(1.0, abs=1e-6)


def test_relu_is_critical_at_he_and_nowhere_with_biases() -> None:
    assert critical_sw2("relu") == pytest.approx(2.0)
    with pytest.raises(UserError, match="no critical point"):
        critical_sw2("relu", 0.1)
    with pytest.raises(UserError, match="grows for ever"):
        fixed_point_q("relu", 2.0, 0.1)


def test_tanh_at_gain_one_dies_like_one_over_twice_the_depth() -> None:
    q = 1.0
    for _ in range(4_000):
        q = next_q("tanh", q, 1.0)
    assert q * 2 * 4_000 == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(
    ("activation", "norm", "multiplier"),
    [
        ("relu", "batch", math.pi / (math.pi - 1)),
        ("relu", "batch", 1.466942),
        ("gelu", "batch", 1.318845),
        ("silu", "batch", 1.212081),
        ("elu", "batch", 1.079013),
        ("tanh", "batch", 1.177807),
        ("relu", "layer", 1.0),
        ("tanh", "layer", 1.177807),
    ],
)
def test_normalised_networks(activation: str, norm: str, multiplier: float) -> None:
    assert normalised_chi(activation, norm) == pytest.approx(multiplier, abs=5.1e-7)  # type: ignore[arg-type]


# ORACLES section 5.
def test_residual_blocks() -> None:
    assert residual_block("unit").chi == 2
    assert residual_block("relu_first").chi == 1.5
    assert residual_block("relu_first").f_over_x == pytest.approx(0.7071, abs=1e-4)
    assert residual_block("unit", scale=0.1).chi == pytest.approx(1.01)
    assert residual_block("zero", block=5) == residual_block("zero")
    assert (residual_block("zero").chi, residual_block("zero").f_over_x) == (1, 0)
    for at in (0, 3):
        assert residual_block("batch_norm_first", block=at).f_over_x == pytest.approx(1 / math.sqrt(at + 1))
        assert residual_block("pre_layer_norm", block=at).chi == pytest.approx((at + 2) / (at + 1))


def test_residual_products() -> None:
    assert residual_product("batch_norm_first", 32) == pytest.approx(81.90, abs=0.005)
    assert residual_product("pre_layer_norm", 32) == pytest.approx(33)
    assert residual_product("unit", 16, scale=0.25) == pytest.approx(2.638, abs=5e-4)
    assert residual_product("unit", 10_000, scale=0.01) == pytest.approx(math.e, rel=1e-4)


def test_residual_faults() -> None:
    assert len(BRANCHES) == 5
    with pytest.raises(UserError, match="unknown branch"):
        residual_block("units")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="scale 1 only"):
        residual_block("pre_layer_norm", scale=0.5)


def test_batch_norm_first_against_simulation() -> None:
    """The batch variance that the closed form rests on: 1 + (1 - 1/pi) l."""
    rng = np.random.default_rng(1)
    width = num_examples = 400
    x = rng.normal(size=(num_examples, width))
    for _ in range(6):
        normed = (x - x.mean(0)) / x.std(0)
        x = x + np.maximum(normed, 0.0) @ rng.normal(0.0, math.sqrt(2 / width), size=(width, width))
    assert float(x.var(axis=0).mean()) == pytest.approx(1 + (1 - 1 / math.pi) * 6, rel=0.03)
