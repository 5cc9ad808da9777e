"""A module of functions as a table of names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any


def public_functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that a module defines, by name; without those that it imports, and those that begin with `_`."""
    return {
        name: each
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
    }


def name_of(chosen: str | Callable[..., Any]) -> str:
    """What a message calls a repair that is a name of ours or a function of somebody's."""
    return chosen if isinstance(chosen, str) else str(getattr(chosen, "__name__", repr(chosen)))
