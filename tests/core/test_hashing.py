from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthscope.core.hashing import array_digest, canonical_json, combined_digest, digest

ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_golden_values() -> None:
    assert canonical_json({"b": [1, 2.5, True, None], "a": "é"}) == '{"a":"\\u00e9","b":[1,2.5,true,null]}'
    assert digest({"b": [1, 2.5], "a": "é"}) == "1d5aa48ef9cd2b6b"
    assert array_digest(ARRAY) == "482869196b84c61a"
    assert combined_digest({"w": "00", "b": "11"}) == "94a395e076e3e01a"


@given(JSON)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    def turned(each: Any) -> Any:
        if isinstance(each, dict):
            return {key: turned(each[key]) for key in reversed(each)}
        return [turned(inner) for inner in each] if isinstance(each, list) else each

    assert digest(turned(value)) == digest(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_that_are_not_finite_have_no_digest(value: object) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        digest(value)


def test_length() -> None:
    assert len(digest("x")) == 16
    assert len(digest("x", 64)) == 64
    assert digest("x", 64).startswith(digest("x"))


@pytest.mark.parametrize(
    "same",
    [
        ARRAY.astype(">f4"),
        np.asfortranarray(ARRAY),
        np.concatenate([ARRAY, ARRAY], axis=1)[:, :4],
        ARRAY[::-1][::-1],
        np.broadcast_to(ARRAY, (1, 3, 4))[0],
    ],
    ids=["big endian", "Fortran order", "a slice", "negative strides", "a view"],
)
def test_memory_layout_does_not_matter(same: np.ndarray[Any, Any]) -> None:
    assert array_digest(same) == array_digest(ARRAY)


@pytest.mark.parametrize(
    "other",
    [
        ARRAY.astype(np.float64),
        ARRAY.view(np.int32),
        ARRAY.reshape(4, 3),
        ARRAY.T,
        ARRAY.ravel(),
        ARRAY[None],
        ARRAY + np.float32(1e-6),
        np.where(ARRAY == 0, np.float32(-0.0), ARRAY),
    ],
    ids=[
        "dtype",
        "same bytes, other dtype",
        "shape",
        "transposed",
        "flat",
        "one more axis",
        "a value",
        "the sign of zero",
    ],
)
def test_content_matters(other: np.ndarray[Any, Any]) -> None:
    assert array_digest(other) != array_digest(ARRAY)


def test_shapes_with_equal_bytes_differ() -> None:
    scalar, one, empty = np.array(3.0), np.full(1, 3.0), np.empty((0, 3))
    assert len({array_digest(scalar), array_digest(one), array_digest(empty), array_digest(empty.T)}) == 4


def test_the_argument_is_left_alone() -> None:
    swapped = ARRAY.astype(">f4")
    array_digest(swapped)
    assert swapped.dtype.str == ">f4"


def test_objects_are_refused() -> None:
    # Their bytes are addresses in memory, so the digest would change from run to run.
    with pytest.raises(AssertionError):
        array_digest(np.array([object()]))


def test_a_combined_digest_tells_names_apart() -> None:
    assert combined_digest({"a": "1", "b": "2"}) == combined_digest({"b": "2", "a": "1"})
    assert combined_digest({"a": "1", "b": "2"}) != combined_digest({"a": "2", "b": "1"})
