"""Shortcuts by name, or by a function of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from depthscope.core.errors import UserError, unknown_name
from depthscope.models.functions import name_of, public_functions
from depthscope.models.shortcuts import named
from depthscope.models.shortcuts.shortcut import Shortcut
from depthscope.models.site import Site

MakeShortcut = Callable[..., Shortcut | None]
"""`(site, **options)` -> the modules of one block's shortcut; None where nothing is added to the branch."""

SHORTCUTS: Mapping[str, MakeShortcut] = MappingProxyType(
    {
        **{name: make for name, make in public_functions(named).items() if not name.startswith("option_")},
        "identity_2": named.identity,
        "A": named.option_a,
        "A_pool": named.option_a_pool,
        "B": named.option_b,
        "C": named.option_c,
    }
)
"""Name -> its function: each public function of `named`, and those whose name in the catalogue is another."""


def make_shortcut(shortcut: str | MakeShortcut, site: Site, **options: Any) -> Shortcut | None:
    """The shortcut of one block; None for `none`, the plain control, where nothing is added to the branch.

    Raises:
        UserError: an unknown name, an option that this shortcut does not have, or a function that makes something
            else.
    """
    if callable(shortcut):
        made = shortcut(site=site, **options)
        if made is not None and not isinstance(made, Shortcut):
            raise UserError(
                f"shortcut {name_of(shortcut)}: returned {made!r}; wanted a depthscope.models.shortcuts.Shortcut, or "
                "None for a block without one."
            )
        return made
    if shortcut not in SHORTCUTS:
        raise UserError(unknown_name("shortcut", shortcut, SHORTCUTS))
    make = SHORTCUTS[shortcut]
    known = [each for each in inspect.signature(make).parameters if each != "site"]
    for option in options:
        if option not in known:
            raise UserError(unknown_name(f"option of shortcut {shortcut!r}", option, known))
    return make(site=site, **options)
