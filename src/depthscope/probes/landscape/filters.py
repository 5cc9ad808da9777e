"""Which slice of a parameter is a filter: the weights of one output unit, by the module that holds it.

| parameter | its filters |
| --- | --- |
| of `Linear`, `Bilinear`, `Conv1d` to `Conv3d`, recurrent cells, attention's projections | slices of dimension 0 |
| of `Embedding`, `EmbeddingBag` | rows (dimension 0): one a token |
| of `ConvTranspose1d` to `3d` [in, out / groups, ...] | of dimension 1, of each group: one an output channel |
| of `Conv1D` of transformers [in, out] | columns (dimension 1) |
| of a normaliser; biases; any of one dimension or none | none |
| any other of whose slices of dimension 0 each has one entry: gains, as weight norm's and layer scale are | none |
| any other | slices of dimension 0, as the code of Li et al. takes them |

A normaliser is one of torch's, or a module whose class is called so (`...Norm`) and which is none of the layers above.
Of a weight that is made from others, the one that is shaped like it (`original`, `original1`, `weight_v`,
`weight_orig`) has the filters that the weight has in its layer; weight norm's gain (`original0`, `weight_g`) has none.

A parameter that several modules share is of the first of them, in the order of `named_modules`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.parametrizations import _WeightNorm
from torch.nn.utils.parametrize import ParametrizationList, is_parametrized
from torch.nn.utils.weight_norm import WeightNorm

from depthscope.core.errors import UserError

_LAYERS = (
    *(nn.Linear, nn.Bilinear, _ConvNd, nn.Embedding, nn.EmbeddingBag),
    *(nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention),
)
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
    holders = _holders(model)
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
            holder, of = holders.get(module, (module, local))
            yield name, parameter, Filters(axis=None) if _is_gain(module, local) else filters_of(holder, of, parameter)


def _holders(model: nn.Module) -> dict[nn.Module, tuple[nn.Module, str]]:
    """Of each list of parametrisations the module whose tensor it makes, and the tensor's name there."""
    found: dict[nn.Module, tuple[nn.Module, str]] = {}
    for module in model.modules():
        if is_parametrized(module):
            lists: Any = module.parametrizations
            found |= {each: (module, name) for name, each in lists.items()}
    return found


def _is_gain(module: nn.Module, local: str) -> bool:
    """Whether it is that of weight norm, in torch's newer way or in its older one."""
    if isinstance(module, ParametrizationList):
        return local == "original0" and isinstance(module[0], _WeightNorm)
    hooks = module._forward_pre_hooks.values()
    return any(isinstance(each, WeightNorm) and local == f"{each.name}_g" for each in hooks)


def filters_of(module: nn.Module, local: str, parameter: Tensor) -> Filters:
    """Those of a parameter that a module holds under the name `local`; see the table above."""
    kind: Any = type(module)
    layer = isinstance(module, _LAYERS)
    norm = isinstance(module, _NORMS) or (kind.__name__.endswith("Norm") and not layer)
    if parameter.ndim < 2 or norm or local.startswith("bias"):
        return Filters(axis=None)
    if isinstance(module, _TRANSPOSED) and tuple(parameter.shape) == (
        module.in_channels,
        module.out_channels // module.groups,
        *module.kernel_size,
    ):
        return Filters(axis=1, groups=module.groups)
    named = {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in kind.__mro__}
    if "transformers.Conv1D" in named:
        return Filters(axis=1)
    single = parameter.numel() == parameter.shape[0]
    return Filters(axis=None if single and not (layer and "weight" in local) else 0)


def scale_to(drawn: Tensor, weight: Tensor, filters: Filters) -> Tensor:
    """`drawn` with each filter scaled to the norm of the weight's filter; 0 where that is 0."""
    assert math.prod(drawn.shape) == weight.numel()
    factor = filters.norms(weight) / filters.norms(drawn)
    return (filters.grouped(drawn) * factor.nan_to_num(0.0)).reshape(drawn.shape)
