"""Where real data is looked for: a folder that was named, and the folders in it."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from depthscope.core.errors import UserError

ROOT_VARIABLE = "DEPTHSCOPE_DATA"
SEARCH_DEPTH = 2
SEARCH_FOLDERS = 500
"""A search stops after so many folders, so that `--data ~` answers at once."""

Found = TypeVar("Found")


def found_in_named(root: Path | None, find: Callable[[Path], Found]) -> Found | None:
    """What `find` finds in `root` or, without it, in the folder that DEPTHSCOPE_DATA names; None without either.

    Raises:
        UserError: as `find`, with the variable in front where it named the folder.
    """
    if root is not None:
        return find(Path(root))
    named = os.environ.get(ROOT_VARIABLE)
    if not named:
        return None
    try:
        return find(Path(named).expanduser())
    except UserError as error:
        raise UserError(f"{ROOT_VARIABLE}: {error}") from error


def folders_in(root: Path, wanted: str) -> Iterator[Path]:
    """`root`, then its folders, then theirs, in the order of their names; hidden ones are left out.

    Args:
        root: the folder that was named.
        wanted: what is looked for, for the message.

    Raises:
        UserError: `root` is no folder.
    """
    if not root.is_dir():
        raise UserError(
            f"{root}: no such folder. Wanted one that holds {wanted}; leave out --data to let Depthscope download it."
        )
    level = [root]
    count = 0
    for _ in range(SEARCH_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            yield folder
            count += 1
            if count == SEARCH_FOLDERS:
                return
            below += _subfolders(folder)
        level = below


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / each.name for each in entries if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []  # a folder that cannot be looked into holds nothing for us


def file_digest(path: Path, kind: str) -> str:
    """Hex digest of a file; the same unchanged file is read once in a process.

    Raises:
        UserError: it cannot be read.
    """
    try:
        state = path.stat()
        return _file_digest(path, kind, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error


@functools.lru_cache(maxsize=64)
def _file_digest(path: Path, kind: str, size: int, mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def damaged(path: object, wanted: str, came: str) -> UserError:
    """The error for a file that is not what it should be."""
    return UserError(
        f"{path}: wanted {wanted}, got {came}. Fetch the data again, or leave out --data to let Depthscope download it."
    )
