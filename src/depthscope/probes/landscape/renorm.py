"""Running statistics of batch norm, estimated anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from depthscope.probes.measure.batch import Batch
from depthscope.probes.measure.passes import told


def normalisers(model: nn.Module) -> list[_NormBase]:
    """Those that keep running statistics."""
    return [each for each in model.modules() if isinstance(each, _NormBase) and each.running_mean is not None]


def reestimated(model: nn.Module, batches: Sequence[Batch]) -> None:
    """Put averages over batches in place of running statistics; see `surface.Surface`.

    Torch's own cumulative average (`momentum=None`) counts every batch alike. Here a batch's share is its number of
    entries a channel, also where a normaliser runs several times in a pass.

    Args:
        model: in evaluation mode, in which it is again afterwards. One pass over each batch.
        batches: as `Batch.fresh` gives them.
    """
    found = normalisers(model)
    if not found:
        return
    counted: dict[int, int] = {}

    def weigh(module: Any, inputs: tuple[Tensor, ...]) -> None:
        num = inputs[0].numel() // max(module.num_features, 1)
        counted[id(module)] = counted.get(id(module), 0) + num
        module.momentum = num / counted[id(module)]

    momenta = [each.momentum for each in found]
    hooks = [each.register_forward_pre_hook(weigh) for each in found]
    try:
        for each in found:
            each.reset_running_stats()  # a share of 0 of an old inf would be nan
            each.train()
        for batch in batches:
            args, kwargs, _ = batch.fresh()
            with told(model, batch):
                model(*args, **kwargs)
    finally:
        for each, momentum in zip(found, momenta, strict=True):
            each.eval()
            each.momentum = momentum
        for hook in hooks:
            hook.remove()
