"""Where to measure a model that does not say so itself."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from depthscope.core.profile import Point
from depthscope.probes.guard import undisturbed


def find_points(model: nn.Module, inputs: Tensor) -> tuple[Point, ...]:
    """The layers with a weight matrix, in the order in which one forward pass calls them.

    A layer is a module without children whose `weight` is a parameter of two or more dimensions, as that of a
    linear layer or a convolution, and not that of a normaliser. Its h is its own output, before whatever follows.
    A module that the pass does not call, calls more than once, or that gives no tensor, has no single h, and is
    left out.

    Args:
        model: any module; a copy of it is run, in evaluation mode.
        inputs: a batch; two examples are enough.

    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LayerNorm(3), nn.Linear(3, 2))
    >>> [(point.layer, point.kind) for point in find_points(net, torch.zeros(2, 2))]
    [('0', 'linear'), ('3', 'linear')]
    """
    with undisturbed(inputs.device), torch.no_grad():
        run = copy.deepcopy(model).eval()
        layers = {name: module for name, module in run.named_modules() if _is_layer(module)}
        calls: list[tuple[str, bool]] = []
        for name, module in layers.items():
            module.register_forward_hook(_note(name, calls))
        run(inputs)
    counts = Counter(name for name, _ in calls)
    names = [name for name, is_tensor in calls if is_tensor and counts[name] == 1]
    return tuple(
        Point(layer=name, kind=_kind(layers[name]), weight=f"{name}.weight" if name else "weight", output=name)
        for name in names
    )


def _note(name: str, calls: list[tuple[str, bool]]) -> Callable[[nn.Module, object, object], None]:
    def on_output(_module: nn.Module, _inputs: object, output: object) -> None:
        calls.append((name, isinstance(output, Tensor) and output.is_floating_point()))

    return on_output


def _is_layer(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return not any(module.children()) and isinstance(weight, nn.Parameter) and weight.ndim >= 2


def _kind(module: nn.Module) -> str:
    if isinstance(module, nn.Linear):
        return "linear"
    return "conv" if isinstance(module, _ConvNd) else type(module).__name__.lower()
