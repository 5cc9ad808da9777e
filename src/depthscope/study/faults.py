"""What pydantic found wrong, in our words: one line a fault, with the path that it stands at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from depthscope.core.errors import nearest, shown, unknown_name


class FieldFaults(ValueError):
    """Faults that a validator of ours found, each with the path below the place that it validates."""

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{path}: {message}" if path else message for path, message in self.faults))


class Fault(NamedTuple):
    """One fault.

    Attributes:
        path: keys and list positions from the root of what was validated.
        kind: pydantic's type of error.
        message: one line; empty for an unknown key, since only the caller knows the known ones.
        tag: the `kind` of the claim that it lies in, where it lies in one.
    """

    path: tuple[str, ...]
    kind: str
    message: str
    tag: str | None = None


def found_in(error: ValidationError) -> list[Fault]:
    """The faults of a validation, without those that only follow from another."""
    faults = [fault for each in error.errors(include_url=False) for fault in _faults(each)]
    # A list of one faulty entry is also reported as a list that is too short.
    return [
        fault
        for fault in faults
        if fault.kind != "too_short" or not any(_below(other.path, fault.path) for other in faults)
    ]


def _below(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return len(path) > len(other) and path[: len(other)] == other


def _faults(each: Any) -> Iterator[Fault]:
    # Unions put the name of the member into the location: ours are written <so>, and claims have their kind.
    path = [str(part) for part in each["loc"] if str(part) != "[key]" and not str(part).startswith("<")]
    tag = path.pop(2) if len(path) > 2 and path[0] == "claims" and path[1].isdigit() else None
    cause = each.get("ctx", {}).get("error")
    if isinstance(cause, FieldFaults):
        for below, message in cause.faults:
            yield Fault((*path, *(below.split(".") if below else ())), each["type"], message, tag)
    else:
        yield Fault(tuple(path), each["type"], _words(each), tag)


_BY_LANGUAGE = ("title", "question", "recipe", "label", "note", "text")

_WANTED = {
    "string_type": "text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "list_type": "a list",
    "tuple_type": "a list",
}


def _words(fault: Any) -> str:
    kind, given, about = fault["type"], fault.get("input"), fault.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return ""
        case "missing":
            return "missing; it must be given."
        case "value_error":
            return str(about["error"])
        case "greater_than_equal":
            wanted = f"{_number(about['ge'])} or more"
        case "greater_than":
            wanted = f"more than {_number(about['gt'])}"
        case "less_than_equal":
            wanted = f"{_number(about['le'])} or less"
        case "less_than":
            wanted = f"less than {_number(about['lt'])}"
        case "too_short":
            wanted = "at least one entry" if about["min_length"] == 1 else f"at least {about['min_length']} entries"
        case "too_long":
            wanted = f"at most {about['max_length']} entries"
        case "string_pattern_mismatch" if "0-9a-f" in about["pattern"]:
            wanted = "16 small hexadecimal digits"
        case "string_pattern_mismatch":
            wanted = f"a name like {'tanh-48' if 'A-Z' not in about['pattern'] else 'ResNet-A'}"
            wanted += (
                " (letters, digits, hyphens)" if "A-Z" in about["pattern"] else " (small letters, digits, hyphens)"
            )
        case "literal_error":
            guess = nearest(given, _quoted(about["expected"])) if isinstance(given, str) else None
            return f"wanted {about['expected']}, got {shown(given)}." + (f" Did you mean {guess!r}?" if guess else "")
        case "union_tag_invalid":
            return unknown_name("kind of claim", str(about["tag"]), _quoted(about["expected_tags"]))
        case "union_tag_not_found":
            return "missing `kind`, which says what the claim compares."
        case "dict_type" if isinstance(given, str) and fault["loc"][-1] in _BY_LANGUAGE:
            written = json.dumps(given, ensure_ascii=False)
            return f"wanted a table, got {shown(given)}." + (
                f" Write {{ en = {written} }}." if len(written) <= 200 else " Write { en = ... } around it."
            )
        case _:
            if kind not in _WANTED:
                return f"{fault['msg']}; got {shown(given)}."
            wanted = _WANTED[kind]
    return f"wanted {wanted}, got {shown(given)}."


def _number(bound: float) -> str:
    return str(int(bound)) if float(bound).is_integer() else str(bound)


def _quoted(listing: str) -> list[str]:
    # pydantic lists names as `'a', 'b' or 'c'`.
    return listing.split("'")[1::2]


def in_order(faults: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each fault once, by path, with list positions in the order of numbers."""

    def key(fault: tuple[str, str]) -> tuple[list[tuple[int, int, str]], str]:
        parts = fault[0].split(".")
        return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts], fault[1]

    return sorted(set(faults), key=key)
