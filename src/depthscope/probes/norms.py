"""Norms of many tensors, reduced in float64 where they lie, and brought over in one transfer.

Why float64: the square of 1e-24 is no float32, so that a norm of such entries would be 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_CHUNK = 1 << 16
"""Entries converted to float64 at a time on a CPU: half a megabyte, which stays in its cache."""


@torch.no_grad()
def norms(tensors: Sequence[Tensor]) -> Tensor:
    """Frobenius norm of each of at least one tensor, without waiting for the device.

    Args:
        tensors: of any shape, dtype and device; sparse and complex ones too.

    Returns:
        [N], float64 (float32 on MPS, which has no other), on the device of the first.

    >>> [f"{norm:.5g}" for norm in norms([torch.full((10,), 1e-24), torch.tensor([3.0, 4.0])]).tolist()]
    ['3.1623e-24', '5']
    """
    dense = [_dense(each) for each in tensors]
    groups: dict[str, list[int]] = {}
    for index, tensor in enumerate(dense):
        groups.setdefault(f"{tensor.device} {tensor.dtype}", []).append(index)
    if len(groups) == 1:
        return _of_one_kind(dense)
    where = dense[0].device
    measured = torch.empty(len(dense), dtype=_wide(where), device=where)
    for indices in groups.values():
        part = _of_one_kind([dense[index] for index in indices])
        measured[torch.tensor(indices, device=where)] = part.to(where, _wide(where), non_blocking=True)
    return measured


def to_host(tensors: Sequence[Tensor]) -> list[list[float]]:
    """The numbers in one-dimensional tensors, by one transfer from each device that holds some."""
    found: list[list[float]] = [[] for _ in tensors]
    devices: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        devices.setdefault(tensor.device, []).append(index)
    for device, indices in devices.items():
        numbers = torch.cat([tensors[index].detach().to(_wide(device)) for index in indices]).tolist()
        start = 0
        for index in indices:
            end = start + tensors[index].numel()
            found[index] = numbers[start:end]
            start = end
    return found


def total(values: Sequence[float]) -> float:
    """The norm of a vector in pieces, from the norms of the pieces.

    >>> total([3.0, 4.0])
    5.0
    """
    return math.hypot(*values)


def _wide(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def _dense(tensor: Tensor) -> Tensor:
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        # `coalesce` adds up entries that are listed twice; it leaves the tensor itself as it is.
        plain = plain.coalesce().values() if plain.layout is torch.sparse_coo else plain.to_dense()
    return torch.view_as_real(plain.resolve_conj()) if plain.is_complex() else plain


def _of_one_kind(tensors: list[Tensor]) -> Tensor:
    kind = tensors[0].device.type
    if kind == "cpu":
        return torch.stack([_sum_of_squares(each) for each in tensors]).sqrt()
    if kind == "mps":
        return torch.stack([_scaled_norm(each) for each in tensors])
    try:
        # Far fewer kernels than tensors. Private in name; torch's own clip_grad_norm_ stands on it.
        return torch.stack(torch._foreach_norm(tensors, 2, torch.float64))
    except (TypeError, RuntimeError, NotImplementedError):  # a device or a torch without it
        return torch.stack([torch.linalg.vector_norm(each, dtype=torch.float64) for each in tensors])


def _sum_of_squares(tensor: Tensor) -> Tensor:
    flat = tensor.reshape(-1)
    if flat.numel() <= _CHUNK:
        wide = flat.double()
        return wide.dot(wide)
    # Chunk by chunk: converting the whole costs its size twice over again, and three times as long.
    wide = torch.empty(_CHUNK, dtype=torch.float64)
    summed = torch.zeros((), dtype=torch.float64)
    for chunk in flat.split(_CHUNK):  # type: ignore[no-untyped-call]
        part = wide[: chunk.numel()].copy_(chunk)
        summed += part.dot(part)
    return summed


def _scaled_norm(tensor: Tensor) -> Tensor:
    if tensor.numel() == 0:
        return torch.zeros((), dtype=torch.float32, device=tensor.device)
    # The largest entry is taken out, so that nothing squared underflows in float32.
    flat = tensor.float().reshape(-1)
    largest = flat.abs().amax()
    scaled: Tensor = torch.linalg.vector_norm(flat / largest.clamp_min(torch.finfo(torch.float32).tiny))
    return scaled * largest
