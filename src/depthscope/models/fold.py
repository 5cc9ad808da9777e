"""Batch norms folded into the convolutions before them, for a model that is only evaluated.

In evaluation mode a batch norm is gamma (x - mean) / sqrt(variance + eps) + beta, whose statistics do not depend on the
batch. After a convolution W * x it is one itself, with the weight s W and the bias beta - s mean, where
s = gamma / sqrt(variance + eps).
"""

from __future__ import annotations

import copy
from operator import attrgetter

import torch
from torch import nn


def folded(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode, in which each batch norm named in some `folds` is part of its convolution.

    A module names them as pairs (convolution, normaliser) where nothing else reads the convolution's output. Whatever
    is not a plain convolution without bias before a batch norm as torch makes it stays as it is. What is folded
    is computed in float64 and rounded once, so in float32 outputs differ by some units in the last place.

    Args:
        model: is left as it is.
    """
    made = copy.deepcopy(model).eval()
    for module in list(made.modules()):
        for first, second in getattr(module, "folds", ()):
            conv, norm = attrgetter(first)(module), attrgetter(second)(module)
            if _plain(conv, nn.Conv2d) and _plain(norm, nn.BatchNorm2d) and conv.bias is None:
                _fold(conv, norm)
                owner, _, name = second.rpartition(".")
                setattr(module.get_submodule(owner), name, nn.Identity())
    return made


def _plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a module does what its class does, and nobody listens to it."""
    usual = not isinstance(module, nn.BatchNorm2d) or (module.affine and module.running_mean is not None)
    return type(module) is kind and usual and not module._forward_hooks and not module._forward_pre_hooks


@torch.no_grad()
def _fold(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    device = "cpu" if conv.weight.device.type == "mps" else conv.weight.device  # MPS has no float64
    mean, variance, gamma, beta, weight = (
        each.detach().to(device, torch.float64)
        for each in (norm.running_mean, norm.running_var, norm.weight, norm.bias, conv.weight)
    )
    scale = gamma / (variance + norm.eps).sqrt()
    conv.weight.copy_(weight * scale[:, None, None, None])
    conv.bias = nn.Parameter((beta - scale * mean).to(conv.weight))
