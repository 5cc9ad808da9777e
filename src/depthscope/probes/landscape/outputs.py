"""What a model gave, as a judge gets it, and the means that the judge makes of it."""

from __future__ import annotations

import copy
from collections.abc import MutableMapping
from typing import Any, Self

import torch
from torch import Tensor


class MeanOf(float):
    """A figure of a batch that is a mean over `num` of its targets, by which it weighs; 0: it is nothing, and nan.

    A figure that is a plain number weighs by its batch's number of examples.
    """

    num: int

    def __new__(cls, value: float, num: int) -> Self:
        """Of a value, and how many it is the mean of."""
        found = super().__new__(cls, value)
        found.num = num
        return found


def widened(output: Any) -> Any:
    """An output with its tensors of 16 bits in float32, so that what is found of them is not rounded to 16 bits too.

    Looked into are lists, tuples, mappings and objects with attributes, such as a Hugging Face model's output; of those
    that hold such tensors shallow copies are made.
    """
    if isinstance(output, Tensor):
        return output.float() if output.dtype in (torch.bfloat16, torch.float16) else output
    if isinstance(output, tuple | list):
        items = [widened(each) for each in output]
        if all(one is other for one, other in zip(items, output, strict=True)):
            return output
        return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)
    held = output if isinstance(output, MutableMapping) else getattr(output, "__dict__", {})
    wide = {key: widened(value) for key, value in held.items()}
    changed = {key: value for key, value in wide.items() if value is not held[key]}
    if not changed:
        return output
    found = copy.copy(output)
    for key, value in changed.items():
        if isinstance(found, MutableMapping):
            found[key] = value
        else:
            object.__setattr__(found, key, value)
    return found
