"""The one door for names: what each may be called in a study, what it means, and where it comes from.

Names are validated and suggested from the table in `study.entries` alone, so that a typing error is told
before torch is loaded. User code enters by the same kind of string: `"package.module:function"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from math import isfinite
from typing import Any

from depthscope.core.errors import shown, unknown_name
from depthscope.study.entries import CATALOG as CATALOG
from depthscope.study.entries import Backend as Backend
from depthscope.study.entries import Entry as Entry
from depthscope.study.entries import Kind as Kind
from depthscope.study.faults import FieldFaults

USER_KINDS: tuple[Kind, ...] = (*("family", "shortcut", "norm", "activation", "init", "data", "clip", "measure"),)
"""Kinds of names that may also be user code, `"package.module:function"`."""

_RESIDUAL = ("identity", "A")
ALSO_CALLED: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    "shortcut": {
        **dict.fromkeys(("residual", "skip", "resnet", "yes", "plus"), _RESIDUAL),
        **dict.fromkeys(("plain", "no", "off"), ("none",)),
    },
    "norm": dict.fromkeys(("bn", "batchnorm", "batch_norm"), ("batch",)),
    "family": dict.fromkeys(("resnet", "cnn", "convnet"), ("cifar_resnet",)) | {"fc": ("mlp",), "dense": ("mlp",)},
    "data": {"cifar": ("cifar10",), "cifar-10": ("cifar10",)},
}
"""What else people call a name, in small letters: for suggestions alone."""


def is_user_code(name: str) -> bool:
    """Whether `name` is of the form `package.module:function`."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def check_name(kind: Kind, name: str) -> str:
    """`name` as it came, if it is in the catalogue or names user code.

    Raises:
        ValueError: neither; the message names the nearest known name and all of them.
    """
    if name in CATALOG[kind] or (kind in USER_KINDS and is_user_code(name)):
        return name
    meant = ALSO_CALLED.get(kind, {}).get(name.casefold(), ())
    if meant:
        guess = " or ".join(f"{each!r} ({CATALOG[kind][each].summary})" for each in meant)
        raise ValueError(
            f"unknown {kind} {shown(name)}. Did you mean {guess}? Known: {', '.join(sorted(CATALOG[kind]))}."
        )
    message = unknown_name(kind, name, CATALOG[kind])
    module, dot, function = name.rpartition(".")
    if kind in USER_KINDS and dot and is_user_code(f"{module}:{function}"):
        message += f" Code of your own is named package.module:function, with a colon: {module + ':' + function!r}."
    raise ValueError(message)


def defaults(entry: Entry, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an entry where they are left away; those that follow another, beside what is given of it."""
    found = dict(entry.options)
    for key, (other, total) in entry.follows.items():
        value = given.get(other, found[other])
        if isinstance(value, int) and value > 0:
            found[key] = total // value
    return found


def fill_options(kind: Kind, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a name with defaults written out and numbers brought to the default's type.

    User code has no table of options: they are passed as they came.

    Raises:
        FieldFaults: options that the name does not have, or values of another type, out of their limits or
            not among their choices.
    """
    entry = CATALOG[kind].get(name)
    faults: list[tuple[str, str]] = []
    filled = deepcopy(defaults(entry, given)) if entry else {}
    for key, value in given.items():
        if entry and key not in entry.options:
            faults.append((key, unknown_name(f"option of {name}", key, entry.options)))
            continue
        try:
            filled[key] = _brought_to(entry.options[key], value) if entry else _plain(value)
            if entry and key in entry.limits:
                _check_limits(filled[key], entry.limits[key])
            if entry and key in entry.choices and filled[key] not in entry.choices[key]:
                raise ValueError(unknown_name(f"{key} of {name}", filled[key], entry.choices[key]))
        except ValueError as error:
            faults.append((key, str(error)))
    if faults:
        raise FieldFaults(faults)
    return filled


def _brought_to(default: Any, value: Any) -> Any:
    """`value` as a value of the default's type; an integer will do for a float."""
    if isinstance(default, float) and _is_number(value):
        return float(value)
    if isinstance(default, list) and isinstance(value, list | tuple) and all(_is_number(each) for each in value):
        return [float(each) for each in value]
    if type(value) is type(default) and not isinstance(default, float | list):
        return value
    wanted = {float: "a number", int: "an integer", bool: "true or false", str: "text"}.get(type(default))
    raise ValueError(f"wanted {wanted or 'a list of numbers'}, got {shown(value)}.")


def _plain(value: Any) -> Any:
    if isinstance(value, bool | str) or _is_number(value):
        return value
    if isinstance(value, list | tuple) and all(_is_number(each) for each in value):
        return [float(each) for each in value]
    raise ValueError(f"wanted text, a number, true or false, or a list of numbers, got {shown(value)}.")


def _is_number(value: Any) -> bool:
    # A file can hold integers that no float can: bounded first.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value)


def _check_limits(value: Any, interval: str) -> None:
    low, high = (float(end) for end in interval[1:-1].split(","))
    for each in value if isinstance(value, list) else [value]:
        above = each > low or (interval[0] == "[" and each == low)
        below = each < high or (interval[-1] == "]" and each == high)
        if not (above and below):
            raise ValueError(
                f"wanted {'numbers' if isinstance(value, list) else 'a value'} in {interval}, got {each!r}."
            )
