"""Reads the parquet layout of CIFAR-10: columns `img` (a PNG's bytes and its path) and `label`."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from depthscope.core.errors import UserError
from depthscope.data.cifar10_facts import BLOCK, IMAGE_SHAPE, NUM_CLASSES, SplitName, wrong_block
from depthscope.data.search import damaged

READ_ERRORS = (OSError, ValueError, pa.ArrowException)
"""What pyarrow raises on bytes that are no parquet file, or damaged in the middle."""


def has_columns(path: Path) -> bool:
    """Whether the file has the layout's columns; also True where it cannot be read at all.

    So a damaged file is taken for the CIFAR-10 that it most likely was, and reading it names the damage.
    """
    try:
        with pq.ParquetFile(path) as file:
            return {"img", "label"} <= set(file.schema_arrow.names)
    except READ_ERRORS:
        return True


def num_rows(path: Path) -> int:
    """How many rows the file's footer promises, having checked its columns.

    Raises:
        UserError: it is not a whole parquet file, or has other columns.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error
    image = schema.field("img").type if "img" in schema.names else None
    label = schema.field("label").type if "label" in schema.names else None
    if image is None or not pa.types.is_struct(image) or image.get_field_index("bytes") < 0:
        raise damaged(path, "a column img with a field bytes", f"columns {', '.join(schema.names)}")
    if label is None or not pa.types.is_integer(label):
        raise damaged(path, "a column label of integers", f"columns {', '.join(schema.names)}")
    return rows


def decode_rows(path: Path, split: SplitName, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The first `count` images and labels, each block of 1,000 checked against the official content.

    Reads and decodes no further than that.

    Args:
        path: a file that `num_rows` found well.
        split: which split it should hold.
        count: N, a multiple of `BLOCK`.

    Returns:
        Images, uint8 `[N, 3, 32, 32]`, and labels, int64 `[N]`.

    Raises:
        UserError: damage, or other content; names the row.
    """
    x = np.empty((count, *IMAGE_SHAPE), np.uint8)
    y = np.empty(count, np.int64)
    done = checked = 0
    try:
        with pq.ParquetFile(path) as file:
            # One thread: a study's workers already use all the cores.
            batches = file.iter_batches(batch_size=BLOCK, columns=["img", "label"], use_threads=False)
            while done < count:
                batch = next(batches)
                pngs = batch.column("img").field("bytes").to_pylist()[: count - done]
                labels = batch.column("label").to_pylist()[: count - done]
                for png, label in zip(pngs, labels, strict=True):
                    x[done], y[done] = _pixels(png, path, done), _label(label, path, done)
                    done += 1
                # A batch may end early, at the end of a row group, so blocks are counted apart from batches.
                whole = done - done % BLOCK
                wrong = wrong_block(split, x[checked:whole], y[checked:whole], first=checked)
                if wrong is not None:
                    wanted = f"the official images and labels in rows {wrong} to {wrong + BLOCK - 1}"
                    raise damaged(path, wanted, "others")
                checked = whole
    except StopIteration as error:
        raise damaged(path, f"{count:,} rows", f"{done:,}") from error
    except UserError:  # before ValueError, which it is one of
        raise
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error
    return x, y


def _pixels(png: object, path: Path, row: int) -> NDArray[np.uint8]:
    """One image, uint8 `[3, 32, 32]`."""
    size = IMAGE_SHAPE[1:]
    if not isinstance(png, bytes):
        raise damaged(path, f"a PNG image in row {row}", "none")
    try:
        # Only PNG, and the size is looked at before any pixel is decoded: a few bytes can claim gigabytes.
        with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
            came = image.size
            pixels = np.asarray(image.convert("RGB")) if came == size else None
    except Exception as error:  # Pillow tells of damage by OSError, SyntaxError, zlib.error, struct.error and more
        raise damaged(path, f"a PNG image in row {row}", "bytes that are none") from error
    if pixels is None:
        raise damaged(path, f"an image of {size[0]}x{size[1]} in row {row}", f"{came[0]}x{came[1]}")
    return pixels.transpose(2, 0, 1)


def _label(label: object, path: Path, row: int) -> int:
    if not isinstance(label, int) or not 0 <= label < NUM_CLASSES:
        raise damaged(path, f"a label from 0 to {NUM_CLASSES - 1} in row {row}", str(label))
    return label


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
    return damaged(path, "a whole parquet file", f"one that is cut short, damaged or of another kind ({reason})")
