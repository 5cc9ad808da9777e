"""How a worker's process asks the system for memory."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
"""Names of settings in glibc's malloc.h."""

_MOST = 2**31 - 1
"""The largest value that `mallopt` takes: an int."""


@cache
def keep_pages() -> bool:
    """Have glibc keep the pages that tensors give back, for the next ones; False where there is no glibc.

    By default it takes each large tensor in pages of its own from the system and gives them back when the tensor goes:
    a training step then faults on 10,000 pages that it had a moment ago, a tenth of its time on a CPU. The peak of
    memory is no higher. (A process that takes every large tensor in pages of its own, which glibc does only if it is
    told to, holds less under activation checkpointing, and is slower by half: docs/speed.md.) Other allocators, and
    other systems, are left alone.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has no such function
        return False
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _MOST), (_TOP_PAD, 64 * 2**20))
    return all(mallopt(name, value) == 1 for name, value in settings)
