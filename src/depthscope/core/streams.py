"""Named random streams: every draw has an address, so no draw can shift another.

"Same seed" is not "same weights": with one generator for everything, one extra layer shifts every
later draw. Here a draw's generator is made from its full name, so that two networks which share a
tensor's name start from the same tensor, whatever else they hold.

The names in use:

| name | draws |
| --- | --- |
| `(seed, "init", parameter name)` | one parameter tensor, in float64 |
| `(seed, "data", ...)` | a synthetic data set |
| `(seed, "order", epoch)` | the permutation of the training examples |
| `(seed, "augment", epoch)` | crops and flips, by position in the training set |
| `(seed, "model", step)` | what a model of the user's draws in an update, such as dropout |
| `(seed, "model", "lsuv")` | what a model draws while LSUV measures it, if it draws in evaluation |
| `(seed, "probe", ...)` | what a measurement draws |
| `(seed, "landscape", parameter name, axis)` | a direction of a loss landscape, one parameter's part, in float64 |
| `(seed, "samples", number)` | one text that a trained network writes |
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

from depthscope.core.errors import UserError


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """The generator with this name.

    The name is hashed (SHA-256 of its JSON) into the entropy of a PCG64: names that differ anywhere
    give independent streams, and `("a", "b")` is not `("ab",)`.

    Args:
        seed: a non-negative integer, the run's seed.
        name: the rest of the name, strings and integers.

    Raises:
        UserError: `seed` is negative.

    >>> a = stream(0, "init", "blocks.3.weight").normal(size=2)
    >>> b = stream(0, "init", "blocks.3.weight").normal(size=2)
    >>> bool((a == b).all())
    True
    """
    if seed < 0:
        raise UserError(f"seed: wanted an integer of 0 or more, got {seed}.")
    address = json.dumps([int(seed), *name], separators=(",", ":"), ensure_ascii=True)
    entropy = int.from_bytes(hashlib.sha256(address.encode()).digest(), "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
