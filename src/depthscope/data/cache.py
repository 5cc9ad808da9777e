"""Decoded arrays in the user's cache (`core.cache`), where downloads are kept too."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.cache import cache_dir as cache_dir
from depthscope.data.cifar10_facts import IMAGE_SHAPE, NUM_ROWS, SplitName, whole_blocks, wrong_block


def save_arrays(split: SplitName, key: str, x: NDArray[np.uint8], y: NDArray[np.int64]) -> None:
    """Keep a whole decoded split; each file is whole or not there.

    A cache that cannot be written (a full disk, a read-only home) is no fault of the run's: it goes on
    with the arrays in memory, and decodes again the next time.
    """
    with contextlib.suppress(OSError):
        x_path, y_path = _paths(split, key)
        _save(x_path, x)
        _save(y_path, y)


def load_arrays(split: SplitName, key: str, num_rows: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
    """The first rows of a split that `save_arrays` kept, or None where it is missing or damaged.

    Args:
        split: which split.
        key: what `save_arrays` kept it under; `*` for any.
        num_rows: N, how many rows are wanted. Their content is checked by digest.

    Returns:
        Images, uint8 `[N, 3, 32, 32]`, mapped from the file, so that processes share the memory; they may be
        written to, which changes a private copy. Labels, int64 `[N]`.
    """
    for x_path, y_path in _paths_of_any(split) if key == "*" else [_paths(split, key)]:
        kept = _load(x_path, y_path, split, num_rows)
        if kept is not None:
            return kept
    return None


def _load(
    x_path: Path, y_path: Path, split: SplitName, num_rows: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
    try:
        # Copy on write, because torch warns about arrays that it must not write to.
        x: NDArray[Any] = np.asarray(np.load(x_path, mmap_mode="c", allow_pickle=False))
        y: NDArray[Any] = np.load(y_path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    rows = NUM_ROWS[split]
    if x.dtype != np.uint8 or x.shape != (rows, *IMAGE_SHAPE) or y.dtype != np.int64 or y.shape != (rows,):
        return None
    checked = whole_blocks(num_rows)
    if wrong_block(split, x[:checked], y[:checked]) is not None:
        return None
    return x[:num_rows], y[:num_rows]


def _folder() -> Path:
    return cache_dir() / "cifar10-arrays"


def _paths(split: SplitName, key: str) -> tuple[Path, Path]:
    return _folder() / f"{split}-{key}-x.npy", _folder() / f"{split}-{key}-y.npy"


def _paths_of_any(split: SplitName) -> list[tuple[Path, Path]]:
    found = sorted(_folder().glob(f"{split}-*-x.npy"))
    return [(path, path.with_name(path.name.removesuffix("x.npy") + "y.npy")) for path in found]


def _save(path: Path, array: NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
