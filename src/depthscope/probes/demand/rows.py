"""How a boundary tensor is read as a table: which of its entries are examples, positions and units.

What a row of the table is, by the tensor's shape:

| shape | rows | units |
| --- | --- | --- |
| [B, F] | B examples | F features |
| [B, T, F], a sequence | B T positions of sequences | F features |
| [B, C, L], [B, C, H, W], [B, C, D, H, W] | B examples | C channels, each with its places |

A sequence's positions are rows, since a transformer has one representation a position and what collapses with
depth is their difference; a batch of few long sequences so has enough rows. An image is one row: its channels
have the same weights at all places, so that places are no independent examples.

Shape letters: B batch, T positions, F features, C channels, S places of a channel, N rows.
"""

from __future__ import annotations

from torch import Tensor

from depthscope.core.structure import Structure


def as_rows(h: Tensor, *, sequence: bool = True) -> Tensor:
    """[N, columns]: a position of a sequence, or all of an example, flattened, is a row.

    Args:
        h: a boundary tensor, examples in the first dimension.
        sequence: three dimensions are [B, T, F], not [B, C, L].
    """
    if h.ndim == 3 and sequence:
        return h.flatten(0, 1)
    return h.flatten(1) if h.ndim > 1 else h.reshape(-1, 1)


def as_units(h: Tensor, *, sequence: bool = True) -> Tensor:
    """[N, units, S]: all values of each unit; S is 1 but for channels.

    Args:
        h: as for `as_rows`.
        sequence: likewise.
    """
    if h.ndim > 3 or (h.ndim == 3 and not sequence):
        return h.flatten(2)
    return as_rows(h).unsqueeze(-1)


def num_samples(shape: tuple[int, ...], *, sequence: bool = True) -> int:
    """Rows of the table of units: examples, or positions of sequences.

    >>> num_samples((4, 10, 64)), num_samples((4, 10, 64), sequence=False), num_samples((4, 10))
    (40, 4, 4)
    """
    return shape[0] * shape[1] if len(shape) == 3 and sequence else shape[0] if shape else 1


def is_sequence(structure: Structure, index: int) -> bool:
    """Whether a boundary of two dimensions an example is [T, F], a sequence, and not [C, L], channels.

    What takes it decides, the next operation that treats its dimensions unlike; at the end of the model what gave it.
    """
    if len(structure.boundaries[index].shape) != 2:
        return False
    following = (op for block in structure.blocks[index:] for op in block.ops)
    before = (op for block in reversed(structure.blocks[:index]) for op in reversed(block.ops))
    for ops in (following, before):
        for op in ops:
            if op.kind in ("linear", "attention", "recurrent", "embedding") or op.name in ("layer", "rms"):
                return True
            if op.kind == "conv" or op.name in ("batch", "instance", "group"):
                return False
    return True
