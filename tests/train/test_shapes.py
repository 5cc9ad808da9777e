"""What is known of a data set without its content is what its content has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.train.tasks import LETTERS, NUMBERS

from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.memory import DataShape
from depthscope.train.shapes import data_shape

FEW = {"num_train": 12, "num_test": 5, "validation": 2}
OPTIONS: dict[str, dict[str, Any]] = {
    "spiral": {"arms": 4, "points_per_arm": 6, "validation": 3},
    "shakespeare": {**FEW, "length": 9},
    "nth_farthest": {**FEW, "num_vectors": 5, "vector_size": 3},
    "identity_task": {**FEW, "size": 3},
}


@pytest.mark.parametrize("name", [name for name in CATALOG["data"] if name != "cifar10"])
def test_shapes_are_those_of_the_arrays(name: str, request: pytest.FixtureRequest) -> None:
    files = name in ("shakespeare", "names")
    root: Path | None = request.getfixturevalue("real_data") if files else None
    options = OPTIONS.get(name, FEW)
    spec = RunSpec.model_validate({**LETTERS, "depth": 7, "data": name, "data_options": options, "steps": 1})
    data = load_data(spec, Context(data_root=root))
    assert data_shape(spec) == DataShape.of(data)
    if name == "spiral":
        spec = spec.model_copy(update={"data_options": {**spec.data_options, "without_test": True}})
        assert data_shape(spec) == DataShape.of(load_data(spec, Context()))


@pytest.mark.parametrize(("fields", "inputs", "outputs"), [(LETTERS, (6,), (6, 4)), (NUMBERS, (3, 2), (3,))])
def test_data_of_the_users_is_looked_at(fields: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
    shape = data_shape(RunSpec.model_validate({**fields, "steps": 1}))
    assert (shape.input_shape, shape.output_shape) == (inputs, outputs)
    assert (shape.num_train, shape.num_held) == (20, 5)
    assert shape.num_answers == (6 if fields is LETTERS else 3)
