"""The tasks made from draws, each against what is known of it in closed form and against a slow twin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset, loss_of_chance
from depthscope.data.sequences import BLANK, MARKER, adding, copy, identity_task, nth_farthest

MAKERS: dict[str, Any] = {
    "adding": lambda seed=0, **options: adding(seed, depth=11, **options),
    "copy": lambda seed=0, **options: copy(seed, depth=11, **options),
    "nth_farthest": lambda seed=0, **options: nth_farthest(seed, **options),
    "identity_task": lambda seed=0, **options: identity_task(seed, **options),
}


def made(name: str, seed: int = 0, **options: int) -> Dataset:
    data: Dataset = MAKERS[name](seed, **{"num_train": 40, "num_test": 20, **options})
    return data


# Adding


@pytest.mark.parametrize("depth", [2, 3, 10, 101])
def test_adding_asks_for_the_two_marked_numbers(depth: int) -> None:
    data = adding(0, depth=depth, num_train=200, num_test=50)
    assert data.test is not None
    for split, count in ((data.train, 200), (data.test, 50)):
        assert split.x.dtype == np.float64
        assert (split.x.shape, split.y.shape) == ((count, depth, 2), (count, 1))
        for row, total in zip(split.x, split.y, strict=True):
            marked = [step for step in range(depth) if row[step, 1]]
            assert row[marked, 1].tolist() == [1.0, 1.0]
            assert marked[0] < depth // 2 <= marked[1]
            assert total[0] == row[marked[0], 0] + row[marked[1], 0]
    assert (data.task, data.num_outputs, data.num_classes, data.normalised) == ("regression", 1, 0, False)


def test_every_place_of_a_half_is_marked_equally_often() -> None:
    marks = adding(0, depth=7, num_train=9000, num_test=0).train.x[:, :, 1].sum(axis=0)
    for half in (marks[:3], marks[3:]):
        expected = 9000 / len(half)
        assert np.abs(half - expected).max() < 4 * math.sqrt(expected)


def test_the_chance_of_adding_is_the_variance_of_two_uniform_numbers() -> None:
    """Var = 2/12. The square of the sum's deviation has variance E[d^4] - 1/36 = (1/15 - 1/36) for the triangle on
    [-1, 1], of which E[d^4] = 2/30: four standard errors of it over 40,000 examples.
    """
    data = adding(0, depth=4, num_train=40_000, num_test=0)
    assert abs(data.chance_loss - 1 / 6) < 4 * math.sqrt((1 / 15 - 1 / 36) / 40_000)
    assert data.chance_loss == pytest.approx(float(((data.train.y - data.train.y.mean()) ** 2).mean()), rel=1e-12)


# Copying


@pytest.mark.parametrize("depth", [1, 2, 30])
def test_copy_is_laid_out_as_published(depth: int) -> None:
    data = copy(0, depth=depth, num_train=50, num_test=5)
    for x, y in zip(data.train.x.tolist(), data.train.y.tolist(), strict=True):
        symbols = x[:10]
        assert all(0 <= each < 8 for each in symbols)
        assert x == [*symbols, *[BLANK] * (depth - 1), MARKER, *[BLANK] * 10]
        assert y == [*[BLANK] * (depth + 10), *symbols]
    assert data.train.x.shape == (50, depth + 20)
    assert (data.num_tokens, data.num_classes, data.num_outputs) == (10, 9, 9)
    assert "".join(data.alphabet[token] for token in range(8, 10)) == "_:"


def test_the_chance_of_copy_is_the_published_one() -> None:
    """A loss of ln 8 at ten of T + 20 positions and of none at the others; one answer for all positions is worse."""
    data = copy(0, depth=80, num_train=20_000, num_test=0)
    assert data.chance_loss == pytest.approx(math.log(8) / 10, rel=1e-15)
    by_position = [loss_of_chance(data.train.y[:, position]) for position in range(100)]
    assert by_position[:90] == [0.0] * 90
    # The entropy of counted shares is short of ln 8 by about 7 / (2 N).
    np.testing.assert_allclose(by_position[90:], math.log(8), rtol=0, atol=5 * 7 / 40_000)
    assert loss_of_chance(data.train.y) > 2 * data.chance_loss


# The nth farthest


def test_the_nth_farthest_is_found_by_brute_force() -> None:
    data = nth_farthest(0, num_train=300, num_test=100, num_vectors=5, vector_size=3)
    assert data.test is not None
    assert data.train.x.shape == (300, 5, 3 + 15)
    assert (data.num_classes, data.num_tokens, data.normalised) == (5, 0, False)
    asked = set()
    for split in (data.train, data.test):
        for rows, answer in zip(split.x.tolist(), split.y.tolist(), strict=True):
            by_name = {row[3:8].index(1.0): row[:3] for row in rows}
            assert sorted(by_name) == list(range(5))
            (about,) = {tuple(row[8:]) for row in rows}
            assert sum(about) == 2
            n, m = about[:5].index(1.0) + 1, about[5:].index(1.0)
            distance = {name: math.dist(vector, by_name[m]) for name, vector in by_name.items()}
            assert sorted(distance, key=lambda name: -distance[name])[n - 1] == answer
            asked.add((n, m))
    assert len(asked) == 25


def test_nth_farthest_guessed_is_one_in_eight_whatever_is_asked() -> None:
    data = nth_farthest(0, num_train=16_000, num_test=0)
    assert data.train.x.shape == (16_000, 8, 32)
    assert math.log(8) - 5 * 7 / 32_000 < data.chance_loss <= math.log(8)
    assert np.abs(np.bincount(data.train.y, minlength=8) - 2000).max() < 4 * math.sqrt(2000)
    vectors = data.train.x[:, :, :8]
    assert -1 <= vectors.min() < -0.999 < 0.999 < vectors.max() < 1
    # Only the last of the farthest, vector m itself, is known without a look at distances.
    n, m = data.train.x[:, 0, 16:24].argmax(axis=1), data.train.x[:, 0, 24:].argmax(axis=1)
    assert ((data.train.y == m) == (n == 7)).all()
    places = data.train.x[:, :, 8:16].argmax(axis=2)
    assert np.abs(np.bincount(places[:, 0], minlength=8) - 2000).max() < 4 * math.sqrt(2000)


# Doing nothing


def test_the_answer_is_the_input() -> None:
    data = identity_task(0)
    assert data.test is not None
    for split in (data.train, data.test):
        assert split.x.shape == (256, 8)
        np.testing.assert_array_equal(split.x, split.y)
        assert split.x is not split.y
    assert (data.task, data.num_outputs, data.normalised) == ("regression", 8, False)
    assert np.abs(data.train.x).max() < 0.8
    # The variance of U(-a, a) is a^2 / 3; that of its square 4 a^4 / 45.
    assert abs(data.chance_loss - 0.64 / 3) < 4 * math.sqrt(4 * 0.8**4 / 45 / (256 * 8))


# All of them


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_every_time_and_by_seed_as_documented(name: str) -> None:
    first, again, other = made(name), made(name), made(name, seed=7)
    assert first.digest == again.digest
    assert (first.digest == other.digest) == (name != "identity_task")


@pytest.mark.parametrize("name", MAKERS)
def test_the_first_examples_do_not_depend_on_how_many_there_are(name: str) -> None:
    few, many = made(name), made(name, num_train=90, num_test=60)
    assert few.test is not None
    assert many.test is not None
    for short, long in ((few.train, many.train), (few.test, many.test)):
        np.testing.assert_array_equal(short.x, long.x[: len(short)])
        np.testing.assert_array_equal(short.y, long.y[: len(short)])
    both = np.concatenate([many.train.x, many.test.x]).reshape(150, -1)
    assert len(np.unique(both, axis=0)) == 150


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_held_out_comes_from_the_end_of_the_training_set(name: str) -> None:
    whole, split = made(name), made(name, validation=15, num_test=0)
    assert split.test is None
    assert split.validation is not None
    np.testing.assert_array_equal(np.concatenate([split.train.x, split.validation.x]), whole.train.x)
    np.testing.assert_array_equal(np.concatenate([split.train.y, split.validation.y]), whole.train.y)
    assert (len(split.validation), split.facts["num_train"], split.facts["num_validation"]) == (15, 25, 15)


def test_the_points_of_the_identity_task_come_from_their_own_stream() -> None:
    drawn = stream(3, "data", "identity_task", "train").uniform(-0.8, 0.8, (256, 8))
    np.testing.assert_array_equal(identity_task(3).train.x, drawn)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("num_train", 0, "1 or more"),
        ("num_test", -1, "0 or more"),
        ("validation", 40, "0 to 39 of the 40"),
        ("validation", -1, "0 to 39 of the 40"),
    ],
)
def test_an_option_out_of_range_is_one_line(name: str, option: str, value: int, wanted: str) -> None:
    with pytest.raises(UserError, match=rf"^{name}: data_options\.{option}: wanted {wanted}, got {value}\.$"):
        made(name, **{option: value})


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (adding, {"depth": 1}, "adding: depth: wanted 2 or more, got 1."),
        (copy, {"depth": 0}, "copy: depth: wanted 1 or more, got 0."),
        (nth_farthest, {"num_vectors": 1}, "nth_farthest: data_options.num_vectors: wanted 2 or more, got 1."),
        (nth_farthest, {"vector_size": 0}, "nth_farthest: data_options.vector_size: wanted 1 or more, got 0."),
        (identity_task, {"size": 0}, "identity_task: data_options.size: wanted 1 or more, got 0."),
    ],
)
def test_a_size_out_of_range_is_one_line(make: Any, options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError) as told:
        make(0, **options)
    assert str(told.value) == message
