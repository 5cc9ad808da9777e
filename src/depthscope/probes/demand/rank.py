"""Effective rank of a representation: in how many directions its examples differ."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthscope.core.structure import Structure
from depthscope.probes.demand.cost import Cost
from depthscope.probes.demand.rows import as_rows, is_sequence
from depthscope.probes.demand.spectra import wide

MAX_ROWS = 2048
"""Rows that are looked at: the decomposition costs their cube, where there are more columns than rows."""

NOISE = 4
"""Rows that differ by less than this many roundings of their own dtype, root mean square, are equal: a float32 network
whose examples have all become one point still holds differences of 1e-7, in every direction."""


def effective_rank(h: Tensor, *, sequence: bool = True) -> tuple[float, int]:
    """Exponential of the entropy of p_i = s_i^2 / sum s^2, s the singular values of h centred over its rows.

    Roy and Vetterli 2007 (The effective rank) take the singular values themselves; their squares are the variances
    along the principal directions, as in a principal component analysis. Between 1 (all rows on one line) and
    `rank_limit`; 0 where all rows are equal up to their dtype's rounding, which is no direction at all.

    Of more than 2048 rows, 2048 at equal distances are taken.

    Args:
        h: a boundary tensor, see `rows`.
        sequence: three dimensions are [B, T, F], not [B, C, L].

    Returns:
        The effective rank, nan where h is not finite; and the greatest that it could be: min(rows - 1, columns).

    >>> h = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> [round(each, 12) for each in effective_rank(h)]
    [2.0, 2]
    >>> [round(each, 12) for each in effective_rank(h[:2])]
    [1.0, 1]
    """
    rows_NF = as_rows(h.detach(), sequence=sequence)
    if len(rows_NF) > MAX_ROWS:
        rows_NF = rows_NF[:: -(-len(rows_NF) // MAX_ROWS)]
    limit = max(min(len(rows_NF) - 1, rows_NF.shape[1]), 0)
    if not limit:
        return 0.0, 0
    eps = torch.finfo(h.dtype).eps
    rows_NF = wide(rows_NF)
    scale = rows_NF.abs().max()
    # Squares of numbers near the ends of the dtype's range would overflow or vanish.
    rows_NF = rows_NF / torch.where(scale > 0, scale, torch.ones_like(scale))
    centred_NF = rows_NF - rows_NF.mean(0)
    wide_table = centred_NF.shape[1] > centred_NF.shape[0]
    gram = centred_NF @ centred_NF.T if wide_table else centred_NF.T @ centred_NF
    gram = gram.cpu().double()
    if not bool(gram.isfinite().all()):
        return math.nan, limit
    total = float(gram.trace())
    if total <= (NOISE * eps) ** 2 * float(rows_NF.square().sum()):
        return 0.0, limit
    p = torch.linalg.eigvalsh(gram).clamp(min=0) / total
    return float(torch.exp(-torch.special.xlogy(p, p).sum())), limit


def cost(structure: Structure, num_examples: int) -> Cost:
    """Of the effective rank at every boundary, during one forward pass.

    The decompositions cost no pass of the model: their time is that of a cube of rows or columns, the fewer.

    Args:
        structure: of the model.
        num_examples: in the batch.
    """
    num_bytes = order = 0
    for boundary in structure.boundaries:
        positions = boundary.shape[0] if is_sequence(structure, boundary.index) else 1
        rows, columns = min(num_examples * positions, MAX_ROWS), math.prod(boundary.shape) // max(positions, 1)
        # The table in float64 and about its mean, its products, and the workspace of their decomposition.
        num_bytes = max(num_bytes, 8 * (2 * rows * columns + 2 * min(rows, columns) ** 2))
        order = max(order, min(rows, columns))
    note = f"and an eigenvalue decomposition of order {order} or less at each of {len(structure.boundaries)} boundaries"
    return Cost(what="effective rank", forwards=1, backwards=0, num_bytes=num_bytes, note=note)
