"""What a shortcut is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from depthscope.core.errors import UserError
from depthscope.models.shortcuts.joins import Join

OPERANDS = ("skip", "branch")
"""What `Join.added` may name."""


@dataclass(frozen=True, kw_only=True)
class Shortcut:
    """The modules of one block's shortcut.

    Attributes:
        skip: x -> s, of the branch's shape. The block holds it as `shortcut`.
        join: (s, f) -> y. The block holds it as `join`. Modules inside of it that hold measurable operands are named
            by `join.added` (see `joins.Join`).
        activated: of a pre-activation block, whether `skip` takes the normalised and activated x that the branch's
            first layer takes, rather than x itself.

    Raises:
        UserError: a part is something else, or `added` names no submodule of the join.
    """

    skip: nn.Module
    join: Join
    activated: bool = False

    def __post_init__(self) -> None:
        for part, kind in (("skip", nn.Module), ("join", Join)):
            given = getattr(self, part)
            if not isinstance(given, kind):
                of = "torch.nn.Module" if kind is nn.Module else "depthscope.models.shortcuts.Join"
                raise UserError(f"Shortcut: wanted a {of} for {part}, got {given!r}.")
        added: object = self.join.added
        if not isinstance(added, Mapping):
            raise UserError(
                f"{type(self.join).__name__}.added: wanted a mapping of 'skip' or 'branch' to the submodule of the "
                f"join that gives it, got {added!r}."
            )
        inside = {name for name, _ in self.join.named_modules()}
        for operand, name in self.join.added.items():
            if operand not in OPERANDS or name not in inside or not name:
                raise UserError(
                    f"{type(self.join).__name__}.added: wanted 'skip' or 'branch' and the submodule of the join that "
                    f"gives it, got {operand!r}: {name!r}."
                )
