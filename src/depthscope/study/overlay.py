"""Tables laid over one another: sizes over a study, arms over a part, a part over the base."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

Origins = dict[str, str]
"""Field of a run -> the path in the study file that its value comes from."""


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`: tables merge key by key, everything else is replaced.

    >>> merge({"lr": 0.1, "data_options": {"arms": 3, "noise": 0.1}}, {"data_options": {"arms": 5}})
    {'lr': 0.1, 'data_options': {'arms': 5, 'noise': 0.1}}
    """
    merged = deepcopy(dict(below))
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else deepcopy(value)
    return merged


def layered(*layers: tuple[Mapping[str, Any], str]) -> tuple[dict[str, Any], Origins]:
    """(the fields of a run, where each comes from) of overrides, later ones over earlier ones.

    Args:
        layers: each with its own path in the study file. A dotted key reaches into a table, and lies over
            the table of its own layer: the order of keys in a TOML file has no meaning.

    >>> layered(({"data_options.arms": 5, "data_options": {"arms": 3, "noise": 0.1}}, "base"))[0]
    {'data_options': {'arms': 5, 'noise': 0.1}}
    """
    values: dict[str, Any] = {}
    origins: Origins = {}
    for overrides, path in layers:
        for key, value in sorted(overrides.items(), key=lambda item: "." in item[0]):
            head, dot, tail = key.partition(".")
            if not (dot and isinstance(values.get(head), dict)):
                origins[head] = f"{path}.{key}"
            values = merge(values, {head: {tail: value}} if dot else {head: value})
            origins[key] = f"{path}.{key}"
            if isinstance(value, dict):
                origins.update({f"{key}.{inner}": f"{path}.{key}.{inner}" for inner in value})
    return values, origins


def origin(field: str, origins: Origins) -> str:
    """The path in the study file of a field such as `data_options.noise`; in `base` where nobody set it."""
    parts = field.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in origins:
            return ".".join([origins[head], *parts[length:]])
    return f"base.{field}"


def overlap(one: str, other: str) -> bool:
    """Whether two fields, with or without dots, are the same or one lies within the other.

    >>> overlap("data_options", "data_options.noise"), overlap("data_options.noise", "data_options")
    (True, True)
    >>> overlap("lr", "lr"), overlap("data", "data_options")
    (True, False)
    """
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
