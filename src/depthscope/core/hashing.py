"""Digests of values and arrays: equal content, equal digest, on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def canonical_json(value: object) -> str:
    """`value` as JSON with one spelling: sorted keys, no spaces, shortest floats that round-trip."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: object, length: int = 16) -> str:
    """The first `length` hex digits of the SHA-256 of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def array_digest(array: NDArray[np.generic], length: int = 16) -> str:
    """Digest of an array's dtype, shape and bytes (little endian, C order)."""
    assert array.dtype.kind in "biufc", f"{array.dtype} holds no numbers"  # bytes of objects would be addresses
    ordered = np.ascontiguousarray(array)
    little = ordered.astype(ordered.dtype.newbyteorder("<"), copy=False)
    head = f"{little.dtype.str}{list(array.shape)}".encode()
    return hashlib.sha256(head + little.tobytes()).hexdigest()[:length]


def combined_digest(parts: Mapping[str, str], length: int = 16) -> str:
    """One digest for a mapping of names to digests."""
    return digest(dict(parts), length)
