"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from depthscope.core.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step: a reader sees the old file or the new one, never half.

    The bytes go to a hidden file in the same folder, are flushed to disk, then renamed over. Where a symbolic link
    stands, what it points to is replaced.

    Raises:
        UserError: the folder cannot be written, the disk is full, or something stands there that is no regular file
            (a device, a pipe, a folder). It still stands, as an old file does, and no folder or file was added.
    """
    with _refusing(path, mend):
        target = _target(path)
    with staged(target, content) as temporary:
        os.replace(temporary, target)


def check_named(path: Path) -> None:
    """Refuse before the work a file that could not be written after it. Nothing is left there.

    Args:
        path: of a single file, as its user named it: its folder must be there, since a folder that nobody asked for is
            rather a slip of the pen.

    Raises:
        UserError: its folder is not there or cannot be written; something stands there that is no regular file.
    """
    with _staged_named(path, b""):
        pass


def write_named(path: Path, content: bytes) -> None:
    """`write_bytes` of a single file that its user named.

    Raises:
        UserError: as for `check_named`; the disk is full.
    """
    with _staged_named(path, content) as (temporary, target):
        os.replace(temporary, target)


@contextlib.contextmanager
def _staged_named(path: Path, content: bytes) -> Iterator[tuple[Path, Path]]:
    with _refusing(path, _mend_named):
        target = _target(path)
    if not os.path.lexists(target.parent):
        raise UserError(f"{path}: there is no folder {target.parent}. Make it first, or name another file.")
    with staged(target, content, mend=_mend_named) as temporary:
        yield temporary, target


def _target(path: Path) -> Path:
    """What is replaced where `path` is written: links are followed.

    Raises:
        OSError: something stands there that is no regular file, which a rename would put in its place.
    """
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "not a regular file")
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def place_new(temporary: Path, path: Path) -> bool:
    """Give a `staged` file its name; False, and nothing is changed, where something stands there already.

    Of several that try at once, on one machine or on several that share the folder, exactly one gets True.
    On a file system without hard links (exFAT, some network drives) that still holds, but a reader may see
    the file half written.

    Raises:
        OSError: it cannot be done; `staged` makes a UserError of it.
    """
    try:
        os.link(temporary, path)
        created = True
    except FileExistsError:
        # NFS may lose the answer to a link that it made, and then ask for it again.
        created = os.path.samefile(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        created = _create_without_link(path, temporary.read_bytes())
    temporary.unlink()
    return created


def _create_without_link(path: Path, content: bytes) -> bool:
    try:
        file = open(path, "xb")  # noqa: SIM115 (closed below; what fails here is another matter than what fails there)
    except FileExistsError:
        return False
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise
    return True


@contextlib.contextmanager
def _refusing(path: Path, mend: Callable[[OSError], str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error}). {mend(error)}") from error


def mend(error: OSError) -> str:
    """What to do about a file of a results folder that cannot be written."""
    return _mended(error, "choose another folder with --out")


def _mend_named(error: OSError) -> str:
    return _mended(error, "name another file")


def _mended(error: OSError, instead: str) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"Free some space, or {instead}."
    capital = instead[0].upper() + instead[1:]
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{capital}, or change its permissions."
    return f"{capital}."


@contextlib.contextmanager
def staged(path: Path, content: bytes, *, mend: Callable[[OSError], str] = mend) -> Iterator[Path]:
    """A hidden file beside `path` with `content`, on the disk; folders made for it are gone where the body fails.

    The body gives it its name (`os.replace`, `place_new`). Several files that must come together are staged first:
    then a full disk is met before any of them is changed.

    Raises:
        UserError: an OSError here or in the body.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    new_folders = [folder for folder in path.parents if not os.path.lexists(folder)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not `tempfile`, whose files only their owner may read: a results folder is for sharing.
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
        temporary.unlink(missing_ok=True)  # the body may have found that its name is taken
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        with contextlib.suppress(OSError):
            temporary.unlink()
        with contextlib.suppress(OSError):
            for folder in new_folders:
                folder.rmdir()
        with _refusing(path, mend):
            raise


def write_json(path: Path, value: object) -> None:
    """`write_bytes` of `value` as indented JSON with a final newline.

    Raises:
        ValueError: NaN or infinity somewhere in it; the file is left as it was.
    """
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file.

    Anything else that a path may name (a folder, a pipe that nobody fills) is refused instead of waited for.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it is no regular file, or cannot be read.
    """
    with regular(path, "rb") as file:
        return file.read()


@contextlib.contextmanager
def regular(path: Path, mode: str) -> Iterator[io.FileIO]:
    """A regular file, open in binary mode `mode` and without a buffer.

    Raises:
        OSError: it is no regular file, or cannot be opened.
    """
    # Looked at when it is open, so that nobody can put another in its place between the two; and opened without
    # waiting for the other end of a pipe. Regular files are read and written as ever.
    with open(path, mode, buffering=0, opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield cast(io.FileIO, file)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)  # Windows knows neither the flag nor such pipes


def read_text(path: Path, limit: int) -> str:
    """The text of a regular file: UTF-8, with or without a byte order mark.

    Anything else that a path may name (a folder, a pipe that nobody fills) is refused instead of waited for.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it is no regular file, or cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        UserError: it is longer than `limit` characters.
    """
    with regular(path, "rb") as raw, io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8-sig") as file:
        text = file.read(limit + 1)
    if len(text) > limit:
        raise UserError(f"{path}: too long (over {limit:,} characters).")
    return text
