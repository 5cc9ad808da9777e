"""What every data set says of an option out of its range: whose it is, and the field of a run that it stands in."""

from __future__ import annotations

from depthscope.core.errors import UserError


def held_out(name: str, validation: int, total: int) -> None:
    """Raise a UserError unless something is left to train on."""
    if not 0 <= validation < total:
        raise UserError(f"{name}: data_options.validation: wanted 0 to {total - 1} of the {total}, got {validation}.")


def at_least(name: str, value: float, low: int) -> None:
    """Raise a UserError unless `value` is `low` or more."""
    # `not >=` and not `<`, so that NaN is refused too.
    if not value >= low:
        raise UserError(f"{name}: wanted {low} or more, got {value}.")


def within(name: str, value: int, low: int, high: int, what: str = "") -> None:
    """Raise a UserError unless `low <= value <= high`; `what` says of what there are so many."""
    if not low <= value <= high:
        raise UserError(f"{name}: wanted {low} to {high}{what}, got {value}.")
