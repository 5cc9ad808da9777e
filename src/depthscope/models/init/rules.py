"""What each standard module's tensors start as without a draw, and the shape of those that are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from depthscope.models.layers.attention import Table

Array = NDArray[Any]

NORMALISERS: tuple[type[nn.Module], ...] = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
"""Modules whose `weight` is a scale and whose `bias` is a shift."""


@dataclass(frozen=True, kw_only=True)
class Weight:
    """A weight that is to be drawn, [out, in, *kernel].

    Attributes:
        name: of the parameter, fully qualified.
        shape: of the tensor.
        fan_in: the number of inputs that one output sums over.
        fan_out: the number of outputs that one input reaches, where stride and groups are 1.
        parts: matrices that it holds one below the other, each a map of its own: the groups of a convolution, the
            three projections that attention keeps together, the gates of a recurrent cell.
        gain: factor on the initialiser's standard deviation.
    """

    name: str
    shape: tuple[int, ...]
    fan_in: int
    fan_out: int
    parts: int = 1
    gain: float = 1.0

    @property
    def kernel(self) -> tuple[int, ...]:
        """Size of the kernel; empty for a matrix."""
        return self.shape[2:]

    @property
    def num_out(self) -> int:
        """Outputs of one part."""
        return self.shape[0] // self.parts

    @property
    def num_in(self) -> int:
        """Inputs of one part."""
        return self.shape[1]


def fans(weight: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight stored as torch does: [out, in / groups, *kernel].

    fan_in is the number of inputs that one output sums over. fan_out is `out` times the kernel's size:
    the number of outputs that one input reaches where stride and groups are 1, as in the paper.
    """
    kernel = math.prod(weight.shape[2:])
    return weight.shape[1] * kernel, weight.shape[0] * kernel


def weight_of(name: str, module: nn.Module, own_name: str, gain: float) -> Weight | None:
    """The weight behind a tensor that initialisers draw; None for any other.

    - Weights of linear layers and convolutions (not of transposed ones), and of their subclasses. A linear layer that
      holds several maps one below the other says so in an attribute `parts`.
    - Attention's projections: each matrix by itself; the joint `in_proj_weight` holds three.
    - The tables of our transformers, which are a tied head's weight.
    """
    tensor = getattr(module, own_name)
    shape = tuple(tensor.shape)
    if own_name == "weight" and (is_weighted(module) or isinstance(module, Table)):
        fan_in, fan_out = fans(tensor)
        if isinstance(module, _ConvNd):
            parts = module.groups
        else:
            parts = getattr(module, "parts", 1)  # maps of their own that a linear layer of ours says it holds
            fan_out //= parts
    elif isinstance(module, nn.MultiheadAttention) and own_name.endswith("_proj_weight"):
        parts = 3 if own_name == "in_proj_weight" else 1
        fan_in, fan_out = shape[1], shape[0] // parts
    else:
        return None
    return Weight(name=name, shape=shape, fan_in=fan_in, fan_out=fan_out, parts=parts, gain=gain)


def is_weighted(module: nn.Module) -> bool:
    """Whether it is a linear layer or a convolution (not a transposed one)."""
    return isinstance(module, nn.Linear | _ConvNd) and not isinstance(module, _ConvTransposeNd)


def declared_value(module: nn.Module, own_name: str) -> float | None:
    """What a module of ours says that its own tensor starts as, in an attribute `initial`; None where it does not."""
    initial = getattr(module, "initial", None)
    return initial.get(own_name) if isinstance(initial, Mapping) else None


def fixed_value(module: nn.Module, own_name: str) -> float | None:
    """What a tensor starts as without a draw; None where there is no such rule.

    What the module declares; biases 0; normalisers: scale 1, shift 0, running mean 0, running variance 1, counter 0.
    """
    declared = declared_value(module, own_name)
    if declared is not None:
        return declared
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


def is_embedding(module: nn.Module, own_name: str) -> bool:
    """Whether a tensor is a table of embeddings.

    They are drawn from N(0, gain^2) by every initialiser: a look-up sums over one row, so this is unit variance;
    it is PyTorch's own default. Not so a `Table`, which is drawn as a weight.
    """
    embeds = isinstance(module, nn.Embedding | nn.EmbeddingBag) and not isinstance(module, Table)
    return embeds and own_name == "weight"


def bits(tensor: Tensor) -> Tensor:
    """The tensor as NumPy can hold it: it has no bfloat16, so that is taken as its bits."""
    return tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor
