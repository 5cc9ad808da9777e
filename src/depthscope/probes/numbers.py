"""Digests of tensors: two trainings ended in the same place, bit for bit, or they did not."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from depthscope.core.hashing import array_digest, combined_digest


def weights_digest(state_dict: Mapping[str, Tensor]) -> str:
    """One digest of every tensor in a state dict: names, dtypes, shapes and bits.

    The device and the order of the names do not matter.

    >>> a = {"w": torch.zeros(2), "b": torch.zeros(1)}
    >>> weights_digest(a) == weights_digest({"b": torch.zeros(1), "w": torch.zeros(2)})
    True
    >>> weights_digest(a) == weights_digest({"w": torch.zeros(2), "b": -torch.zeros(1)})
    False
    """
    return combined_digest({name: tensor_digest(tensor) for name, tensor in state_dict.items()})


def tensor_digest(tensor: Tensor) -> str:
    """Digest of one tensor's dtype, shape and bits."""
    plain = tensor.detach().cpu()
    # NumPy has no bfloat16: take its bits.
    return array_digest((plain.view(torch.int16) if plain.dtype is torch.bfloat16 else plain).numpy())
