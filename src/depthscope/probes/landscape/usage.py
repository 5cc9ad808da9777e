"""Who reads what in a forward pass: which batch norms may be folded, and which inputs may be overwritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.probes.guard import as_found
from depthscope.probes.measure.batch import Batch
from depthscope.probes.mode import Mode
from depthscope.probes.trace import tensors_of

_LAYERS = (
    nn.Linear,
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What was found, by the names of modules.

    Attributes:
        folds: (layer, batch norm) where the norm's input is the layer's output, which nothing else reads.
        overwrites: ReLUs whose input was made in the pass, and is read by nothing else.
    """

    folds: tuple[tuple[str, str], ...]
    overwrites: tuple[str, ...]


def usage_of(model: nn.Module, batch: Batch) -> Usage:
    """Read it from one pass of a model in evaluation mode, which is left as found.

    Only modules of torch's very own classes are taken, since a subclass may use its weight otherwise; of those, layers
    that run once and whose parameters are theirs alone, before a batch norm with running statistics that runs once.
    """
    names = {module: name for name, module in model.named_modules()}
    owners = Counter(id(each) for module in names for each in module._parameters.values())
    made: dict[int, nn.Module] = {}
    layer_runs: Counter[nn.Module] = Counter()
    reads: list[tuple[nn.Module, Tensor]] = []

    def gives(module: nn.Module, _inputs: Any, output: Tensor) -> None:
        layer_runs[module] += 1
        made[_place(output)] = module

    def takes(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        reads.append((module, inputs[0]))

    with as_found(model), torch.no_grad(), _Readers() as readers:
        for module in names:
            if type(module) in _LAYERS:
                module.register_forward_hook(gives)
            elif type(module) in (*_NORMS, nn.ReLU):
                module.register_forward_pre_hook(takes)
        args, kwargs, _ = batch.fresh()
        shown = {_place(each) for each in tensors_of(model(*args, **kwargs))}
    free = {place for place in readers.made if readers.counted[place] == 1} - shown
    times = Counter(module for module, _ in reads)
    folds = []
    for module, tensor in reads:
        layer: Any = made.get(_place(tensor))
        if (
            type(module) is not nn.ReLU
            and getattr(module, "running_mean", None) is not None
            and not module.training
            and _place(tensor) in free
            and layer is not None
            and times[module] == layer_runs[layer] == 1
            and _own(layer, owners)
            and (tensor.ndim == 2 or type(layer) is not nn.Linear)  # else its outputs are not the norm's channels
        ):
            folds.append((names[layer], names[module]))
    kept = {module for module, tensor in reads if _place(tensor) not in free}
    relus = dict.fromkeys(module for module, _ in reads if type(module) is nn.ReLU and module not in kept)
    return Usage(folds=tuple(folds), overwrites=tuple(names[each] for each in relus))


class _Readers(Mode):
    """Counts the operations that read each piece of memory, and knows which pieces operations made."""

    eager_only = True

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counter[int] = Counter()
        self.made: set[int] = set()
        self._alive: list[Tensor] = []  # or else another tensor would take a place that is free again

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note what `func` reads, run it, and note what it made."""
        kwargs = dict(kwargs or {})
        read = {_place(each): each for each in tensors_of((args, kwargs))}
        self.counted.update(read.keys())
        self._alive.extend(read.values())
        found = func(*args, **kwargs)
        for each in tensors_of(found):
            if _place(each) not in self.counted:
                self.made.add(_place(each))
                self._alive.append(each)
        return found


def _own(layer: Any, owners: Counter[int]) -> bool:
    held = layer._parameters
    mine = [each for each in (held.get("weight"), held.get("bias")) if each is not None]
    return held.get("weight") is not None and all(owners[id(each)] == 1 for each in mine)


def _place(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
