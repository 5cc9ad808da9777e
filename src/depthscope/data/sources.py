"""The three forms in which CIFAR-10 may lie on disk, behind one interface.

Whatever the form, what comes out is the official content, bit for bit, or an error that names the file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.data import cifar10_facts as facts
from depthscope.data.cache import load_arrays, save_arrays
from depthscope.data.cifar10_facts import SplitName
from depthscope.data.parquet import decode_rows, has_columns, num_rows
from depthscope.data.pickles import read_pickle
from depthscope.data.search import SEARCH_DEPTH, damaged, file_digest, folders_in

Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]


class Source(Protocol):
    """CIFAR-10 in one form."""

    @property
    def layout(self) -> str:
        """What the form is called in a record."""

    def verify(self) -> None:
        """Raise a UserError unless every file is there, whole and unaltered."""

    def read(self, split: SplitName, count: int) -> Arrays:
        """The first `count` images, uint8 `[N, 3, 32, 32]`, and labels, int64 `[N]`, of a split, checked."""


@dataclass(frozen=True)
class OfficialFolder:
    """The official `cifar-10-batches-py`: seven pickles with published md5 checksums."""

    folder: Path
    layout: str = facts.OFFICIAL_FOLDER

    def verify(self) -> None:
        """See `Source`. Reads all the files, which takes under half a second."""
        for name, (_, md5) in facts.OFFICIAL_FILES.items():
            path = self._sized(name)
            came = file_digest(path, "md5")
            if came != md5:
                raise damaged(path, f"md5 {md5}", came)

    def read(self, split: SplitName, count: int) -> Arrays:
        """See `Source`. Reads only the files that hold the rows."""
        num_files = -(-count // facts.ROWS_PER_FILE)
        names = [f"data_batch_{k + 1}" for k in range(num_files)] if split == "train" else ["test_batch"][:num_files]
        parts = [self._read_file(name) for name in names]
        if not parts:
            return np.empty((0, *facts.IMAGE_SHAPE), np.uint8), np.empty(0, np.int64)
        return np.concatenate([x for x, _ in parts])[:count], np.concatenate([y for _, y in parts])[:count]

    def _sized(self, name: str) -> Path:
        path = self.folder / name
        size = facts.OFFICIAL_FILES[name][0]
        try:
            came = path.stat().st_size
        except OSError as error:
            raise damaged(path, f"a file of {size:,} bytes", f"none ({error.strerror})") from error
        if came != size:
            raise damaged(path, f"{size:,} bytes", f"{came:,}")
        return path

    def _read_file(self, name: str) -> Arrays:
        path = self._sized(name)
        md5 = facts.OFFICIAL_FILES[name][1]
        content = _bytes_of(path)
        came = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if came != md5:
            raise damaged(path, f"md5 {md5}", came)
        held = read_pickle(content, path)
        x, labels = held.get("data"), held.get("labels")
        shape = (facts.ROWS_PER_FILE, int(np.prod(facts.IMAGE_SHAPE)))
        if not isinstance(x, np.ndarray) or x.shape != shape:
            raise damaged(path, f"data of shape {shape}", str(getattr(x, "shape", None)))
        if not isinstance(labels, list) or len(labels) != len(x) or not set(labels) <= set(range(facts.NUM_CLASSES)):
            raise damaged(path, f"{len(x):,} labels from 0 to {facts.NUM_CLASSES - 1}", "others")
        return x.reshape(-1, *facts.IMAGE_SHAPE), np.array(labels, np.int64)


@dataclass(frozen=True)
class ParquetFolder:
    """Two parquet files with columns `img` (PNG bytes) and `label`, in the official order.

    A file with a known checksum is decoded only as far as it is asked for. Any other is decoded whole once, to
    see that its content is the official one, and the arrays are cached under the file's own checksum.
    """

    folder: Path
    layout: str = "parquet"

    def verify(self) -> None:
        """See `Source`. Takes under a second, and some ten the first time that a file of unknown checksum is met."""
        for split in facts.NUM_ROWS:
            self._checked(split)
        for split in facts.NUM_ROWS:
            if self._checksum(split) not in facts.KNOWN_PARQUET:
                self._whole(split, facts.BLOCK)

    def read(self, split: SplitName, count: int) -> Arrays:
        """See `Source`."""
        path = self._checked(split)
        if self._is_cached(split, count):
            return self._whole(split, count)
        kept = load_arrays(split, self._checksum(split)[:16], count)
        if kept is not None:
            return kept
        x, y = decode_rows(path, split, facts.whole_blocks(count))
        return x[:count], y[:count]

    def warm(self, split: SplitName, count: int) -> None:
        """Decode and cache what `read` would."""
        self._checked(split)
        if self._is_cached(split, count):
            self._whole(split, count)

    def _is_cached(self, split: SplitName, count: int) -> bool:
        # Past half of a split, to decode the rest as well costs less than to decode again in each process.
        return self._checksum(split) not in facts.KNOWN_PARQUET or 2 * count > facts.NUM_ROWS[split]

    def _whole(self, split: SplitName, count: int) -> Arrays:
        key = self._checksum(split)[:16]
        kept = load_arrays(split, key, count)
        if kept is not None:
            return kept
        x, y = decode_rows(self._path(split), split, facts.NUM_ROWS[split])
        save_arrays(split, key, x, y)
        return load_arrays(split, key, count) or (x[:count], y[:count])

    def _path(self, split: SplitName) -> Path:
        return self.folder / facts.PARQUET_FILES[split]

    def _checked(self, split: SplitName) -> Path:
        path, wanted = self._path(split), facts.NUM_ROWS[split]
        if not path.is_file():
            raise damaged(path, f"a parquet file of {wanted:,} images", "none")
        came = num_rows(path)
        if came != wanted:
            raise damaged(path, f"{wanted:,} images", f"{came:,}")
        return path

    def _checksum(self, split: SplitName) -> str:
        return file_digest(self._path(split), "sha256")


@dataclass(frozen=True)
class CachedArrays:
    """What an earlier run decoded, of whatever file, both splits whole."""

    layout: str = "cached arrays"

    def verify(self) -> None:
        """See `Source`."""
        for split, rows in facts.NUM_ROWS.items():
            self.read(split, rows)

    def read(self, split: SplitName, count: int) -> Arrays:
        """See `Source`."""
        kept = load_arrays(split, "*", count)
        if kept is None:
            raise UserError(f"the cache holds no whole {split} split of CIFAR-10. Name a folder that does with --data.")
        return kept


def find(root: Path) -> Source:
    """The CIFAR-10 in `root` or up to two folders deep; the nearest, and the official folder first.

    Raises:
        UserError: there is none, with what was looked for.
    """
    for folder in folders_in(root, "CIFAR-10"):
        if any((folder / name).is_file() for name in facts.OFFICIAL_FILES):
            return OfficialFolder(folder)
        present = [folder / name for name in facts.PARQUET_FILES.values() if (folder / name).is_file()]
        # Other data sets use these file names too; theirs are passed over.
        if any(has_columns(path) for path in present):
            return ParquetFolder(folder)
    raise UserError(
        f"{root}: holds no CIFAR-10. Wanted {facts.OFFICIAL_FOLDER}/data_batch_1 and so on, or "
        f"{facts.PARQUET_FILES['train']} with its test file, at most {SEARCH_DEPTH} folders deep; "
        "leave out --data to let Depthscope download it."
    )


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error
