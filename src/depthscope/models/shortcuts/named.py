"""Shortcuts by name: each makes the two modules of one block.

A block with branch F computes `join(skip(x), F(x))`: `skip` brings x to the branch's shape, and `join` takes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from depthscope.models.site import Site


@dataclass(frozen=True, kw_only=True)
class Shortcut:
    """The modules of one block's shortcut.

    Attributes:
        skip: x -> s, of the branch's shape. The block holds it as `shortcut`.
        join: (s, f) -> y. The block holds it as `join`. Modules inside of it that hold measurable operands are named
            by `join.operands` (see `joins.Join`).
    """

    skip: nn.Module
    join: nn.Module


def make_shortcut(name: str, site: Site, **options: Any) -> Shortcut | None:
    """The shortcut of one block; None for `none`, the plain control, where nothing is added to the branch.

    Raises:
        UserError: an unknown name.
    """
    raise NotImplementedError
