"""Writing over what is read: an activation over its input, an addition over its branch. It spares passes over memory.

A module of ours that has parts which may do so names them in `overwrites`: each one's input (of a join, the branch) was
made just before it, nothing else reads it, and no backward pass needs it: not that of what made it (a convolution, a
normaliser, an addition), nor that of the part itself (of a ReLU, whose gradient is read from its output).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Protocol

from torch import nn

from depthscope.models.shortcuts.joins import Add


class Overwriter(Protocol):
    """A module that can be told to overwrite what it reads."""

    inplace: bool


def declared(module: nn.Module, what: str) -> tuple[Any, ...]:
    """What the class of a module of ours declares of its parts under this name; nothing of anybody else's."""
    kind = type(module)
    ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return tuple(getattr(kind, what, ())) if ours else ()


def overwriters(model: nn.Module) -> tuple[Overwriter, ...]:
    """Those parts of a model that are named in some `overwrites` and can: ReLUs and plain additions."""
    named = [attrgetter(name)(module) for module in model.modules() for name in declared(module, "overwrites")]
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
