"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from depthscope.core.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step: a reader sees the old file or the new one, never half.

    The bytes go to a temporary file in the same folder, are flushed to disk, then renamed over.

    Raises:
        UserError: the folder cannot be written or the disk is full; the old file still stands.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read; a results folder is for sharing.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise UserError(
            f"{path}: cannot be written ({error.strerror or error}). "
            "Free some space, or choose another folder with --out."
        ) from error


def write_json(path: Path, value: object) -> None:
    """`write_bytes` of `value` as indented JSON with a final newline; NaN is refused."""
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
    except ValueError as error:
        raise UserError(f"{path}: not a whole JSON file ({error}).") from error
    return value


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
