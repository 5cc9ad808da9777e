"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
from pathlib import Path

from depthscope.core.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step: a reader sees the old file or the new one, never half.

    The bytes go to a hidden file in the same folder, are flushed to disk, then renamed over.

    Raises:
        UserError: the folder cannot be written or the disk is full. The old file still stands, and
            no folder or file was added.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    new_folders = [folder for folder in path.parents if not os.path.lexists(folder)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not `tempfile`, whose files only their owner may read: a results folder is for sharing.
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:  # Ctrl-C, too, leaves nothing behind
        with contextlib.suppress(OSError):
            temporary.unlink()
        with contextlib.suppress(OSError):
            for folder in new_folders:
                folder.rmdir()
        if isinstance(error, OSError):
            raise UserError(f"{path}: cannot be written ({error.strerror or error}). {_mend(error)}") from error
        raise


def _mend(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space, or choose another folder with --out."
    return "Choose another folder with --out, or change its permissions."


def write_json(path: Path, value: object) -> None:
    """`write_bytes` of `value` as indented JSON with a final newline.

    Raises:
        ValueError: NaN or infinity somewhere in it; the file is left as it was.
    """
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())


def read_text(path: Path, limit: int) -> str:
    """The text of a regular file: UTF-8, with or without a byte order mark.

    Anything else that a path may name (a folder, a pipe that nobody fills) is refused instead of waited for.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it is no regular file, or cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        UserError: it is longer than `limit` characters.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder says so itself
        raise OSError(errno.EINVAL, "not a regular file")
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(limit + 1)
    if len(text) > limit:
        raise UserError(f"{path}: too long (over {limit:,} characters).")
    return text
