"""What examples share: the part of a signal that batch norm subtracts, and mean-field theory asks for."""

from __future__ import annotations

import torch
from torch import Tensor


def common(index: int, tensor: Tensor) -> dict[str, Tensor]:
    """`common` of a boundary tensor, as a reducer of `profile_model`: a part from 0 to 1.

    The first dimension is that of examples; of an image [B, C, ...] the mean is over positions too, as batch norm takes
    it. A tensor that is 0 throughout, has one example, or is not finite, gives none.

    Args:
        index: of the boundary.
        tensor: detached.

    >>> x = torch.tensor([[1.0, 3.0], [1.0, -3.0]])
    >>> round(float(common(0, x)["common"]), 12)
    0.1
    """
    if tensor.is_complex() or tensor.ndim < 2 or tensor.shape[0] < 2 or not tensor.numel():
        return {}
    wide = tensor.to(torch.float32 if tensor.device.type == "mps" else torch.float64)
    largest = wide.abs().amax()
    if not bool(torch.isfinite(largest)) or not bool(largest > 0):
        return {}
    wide = wide / largest
    over = (0, *range(2, wide.ndim)) if wide.ndim > 3 else (0,)
    return {"common": wide.mean(dim=over).square().mean() / wide.square().mean()}
