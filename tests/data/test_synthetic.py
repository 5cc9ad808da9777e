from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset, Split, moments
from depthscope.data.synthetic import images, spiral


def spiral_naive(seed: int, split: str) -> list[tuple[float, float]]:
    """Recipe A, one point at a time: 3 arms x 50 points, .64 turns, noise .1, r from .1 to 1."""
    noise = stream(seed, "data", "spiral", split).normal(size=(3, 50))
    points = []
    for arm in range(3):
        for k in range(50):
            r = 0.1 + k * 0.9 / 49
            theta = 2 * math.pi * (arm / 3 + 0.64 * (r - 0.1) / 0.9) + 0.1 * noise[arm, k]
            points.append((r * math.cos(theta), r * math.sin(theta)))
    return points


@pytest.mark.parametrize("seed", [0, 5])
def test_spiral_is_recipe_a(seed: int) -> None:
    data = spiral(seed)
    assert data.test is not None
    np.testing.assert_allclose(data.train.x, spiral_naive(seed, "train"), rtol=0, atol=1e-14)
    np.testing.assert_allclose(data.test.x, spiral_naive(seed, "test"), rtol=0, atol=1e-14)
    for split in (data.train, data.test):
        assert split.x.dtype == np.float64
        assert split.y.tolist() == [0] * 50 + [1] * 50 + [2] * 50
    assert data.num_classes == 3


def test_the_noise_is_in_the_angle_alone_and_as_large_as_asked() -> None:
    data = spiral(0, points_per_arm=2000, noise=0.1)
    radius = np.hypot(*data.train.x.T)
    np.testing.assert_allclose(radius, np.tile(np.linspace(0.1, 1, 2000), 3), rtol=1e-12)
    clean = spiral(0, points_per_arm=2000, noise=0.0).train.x
    turned = np.angle((data.train.x @ [1, 1j]) / (clean @ [1, 1j]))
    assert abs(turned.std() - 0.1) < 0.1 * 4 / math.sqrt(2 * 6000)
    assert abs(turned.mean()) < 0.1 * 4 / math.sqrt(6000)


def test_a_seed_changes_the_spiral_and_the_test_split_is_another_draw() -> None:
    first, again, other = spiral(0), spiral(0), spiral(1)
    assert first.digest == again.digest != other.digest
    assert first.test is not None
    assert not np.array_equal(first.train.x, first.test.x)
    assert not np.array_equal(first.train.x, other.train.x)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("arms", 1),
        ("points_per_arm", 1),
        ("noise", -0.1),
        ("noise", math.nan),
        ("noise", math.inf),
        ("turns", math.inf),
        ("start_radius", 1.0),
        ("start_radius", -0.1),
        ("start_radius", math.nan),
    ],
)
def test_spiral_refuses(option: str, value: float) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(UserError, match=rf"^spiral: data_options\.{option}: wanted .* got .*") as caught:
        spiral(0, **options)
    assert "\n" not in str(caught.value)


def test_images_have_the_promised_form() -> None:
    data = images(0)
    assert data.test is not None
    assert data.train.x.shape == (256, 3, 8, 8)
    assert data.test.x.shape == (128, 3, 8, 8)
    assert data.train.x.dtype == np.uint8
    counts = np.bincount(data.train.y)
    assert len(counts) == 10
    assert counts.max() - counts.min() <= 1
    assert images(0, num_test=0).test is None


def test_images_are_the_same_for_every_seed() -> None:
    assert images(0).digest == images(7).digest
    assert images(0).digest != images(0, data_seed=1).digest


def test_images_do_not_come_twice() -> None:
    data = images(0)
    assert data.test is not None
    both = np.concatenate([data.train.x, data.test.x]).reshape(384, -1)
    assert len(np.unique(both, axis=0)) == 384


def standardised(x: NDArray[Any], data: Dataset) -> NDArray[np.float64]:
    out: NDArray[np.float64] = (x - data.mean[:, None, None]) / data.std[:, None, None]
    return out.reshape(len(x), -1)


def test_images_are_learned_in_a_few_steps() -> None:
    data = images(0)
    assert data.test is not None
    x, target = standardised(data.train.x, data), np.eye(10)[data.train.y]
    weight = np.zeros((x.shape[1], 10))
    for _ in range(10):
        score = x @ weight
        chance = np.exp(score - score.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        weight -= 0.1 * x.T @ (chance - target) / len(x)
    accuracy = (np.argmax(standardised(data.test.x, data) @ weight, axis=1) == data.test.y).mean()
    assert accuracy > 0.9


@pytest.mark.parametrize(
    ("option", "value"),
    [("num_train", 0), ("num_test", -1), ("image_size", 1), ("num_classes", 1), ("noise", -1), ("contrast", -1)],
)
def test_images_refuse(option: str, value: int) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(UserError, match=rf"^images: data_options\.{option}: wanted \d or more, got {value}\.$"):
        images(0, **options)


@pytest.mark.parametrize("make", [spiral, images])
def test_what_is_held_out_is_missing_from_the_training_set_and_nothing_else_changes(make: Any) -> None:
    whole, split = make(3), make(3, validation=30)
    assert whole.validation is None
    assert len(split.validation) == 30
    assert len(split.train) == len(whole.train) - 30

    def rows(*parts: Split) -> list[tuple[bytes, int]]:
        return sorted((x.tobytes(), int(y)) for part in parts for x, y in zip(part.x, part.y, strict=True))

    assert rows(split.train, split.validation) == rows(whole.train)
    np.testing.assert_array_equal(split.test.x, whole.test.x)
    assert len(set(split.validation.y)) > 2  # not of one class, as the last points of the spiral are
    np.testing.assert_array_equal(split.mean, moments(split.train.x)[0])


def test_the_spiral_draws_what_it_holds_out_and_can_leave_the_test_away() -> None:
    first, other = spiral(0, validation=30, without_test=True), spiral(1, validation=30)
    assert first.test is None
    held = [
        np.flatnonzero(~np.isin(spiral(seed).train.x[:, 0], split.train.x[:, 0]))
        for seed, split in enumerate((first, other))
    ]
    chosen = stream(0, "data", "spiral", "validation").permutation(150)[:30]
    assert held[0].tolist() == sorted(chosen.tolist()) != held[1].tolist()
    assert first.validation is not None
    np.testing.assert_array_equal(first.validation.x, spiral(0).train.x[held[0]])


@pytest.mark.parametrize(("make", "total"), [(spiral, 150), (images, 256)])
@pytest.mark.parametrize("validation", [-1, 150, 256])
def test_something_must_be_left_to_train_on(make: Any, total: int, validation: int) -> None:
    if 0 <= validation < total:
        return
    with pytest.raises(
        UserError, match=rf": data_options\.validation: wanted 0 to {total - 1} of the {total}, got {validation}"
    ):
        make(0, validation=validation)


def test_mean_and_deviation_are_of_the_training_split() -> None:
    data = images(0)
    for channel in range(3):
        values = data.train.x[:, channel].astype(np.float64)
        assert data.mean[channel] == pytest.approx(values.mean(), rel=1e-13)
        assert data.std[channel] == pytest.approx(values.std(), rel=1e-13)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_moments_do_not_depend_on_the_chunk(chunk: int) -> None:
    x = np.random.default_rng(0).normal(1e4, 1, size=(50, 4))
    mean, std = moments(x, chunk)
    np.testing.assert_allclose(mean, x.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(std, x.std(axis=0), rtol=1e-10)


def test_a_split_holds_as_many_labels_as_examples() -> None:
    with pytest.raises(UserError, match="beside"):
        Split(np.zeros((3, 2)), np.zeros(4, np.int64))
    with pytest.raises(UserError, match="int64"):
        Split(np.zeros((3, 2)), np.zeros(3, np.int32))
    assert len(Split(np.zeros((3, 2)), np.zeros(3, np.int64))) == 3
