"""Data sets made from random draws: the spiral, and images for smoke tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset, Split, make_dataset
from depthscope.data.options import at_least, held_out


def spiral(
    seed: int,
    root: Path | None = None,
    *,
    arms: int = 3,
    points_per_arm: int = 50,
    turns: float = 0.64,
    noise: float = 0.1,
    start_radius: float = 0.1,
    validation: int = 0,
    without_test: bool = False,
) -> Dataset:
    """Interleaved spiral arms in the plane, one class an arm.

    With r evenly spaced from `start_radius` to 1, a point of arm k lies at radius r and angle
    `2 pi (k/arms + turns (r - start_radius) / (1 - start_radius)) + noise N(0, 1)`.
    The radius starts above 0 because arms that share the origin cap the accuracy at .987.
    The seed changes the noise; the test split has the same radii and noise of its own.

    Args:
        seed: the run's seed.
        root: not used; every data set takes it.
        arms: number of arms.
        points_per_arm: points of one arm, in train and in test.
        turns: how far an arm winds, in full turns.
        noise: standard deviation of the angle, in radians.
        start_radius: radius at which the arms start, at least 0 and under 1.
        validation: how many of the training points, drawn at random by the seed, are held out as `validation`.
        without_test: leave the test split away.

    Returns:
        Vectors, float64 `[arms * points_per_arm, 2]`, arm after arm, from the centre outwards; in `train` and
        `validation` the points that fell to each, in the same order.

    Raises:
        UserError: an option out of its range.
    """
    at_least("spiral: data_options.arms", arms, 2)
    at_least("spiral: data_options.points_per_arm", points_per_arm, 2)
    at_least("spiral: data_options.noise", noise, 0)
    if not 0 <= start_radius < 1:
        raise UserError(f"spiral: data_options.start_radius: wanted 0 or more and under 1, got {start_radius}.")
    for name, value in (("turns", turns), ("noise", noise)):
        if not np.isfinite(value):
            raise UserError(f"spiral: data_options.{name}: wanted a finite number, got {value}.")
    total = arms * points_per_arm
    held_out("spiral", validation, total)

    radius = np.linspace(start_radius, 1.0, points_per_arm)
    wound = turns * (radius - start_radius) / (1.0 - start_radius)
    arm = np.arange(arms)

    def draw(split: str) -> Split:
        jitter = stream(seed, "data", "spiral", split).normal(size=(arms, points_per_arm))
        theta = 2.0 * np.pi * (arm[:, None] / arms + wound) + noise * jitter
        x = np.stack([radius * np.cos(theta), radius * np.sin(theta)], axis=-1).reshape(-1, 2)
        return Split(x, np.repeat(arm, points_per_arm).astype(np.int64))

    points = draw("train")
    # The points lie arm after arm, so that the last ones would be of one class: they are drawn.
    out = np.zeros(total, np.bool_)
    if validation:
        out[stream(seed, "data", "spiral", "validation").permutation(total)[:validation]] = True
    return make_dataset(
        "spiral",
        Split(points.x[~out], points.y[~out]),
        test=None if without_test else draw("test"),
        validation=Split(points.x[out], points.y[out]) if validation else None,
        num_classes=arms,
        facts={"arms": arms, "points_per_arm": points_per_arm},
    )


def images(
    seed: int,
    root: Path | None = None,
    *,
    num_train: int = 256,
    num_test: int = 128,
    image_size: int = 8,
    num_classes: int = 10,
    contrast: float = 40.0,
    noise: float = 24.0,
    data_seed: int = 0,
    validation: int = 0,
) -> Dataset:
    """Small colour images that a network learns within a few steps, for smoke tests.

    Each class has a pattern of its own, a sum of plane waves of at most one period across the image;
    an image is grey 127.5, plus `contrast` times its class's pattern, plus noise. The content depends
    on `data_seed` alone, so that all seeds of a study share it, as they share CIFAR-10.

    Args:
        seed: not used: see `data_seed`.
        root: not used; every data set takes it.
        num_train: images to train on.
        num_test: images to test on; 0 for none.
        image_size: height and width.
        num_classes: number of classes; each has equally many images, give or take one.
        contrast: standard deviation of a pattern, in grey levels of 0..255.
        noise: standard deviation of the noise of one pixel, in the same levels.
        data_seed: decides the content.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Images, uint8 `[N, 3, image_size, image_size]`.

    Raises:
        UserError: an option out of its range.
    """
    at_least("images: data_options.num_train", num_train, 1)
    at_least("images: data_options.num_test", num_test, 0)
    at_least("images: data_options.image_size", image_size, 2)
    at_least("images: data_options.num_classes", num_classes, 2)
    at_least("images: data_options.contrast", contrast, 0)
    at_least("images: data_options.noise", noise, 0)
    held_out("images", validation, num_train)
    patterns = contrast * _patterns(data_seed, num_classes, image_size)

    def draw(split: str, count: int) -> Split:
        generator = stream(data_seed, "data", "images", split)
        y = generator.permutation(np.arange(count, dtype=np.int64) % num_classes)
        grey = 127.5 + patterns[y] + noise * generator.normal(size=(count, *patterns.shape[1:]))
        return Split(np.clip(np.rint(grey), 0, 255).astype(np.uint8), y)

    drawn, kept = draw("train", num_train), num_train - validation
    return make_dataset(
        "images",
        Split(drawn.x[:kept], drawn.y[:kept]),
        test=draw("test", num_test) if num_test else None,
        validation=Split(drawn.x[kept:], drawn.y[kept:]) if validation else None,
        num_classes=num_classes,
        facts={"data_seed": data_seed, "image_size": image_size},
    )


def _patterns(data_seed: int, num_classes: int, image_size: int, num_waves: int = 4) -> NDArray[np.float64]:
    """One pattern a class, `[num_classes, 3, H, W]`, each of mean 0 and standard deviation 1."""
    generator = stream(data_seed, "data", "images", "patterns")
    # [class, channel, wave, axis]: periods across the image, along y and along x.
    frequency = generator.uniform(-1.0, 1.0, size=(num_classes, 3, num_waves, 2))
    phase = generator.uniform(0.0, 2.0 * np.pi, size=(num_classes, 3, num_waves, 1, 1))
    place = np.arange(image_size) / image_size
    along_y = frequency[..., 0, None, None] * place[:, None]
    along_x = frequency[..., 1, None, None] * place[None, :]
    waves = np.cos(2.0 * np.pi * (along_y + along_x) + phase).sum(axis=2)
    centred: NDArray[np.float64] = waves - waves.mean(axis=(1, 2, 3), keepdims=True)
    scaled: NDArray[np.float64] = centred / centred.std(axis=(1, 2, 3), keepdims=True)
    return scaled
