"""What a data set may hold, and what is taken from its arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.data.arrays import as_dataset
from depthscope.data.cifar10 import cifar10
from depthscope.data.dataset import IGNORED, Split, loss_of_chance, make_dataset, moments
from depthscope.data.synthetic import images, spiral

LABELS = np.array([[0, 1, 1], [IGNORED, 1, IGNORED]])
TOKENS = np.array([[4, 0, 1], [2, 3, 0]])
TARGETS = np.array([[0.0, 1.0], [2.0, 1.0]])


def test_labels_of_positions_and_targets_have_their_shapes() -> None:
    sequences = np.zeros((2, 3, 5))
    for x in (TOKENS, sequences):
        assert len(Split(x, LABELS)) == 2
    for x in (TOKENS, sequences, np.zeros((2, 7)), np.zeros((2, 3, 4, 4))):
        assert len(Split(x, TARGETS)) == 2
        assert len(Split(x, np.array([0, 1]))) == 2
    wrong: list[tuple[Any, Any]] = [
        (np.zeros((2, 3)), LABELS),  # vectors have no positions
        (np.zeros((2, 3, 4, 4)), LABELS),
        (TOKENS, LABELS[:, :2]),
        (TOKENS, TARGETS[:1]),
        (TOKENS, TARGETS[:, 0]),
    ]
    for x, y in wrong:
        with pytest.raises(UserError, match=r"^Split: y has shape .* beside x .*; wanted labels \[N\]"):
            Split(x, y)


def test_what_a_network_is_asked() -> None:
    tokens = make_dataset("own", Split(TOKENS, LABELS), num_classes=2, num_tokens=5, alphabet=tuple("abcde"), facts={})
    assert (tokens.task, tokens.num_outputs, tokens.num_tokens, tokens.normalised) == ("classification", 2, 5, False)
    targets = make_dataset("own", Split(np.zeros((2, 3)), TARGETS), task="regression", facts={})
    assert (targets.num_classes, targets.num_outputs, targets.normalised) == (0, 2, False)
    vectors = make_dataset("own", Split(np.eye(2), np.array([0, 1])), num_classes=2, facts={})
    assert (vectors.num_outputs, vectors.normalised) == (2, True)
    for data in (tokens, targets):
        assert data.mean.shape == data.std.shape == (0,)
    for wrong in ({"task": "regression", "num_classes": 2}, {"task": "regression"}, {}):
        with pytest.raises(UserError, match=r"^own: task .*; wanted int64 labels and num_classes, or"):
            make_dataset("own", Split(TOKENS, LABELS), facts={}, **wrong)


def test_chance_is_the_entropy_of_the_labels_that_are_asked() -> None:
    assert loss_of_chance(LABELS) == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)), rel=1e-15)
    assert loss_of_chance(np.array([3, 3])) == 0.0
    assert images(0, num_train=200).chance_loss == pytest.approx(math.log(10), rel=1e-15)
    assert spiral(0).chance_loss == pytest.approx(math.log(3), rel=1e-15)
    # No constant answer has a lower loss on the training labels: the scores are moved in every direction.
    share = np.bincount(LABELS[LABELS != IGNORED]) / 4
    for moved in ([1e-3, 0.0], [-1e-3, 0.0]):
        log_p = np.log(share) + moved
        log_p -= np.log(np.exp(log_p).sum())
        assert -(share * log_p).sum() > loss_of_chance(LABELS)


def test_chance_of_targets_is_the_mean_squared_error_of_their_mean() -> None:
    y = np.random.default_rng(0).normal(size=(50, 3)) * [1, 2, 3] + [5, 0, -5]
    mean = [sum(column) / 50 for column in y.T]
    naive = sum((value - mean[k]) ** 2 for row in y for k, value in enumerate(row)) / y.size
    assert loss_of_chance(y) == pytest.approx(naive, rel=1e-13)


def test_data_sets_of_old_keep_their_digests_and_moments() -> None:
    assert images(0).digest == "fcd4c19531925b90"
    assert images(0, validation=30, num_test=0).digest == "1e923aded10a3820"
    assert images(0).mean[0].hex() == "0x1.070a300000000p+7"
    for data in (spiral(0), images(0)):
        for kept, taken in zip((data.mean, data.std), moments(data.train.x), strict=True):
            np.testing.assert_array_equal(kept, taken)


def test_cifar10_keeps_its_digest_and_moments(real_root: Path) -> None:
    data = cifar10(0, real_root, num_train=300, num_test=100, image_size=8, validation=50)
    assert data.digest == "3b64ea15ca458ad9"
    assert (data.mean[0].hex(), data.std[2].hex()) == ("0x1.f08baf1a9fbe7p+6", "0x1.d464aa82beea5p+5")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (TOKENS + 1, LABELS, "train inputs are int64 from 1 to 5; wanted tokens, integers from 0 to 4."),
        (TOKENS.astype(float)[:, :, None], LABELS, "train inputs are float64 from"),
        (TOKENS, np.full((2, 3), IGNORED), "train asks nothing"),
        (TOKENS, LABELS - 1, "labels run from -2 to 0; wanted 0 to 1"),
        (TOKENS, LABELS * 2, "labels run from -2 to 2; wanted 0 to 1"),
    ],
)
def test_a_data_set_of_tokens_is_checked(x: Any, y: Any, message: str) -> None:
    data = make_dataset("own", Split(x, y), num_classes=2, num_tokens=5, facts={}, chance_loss=1.0)
    with pytest.raises(UserError, match=message) as told:
        as_dataset("pkg.data:own", data)
    assert "\n" not in str(told.value)


def test_a_data_set_of_targets_is_checked() -> None:
    good = make_dataset("own", Split(np.zeros((2, 3)), TARGETS), task="regression", facts={})
    assert as_dataset("own", good) is good
    bad = make_dataset(
        "own", Split(np.zeros((2, 3)), TARGETS / [1, np.inf] + [0, np.inf]), task="regression", facts={}, chance_loss=1
    )
    with pytest.raises(UserError, match=r"train targets hold inf at \[0, 1\]; wanted finite numbers"):
        as_dataset("own", bad)
