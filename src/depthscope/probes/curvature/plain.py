"""Operations of torch whose second derivative is wrong or missing, by plain ones that compute the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """What `torch._weight_norm` gives: g v / |v|, the norm over all axes but `dim` (-1: over all).

    The fused one takes |v| for a constant where its gradient is differentiated.
    """
    norm: Tensor = torch.norm_except_dim(v, 2, dim)
    return v * (g / norm)


PLAIN: Mapping[Any, Callable[..., Any]] = MappingProxyType({torch._weight_norm: weight_norm})


class PlainOperations(TorchFunctionMode):
    """Within it, each of `PLAIN` is run by its plain twin.

    Attributes:
        used: whether one was.
    """

    used = False

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """See `TorchFunctionMode`."""
        del types
        self.used |= func in PLAIN
        return PLAIN.get(func, func)(*args, **(kwargs or {}))
