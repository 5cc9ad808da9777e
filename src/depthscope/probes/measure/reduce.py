"""Tensors reduced to a few numbers: on their device, in float64 (on MPS, which has none, in float32 scaled).

A large tensor is taken in pieces, each a row of numbers: the whole in float64 would cost twice its size over again, and
on a CPU a piece that stays in the cache is reduced three times as fast. The rows are put together on the host, and so
are those of several micro-batches.

Shape letters: B examples, N entries of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

_PIECE = {"cpu": 1 << 16}
_LARGE = 1 << 24  # of another device: pieces cost kernels, and none needs a small one


def moments(tensor: Tensor) -> list[Tensor]:
    """Rows of a tensor's entries: number, norm, mean, sum of squares about it, zeros, non-finite ones.

    Args:
        tensor: detached, floating point; of a complex one the entries are real and imaginary parts.
    """
    return [_moments(piece) for piece in _pieces(tensor)]


def merged_moments(rows: Sequence[Sequence[float]]) -> dict[str, float]:
    """`norm`, `mean`, `std`, `zeros` (fraction) and `nonfinite` (number) of a boundary, of all its rows together."""
    total = sum(row[0] for row in rows)
    mean = sum(row[0] * row[2] for row in rows) / total
    # Each row's about its own mean, and what its mean is away from that of all: nothing cancels.
    about = sum(row[3] + row[0] * (row[2] - mean) ** 2 for row in rows)
    return {
        "norm": math.hypot(*(row[1] for row in rows)),
        "mean": mean,
        "std": math.sqrt(max(about, 0.0) / total) if math.isfinite(about) else math.nan,
        "zeros": sum(row[4] for row in rows) / total,
        "nonfinite": sum(row[5] for row in rows),
    }


def sizes(tensor: Tensor) -> list[Tensor]:
    """Rows of a gradient: norm, non-finite entries."""
    return [torch.stack([_norm(piece), _count(piece - piece)]) for piece in _pieces(tensor)]


def merged_sizes(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Norm and number of non-finite entries, of all rows together."""
    return math.hypot(*(row[0] for row in rows)), sum(row[1] for row in rows)


def comparisons(branch: Tensor, skip: Tensor, num_examples: int) -> list[Tensor]:
    """Rows of a residual addition: |F|/|x|, cosine and share, each its sum over examples and how many have one.

    An example is an entry of the batch dimension, with all its positions and channels. An example whose x is 0 has an
    infinite ratio, and none where F is 0 too; no cosine where either is 0; no share where their sum is 0.

    Args:
        branch: F.
        skip: x.
        num_examples: B, by which the batch dimension is known.
    """
    branch, skip = torch.broadcast_tensors(branch, skip)  # type: ignore[no-untyped-call]
    branch_BN, skip_BN = (_by_example(each, num_examples) for each in (branch, skip))
    rows = max(_piece_of(branch) // max(branch_BN.shape[1], 1), 1)
    starts = range(0, len(branch_BN), rows)
    return [_comparison(branch_BN[at : at + rows], skip_BN[at : at + rows]) for at in starts]


def merged_comparisons(rows: Sequence[Sequence[float]]) -> dict[str, float]:
    """`residual_ratio`, `cosine` and `share` of an addition, means over examples; none of what no example has."""
    found = {}
    for column, name in enumerate(("residual_ratio", "cosine", "share")):
        count = sum(row[2 * column + 1] for row in rows)
        if count:
            found[name] = sum(row[2 * column] for row in rows) / count
    return found


def _moments(wide: Tensor) -> Tensor:
    num = wide.numel()
    # Sums about one of the entries instead of 0: a tensor of equal entries has a deviation of 0 and not of 1e-8.
    pivot = torch.nan_to_num(wide[0], nan=0.0, posinf=0.0, neginf=0.0)
    apart = wide - pivot
    total = apart.sum()
    mean = pivot + total / num
    about = apart.dot(apart) - total * total / num
    zeros = num - _count(wide)
    return torch.stack([torch.full_like(mean, num), _norm(wide), mean, about, zeros, _count(wide - wide)])


def _comparison(branch_BN: Tensor, skip_BN: Tensor) -> Tensor:
    f, x = branch_BN.to(_wide(branch_BN)), skip_BN.to(_wide(skip_BN))
    if f.dtype is torch.float32:  # all three are the same whatever both are divided by
        largest = torch.maximum(f.abs().amax(), x.abs().amax()).clamp_min(torch.finfo(torch.float32).tiny)
        f, x = f / largest, x / largest
    ff, xx, fx = torch.linalg.vecdot(f, f), torch.linalg.vecdot(x, x), torch.linalg.vecdot(f, x)
    yy = ff + 2 * fx + xx
    zero = torch.zeros_like(ff)
    columns = []
    for values, has in (
        ((ff / xx).sqrt(), (ff != 0) | (xx != 0)),
        (fx / (ff.sqrt() * xx.sqrt()), (ff != 0) & (xx != 0)),
        ((ff + fx) / yy, yy != 0),
    ):
        columns += [torch.where(has, values, zero).sum(), has.sum().to(f.dtype)]
    return torch.stack(columns)


def _by_example(tensor: Tensor, num_examples: int) -> Tensor:
    """[B, N]: the first dimension is the batch, or the second (sequence first), or examples times something."""
    if tensor.ndim == 0:
        return tensor.reshape(1, 1)
    if tensor.ndim > 1 and tensor.shape[0] != num_examples == tensor.shape[1]:
        tensor = tensor.transpose(0, 1)
    rows = num_examples if num_examples and tensor.shape[0] % num_examples == 0 else 1
    return tensor.reshape(rows, -1)


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    """Its entries in float64, a piece at a time."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    # In the order in which they lie in memory, so that a channels-last tensor is not copied.
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    flat = tensor.permute(order).reshape(-1)
    size = _piece_of(tensor)
    for start in range(0, flat.numel(), size):
        piece = flat[start : start + size]
        yield piece.to(_wide(piece))


def _norm(wide: Tensor) -> Tensor:
    if wide.dtype is torch.float64:
        return wide.dot(wide).sqrt()
    # The largest is taken out, so that nothing squared underflows in float32.
    largest = wide.abs().amax().clamp_min(torch.finfo(torch.float32).tiny)
    scaled = wide / largest
    return scaled.dot(scaled).sqrt() * largest


def _count(wide: Tensor) -> Tensor:
    """How many entries are not 0 (nan is not); of x - x: how many of x are not finite."""
    return torch.count_nonzero(wide).to(wide.dtype)


def _piece_of(tensor: Tensor) -> int:
    return _PIECE.get(tensor.device.type, _LARGE)


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.float32 if tensor.device.type == "mps" else torch.float64
