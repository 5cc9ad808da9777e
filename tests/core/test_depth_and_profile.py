from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthscope.core.depth import cifar_blocks_per_stage, profile_steps
from depthscope.core.errors import UserError
from depthscope.core.profile import QUANTITIES, Layer, Profile, Row


@given(st.integers(-10, 2_000))
def test_cifar_depths(depth: int) -> None:
    valid = {6 * n + 2: n for n in range(1, 400)}
    if depth in valid:
        assert cifar_blocks_per_stage(depth) == valid[depth]
        return
    with pytest.raises(UserError) as told:
        cifar_blocks_per_stage(depth)
    named = {int(number) for number in re.findall(r"\d+", str(told.value).split(". ")[1])}
    assert named == set(sorted(valid, key=lambda each: abs(each - depth))[:2])
    assert all(cifar_blocks_per_stage(each) for each in named)
    assert max(named) - min(named) == 6


def naive_steps(num_steps: int, steps_per_epoch: int | None) -> tuple[int, ...]:
    def wanted(step: int) -> bool:
        power = step > 0 and step & (step - 1) == 0
        epoch = steps_per_epoch is not None and step % steps_per_epoch == 0
        return step in (0, num_steps) or power or epoch

    return tuple(step for step in range(num_steps + 1) if wanted(step))


@given(st.integers(0, 300), st.none() | st.integers(1, 60))
def test_profile_steps(num_steps: int, steps_per_epoch: int | None) -> None:
    assert profile_steps(num_steps, steps_per_epoch) == naive_steps(num_steps, steps_per_epoch)


def test_profile_steps_of_an_untrained_network() -> None:
    assert profile_steps(0, None) == profile_steps(0, 5) == (0,)


def test_a_profile_is_read_by_quantity_and_step() -> None:
    rows = [(0, 0, "h_norm", 3.0), (0, 1, "h_norm", 2.0), (0, 1, "dh_norm", 0.5), (4, 1, "h_norm", float("inf"))]
    profile = Profile(
        layers=(Layer(index=0, name="stem", kind="linear"), Layer(index=1, name="head", kind="linear")),
        rows=tuple(Row(step=step, layer=layer, quantity=name, value=value) for step, layer, name, value in rows),
    )
    assert profile.steps() == (0, 4)
    assert profile.values("h_norm", 0) == {0: 3.0, 1: 2.0}
    assert profile.values("h_norm", 4) == {1: float("inf")}
    assert profile.values("w_norm", 0) == {}  # never measured: missing, not zero


def test_a_quantity_without_definition_is_refused() -> None:
    assert all(QUANTITIES.values())
    with pytest.raises(AssertionError, match="h_nrom"):
        Row(step=0, layer=0, quantity="h_nrom", value=1.0)
