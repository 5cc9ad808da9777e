"""Tensors among the arguments and results of an operation, and where they lie in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor


def tensor_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    """Tensors among arguments, and in lists of them, in order."""
    for each in (*args, *kwargs.values()):
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from (item for item in each if isinstance(item, Tensor))


@dataclass(frozen=True)
class Region:
    """Which entries of its storage a tensor takes.

    Attributes:
        offset: of the first.
        sizes: lengths of the dimensions longer than 1, by falling stride.
        strides: of those.
    """

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(tensor: Tensor) -> Region:
        """The region of a tensor; dimensions that lie behind one another count as one, whatever the view."""
        merged: list[list[int]] = []
        for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True), reverse=True):
            if size == 1:
                continue
            if merged and merged[-1][0] == stride * size:
                merged[-1] = [stride, merged[-1][1] * size]
            else:
                merged.append([stride, size])
        sizes, strides = tuple(size for _, size in merged), tuple(stride for stride, _ in merged)
        return Region(int(tensor.storage_offset()), sizes, strides)

    def apart(self, other: Region) -> bool:
        """Whether two regions surely share no entry: they lie behind one another, or are pieces of one tensor.

        With strides s_1 > s_2 > ... in both, entries meet where the difference of the offsets is a sum of d_k s_k with
        -size_k(high) < d_k < size_k(low).
        """
        low, high = sorted((self, other), key=lambda each: each.offset)
        reach = sum((size - 1) * stride for size, stride in zip(low.sizes, low.strides, strict=True))
        if low.offset + reach < high.offset:
            return True
        if self.strides != other.strides:
            return False
        rest = high.offset - low.offset
        if self.strides and self.strides[-1] and rest % math.gcd(*self.strides):
            return True  # such as two columns
        before = 0
        for size, other_size, stride in zip(low.sizes, high.sizes, low.strides, strict=True):
            if not stride:
                return False
            if rest // stride >= size and (not before or (before - rest) // stride >= other_size):
                return True
            before, rest = stride, rest % stride
        return False
