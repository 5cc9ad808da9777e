"""CIFAR-10: 60,000 colour images of 32 x 32 pixels in 10 classes.

Source: Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.data.archive import download, downloaded_folder
from depthscope.data.cifar10_facts import IMAGE_SHAPE, NUM_CLASSES, NUM_ROWS
from depthscope.data.dataset import Dataset, Split, make_dataset
from depthscope.data.fetch import Progress
from depthscope.data.options import held_out, within
from depthscope.data.search import found_in_named
from depthscope.data.sources import CachedArrays, ParquetFolder, Source, find

_FULL_SIZE = IMAGE_SHAPE[1]


def cifar10(
    seed: int,
    root: Path | None,
    *,
    num_train: int = 50_000,
    num_test: int = 10_000,
    image_size: int = 32,
    validation: int = 0,
) -> Dataset:
    """The images, in their official order.

    They come from `root`; where it is None, from the folder that the environment variable DEPTHSCOPE_DATA
    names; where that is not set, from the user's cache, into which they are downloaded if they are not there.

    Args:
        seed: not used: all seeds share the data.
        root: a folder that holds `cifar-10-batches-py` or the parquet layout, up to two folders deep.
        num_train: the first so many of the training images.
        num_test: the first so many of the test images; 0 for no test split.
        image_size: a divisor of 32. Smaller images are averages over squares of pixels, which float32 holds exactly.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Images `[N, 3, image_size, image_size]` in 0..255: uint8 at full size, else float32.

    Raises:
        UserError: an option out of its range, or a file that is missing, cut short or altered.
    """
    check_options(num_train=num_train, num_test=num_test, image_size=image_size, validation=validation)
    source = _ready(root, None)
    x, y = source.read("train", num_train)
    x = averaged(x, image_size)
    test = None
    if num_test:
        x_test, y_test = source.read("test", num_test)
        test = Split(averaged(x_test, image_size), y_test)
    kept = num_train - validation
    return make_dataset(
        "cifar10",
        Split(x[:kept], y[:kept]),
        test=test,
        validation=Split(x[kept:], y[kept:]) if validation else None,
        num_classes=NUM_CLASSES,
        facts={
            "layout": source.layout,
            "num_train": kept,
            "num_validation": validation,
            "num_test": num_test,
            "image_size": image_size,
        },
    )


def check_options(*, num_train: int, num_test: int, image_size: int, validation: int) -> None:
    """Raise a UserError for an option out of its range. Reads nothing."""
    sizes = [size for size in range(1, _FULL_SIZE + 1) if _FULL_SIZE % size == 0]
    within("cifar10: data_options.num_train", num_train, 1, NUM_ROWS["train"])
    within("cifar10: data_options.num_test", num_test, 0, NUM_ROWS["test"])
    if image_size not in sizes:
        known = ", ".join(map(str, sizes))
        raise UserError(f"cifar10: data_options.image_size: wanted one of {known}, got {image_size}.")
    held_out("cifar10", validation, num_train)


def check_root(root: Path | None) -> None:
    """Raise a UserError if the files that `cifar10` would read are missing, cut short or altered.

    For a driver to call before it writes anything: under a second, nothing decoded (but see
    `ParquetFolder.verify`), nothing downloaded. With neither `root` nor DEPTHSCOPE_DATA there is nothing
    to check: the cache mends itself.
    """
    source = found_in_named(root, find)
    if source is not None:
        source.verify()


def prepare(
    root: Path | None, *, num_train: int = 50_000, num_test: int = 10_000, progress: Progress | None = None
) -> None:
    """See to it that the images are at hand and whole, so that workers only read.

    Downloads them where `cifar10` would, and decodes and caches what it would. For a driver to call once,
    before it starts workers, which would else each do the same.

    Args:
        root: as in `cifar10`.
        num_train: as in `cifar10`.
        num_test: as in `cifar10`.
        progress: told of the bytes downloaded so far, and of the whole number.

    Raises:
        UserError: as in `cifar10`.
    """
    source = _ready(root, progress)
    if isinstance(source, ParquetFolder):
        source.warm("train", num_train)
        source.warm("test", num_test)


def averaged(x: NDArray[np.uint8], image_size: int) -> NDArray[Any]:
    """Images averaged over squares of pixels to `image_size`.

    The sums are of at most 32 x 32 bytes and the divisor is a power of two, so float32 is exact.

    Args:
        x: uint8 `[N, C, 32, 32]`.
        image_size: S, a divisor of 32.

    Returns:
        float32 `[N, C, S, S]` in 0..255; x itself at full size.

    >>> averaged(np.arange(32 * 32, dtype=np.uint8).reshape(1, 1, 32, 32) % 8, 16)[0, 0, 0, :4].tolist()
    [0.5, 2.5, 4.5, 6.5]
    """
    num, channels, height, width = x.shape
    if image_size == height:
        return x
    side = height // image_size
    rows: NDArray[np.uint32] = x.reshape(num, channels, image_size, side, width).sum(axis=3, dtype=np.uint32)
    # Column by column: a sum over an inner axis of length 2 is NumPy's slowest.
    sums = rows[..., ::side].copy()
    for column in range(1, side):
        sums += rows[..., column::side]
    return sums.astype(np.float32) / np.float32(side * side)


def _ready(root: Path | None, progress: Progress | None) -> Source:
    """Where to read from, verified."""
    source = found_in_named(root, find)
    if source is not None:
        source.verify()
        return source
    there = downloaded_folder()
    if there is not None:
        return there
    kept = CachedArrays()
    try:
        kept.verify()
    except UserError:
        return download(progress)
    return kept
