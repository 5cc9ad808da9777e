"""Tensors among the arguments and results of an operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor


def tensor_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    """Tensors among arguments, and in lists of them, in order."""
    for each in (*args, *kwargs.values()):
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from (item for item in each if isinstance(item, Tensor))
