"""The draws that feed training: the order of the examples, and each example's crop and flip.

Both are drawn for a whole epoch from a named stream, and augmentation is indexed by an example's
position in the training set. So neither depends on the batch size, on the network, or on what was
drawn before: two arms with one seed see the same batches, and a run resumed at epoch 7 needs no
state but the number 7.

What the numbers of an augmentation mean (He et al. 2015, arXiv 1512.03385, section 4.2): pad the
image by `padding` on its four sides, keep the window of the old size whose top left corner is at
row `dy`, column `dx` of the padded image, then mirror left and right where `flip` is true.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.hashing import array_digest, digest
from depthscope.core.streams import stream


class Augmentation(NamedTuple):
    """One epoch's crops and flips, by position in the training set.

    Attributes:
        dy: first row of the window in the padded image, int64 `[N]` in 0..2*padding.
        dx: first column of it, int64 `[N]` in 0..2*padding.
        flip: whether the window is mirrored left and right, bool `[N]`.
    """

    dy: NDArray[np.int64]
    dx: NDArray[np.int64]
    flip: NDArray[np.bool_]


def order(seed: int, epoch: int, num_examples: int) -> NDArray[np.int64]:
    """The order in which epoch `epoch` (from 0) visits the examples: a permutation, int64 `[N]`.

    >>> sorted(order(0, 0, 4).tolist())
    [0, 1, 2, 3]
    """
    return stream(seed, "order", epoch).permutation(num_examples).astype(np.int64, copy=False)


def augmentation(seed: int, epoch: int, num_examples: int, padding: int) -> Augmentation:
    """The crops, uniform over (2*padding+1)^2 windows, and flips, one in two, of epoch `epoch` (from 0).

    Raises:
        UserError: `padding` is negative.
    """
    if padding < 0:
        raise UserError(f"padding: wanted an integer of 0 or more, got {padding}.")
    generator = stream(seed, "augment", epoch)
    # Flips come first: how many raw numbers the offsets use up depends on the padding.
    flip = generator.random(num_examples) < 0.5
    dy, dx = generator.integers(0, 2 * padding + 1, size=(2, num_examples), dtype=np.int64)
    return Augmentation(dy=dy, dx=dx, flip=flip)


def order_digest(seed: int, epochs: int, num_examples: int) -> str:
    """One digest of the orders of epochs 0..epochs-1, for the record."""
    return digest([array_digest(order(seed, epoch, num_examples)) for epoch in range(epochs)])


def augmentation_digest(seed: int, epochs: int, num_examples: int, padding: int) -> str:
    """One digest of the crops and flips of epochs 0..epochs-1, for the record."""
    drawn = (augmentation(seed, epoch, num_examples, padding) for epoch in range(epochs))
    return digest([[array_digest(part) for part in each] for each in drawn])
