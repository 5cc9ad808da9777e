"""The user's cache: what can be had again, at some cost.

Anything in it may be deleted at any time, and nothing in it is believed without a check.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

from depthscope.core.errors import UserError
from depthscope.core.files import regular, write_bytes

CACHE_VARIABLE = "DEPTHSCOPE_CACHE"


def cache_dir() -> Path:
    """The folder that the environment variable DEPTHSCOPE_CACHE names, else the system's place for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("depthscope", appauthor=False))


def kept_text(name: str, make: Callable[[], str]) -> str:
    """The text that the cache has under a name; else what `make` gives, which is kept for the next process.

    One that is damaged or that another user put there is made anew. A cache that cannot be read or written is no
    fault: the text is made each time.

    Args:
        name: of the file, telling all that the text depends on.
        make: what takes the time.
    """
    try:
        path = cache_dir() / name
    except RuntimeError:  # a home was named (~) and there is none
        return make()
    found = _read(path)
    if found is not None:
        return found
    text = make()
    content = text.encode()
    with contextlib.suppress(UserError):
        write_bytes(path, _digest(content) + b"\n" + content)
    return text


def _read(path: Path) -> str | None:
    try:
        with regular(path, "rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            head, _, content = file.read().partition(b"\n")
        return (content.decode() or None) if head == _digest(content) else None
    except (OSError, UnicodeDecodeError):
        return None


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
