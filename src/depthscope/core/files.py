"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
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


def read_json(path: Path) -> object:
    """The JSON value in `path`.

    Raises:
        UserError: the file is missing, cannot be read or is not JSON.
    """
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a whole JSON file ({error}).") from error
    return value
