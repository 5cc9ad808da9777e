"""Repairs of the user's own, as the families of ours and the training loop call them: by keyword."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
        return call(target, offered, given)

    make.__name__ = target
    return make


def check_repairs(spec: RunSpec) -> None:
    """See that the functions of the user's that a run names can be called with what is offered and its options.

    Raises:
        UserError: one cannot.
    """
    for kind, offered in OFFERED.items():
        target, options = str(getattr(spec, kind)), f"{kind}_options"
        if is_user_code(target):
            check_signature(target, offered, getattr(spec, options, {}), options if hasattr(spec, options) else "")
