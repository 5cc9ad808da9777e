"""Values that a study file may hold: lines of text by language, and fields of a run as TOML says them."""

from __future__ import annotations

import unicodedata
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from depthscope.core.errors import shown
from depthscope.study.faults import FieldFaults

MAX_NESTING = 20
"""Tables within tables; a run's options have two."""

MAX_INTEGER = 2**63
"""TOML promises 64 bits."""


def one_line(text: str) -> str:
    """`text` as it came, if it holds no control characters.

    Raises:
        ValueError: it does.
    """
    bad = next((letter for letter in text if unicodedata.category(letter) == "Cc"), None)
    if bad is not None:
        raise ValueError(f"holds the control character {bad!r}; wanted one line of text.")
    return text


Line = Annotated[str, AfterValidator(one_line), Field(min_length=1, max_length=2000)]
"""Words for a page: no control characters, which no page or picture can show."""

Text = Annotated[dict[Literal["en", "zh"], Line], Field(min_length=1)]


def toml_values(values: dict[str, Any]) -> dict[str, Any]:
    """`values` as they came, if a study file can hold them and a record can repeat them.

    Raises:
        FieldFaults: a date, None, a number that is not finite, or an integer of more than 64 bits.
    """
    faults = [(key, f"a run has no such value: {shown(value)}.") for key, value in values.items() if not _plain(value)]
    if faults:
        raise FieldFaults(faults)
    return values


def _plain(value: Any, depth: int = 0) -> bool:
    if depth > MAX_NESTING:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _plain(each, depth + 1) for key, each in value.items())
    if isinstance(value, list | tuple):
        return all(_plain(each, depth + 1) for each in value)
    if isinstance(value, int | float):
        return -MAX_INTEGER <= value < MAX_INTEGER or (isinstance(value, float) and isfinite(value))
    return isinstance(value, str)


Overrides = Annotated[dict[str, Any], AfterValidator(toml_values)]
"""Fields of a run and their values; a dotted key such as `data_options.num_train` reaches into options."""


def one_or_list(value: Any) -> str:
    """Which member of a union of one value and a list is meant, so that a fault is told once."""
    return "<list>" if isinstance(value, list | tuple) else "<one>"
