"""What a network of family `mlp` cannot have, of fields that are each valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def mlp_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field to mend, what is wrong).

    Args:
        values: the valid fields of a run; a rule over one that is absent is passed over.
    """
    yield from _branch_end_faults(values)
    yield from _bare_faults(values)


def _branch_end_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of the normaliser that ends branches, and of its scale where that is to start at 0."""
    zero = values.get("zero_last_gamma")
    normalised = values.get("model_options", {}).get("norm_ends_branch")
    if values.get("backend") == "numpy":
        if normalised:
            yield "model_options.norm_ends_branch", "the NumPy laboratory has no normaliser there; leave it away."
        if zero:
            yield "zero_last_gamma", "'mlp' has no such setting on numpy; leave it away."
    elif normalised and (values.get("shortcut") != "identity_2" or values.get("norm") not in ("batch", "layer")):
        yield "model_options.norm_ends_branch", "wants shortcut identity_2, and batch or layer for norm."
    elif zero and not normalised and values.get("shortcut") != "none":
        yield "zero_last_gamma", "no branch of 'mlp' ends in a normaliser; set model_options.norm_ends_branch too."


def _bare_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of a network of square layers alone, and of its last layer."""
    options = values.get("model_options", {})
    bare, linear = options.get("bare"), options.get("linear_end")
    shortcut = values.get("shortcut")
    if linear and (not bare or shortcut == "identity_2"):
        reason = "the last layer of identity_2" if bare else "the head"
        yield "model_options.linear_end", f"{reason} is linear already; leave it away."
    if not bare:
        return
    if values.get("backend") == "numpy":
        yield "model_options.bare", "the NumPy laboratory's networks have a stem and a head; choose backend torch."
    if shortcut == "dense":
        yield "model_options.bare", "the layers of 'dense' are not square; choose another shortcut."
    if values.get("stem_gain") is not None:
        yield "stem_gain", "a bare network has no stem; leave it away."
    if values.get("init") == "constructed":
        yield "init", "'constructed' puts layers between a stem and a head, and a bare network has none."
