"""Batched crops and flips against one image at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.train.short import NET

torch = pytest.importorskip("torch")

from depthscope.data.batches import augmentation, order  # noqa: E402
from depthscope.data.dataset import Split, make_dataset  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.augment import Windows, gathered  # noqa: E402
from depthscope.train.feed import Feed  # noqa: E402


def dataset(num: int = 12, size: int = 6) -> Any:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(num, 3, size, size), dtype=np.uint8)
    return make_dataset("images", Split(x, np.arange(num) % 10), test=None, num_classes=10, facts={})


def spec(**changes: Any) -> RunSpec:
    values: dict[str, Any] = {**NET, "augment": "crop_flip", "padding": 2, "batch_size": 5, "epochs": 1, "seed": 3}
    return RunSpec.model_validate({**values, **changes})


def crop_flip_naive(image: Any, dy: int, dx: int, flip: bool, padding: int) -> Any:
    """Pad, cut the window out, then mirror it: what the batched form must equal."""
    channels, height, width = image.shape
    padded = np.zeros((channels, height + 2 * padding, width + 2 * padding), image.dtype)
    padded[:, padding : padding + height, padding : padding + width] = image
    window = padded[:, dy : dy + height, dx : dx + width]
    return window[:, :, ::-1] if flip else window


def test_an_epoch_equals_the_images_cut_one_by_one() -> None:
    data = dataset()
    feed = Feed(data, spec(), "cpu", torch.float32)
    clean, labels = (each.numpy() for each in feed.train)
    chosen = order(3, 4, 12)
    draws = augmentation(3, 4, 12, 2)
    wanted = [crop_flip_naive(clean[i], draws.dy[i], draws.dx[i], draws.flip[i], 2) for i in chosen]
    batches = list(feed.epoch(4))
    assert [len(y) for _, y in batches] == [5, 5, 2]
    assert feed.steps_per_epoch == 3
    np.testing.assert_array_equal(torch.cat([x for x, _ in batches]).numpy(), np.stack(wanted))
    np.testing.assert_array_equal(torch.cat([y for _, y in batches]).numpy(), labels[chosen])


def test_the_flip_is_horizontal() -> None:
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    zero = torch.zeros(1, dtype=torch.int64)
    flipped = Windows(image, 4, 4).take(zero, zero, zero, torch.tensor([True]))
    assert flipped[0, 0, 0].tolist() == [3.0, 2.0, 1.0, 0.0]
    assert flipped[0, 0, :, 0].tolist() == [3.0, 7.0, 11.0, 15.0]


def test_windows_by_rows_equal_those_by_pixels() -> None:
    draw = torch.Generator().manual_seed(0)
    padded = torch.randn(7, 3, 9, 10, generator=draw)
    chosen = torch.tensor([6, 0, 3, 3])
    dy, dx = torch.tensor([0, 4, 2, 3]), torch.tensor([4, 0, 1, 4])
    flip = torch.tensor([True, False, True, False])
    wanted = gathered(padded, chosen, dy, dx, flip, 5, 6)
    assert torch.equal(Windows(padded, 5, 6).take(chosen, dy, dx, flip), wanted)
    assert wanted.shape == (4, 3, 5, 6)


def test_inputs_are_normalised_by_the_training_split() -> None:
    x, _ = Feed(dataset(200), spec(), "cpu", torch.float32).train
    assert x.mean(dim=(0, 2, 3)).abs().max() < 1e-5
    assert (x.std(dim=(0, 2, 3), correction=0) - 1).abs().max() < 1e-5


def test_without_augmentation_an_epoch_is_a_permutation_of_the_clean_images() -> None:
    feed = Feed(dataset(), spec(augment="none"), "cpu", torch.float32)
    x = torch.cat([x for x, _ in feed.epoch(0)])
    np.testing.assert_array_equal(x.numpy(), feed.train[0].numpy()[order(3, 0, 12)])
