"""Text that a network writes: a model that says one thing, and a table of what follows what."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.train.tasks import LETTERS, letters

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset, Split, make_dataset
from depthscope.record.events import Ended
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.check import check_runs
from depthscope.train.samples import MAX_TOKENS, NUM_SAMPLES, drawn, written
from depthscope.train.start import run_task


def text(alphabet: tuple[str, ...], length: int = 4) -> Dataset:
    tokens = np.zeros((1, length), np.int64)
    split = Split(tokens, tokens)
    num = len(alphabet)
    return make_dataset("text", split, num_classes=num, num_tokens=num, alphabet=alphabet, facts={})


class Table:
    """What follows each token, whatever stood before."""

    def __init__(self, probabilities: list[list[float]]) -> None:
        with np.errstate(divide="ignore"):
            self.logits = np.log(np.array(probabilities))
        self.seen: list[Any] = []

    def __call__(self, x: Any) -> Any:
        assert x.dtype == np.int64
        self.seen.append(x.copy())
        return self.logits[x]


def test_a_model_that_always_says_one_token() -> None:
    data = text(("\n", "a", "b"))
    assert written(Table([[0, 0, 1]] * 3), data, 0) == ("b" * MAX_TOKENS,) * NUM_SAMPLES


def test_a_text_that_has_an_end_stops_there() -> None:
    assert written(Table([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), text(("", "a", "b")), 0) == ("ab",) * NUM_SAMPLES
    assert written(Table([[1, 0, 0]] * 3), text(("", "a", "b")), 0) == ("",) * NUM_SAMPLES


def test_a_known_table_of_pairs_is_drawn_by_its_probabilities() -> None:
    table = [[0.0, 0.5, 0.5], [0.2, 0.3, 0.5], [0.0, 0.9, 0.1]]
    pairs: Counter[str] = Counter()
    for seed in range(8):
        for sample in written(Table(table), text(("\n", "a", "b")), seed):
            pairs.update(one + next_one for one, next_one in itertools.pairwise("\n" + sample))
    total = sum(number for pair, number in pairs.items() if pair[0] == "a")
    for after, share in (("\n", 0.2), ("a", 0.3), ("b", 0.5)):
        found = pairs[f"a{after}"] / total
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / total), after
    assert pairs["b\n"] == 0
    assert total > 3000


def test_the_draws_are_those_of_the_streams_and_each_text_has_its_own() -> None:
    table = [[0.3, 0.2, 0.5], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]]
    alphabet = ("", "a", "b")
    naive = []
    for number in range(NUM_SAMPLES):
        rng, token, said = stream(7, "samples", number), 0, ""
        while len(said) < MAX_TOKENS:
            u, token = rng.random(), 0
            row = table[alphabet.index(said[-1]) if said else 0]
            while u >= row[token]:
                u, token = u - row[token], token + 1
            if token == 0:
                break
            said += alphabet[token]
        naive.append(said)
    assert written(Table(table), text(alphabet), 7) == tuple(naive)
    assert len(set(naive)) > 1


def test_the_network_sees_the_last_tokens_alone_and_a_beginning_filled_up_behind() -> None:
    table = Table([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    written(table, text(("\n", "a", "b"), length=3), 0)
    rows = [x[0].tolist() for x in table.seen[:5]]
    assert rows == [[0, 0, 0], [0, 1, 0], [0, 1, 2], [1, 2, 1], [2, 1, 2]]


def test_what_is_no_probability_ends_a_text() -> None:
    rng = np.random.default_rng(0)
    assert drawn(np.array([0.0, math.nan]), rng) is None
    assert drawn(np.array([0.0, math.inf]), rng) is None
    assert drawn(np.array([1e30, 0.0]), rng) == 0


def test_a_run_keeps_what_it_wrote_and_it_is_no_part_of_its_name() -> None:
    pytest.importorskip("torch")
    spec = RunSpec.model_validate({**LETTERS, "epochs": 2, "measures": ["samples"]})
    plain = RunSpec.model_validate({**LETTERS, "epochs": 2})
    asked, left = (list(run_task(Task((one,)), Context()))[-1] for one in (spec, plain))
    assert isinstance(asked, Ended)
    assert isinstance(left, Ended)
    assert len(asked.samples) == NUM_SAMPLES
    assert set("".join(asked.samples)) <= set("abc")
    assert left.samples == ()
    assert (spec.run_id, asked.final) == (plain.run_id, left.final)


def no_text(seed: int) -> Dataset:
    del seed
    data = letters(0)
    return make_dataset("no text", data.train, num_classes=4, num_tokens=4, facts={})


def test_data_that_is_no_text_is_told() -> None:
    fields = {**LETTERS, "family": "cifar_resnet", "depth": 8, "data": "images", "epochs": 1, "measures": ["samples"]}
    with pytest.raises(ValueError, match="'samples' takes 'shakespeare' or 'names', not 'images'"):
        RunSpec.model_validate(fields)
    pytest.importorskip("torch")
    spec = RunSpec.model_validate(
        {**LETTERS, "data": "tests.train.test_samples:no_text", "epochs": 1} | {"measures": ["samples"]}
    )
    with pytest.raises(UserError, match="'samples' wants data whose tokens are text"):
        check_runs([spec])
