"""What each standard module's tensors start as: the fixed values, and the spread of those that are drawn.

Variances are those of He et al. 2015 (arXiv 1502.01852, equations 10 and 14): 2/fan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

FANS: Mapping[str, str] = MappingProxyType({"he_fan_in": "in", "he_fan_out": "out"})
"""Name of an initialiser -> the fan that its variance 2/fan is made of."""

NORMALISERS: tuple[type[nn.Module], ...] = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
"""Modules whose `weight` is a scale and whose `bias` is a shift."""


def fans(weight: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight stored as torch does: [out, in / groups, *kernel].

    fan_in is the number of inputs that one output sums over. fan_out is `out` times the kernel's size:
    the number of outputs that one input reaches where stride and groups are 1, as in the paper.
    """
    kernel = math.prod(weight.shape[2:])
    return weight.shape[1] * kernel, weight.shape[0] * kernel


def standard_deviation(module: nn.Module, own_name: str, init: str) -> float | None:
    """Of the zero-mean normal draw of a tensor; None where it is not one that `init` draws.

    - Weights of linear layers and convolutions (not of transposed ones): sqrt(2/fan).
    - Attention's projections: sqrt(2/fan) of each matrix by itself; the joint `in_proj_weight` holds three.
    - Embeddings: 1. A look-up sums over one row, so this is unit variance; it is PyTorch's own default.
    """
    weight = getattr(module, own_name)
    if isinstance(module, nn.Embedding | nn.EmbeddingBag) and own_name == "weight":
        return 1.0
    if isinstance(module, nn.Linear | _ConvNd) and not isinstance(module, _ConvTransposeNd) and own_name == "weight":
        pair = fans(weight)
    elif isinstance(module, nn.MultiheadAttention) and own_name.endswith("_proj_weight"):
        matrices = 3 if own_name == "in_proj_weight" else 1
        pair = weight.shape[1], weight.shape[0] // matrices
    else:
        return None
    return math.sqrt(2 / pair[0 if FANS[init] == "in" else 1])


def fixed_value(module: nn.Module, own_name: str) -> float | None:
    """What a tensor starts as without a draw; None where there is no such rule.

    Biases 0; normalisers: scale 1, shift 0, running mean 0, running variance 1, counter 0.
    """
    if isinstance(module, NORMALISERS):
        return {
            "weight": 1.0,
            "running_var": 1.0,
            "bias": 0.0,
            "running_mean": 0.0,
            "num_batches_tracked": 0.0,
        }.get(own_name)
    if isinstance(module, nn.Linear | _ConvNd) and own_name == "bias":
        return 0.0
    if isinstance(module, nn.MultiheadAttention) and own_name == "in_proj_bias":
        return 0.0
    return None


def zeroed_row(module: nn.Module, own_name: str) -> int | None:
    """The row of an embedding that stands for padding and stays 0."""
    if isinstance(module, nn.Embedding | nn.EmbeddingBag) and own_name == "weight":
        return module.padding_idx
    return None


def bits(tensor: Tensor) -> Tensor:
    """The tensor as NumPy can hold it: it has no bfloat16, so that is taken as its bits."""
    return tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor
