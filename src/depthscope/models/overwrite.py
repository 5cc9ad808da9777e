"""Writing over what is read: an activation over its input, an addition over its branch. It spares passes over memory.

A module that has parts which may do so names them in `overwrites`: each one's input (of a join, the branch) was made
just before it, nothing else reads it, and no backward pass needs it: not that of what made it (a convolution, a
normaliser, an addition), nor that of the part itself (of a ReLU, whose gradient is read from its output).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Protocol

from torch import nn

from depthscope.models.shortcuts.joins import Add


class Overwriter(Protocol):
    """A module that can be told to overwrite what it reads."""

    inplace: bool


def overwriters(model: nn.Module) -> tuple[Overwriter, ...]:
    """Those parts of a model that are named in some `overwrites` and can: ReLUs and plain additions.

    >>> relu = nn.ReLU()
    >>> block = nn.Sequential(nn.Linear(2, 2), relu, nn.Tanh())
    >>> block.overwrites = ("1", "2")
    >>> overwriters(nn.Sequential(block, nn.ReLU())) == (relu,)
    True
    """
    named = [attrgetter(name)(module) for module in model.modules() for name in getattr(module, "overwrites", ())]
    return tuple(each for each in named if type(each) in (nn.ReLU, Add))


@contextlib.contextmanager
def overwriting(parts: Sequence[Overwriter]) -> Iterator[None]:
    """Inside, these parts overwrite what they read: for a forward pass and its backward pass, and no measurement."""
    for part in parts:
        part.inplace = True
    try:
        yield
    finally:
        for part in parts:
            part.inplace = False
