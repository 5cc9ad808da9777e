"""Repairs of the user's own, as the families of ours and the training loop call them: by keyword."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from depthscope.core.errors import UserError
from depthscope.study.catalog import Kind, is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.usercode import call, check_signature

OFFERED: Mapping[Kind, tuple[str, ...]] = {
    "shortcut": ("site",),
    "norm": ("num", "spatial", "ends_branch"),
    "activation": ("depth",),
    "clip": ("model",),
}
"""What a function of each kind is offered; it takes what its signature names. Its options are passed beside it."""


def repair_of(spec: RunSpec, kind: Kind) -> str | Callable[..., Any]:
    """What a run's field `kind` stands for: a name of the catalogue, or the function of the user's that it names.

    Families of ours call that function by keyword, as they call their own; it passes on what its signature names, and
    messages call it by its target.
    """
    target = str(getattr(spec, kind))
    if not is_user_code(target):
        return target

    def make(**given: Any) -> Any:
        offered = {name: given.pop(name) for name in OFFERED[kind]}
        return _noted(target, kind, call(target, offered, given))

    make.__name__ = target
    return make


_MADE: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()
"""Module -> (what it is to its block, the function of the user's that made it), as long as it lives."""


def made_by(module: Any) -> tuple[str, str] | None:
    """(`skip`, `join`, `norm` or `activation`; the function of the user's that made it), or None for any other."""
    return _MADE.get(module)


def _noted(target: str, kind: Kind, made: Any) -> Any:
    """Note what a function made, and see that it made it anew.

    One module in two places has one name: it could not be measured or shut by the other. One in two networks would
    bring what the first has learned into the second.
    """
    from torch import nn

    from depthscope.models.shortcuts.shortcut import Shortcut

    parts = {"skip": made.skip, "join": made.join} if isinstance(made, Shortcut) else {kind: made}
    for part, module in parts.items():
        if not isinstance(module, nn.Module):
            continue  # none at all, or what the network itself refuses
        if module in _MADE:
            what = f" as {part}" if kind == "shortcut" else ""
            raise UserError(
                f"{target}: returned the same {type(module).__name__}{what} twice. Make a new module at each call; if "
                "places shall share a parameter, each one's module may hold it."
            )
        _MADE[module] = (part, target)
    return made


def check_repairs(spec: RunSpec) -> None:
    """See that the functions of the user's that a run names can be called with what is offered and its options.

    Raises:
        UserError: one cannot.
    """
    for kind, offered in OFFERED.items():
        target, options = str(getattr(spec, kind)), f"{kind}_options"
        if is_user_code(target):
            check_signature(target, offered, getattr(spec, options, {}), options if hasattr(spec, options) else "")
