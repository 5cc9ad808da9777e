"""Somebody's arrays as a data set, and each thing that can be wrong about them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.data.arrays import as_dataset
from depthscope.data.dataset import Split, make_dataset

X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 2, 0, 1, 2])


def test_mapping_tuple_and_dataset_are_the_same_data() -> None:
    ready = make_dataset("own", Split(X, Y), test=Split(X[:2], Y[:2]), num_classes=3, facts={})
    for form in ({"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}, (X, Y, X[:2], Y[:2]), ready):
        data = as_dataset("own", form)
        assert data.digest == ready.digest
        assert (data.num_classes, len(data.train)) == (3, 6)
        np.testing.assert_allclose(data.mean, [5, 6])


def test_types_become_those_of_a_data_set() -> None:
    vectors = as_dataset("own", (X.astype(np.float32), Y.astype(np.uint8)))
    assert [vectors.train.x.dtype, vectors.train.y.dtype] == [np.float64, np.int64]
    assert vectors.test is None
    images = np.zeros((6, 3, 4, 4))
    assert as_dataset("own", (images, Y)).train.x.dtype == np.float32
    assert as_dataset("own", (images.astype(np.uint8), Y)).train.x.dtype == np.uint8
    assert as_dataset("own", {"x_train": X.tolist(), "y_train": Y.tolist(), "num_classes": 5}).num_classes == 5


def test_tensors_are_arrays_too() -> None:
    torch = pytest.importorskip("torch")
    data = as_dataset("own", (torch.from_numpy(X), torch.from_numpy(Y)))
    assert data.digest == as_dataset("own", (X, Y)).digest


WITH_NAN = np.where(X == 5, np.nan, X)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "returned NoneType; wanted a mapping"),
        ((X, Y, X), "a tuple of 3"),
        ({"xtrain": X}, "Did you mean 'x_train'"),
        ({"x_test": X, "y_test": Y}, "no x_train"),
        ({"x_train": X}, "x_train came without y_train"),
        ((X[:, 0], Y), r"shape \[6\]; wanted vectors"),
        ((X[:0], Y[:0]), "at least one"),
        ((X, Y[:5]), r"y_train has shape \[5\]; wanted one label an example, \[6\]"),
        ((X, np.eye(3)[Y]), "one label an example"),
        ((X, Y.astype(float)), "holds float64; wanted integers"),
        ((X.astype(str), Y), "wanted numbers"),
        (([[1.0], [1.0, 2.0]], [0, 1]), "cannot be read as an array"),
        ((WITH_NAN, Y), r"train inputs hold nan at \[2, 1\]"),
        ((X, Y, np.full((2, 2), np.inf), Y[:2]), "test inputs hold inf"),
        ((X, Y + 1), "labels run from 1 to 3; wanted classes from 0 on. Subtract 1"),
        ((X, Y - 1), "labels run from -1 to 1; wanted 0 to"),
        ({"x_train": X, "y_train": Y, "num_classes": 2}, "labels run from 0 to 2; wanted 0 to 1"),
        ({"x_train": X, "y_train": Y, "num_classes": 1.5}, "num_classes: wanted a whole number"),
        ((X, Y, X[:, :1], Y), r"one test example has shape \[1\], one of training \[2\]"),
    ],
)
def test_a_fault_is_one_clear_line(found: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as told:
        as_dataset("pkg.data:own", found)
    assert str(told.value).startswith("pkg.data:own: ")
    assert "\n" not in str(told.value)


def test_a_data_set_with_bad_values_is_refused_too() -> None:
    with pytest.raises(UserError, match="train inputs hold nan"):
        as_dataset("own", make_dataset("own", Split(WITH_NAN, Y), num_classes=3, facts={}))
