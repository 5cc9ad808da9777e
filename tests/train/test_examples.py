"""The first examples, in their order, whatever the data come as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from depthscope.core.errors import UserError
from depthscope.train.examples import examples_digest, first_examples, head_of

X, Y = torch.arange(20.0).reshape(10, 2), torch.arange(10)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from ((X[at : at + 3], Y[at : at + 3]) for at in range(0, 10, 3))


FORMS: dict[str, Any] = {
    "tensors": (X, Y),
    "a list of two": [X, Y],
    "arrays": (X.numpy(), Y.numpy()),
    "a data set": TensorDataset(X, Y),
    "a loader": DataLoader(TensorDataset(X, Y), batch_size=3),
    "batches": [(X[:4], Y[:4]), (X[4:], Y[4:])],
    "a stream": Stream(),
    "an iterator": iter([(X[:9], Y[:9]), (X[9:], Y[9:])]),
}


@pytest.mark.parametrize("form", FORMS)
def test_batches_are_cut_alike_out_of_every_form(form: str) -> None:
    batches = first_examples(FORMS[form], 7, 4)
    assert [len(y) for _, y in batches] == [4, 3]
    assert torch.equal(torch.cat([x for x, _ in batches]), X[:7])
    assert torch.equal(torch.cat([y for _, y in batches]), Y[:7])
    assert [len(y) for _, y in head_of(batches, 5)] == [4, 1]
    assert examples_digest(batches) == examples_digest(first_examples((X, Y), 7, 4))
    assert examples_digest(batches) != examples_digest(first_examples((X, Y + 1), 7, 4))


@pytest.mark.parametrize("form", ["tensors", "a data set", "a loader", "batches", "a stream"])
def test_at_most_so_many_are_all_where_there_are_fewer(form: str) -> None:
    assert [len(y) for _, y in first_examples(FORMS[form], 512, 4, at_most=True)] == [4, 4, 2]
    assert [len(y) for _, y in first_examples(FORMS[form], 7, 4, at_most=True)] == [4, 3]


def test_a_mapping_keeps_its_names() -> None:
    first, second = first_examples({"input_ids": Y[:, None], "labels": Y}, 3, 2)
    assert torch.equal(first["labels"], Y[:2])
    assert torch.equal(second["input_ids"], Y[2:3, None])


def test_a_loader_that_shuffles_gives_the_same_each_time_and_draws_nothing_of_the_callers() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=3, shuffle=True)
    before = torch.get_rng_state()
    first = first_examples(loader, 10, 10)
    torch.rand(3)
    assert examples_digest(first) == examples_digest(first_examples(loader, 10, 10))
    torch.set_rng_state(before)
    first_examples(loader, 10, 10)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ((X, Y), "the data hold 10 examples, wanted 11"),
        (DataLoader(TensorDataset(X, Y), batch_size=3), "the data hold 10 examples, wanted 11"),
        ([], "the data hold none"),
        ((X[:0], Y[:0]), "the data hold none"),
        (7, "wanted .* a Dataset, a DataLoader"),
        ("text", "wanted .* a Dataset, a DataLoader"),
        ([(X[:4], Y[:4]), (X[:4, :1], Y[:4])], "examples of shapes"),
        ((number for number in np.zeros(0)), "the data hold none"),
    ],
)
def test_bad_data_are_told_in_a_line(data: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        first_examples(data, 11, 4)
