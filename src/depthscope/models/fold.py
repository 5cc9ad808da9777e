"""Batch norms folded into the convolutions before them, while a model is evaluated.

In evaluation mode a batch norm is gamma (x - mean) / sqrt(variance + eps) + beta, whose statistics do not depend on the
batch. After a convolution W * x it is one itself, with the weight s W and the bias beta - s mean, where
s = gamma / sqrt(variance + eps).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from operator import attrgetter

import torch
from torch import nn

from depthscope.models.overwrite import declared


@contextlib.contextmanager
def folding(model: nn.Module) -> Iterator[None]:
    """Inside, each batch norm that is named in some `folds` is part of its convolution, and an identity stands for it.

    A module of ours names them as pairs (convolution, normaliser) where nothing else reads the convolution's output.
    Whatever is not a plain convolution without bias before a batch norm as torch makes it stays as it is. What is
    folded is computed in float64 and rounded once, so in float32 outputs differ by some units in the last place. All
    other parts, those of the user's among them, are the model's own, and it has its own back afterwards.

    Args:
        model: in evaluation mode.
    """
    removed: list[tuple[nn.Module, str, nn.Module]] = []
    try:
        for module in list(model.modules()):
            for first, second in declared(module, "folds"):
                conv, norm = attrgetter(first)(module), attrgetter(second)(module)
                if _plain(conv, nn.Conv2d) and _plain(norm, nn.BatchNorm2d) and conv.bias is None:
                    for name, stands_in in ((first, _folded(conv, norm)), (second, nn.Identity())):
                        place, _, key = name.rpartition(".")
                        owner = module.get_submodule(place)
                        removed.append((owner, key, owner.get_submodule(key)))
                        setattr(owner, key, stands_in)
        yield
    finally:
        for owner, key, part in removed:
            setattr(owner, key, part)


def _plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a module does what its class does, evaluates, and nobody listens to it."""
    usual = not isinstance(module, nn.BatchNorm2d) or (
        module.affine and module.running_mean is not None and not module.training
    )
    return type(module) is kind and usual and not module._forward_hooks and not module._forward_pre_hooks


@torch.no_grad()
def _folded(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    """A convolution of its own; neither is changed, and nothing is drawn for it."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    device = "cpu" if conv.weight.device.type == "mps" else conv.weight.device  # MPS has no float64
    mean, variance, gamma, beta, weight = (
        each.detach().to(device, torch.float64)
        for each in (norm.running_mean, norm.running_var, norm.weight, norm.bias, conv.weight)
    )
    scale = gamma / (variance + norm.eps).sqrt()
    made = copy.copy(conv)
    made._parameters = {
        "weight": nn.Parameter((weight * scale[:, None, None, None]).to(conv.weight), requires_grad=False),
        "bias": nn.Parameter((beta - scale * mean).to(conv.weight), requires_grad=False),
    }
    return made
