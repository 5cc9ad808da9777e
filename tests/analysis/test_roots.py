"""Roots against those in closed form, and against scipy's."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from depthscope.analysis.roots import root

CASES: dict[str, tuple[Callable[[float], float], float, float, float]] = {
    "square": (lambda x: x * x - 2.0, 0.0, 2.0, math.sqrt(2.0)),
    "falling": (lambda x: math.exp(-x) - 0.25, -3.0, 40.0, math.log(4.0)),
    "flat far from it": (lambda x: math.tanh(x - 3.0), -400.0, 300.0, 3.0),
    "flat at it": (lambda x: x**3, -1.0, 2.5, 0.0),
    "steep at it": (lambda x: math.cbrt(x - 1.0), -7.0, 2.0, 1.0),
    "tiny values": (lambda x: 1e-300 * (x - 0.3), 0.0, 1.0, 0.3),
    "huge values": (lambda x: 1e300 * (x - 0.3), 0.0, 1.0, 0.3),
    "far out": (lambda x: x - 1e9 / 3.0, 0.0, 2e9, 1e9 / 3.0),
    "at the lesser end": (lambda x: x - 1.0, 1.0, 2.0, 1.0),
    "at the greater end": (lambda x: x - 2.0, 1.0, 2.0, 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_root_in_closed_form(name: str) -> None:
    function, low, high, expected = CASES[name]
    asked: list[float] = []

    def counted(x: float) -> float:
        asked.append(x)
        return function(x)

    assert root(counted, low, high) == pytest.approx(expected, rel=1e-15, abs=1e-11)
    assert all(low <= x <= high for x in asked)
    assert len(asked) < 120


@given(st.floats(-5, 5), st.floats(0.01, 3), st.floats(-20, 20))
def test_as_scipy_finds_it(place: float, slope: float, shift: float) -> None:
    def function(x: float) -> float:
        return math.atan(slope * (x - place)) + 0.05 * shift

    low, high = place - 1000.0 / slope, place + 1000.0 / slope
    assert root(function, low, high) == pytest.approx(optimize.brentq(function, low, high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("ends", [(1.0, 2.0), (-2.0, -1.5)])
def test_the_same_sign_at_both_ends_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="wanted different signs"):
        root(lambda x: x * x - 0.5, *ends)
    with pytest.raises(ValueError, match="wanted different signs"):
        root(lambda x: math.nan, *ends)
