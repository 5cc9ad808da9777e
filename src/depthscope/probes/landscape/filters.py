"""Which slice of a parameter is a filter: the weights of one output unit, by the module that holds it.

| parameter | its filters |
| --- | --- |
| of `Linear`, `Bilinear`, `Conv1d` to `Conv3d`, recurrent cells, attention's projections | slices of dimension 0 |
| of `Embedding`, `EmbeddingBag` | rows (dimension 0): one a token |
| of `ConvTranspose1d` to `3d` [in, out / groups, ...] | of dimension 1, of each group: one an output channel |
| of `Conv1D` of transformers [in, out] | columns (dimension 1) |
| of a normaliser; biases; any of one dimension or none | none |
| any other | slices of dimension 0, as the code of Li et al. takes them |

A parameter that several modules share is of the first of them, in the order of `named_modules`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from depthscope.core.errors import UserError

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """How a parameter falls into filters.

    Attributes:
        axis: the dimension along which the filters lie; None where the parameter has none.
        groups: of a transposed convolution; 1 elsewhere.
    """

    axis: int | None
    groups: int = 1

    def norms(self, tensor: Tensor) -> Tensor:
        """Norm of each filter, shaped so that it broadcasts against `grouped(tensor)`."""
        assert self.axis is not None
        view = self.grouped(tensor)
        kept = (0, self.axis + 1)
        return view.square().sum([dim for dim in range(view.ndim) if dim not in kept], keepdim=True).sqrt()

    def shaped(self, values: Tensor, tensor: Tensor) -> Tensor:
        """One value a filter, in the order of output units, shaped like `norms(tensor)`."""
        assert self.axis is not None
        shape = [self.groups, *[1] * tensor.ndim]
        shape[self.axis + 1] = values.numel() // self.groups
        return values.view(shape)

    def grouped(self, tensor: Tensor) -> Tensor:
        """A view with the groups, which dimension 0 holds one after another, as a dimension in front."""
        return tensor.reshape(self.groups, tensor.shape[0] // self.groups, *tensor.shape[1:])


def trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, Filters]]:
    """Name, values and filters of each parameter that is trained, once each, in the model's order.

    Raises:
        UserError: a parameter has no values yet, or is complex.
    """
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for local, parameter in module._parameters.items():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if not parameter.requires_grad:
                continue
            name = f"{prefix}.{local}" if prefix else local
            if nn.parameter.is_lazy(parameter) or parameter.is_meta:
                raise UserError(f"landscape: {name} has no values yet. Run the model on one batch first.")
            if parameter.is_complex():
                raise UserError(
                    f"landscape: {name} is complex; wanted real parameters. Freeze it: requires_grad_(False)."
                )
            yield name, parameter, filters_of(module, local, parameter)


def filters_of(module: nn.Module, local: str, parameter: Tensor) -> Filters:
    """Those of a parameter that a module holds under the name `local`; see the table above."""
    kind: Any = type(module)
    norm = isinstance(module, _NORMS) or kind.__name__.endswith("Norm")
    if parameter.ndim < 2 or norm or local.startswith("bias"):
        return Filters(axis=None)
    if isinstance(module, _TRANSPOSED):
        return Filters(axis=1, groups=module.groups)
    named = {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in kind.__mro__}
    return Filters(axis=1 if "transformers.Conv1D" in named else 0)


def scale_to(drawn: Tensor, weight: Tensor, filters: Filters) -> Tensor:
    """`drawn` with each filter scaled to the norm of the weight's filter; 0 where that is 0."""
    assert math.prod(drawn.shape) == weight.numel()
    factor = filters.norms(weight) / filters.norms(drawn)
    return (filters.grouped(drawn) * factor.nan_to_num(0.0)).reshape(drawn.shape)
