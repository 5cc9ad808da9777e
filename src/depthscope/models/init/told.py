"""What a model tells of itself (`models.site.Deep`), for initialisers that go by it."""

from __future__ import annotations

from typing import Any

from torch import nn

from depthscope.core.errors import UserError


def told(model: nn.Module, method: str, meaning: str, asker: str) -> tuple[Any, ...]:
    """What `model.method()` returns.

    Args:
        model: of ours, or a user's.
        method: its name.
        meaning: what it names, for the message.
        asker: the setting that needs it, for the message.

    Raises:
        UserError: the model has no such method.
    """
    find = getattr(model, method, None)
    if not callable(find):
        raise UserError(
            f"{asker}: {type(model).__name__} has no method {method}() that names its {meaning}. "
            f"Give it one, or leave {asker} out."
        )
    return tuple(find())


def ends_of(model: nn.Module, asker: str) -> tuple[str, str]:
    """(stem, head): names of the weights of the first and of the last of the model's `points()`.

    Raises:
        UserError: it has no such method, or names no point.
    """
    points = told(model, "points", "weighted layers", asker)
    if not points:
        raise UserError(f"{asker}: {type(model).__name__}.points() names no layer.")
    return points[0].weight, points[-1].weight
