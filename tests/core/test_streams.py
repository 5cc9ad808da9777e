from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthscope.core.errors import UserError
from depthscope.core.streams import stream

Name = tuple[str | int, ...]
NAMES = st.tuples(st.text(max_size=5) | st.integers(-3, 9)) | st.lists(st.text(max_size=3), max_size=3).map(tuple)


def first(seed: int, *name: str | int) -> int:
    return int(stream(seed, *name).integers(2**63))


def test_golden_values() -> None:
    # Records of every run made so far rest on these numbers: a change of the scheme is a change of MATHEMATICS.
    drawn = stream(0, "init", "blocks.3.conv1.weight").normal(size=3)
    assert drawn.tolist() == [0.7018443415110444, -0.06588444190756543, 1.1428166615344868]
    assert stream(7, "order", 2).permutation(8).tolist() == [3, 4, 6, 1, 7, 2, 5, 0]


@given(st.integers(0, 2**31), NAMES, st.integers(0, 2**31), NAMES)
def test_another_address_is_another_stream(seed: int, name: Name, other_seed: int, other_name: Name) -> None:
    same = (seed, name) == (other_seed, other_name)
    assert (first(seed, *name) == first(other_seed, *other_name)) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a", "b"), ("a,b",)),
        (("a", "b"), ('a","b',)),
        (("a", ""), ("a",)),
        ((1,), ("1",)),
        ((1, 2), (12,)),
        (("é",), ("\\u00e9",)),
        ((), ("",)),
    ],
)
def test_names_do_not_run_together(one: Name, other: Name) -> None:
    assert first(0, *one) != first(0, *other)


def test_the_seed_is_not_a_part_of_the_name() -> None:
    assert first(1, 2) != first(0, 1, 2)
    assert first(1, 2) != first(12)


def test_streams_are_uncorrelated() -> None:
    # 64 neighbours, 4,000 draws each: the largest of 2,016 correlations of independent draws lies near 3.5/sqrt(4000).
    draws = np.stack([stream(seed, "init", f"w{at}").normal(size=4_000) for seed in range(8) for at in range(8)])
    correlations = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlations).max() < 5 / np.sqrt(4_000)
    assert abs(draws.mean()) < 5 / np.sqrt(draws.size)


def test_a_draw_shifts_no_other_stream() -> None:
    before = first(0, "order", 1)
    stream(0, "order", 0).normal(size=1_000)
    np.random.default_rng(0).normal(size=10)
    assert first(0, "order", 1) == before


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UserError, match=r"^seed: wanted an integer of 0 or more, got -1\.$"):
        stream(-1, "init")


def test_a_name_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError):
        stream(0, b"init")  # type: ignore[arg-type]
